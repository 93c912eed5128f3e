"""`vault_create_from_template`: a note, or its text, from a template of Obsidian's core plugin (tool-map §6.9)."""

from typing import Final

from operations.caller import Caller
from operations.edit_results import Change, EditResult
from operations.editing import WriteOptions, write_note
from operations.errors import ErrorCode, VaultError
from operations.markdown.templates import TIME_FORMAT, render_template
from operations.note_text import displayable
from operations.obsidian_uri import obsidian_uri
from operations.periodic_places import folder_form
from operations.registry import Effect, Group, OperationInput, Route, Text, WriteResult, operation
from operations.store.paths import VaultPath
from operations.store.tree import ObsidianFile
from operations.template_notes import find_template, said_of_code, template_text
from operations.vault import Vault

DATE_FORMAT: Final = "YYYY-MM-DD"


class TemplateInput(OperationInput):
    """Arguments of `vault_create_from_template`."""

    template: str
    """Path or name."""
    path: VaultPath | None = None
    title: str | None = None
    """What {{title}} becomes."""


class TemplateResult(WriteResult):
    """The note that was made, or the text that the template gives."""

    template: str
    content: str | None = None
    """The text, where no note was to be made."""
    path: str | None = None
    action: str | None = None
    version: str | None = None
    bytes: int | None = None
    timestamp_bumped: bool | None = None
    uri: str
    """Of the note, else of the template."""
    message: str | None = None
    advisories: tuple[str, ...] | None = None


def _show_template(result: TemplateResult, _args: TemplateInput) -> Text | None:
    if result.content is None:
        return None
    said = {"advisories": "; ".join(result.advisories)} if result.advisories else {}
    return Text(result.content, {"template": result.template, "uri": result.uri, **said})


@operation(
    name="vault_create_from_template",
    title="Create from a template",
    group=Group.NOTES,
    effect=Effect.ADDITIVE,
    text=_show_template,
    rest=(Route("POST", "/templates/apply"),),
)
def create_from_template(vault: Vault, caller: Caller, args: TemplateInput) -> TemplateResult:
    """Make a note from a template, or without path give the text.

    For the note of a day or week use vault_ensure_periodic_note.
    """
    settings = vault.obsidian.members(ObsidianFile.TEMPLATES)
    folder = folder_form(settings.text("folder"))
    template = find_template(vault, caller, args.template, *([folder] if folder else []))
    if template is None:
        where = f"in '{displayable(folder)}' or elsewhere in the vault" if folder else "in the vault"
        raise VaultError(ErrorCode.NOT_FOUND, f"no template '{displayable(args.template[:200])}' {where}")
    source = template_text(vault, template)
    title = args.title or (args.path.stem if args.path is not None else None)
    text = render_template(
        source,
        title=title,
        moment=vault.clock().astimezone(vault.config.timezone),
        date_format=settings.text("dateFormat") or DATE_FORMAT,
        time_format=settings.text("timeFormat") or TIME_FORMAT,
    )
    advisories = said_of_code(source)
    if args.path is None:
        return TemplateResult(
            template=template,
            content=displayable(text),
            uri=obsidian_uri(vault.config.name, template),
            advisories=advisories or None,
        )
    return _result(template, _create(vault, caller, args.path, Change(text, "created", advisories=advisories)))


def _create(vault: Vault, caller: Caller, path: VaultPath, change: Change) -> EditResult:
    def created(before: str | None) -> Change:
        if before is not None:
            raise VaultError(ErrorCode.ALREADY_EXISTS, f"'{path}' exists already; choose another path")
        return change

    return write_note(vault, caller, path, created, WriteOptions(overwrites=False)).result


def _result(template: VaultPath, made: EditResult) -> TemplateResult:
    return TemplateResult(
        template=template,
        path=made.path,
        action=made.action,
        version=made.version,
        bytes=made.bytes,
        timestamp_bumped=made.timestamp_bumped,
        uri=made.uri,
        message=made.message,
        advisories=made.advisories,
    )
