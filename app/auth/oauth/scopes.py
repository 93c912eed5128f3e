"""Scopes and resources: what a client may ask for, and which of it are ours (auth-and-security.md §5.4)."""

from typing import Final
from urllib.parse import urlsplit

FULL: Final = "vault"
READ: Final = "vault:read"
OFFLINE: Final = "offline_access"
SUPPORTED: Final = (FULL, READ, OFFLINE)
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def granted_scope(asked: str | None) -> str:
    """What is granted of a scope text: unknown words are dropped, one of the vault's scopes is always there."""
    words = set((asked or "").split())
    vault = READ if READ in words and FULL not in words else FULL
    return f"{vault} {OFFLINE}" if OFFLINE in words else vault


def read_only_scope(scope: str) -> str:
    """The same scope without writing."""
    return " ".join(READ if word == FULL else word for word in scope.split())


def is_read_only(scope: str) -> bool:
    """Whether a scope gives no writing."""
    return FULL not in scope.split()


def is_our_resource(resource: str, origin: str) -> bool:
    """Whether a `resource` parameter (RFC 8707) means this server: its origin, `/mcp`, or below `/mcp/only/`."""
    if "#" in resource or "?" in resource:
        return False
    try:
        parts = urlsplit(resource)
        port = parts.port
    except ValueError:
        return False
    if "@" in parts.netloc or not parts.hostname:
        return False
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown_port = "" if port is None or port == _DEFAULT_PORTS.get(parts.scheme) else f":{port}"
    if f"{parts.scheme}://{host}{shown_port}" != origin:
        return False
    path = parts.path.removesuffix("/")
    return path in ("", "/mcp") or path.startswith("/mcp/only/")
