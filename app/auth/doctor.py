"""`vault-mcp auth doctor`: how well the way in is guarded, and what to do about the rest."""

from collections.abc import Iterator
from pathlib import Path

from app.auth.database import FILE_NAME
from app.auth.hosts import Host
from app.auth.static_key import weakness_of
from app.doctor import Finding, Verdict
from app.settings.model import Settings

_OTHERS = 0o077


def examine_access(settings: Settings) -> list[Finding]:
    """Every finding, in the order a person would go through them."""
    return [_key(settings), _origin(settings), *_modes(settings), _hosts(settings), _hops(settings)]


def _key(settings: Settings) -> Finding:
    if settings.api_key is None:
        return Finding(Verdict.WARN, "key", "VAULT_MCP_API_KEY is not set here", "set it where the server runs")
    weakness = weakness_of(settings.api_key)
    if weakness is not None:
        return Finding(Verdict.WARN, "key", f"it is weak: {weakness}", "make one with `openssl rand -hex 32`")
    return Finding(Verdict.OK, "key", "it is strong")


def _origin(settings: Settings) -> Finding:
    origin = settings.server.public_url
    if origin is None or settings.auth.oauth.enabled is False:
        return Finding(
            Verdict.WARN, "public origin", "signing in is off", "set PUBLIC_URL to the https address of this server"
        )
    if not origin.startswith("https://"):
        return Finding(
            Verdict.WARN,
            "public origin",
            f"{origin} is for programs on this computer alone",
            "claude.ai and others need an https address in PUBLIC_URL",
        )
    return Finding(Verdict.OK, "public origin", origin)


def _modes(settings: Settings) -> Iterator[Finding]:
    if settings.server.state_dir is None:
        yield Finding(
            Verdict.WARN,
            "state folder",
            "nothing says where credentials are kept",
            "name the vault (--vault, VAULT_PATH) or the folder (VAULT_MCP_SERVER__STATE_DIR)",
        )
        return
    folder = Path(settings.server.state_dir)
    for path, mode in ((folder, "700"), (folder / FILE_NAME, "600")):
        if not path.exists():
            yield Finding(Verdict.OK, "file modes", f"{path} is not there yet")
        elif path.stat().st_mode & _OTHERS:
            yield Finding(Verdict.BAD, "file modes", f"others may use {path}", f"chmod {mode} {path}")
        else:
            yield Finding(Verdict.OK, "file modes", f"{path} is its owner's alone")


def _hosts(settings: Settings) -> Finding:
    hosts = settings.server.allowed_hosts
    if "*" in hosts:
        return Finding(
            Verdict.WARN, "hosts", "`*` switches the check against DNS rebinding off", "name the hosts instead"
        )
    return Finding(Verdict.OK, "hosts", f"loopback, the public origin's{''.join(f', {host}' for host in hosts)}")


def _hops(settings: Settings) -> Finding:
    server = settings.server
    proxy, forwarded = server.trust_proxy_hops, server.trust_forwarded_hops
    if proxy or forwarded:
        said = f"X-Forwarded-For {proxy}, Forwarded {forwarded}"
        if not Host(server.host.lower()).is_loopback:
            return Finding(
                Verdict.WARN,
                "trusted hops",
                f"{said}, and {server.host} may be reached around the proxies: by who chooses the address that counts",
                "let only the proxy reach the port, with BIND_HOST=127.0.0.1 or a network of its own",
            )
        return Finding(Verdict.OK, "trusted hops", f"{said}: right only if no way leads around those proxies")
    if server.public_url is not None and server.public_url.startswith("https://"):
        return Finding(
            Verdict.WARN,
            "trusted hops",
            "none, although https is spoken by something in front: all clients share the limits of one address",
            "set TRUST_PROXY_HOPS to the number of proxies, 1 for one; see docs/proxies.md",
        )
    return Finding(Verdict.OK, "trusted hops", "none: clients count by the address that connects")
