"""Where the note of a day, week, month, quarter or year lives, and which folder daily notes make special.

Read anew on every call from the server's settings and Obsidian's.

Source: periodic-notes.md §2, §7.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import partial
from typing import Final, Protocol

from operations.entries import require_creatable
from operations.errors import ErrorCode, VaultError
from operations.markdown.dates import (
    ISO_WEEK,
    WEEKDAYS,
    WeekRule,
    format_moment,
    format_names,
    has_bare_words,
    moment_parser,
)
from operations.note_text import displayable
from operations.obsidian_settings import Members, ObsidianSettings
from operations.periods import Period
from operations.store.paths import FolderPath, VaultPath
from operations.store.tree import ObsidianFile
from operations.vault import Vault, VaultConfig

DEFAULT_FORMATS: Final = {
    Period.DAILY: "YYYY-MM-DD",
    Period.WEEKLY: "gggg-[W]ww",
    Period.MONTHLY: "YYYY-MM",
    Period.QUARTERLY: "YYYY-[Q]Q",
    Period.YEARLY: "YYYY",
}
FALLBACK_FOLDER: Final = "Daily Notes"
_FALLBACK_FORMATS: Final = {**DEFAULT_FORMATS, Period.WEEKLY: "GGGG-[W]WW"}
_BETA_SECTIONS: Final = {
    Period.DAILY: "day",
    Period.WEEKLY: "week",
    Period.MONTHLY: "month",
    Period.QUARTERLY: "quarter",
    Period.YEARLY: "year",
}
_PERIODIC_NOTES: Final = "periodic-notes"
_CALENDAR: Final = "calendar"
_DAILY_NOTES: Final = "daily-notes"
_FIRST_WEEK: Final = 6
"""Moment's `doy` of its English calendar, which the plugins leave alone when they set the first day of the week."""

_MAX_NAME_LENGTH: Final = 512
"""No name of a day is longer; bounds what a hostile link can ask of a format's pattern."""
_WEEKDAY_NAMES: Final = tuple(name.lower() for name in WEEKDAYS)
_SAMPLE_DAY: Final = datetime(2026, 3, 7)  # noqa: DTZ001 - any day, on no clock
_SLASHES = re.compile(r"[/\\]+")  # "/", "//", "\", "\/"


class HasSettings(Protocol):
    """What says where notes live: an open vault, or for `doctor` the settings alone."""

    @property
    def config(self) -> VaultConfig:
        """The owner's settings."""
        ...

    @property
    def obsidian(self) -> ObsidianSettings:
        """Obsidian's."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """Where the notes of one period live."""

    period: Period
    folder: str
    """In its folder form; empty for the root."""
    format: str
    template: str
    """Path or name of the template note; empty for none."""
    folder_setting: str
    """Who says so, for messages."""
    format_setting: str
    is_own_folder: bool = True
    """Somebody chose the folder for these notes; false where a blank ended up in the place for all new notes."""
    problems: tuple[str, ...] = ()
    """Settings files that could have decided the folder and cannot be read."""


def place_of(vault: HasSettings, period: Period) -> Place:
    """Folder, format and template as the settings stand now.

    Source: periodic-notes.md §2.
    """
    place = _place_in_obsidian(vault, period)
    given = vault.config.periodic.get(period.value)
    if given is None:
        return place
    prefix = f"periodic.{period}"
    if given.folder is not None:
        place = replace(place, folder=given.folder, folder_setting=f"{prefix}.folder", is_own_folder=True, problems=())
    if given.format is not None:
        place = replace(place, format=given.format, format_setting=f"{prefix}.format")
    return place if given.template is None else replace(place, template=given.template)


def week_rule(vault: HasSettings) -> WeekRule:
    """How weeks are counted, as the settings stand now.

    Source: periodic-notes.md §2, "Weeks".
    """
    chosen = vault.config.week_start
    if chosen == "iso":
        return ISO_WEEK
    if chosen in _WEEKDAY_NAMES:
        return WeekRule(_WEEKDAY_NAMES.index(chosen), _FIRST_WEEK)
    for plugin, file in ((_CALENDAR, ObsidianFile.CALENDAR), (_PERIODIC_NOTES, ObsidianFile.PERIODIC_NOTES)):
        if vault.obsidian.lists_plugin(plugin):
            named = vault.obsidian.members(file).text("weekStart").lower()
            if named in _WEEKDAY_NAMES:
                return WeekRule(_WEEKDAY_NAMES.index(named), _FIRST_WEEK)
    return WeekRule()


def note_path(vault: Vault, place: Place, day: date, week: WeekRule) -> VaultPath:
    """The note of the period that holds `day`.

    Raises:
        VaultError: `invalid_path` naming the setting and the text that came of it.

    Source: periodic-notes.md §2, "Path".
    """
    rendered = format_moment(datetime.combine(day, time.min, vault.config.timezone), place.format, week)
    text = path_text(place.folder, rendered)
    try:
        return VaultPath(text)
    except VaultError as refusal:
        raise _unusable(place, text, refusal) from refusal


def require_creatable_note(vault: Vault, place: Place, path: VaultPath) -> None:
    """Refuse to make a note whose name some platform cannot hold.

    Raises:
        VaultError: `invalid_path` naming the setting and the text that came of it.
    """
    try:
        require_creatable(vault, path)
    except VaultError as refusal:
        raise _unusable(place, path, refusal) from refusal


def path_text(folder: str, rendered: str) -> str:
    """The path that a folder and a rendered format make, before any rule was asked."""
    name = rendered if rendered.lower().endswith(".md") else f"{rendered}.md"
    segments = (*folder.split("/"), *name.split("/"))
    return unicodedata.normalize("NFC", "/".join(segment for segment in segments if segment not in ("", ".")))


def note_name(place: Place, week: WeekRule, moment: datetime) -> str:
    """The file name, without `.md`, of the note that a moment belongs to."""
    return VaultPath(path_text("", format_moment(moment, place.format, week))).stem


def require_usable_format(form: str) -> None:
    """Refuse a format that makes no name of a day.

    Raises:
        VaultError: `invalid_path` saying what came of it.
    """
    VaultPath(path_text("", format_moment(_SAMPLE_DAY, form)))


def folder_form(raw: str) -> str:
    """A folder as Obsidian's settings may spell it: white space, no-break spaces and slashes set right.

    Source: periodic-notes.md §2, "Folder form".
    """
    text = raw.strip().replace("\u00a0", " ").replace("\u202f", " ")
    return unicodedata.normalize("NFC", _SLASHES.sub("/", text).strip("/"))


def guarded_daily_folder(vault: Vault) -> FolderPath | None:
    """The daily folder as far as it must be protected.

    Raises:
        VaultError: `settings_unreadable` when a settings file that could name the folder cannot be read.

    Source: periodic-notes.md §7.
    """
    place = place_of(vault, Period.DAILY)
    if place.problems:
        raise VaultError(
            ErrorCode.SETTINGS_UNREADABLE,
            f"which folder holds the daily notes is unknown, so nothing is deleted or moved: {place.problems[0]}; "
            "repair the file, or set DAILY_NOTES_FOLDER or PROTECTED_PATHS",
        )
    return _special_folder(place)


def orphan_folder(vault: Vault) -> tuple[FolderPath | None, str | None]:
    """The daily folder whose notes are no orphans, and what there is to warn of.

    Source: periodic-notes.md §7.
    """
    place = place_of(vault, Period.DAILY)
    if place.problems:
        return FolderPath(FALLBACK_FOLDER), f"{place.problems[0]}; '{FALLBACK_FOLDER}' is taken for the daily folder"
    return _special_folder(place), None


class ForwardReferences:
    """Tells links to daily notes that are still to come from other links that reach nothing.

    Source: links-and-moves.md §3.2, periodic-notes.md §7.
    """

    def __init__(self, vault: Vault) -> None:
        place = place_of(vault, Period.DAILY)
        names = format_names(place.format)
        self._readers = [moment_parser("/".join(names[-count:])) for count in range(1, len(names) + 1)]
        """Of the file name, of the name with its folder, …"""
        self._today = today_in(vault)
        self._path_on = partial(note_path, vault, place, week=week_rule(vault))

    def has(self, target: str) -> bool:
        """Whether a path that reaches nothing reads as the daily note of today or of a later day."""
        text = unicodedata.normalize("NFC", target.removeprefix("/"))
        wanted = text[:-3] if text.lower().endswith(".md") else text
        segments = wanted.split("/")
        for count, day_named_by in enumerate(self._readers[: len(segments)], 1):
            name = "/".join(segments[-count:])
            day = day_named_by(name) if len(name) <= _MAX_NAME_LENGTH else None
            if day is not None and day >= self._today:
                try:
                    path = self._path_on(day)
                except VaultError:
                    return False
                return f"/{path}".casefold().endswith(f"/{wanted}.md".casefold())
        return False


def today_in(vault: Vault) -> date:
    """Today in the server's zone."""
    return vault.clock().astimezone(vault.config.timezone).date()


def format_warnings(vault: HasSettings) -> Iterator[str]:
    """Formats that hold bare words, which moment renders letter by letter."""
    for period in Period:
        place = place_of(vault, period)
        if has_bare_words(place.format):
            sample = format_moment(_SAMPLE_DAY, place.format, week_rule(vault))
            yield (
                f"{place.format_setting} holds words outside brackets: '{displayable(place.format)}' makes "
                f"'{displayable(sample)}'; write them as [word]"
            )


def _special_folder(place: Place) -> FolderPath | None:
    if not place.folder or not place.is_own_folder:
        return None
    try:
        return FolderPath(place.folder)
    except VaultError:
        return None  # nothing that the vault shows can lie in such a folder


def _unusable(place: Place, text: str, refusal: VaultError) -> VaultError:
    return VaultError(
        ErrorCode.INVALID_PATH,
        f"{place.format_setting} '{displayable(place.format)}' in the folder '{displayable(place.folder)}' of "
        f"{place.folder_setting} gives the path '{displayable(text)}': {refusal.message}",
    )


def _place_in_obsidian(vault: HasSettings, period: Period) -> Place:
    """The first of Obsidian's sources that applies, else the fallback."""
    problems: list[str] = []
    for source in (_of_periodic_notes, _of_calendar, _of_daily_notes):
        place = source(vault, period, problems)
        if place is not None:
            return replace(place, problems=tuple(problems))
    folder = FALLBACK_FOLDER if period is Period.DAILY else ""
    default = "the default"
    return Place(period, folder, _FALLBACK_FORMATS[period], "", default, default, problems=tuple(problems))


def _of_periodic_notes(vault: HasSettings, period: Period, problems: list[str]) -> Place | None:
    _note_problem(vault, ObsidianFile.COMMUNITY_PLUGINS, problems)
    if not vault.obsidian.lists_plugin(_PERIODIC_NOTES):
        return None
    _note_problem(vault, ObsidianFile.PERIODIC_NOTES, problems)
    data = vault.obsidian.members(ObsidianFile.PERIODIC_NOTES)
    template = "template"
    section = data.object(period.value)
    if isinstance(data.values.get("calendarSets"), list):
        active = data.text("activeCalendarSet")
        sets = [one for one in data.objects("calendarSets") if one.text("id") == active]
        section = sets[0].object(_BETA_SECTIONS[period]) if sets else Members({})
        template = "templatePath"
    if not section.switch("enabled", default=False):
        return None
    return _place(period, section, ("folder", "format", template), "Periodic Notes")


def _of_calendar(vault: HasSettings, period: Period, _problems: list[str]) -> Place | None:
    if period is not Period.WEEKLY or not vault.obsidian.lists_plugin(_CALENDAR):
        return None
    data = vault.obsidian.members(ObsidianFile.CALENDAR)
    return _place(period, data, ("weeklyNoteFolder", "weeklyNoteFormat", "weeklyNoteTemplate"), "Calendar")


def _of_daily_notes(vault: HasSettings, period: Period, problems: list[str]) -> Place | None:
    if period is not Period.DAILY:
        return None
    _note_problem(vault, ObsidianFile.CORE_PLUGINS, problems)
    if vault.obsidian.switches_off(_DAILY_NOTES):
        return None
    _note_problem(vault, ObsidianFile.DAILY_NOTES, problems)
    found = vault.obsidian.read(ObsidianFile.DAILY_NOTES)
    if not found.is_usable:
        return None
    place = _place(period, found.members, ("folder", "format", "template"), "Daily notes")
    return place if place.is_own_folder else replace(place, folder=_place_of_new_notes(vault))


def _place(period: Period, members: Members, keys: tuple[str, str, str], source: str) -> Place:
    folder, form, template = (members.text(key) for key in keys)
    return Place(
        period,
        folder_form(folder),
        form or DEFAULT_FORMATS[period],
        template,
        f"the folder of {source}",
        f"the format of {source}",
        is_own_folder=bool(folder),
    )


def _place_of_new_notes(vault: HasSettings) -> str:
    app = vault.obsidian.members(ObsidianFile.APP)
    return folder_form(app.text("newFileFolderPath")) if app.text("newFileLocation") == "folder" else ""


def _note_problem(vault: HasSettings, file: ObsidianFile, problems: list[str]) -> None:
    problem = vault.obsidian.read(file).problem
    if problem is not None:
        problems.append(f"{file.path} cannot be used: {problem}")
