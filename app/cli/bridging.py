"""`vault-mcp bridge`."""

import logging
import os
import sys
from typing import Annotated
from urllib.parse import urlsplit

import typer


def bridge(
    url: Annotated[str, typer.Argument(help="The MCP address of the server, such as https://vault.example.org/mcp.")],
) -> None:
    """Reach a server over HTTP from a client that only starts commands.

    Needs a token of that server in VAULT_MCP_TOKEN.
    """
    from app.client_configurations import TOKEN_VARIABLE
    from app.settings.declaring import ConfigError

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is no address; give one such as https://vault.example.org/mcp")
    if parts.username is not None or parts.password is not None:
        raise ConfigError(f"a credential does not belong into the address; put the token into {TOKEN_VARIABLE}")
    token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError(f"{TOKEN_VARIABLE} holds no token; `vault-mcp token create LABEL` at the server prints one")
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="vault-mcp: %(message)s")
    logging.getLogger("httpx2").setLevel(logging.ERROR)
    import anyio

    from app.mcp.bridge import serve_bridge

    anyio.run(serve_bridge, url, token)
