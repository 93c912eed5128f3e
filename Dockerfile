# syntax=docker/dockerfile:1
FROM python:3.12-slim AS build
WORKDIR /src
RUN pip install --no-cache-dir uv==0.13.9
COPY pyproject.toml uv.lock README.md LICENSE NOTICE ./
COPY app app
COPY operations operations
ENV UV_PROJECT_ENVIRONMENT=/opt/vault-mcp UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy
RUN uv sync --frozen --no-dev --no-editable

FROM python:3.12-slim
LABEL org.opencontainers.image.title="Vault MCP" \
      org.opencontainers.image.description="REST and MCP over one Obsidian vault" \
      org.opencontainers.image.licenses="MIT"
RUN useradd --uid 1000 --create-home --shell /usr/sbin/nologin vault \
    && mkdir -p /vault /data \
    && chown vault:vault /vault /data
COPY --from=build /opt/vault-mcp /opt/vault-mcp
ENV PATH=/opt/vault-mcp/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    VAULT_PATH=/vault \
    BIND_HOST=0.0.0.0 \
    VAULT_MCP_SERVER__STATE_DIR=/data
USER vault
VOLUME ["/vault", "/data"]
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request, os; urllib.request.urlopen('http://127.0.0.1:' + os.environ.get('BIND_PORT', '8080') + '/healthz', timeout=4)"]
ENTRYPOINT ["vault-mcp"]
CMD ["serve"]
