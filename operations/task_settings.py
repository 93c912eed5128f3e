"""What the settings of Obsidian and of its Tasks plugin say about tasks.

Source: tasks.md §4, §7 (excluded files), §11.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from operations.index.task_rows import TaskRules
from operations.markdown.task_arguments import TaskSettings
from operations.markdown.task_fields import FieldFormat
from operations.markdown.task_status import DEFAULT_REGISTRY, StatusEntry, StatusRegistry
from operations.obsidian_settings import Members, ObsidianSettings
from operations.store.tree import ObsidianFile

DEFAULT_TAB_SIZE: Final = 4
_MOST_TAB_SIZE: Final = 16
_REMEMBERED_ANSWERS: Final = 65_536


def task_rules(obsidian: ObsidianSettings) -> TaskRules:
    """What counts as a task; read once at start, so that listings and edits always agree."""
    plugin = obsidian.members(ObsidianFile.TASKS)
    return TaskRules(statuses=_registry(plugin.object("statusSettings")), global_filter=_global_filter(plugin))


def task_settings(obsidian: ObsidianSettings, statuses: StatusRegistry) -> TaskSettings:
    """How tasks are written, as the settings stand now."""
    plugin, app = obsidian.members(ObsidianFile.TASKS), obsidian.members(ObsidianFile.APP)
    return TaskSettings(
        registry=statuses,
        form=FieldFormat.DATAVIEW if plugin.text("taskFormat") == "dataview" else FieldFormat.EMOJI,
        sets_done_date=plugin.switch("setDoneDate", default=True),
        sets_cancelled_date=plugin.switch("setCancelledDate", default=True),
        sets_created_date=plugin.switch("setCreatedDate", default=False),
        recurs_on_next_line=plugin.switch("recurrenceOnNextLine", default=False),
        removes_scheduled_date=plugin.switch("removeScheduledDateOnRecurrence", default=False),
        global_filter=_global_filter(plugin),
        indent_unit=_indent_unit(app),
    )


@dataclass(frozen=True, slots=True)
class ExcludedFiles:
    """Obsidian's excluded files: beginnings of paths, and expressions that paths are searched for."""

    prefixes: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()

    def matching(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Those of the paths that an expression finds; one that cannot be read finds none."""
        return tuple(path for path in paths if any(_finds(each, path) for each in self.expressions))


def excluded_files(obsidian: ObsidianSettings) -> ExcludedFiles:
    """`userIgnoreFilters` as it stands now."""
    filters = [each for each in obsidian.members(ObsidianFile.APP).texts("userIgnoreFilters") if each]
    is_expression = [len(each) > 1 and each[0] == each[-1] == "/" for each in filters]
    return ExcludedFiles(
        prefixes=tuple(each for each, is_one in zip(filters, is_expression, strict=True) if not is_one),
        expressions=tuple(each[1:-1] for each, is_one in zip(filters, is_expression, strict=True) if is_one),
    )


@lru_cache(maxsize=_REMEMBERED_ANSWERS)
def _finds(expression: str, path: str) -> bool:
    # Paths are short and the expression is the owner's, so nothing here needs a time limit.
    try:
        return re.search(expression, path) is not None
    except (re.error, RecursionError, OverflowError):
        return False


def _registry(settings: Members) -> StatusRegistry:
    entries = [*_entries(settings, "coreStatuses"), *_entries(settings, "customStatuses")]
    return StatusRegistry.of(entries) if entries else DEFAULT_REGISTRY


def _entries(settings: Members, key: str) -> Iterator[StatusEntry]:
    for entry in settings.objects(key):
        if symbol := entry.exact_text("symbol"):
            yield StatusEntry(symbol, entry.exact_text("nextStatusSymbol"), entry.exact_text("type"))


def _global_filter(plugin: Members) -> str:
    return plugin.exact_text("globalFilter")


def _indent_unit(app: Members) -> str:
    if app.switch("useTab", default=True):
        return "\t"
    size = app.whole("tabSize", DEFAULT_TAB_SIZE)
    return " " * (size if 1 <= size <= _MOST_TAB_SIZE else DEFAULT_TAB_SIZE)
