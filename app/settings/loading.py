"""How the layers become one value: defaults, `config.yaml`, the environment, the argument of the command."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from app.auth.static_key import API_KEY_VARIABLE, parse_static_key
from app.settings.declaring import NONE_WORD, ConfigError
from app.settings.file import leaves, unknown_key
from app.settings.machine import with_derived_defaults
from app.settings.model import Layer, Settings, Source, declared_settings, value_at

CONFIG_VARIABLE = "VAULT_MCP_CONFIG"
OIDC_SECRET_VARIABLE = "VAULT_MCP_OIDC_CLIENT_SECRET"  # noqa: S105 - a name
EMBEDDING_KEY_VARIABLE = "VAULT_MCP_EMBEDDING_API_KEY"
PACKAGE_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Given:
    """A value as one layer gives it, not yet checked."""

    value: object
    source: Source


def load_settings(vault_path: str | None, environ: Mapping[str, str], *, package_root: Path = PACKAGE_ROOT) -> Settings:
    """Merge defaults, `config.yaml`, the environment and the command's argument.

    Args:
        vault_path: The vault given on the command line; relative to the current folder, as in the environment.
            Paths in the file are relative to the file.

    Raises:
        ConfigError: What cannot be read, is unknown, does not fit or contradicts itself.
    """
    given = _from_file(environ, package_root) | _from_environment(environ)
    if vault_path is not None:
        given["vault.path"] = Given(_absolute(vault_path, Path.cwd()), Source(Layer.ARGUMENT))
    validated = _validated(given)
    settings = validated.model_copy(
        update={
            "webhook_secrets": {
                hook.secret_env: SecretStr(environ[hook.secret_env])
                for hook in validated.webhooks
                if environ.get(hook.secret_env)
            },
            "api_key": _api_key(environ),
            "embedding_api_key": _secret(environ, EMBEDDING_KEY_VARIABLE),
            "oidc_client_secret": _secret(environ, OIDC_SECRET_VARIABLE),
            "sources": {key: value.source for key, value in given.items()},
        }
    )
    return with_derived_defaults(settings, environ)


def _from_file(environ: Mapping[str, str], package_root: Path) -> dict[str, Given]:
    named = environ.get(CONFIG_VARIABLE)
    if named is not None and not named.strip():
        return {}
    file = package_root / "config.yaml" if named is None else Path(named.strip()).expanduser()
    if named is None and not file.exists():
        return {}
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{CONFIG_VARIABLE}: cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: is not UTF-8 text (byte {error.start})") from error
    given: dict[str, Given] = {}
    base = file.resolve().parent
    for key, value, line in leaves(file, text):
        source = Source(Layer.FILE, f"{file.name}, line {line}")
        declared = declared_settings().get(key)
        if declared is None:
            raise ConfigError(unknown_key(key, source.place))
        if key in given:
            first = given[key].source.place.rpartition(", ")[2]
            raise ConfigError(f"{key} ({source.place}): stands twice, first on {first}")
        if declared.is_path and isinstance(value, str):
            value = _absolute(value, base)
        given[key] = Given(value, source)
    return given


def _from_environment(environ: Mapping[str, str]) -> dict[str, Given]:
    given: dict[str, Given] = {}
    own_names = {declared.variable: key for key, declared in declared_settings().items()}
    for variable in environ:
        if variable.startswith("VAULT_MCP_") and "__" in variable and variable not in own_names and environ[variable]:
            key = variable.removeprefix("VAULT_MCP_").lower().replace("__", ".")
            raise ConfigError(unknown_key(key, f"{variable} in the environment"))
    for key, declared in declared_settings().items():
        set_here = [
            Given(
                _absolute(environ[name], Path.cwd()) if declared.is_path else environ[name],
                Source(Layer.ENVIRONMENT, name),
            )
            for name in (declared.kept_variable, declared.variable)
            if name is not None and (environ.get(name) or (declared.empty_counts and name in environ))
        ]
        match set_here:
            case [one]:
                given[key] = one
            case [kept, own]:
                if value_at(_validated({key: kept}), key) != value_at(_validated({key: own}), key):
                    raise ConfigError(f"{key}: {kept.source.place} and {own.source.place} differ; set one of them")
                given[key] = own
            case _:
                pass
    return given


def _absolute(path: str, base: Path) -> str:
    """`path` from `base`; `none` and blank texts are left for the later checks."""
    if not path.strip() or path.strip().lower() == NONE_WORD:
        return path
    try:
        return str(base / Path(path.strip()).expanduser())
    except RuntimeError:  # `~name` of nobody
        return str(base / path.strip())


def _validated(given: Mapping[str, Given]) -> Settings:
    sections: dict[str, Any] = {}  # a tree of sections, which pydantic checks
    for key, value in given.items():
        *path, name = key.split(".")
        section = sections
        for part in path:
            section = section.setdefault(part, {})
        section[name] = _emptied(key, value.value)
    try:
        return Settings.model_validate(sections)
    except ValidationError as error:
        finding = error.errors(include_input=False, include_url=False)[0]
        places = (".".join(map(str, finding["loc"][:depth])) for depth in range(1, len(finding["loc"]) + 1))
        key = next(place for place in places if place in given)
        message = finding["msg"].removeprefix("Value error, ")
        message = message[:1].lower() + message[1:]
        raise ConfigError(f"{key} ({given[key].source.place}): {message}") from None


def _emptied(key: str, value: object) -> object:
    """The value with `none` and null read as "empty" where a setting can be that."""
    declared = declared_settings()[key]
    is_none = value is None or (isinstance(value, str) and value.strip().lower() == NONE_WORD)
    if declared.empty_counts and isinstance(value, str) and not value.strip():
        is_none = True
    if declared.can_be_empty and is_none and not (declared.key == "server.state_dir" and value is None):
        return () if declared.is_list else None
    return "" if value is None else value


def _secret(environ: Mapping[str, str], variable: str) -> SecretStr | None:
    text = environ.get(variable, "").strip()
    return SecretStr(text) if text else None


def _api_key(environ: Mapping[str, str]) -> SecretStr | None:
    try:
        return parse_static_key(environ.get(API_KEY_VARIABLE, ""))
    except ValueError as error:
        raise ConfigError(f"{API_KEY_VARIABLE} {error}") from None
