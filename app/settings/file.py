"""Reading `config.yaml`: every value with the line it stands on."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from pathlib import Path

import yaml

from app.auth.static_key import API_KEY_VARIABLE
from app.settings.declaring import ConfigError
from app.settings.model import declared_settings

_SECRET_WORDS = frozenset({"api_key", "client_secret", "key", "password", "secret", "token"})


def leaves(file: Path, text: str) -> Iterator[tuple[str, object, int]]:
    """Key, value and line (1-based) of every setting in a file; sections without keys are skipped."""
    loader = yaml.SafeLoader(text)
    try:
        for key, name, value in _nodes_below(loader.get_single_node(), file, ""):
            yield key, loader.construct_object(value, deep=True), name.start_mark.line + 1
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        # The library's own words can repeat text of the file, which may be a secret.
        raise ConfigError(f"{file.name}{place}: is not valid YAML") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{file.name}: is not valid YAML") from error
    except (ValueError, RecursionError) as error:  # an impossible date; a file that nests without end
        raise ConfigError(f"{file.name}: holds a value that YAML cannot express") from error
    finally:
        loader.dispose()


def _nodes_below(node: yaml.Node | None, file: Path, prefix: str) -> Iterator[tuple[str, yaml.ScalarNode, yaml.Node]]:
    for name, body in _pairs(node, file, prefix):
        key = f"{prefix}{name.value}"
        if key not in section_keys() and (prefix or key in declared_settings()):
            yield key, name, body
            continue
        if key not in section_keys() and (_is_null(body) or not body.value):
            raise ConfigError(unknown_key(key, f"{file.name}, line {name.start_mark.line + 1}"))
        yield from _nodes_below(body, file, f"{key}.")


def _pairs(node: yaml.Node | None, file: Path, prefix: str) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
    if node is None or _is_null(node):
        return []
    if not isinstance(node, yaml.MappingNode):
        if prefix:
            key = prefix.removesuffix(".")
            raise ConfigError(_not_a_section(key, f"{file.name}, line {node.start_mark.line + 1}"))
        raise ConfigError(f"{file.name}, line {node.start_mark.line + 1}: must hold sections such as `server:`")
    pairs: list[tuple[yaml.ScalarNode, yaml.Node]] = []
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise ConfigError(f"{file.name}, line {key.start_mark.line + 1}: a key must be a plain word")
        pairs.append((key, value))
    return pairs


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _not_a_section(key: str, place: str) -> str:
    if any(declared.startswith(f"{key}.") for declared in declared_settings()):
        return f"{key} ({place}): must hold keys, one a line"
    return unknown_key(key, place)


@cache
def section_keys() -> frozenset[str]:
    """`server`, `periodic`, `periodic.daily`, …"""
    keys = (key.split(".") for key in declared_settings())
    return frozenset(".".join(parts[:depth]) for parts in keys for depth in range(1, len(parts)))


def unknown_key(key: str, place: str) -> str:
    if key.rpartition(".")[2].lower() in _SECRET_WORDS or key.lower().endswith("api_key"):
        return f"{key} ({place}): secrets come from the environment only; set {API_KEY_VARIABLE} and remove this line"
    return f"{key} ({place}): is no setting{nearest(key, declared_settings())}"


def nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    sections = sorted({key.partition(".")[0] for key in names})
    without_section = [each for each in names if each.rpartition(".")[2] == name]
    near = without_section or get_close_matches(name, names if "." in name else [*names, *sections], n=1, cutoff=0.5)
    return f"; the nearest is {near[0]}" if near else ""
