"""Settings whose default depends on the machine, the platform or the vault."""

import hashlib
import os
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from app.auth.hosts import parse_host, parse_public_origin
from app.settings.declaring import ConfigError
from app.settings.model import Layer, Settings, Source


def with_derived_defaults(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Fill the settings whose default depends on the machine, the platform or the vault."""
    public_url, place = _public_url(settings, environ)
    sources = dict(settings.sources)
    if place:
        sources["server.public_url"] = Source(Layer.ENVIRONMENT, place)
    server: dict[str, object] = {"public_url": public_url}
    if settings.server.worker_threads is None:
        server["worker_threads"] = min(32, 4 * (os.cpu_count() or 1))
    vault: dict[str, object] = {}
    index: dict[str, object] = {}
    path = settings.vault.path
    if path is not None:
        if not path.is_dir():
            place = sources.get("vault.path", Source(Layer.DEFAULT)).place or "argument"
            raise ConfigError(f"vault.path ({place}): {path} is no folder")
        real = path.resolve()
        name = settings.vault.name or real.name or "vault"
        vault = {"path": path, "name": name}
        state_dir = settings.server.state_dir or _platform_state_folder(environ) / "vault-mcp" / _state_name(name, real)
        if state_dir.resolve().is_relative_to(real):
            raise ConfigError(f"server.state_dir: {state_dir} lies inside the vault; choose a folder outside of it")
        server["state_dir"] = state_dir
        if settings.index.cache_path is not None:
            index["cache_path"] = state_dir / settings.index.cache_path.expanduser()
    return settings.model_copy(
        update={
            "vault": settings.vault.model_copy(update=vault),
            "server": settings.server.model_copy(update=server),
            "index": settings.index.model_copy(update=index),
            "sources": sources,
        }
    )


def _public_url(settings: Settings, environ: Mapping[str, str]) -> tuple[str | None, str]:
    """The public origin and the platform's variable it was taken from, if any (auth-and-security.md §4.4)."""
    if settings.server.public_url is not None:
        return settings.server.public_url, ""
    for variable, prefix in (("RENDER_EXTERNAL_URL", ""), ("RAILWAY_PUBLIC_DOMAIN", "https://")):
        if environ.get(variable):
            try:
                return str(parse_public_origin(prefix + environ[variable].strip())), variable
            except ValueError as error:
                raise ConfigError(f"server.public_url ({variable} in the environment): {error}") from None
    try:
        on_loopback = parse_host(settings.server.host).is_loopback
    except ValueError:  # a bare IPv6 address has no brackets here
        on_loopback = settings.server.host == "::1"
    return (f"http://127.0.0.1:{settings.server.port}" if on_loopback else None), ""


def local_timezone() -> tzinfo:
    """The zone of this machine, its changes to summer time included where the machine tells them."""
    named = os.environ.get("TZ", "").removeprefix(":")
    with suppress(ZoneInfoNotFoundError, ValueError, OSError):
        if named:
            return ZoneInfo(named)
        with Path("/etc/localtime").open("rb") as file:
            return ZoneInfo.from_file(file)
    return datetime.now().astimezone().tzinfo or UTC


def _platform_state_folder(environ: Mapping[str, str]) -> Path:
    # The XDG base directory rules: a relative value is to be ignored.
    named = Path(environ.get("XDG_STATE_HOME", ""))
    if named.is_absolute():
        return named
    home = Path(environ.get("HOME") or Path.home())
    return home / "Library" / "Application Support" if sys.platform == "darwin" else home / ".local" / "state"


def platform_cache_folder(environ: Mapping[str, str]) -> Path:
    """Where the platform keeps what can be fetched again."""
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    if named.is_absolute():
        return named
    home = Path(environ.get("HOME") or Path.home())
    return home / "Library" / "Caches" if sys.platform == "darwin" else home / ".cache"


def _state_name(name: str, real: Path) -> str:
    """A folder name of its own for every vault: a readable part and a hash of where the vault lies."""
    readable = re.sub(r"[^\w.-]+", "-", name).strip("-.")[:40] or "vault"
    return f"{readable}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"
