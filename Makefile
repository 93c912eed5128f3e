# Every target runs in the environment of the lock file. `make check` is what CI runs.
UV ?= uv
RUN = $(UV) run --frozen

.PHONY: dev format lint types test openapi check lowest bench

dev:
	$(UV) sync --frozen

format:
	$(RUN) ruff check --fix --quiet .
	$(RUN) ruff format .

lint:
	$(RUN) ruff check .
	$(RUN) ruff format --check .

types:
	$(RUN) mypy
	$(RUN) pyright --pythonpath .venv/bin/python

test:
	PYTHONWARNDEFAULTENCODING=1 $(RUN) pytest -n auto --dist loadfile

openapi:
	$(RUN) vault-mcp openapi > openapi.yaml

bench:
	$(RUN) python -m tests.benchmarks

lowest:
	$(UV) run --isolated --resolution lowest-direct --no-dev --with pytest --with hypothesis --with httpx pytest -q -m "not slow"

check: lint types test
