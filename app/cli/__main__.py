"""`python -m app.cli`: the same as `vault-mcp`."""

from app.cli.main import main

main()
