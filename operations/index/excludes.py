"""What Obsidian's own settings leave out of search."""

import json
from contextlib import suppress

from operations.errors import VaultError
from operations.markdown.yaml_nodes import JsonValue
from operations.store.paths import FolderPath
from operations.store.tree import ObsidianFile, Tree


def obsidian_excludes(tree: Tree) -> list[FolderPath]:
    """The prefixes that Obsidian's own setting leaves out of search; expressions (`/…/`) are not followed.

    Source: search.md §6.
    """
    data = tree.read_settings(ObsidianFile.APP)
    if data is None:
        return []
    try:
        settings: JsonValue = json.loads(data)
    except ValueError:
        return []
    filters = settings.get("userIgnoreFilters") if isinstance(settings, dict) else None
    prefixes: list[FolderPath] = []
    for written in filters if isinstance(filters, list) else []:
        if not isinstance(written, str) or (len(written) > 1 and written[0] == written[-1] == "/"):
            continue
        with suppress(VaultError):
            prefixes.append(FolderPath(written))
    return [prefix for prefix in prefixes if prefix]
