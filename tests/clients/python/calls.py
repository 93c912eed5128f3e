# mypy: disable-error-code="import-not-found"
# The package is generated when the test runs; the test checks this file against it, where nothing is missing.
"""What a program does with the generated Python client: `calls.py <url> <key>`."""

import io
import json
import sys

from vault_client import AuthenticatedClient
from vault_client.api.notes import (
    vault_append,
    vault_list,
    vault_move,
    vault_patch,
    vault_read,
    vault_update_properties,
    vault_write,
)
from vault_client.api.server import readyz
from vault_client.models.edit_result import EditResult
from vault_client.models.error_code import ErrorCode
from vault_client.models.failure import Failure
from vault_client.models.kind import Kind
from vault_client.models.list_result import ListResult
from vault_client.models.move_input import MoveInput
from vault_client.models.move_result import MoveResult
from vault_client.models.note_document import NoteDocument
from vault_client.models.note_map import NoteMap
from vault_client.models.readiness import Readiness
from vault_client.models.readiness_status import ReadinessStatus
from vault_client.models.text_replacement import TextReplacement
from vault_client.models.update_properties_input import UpdatePropertiesInput
from vault_client.models.update_properties_input_properties import UpdatePropertiesInputProperties
from vault_client.models.vault_patch_operation import VaultPatchOperation
from vault_client.models.vault_patch_target_type import VaultPatchTargetType
from vault_client.types import File

NOTE = "Home/Boiler.md"


def main(url: str, key: str) -> None:
    client = AuthenticatedClient(url, key, headers={"Accept": "application/json"})

    ready = readyz.sync(client=client)
    assert isinstance(ready, Readiness)
    assert (ready.status, ready.vault.notes) == (ReadinessStatus.READY, 2)

    listed = vault_list.sync("Home", client=client)
    assert isinstance(listed, ListResult)
    assert [(entry.path, entry.kind) for entry in listed.entries] == [(NOTE, Kind.NOTE)]

    note = vault_read.sync(NOTE, client=client)
    assert isinstance(note, NoteDocument)
    assert note.frontmatter.to_dict() == {"status": "closed"}
    assert note.body.startswith("# Boiler\n")

    outline = vault_read.sync(NOTE, client=client, outline=True)
    assert isinstance(outline, NoteMap)
    assert [heading.path for heading in outline.headings] == ["Boiler", "Boiler::Parts", "Boiler::Notes"]

    written = vault_write.sync("Inbox/Räume.md", client=client, body=text("# Räume\n\nKüche\n"))
    assert isinstance(written, EditResult)
    assert written.action == "created"
    appended = vault_append.sync("Inbox/Räume.md", client=client, body=text("Bad"), if_match=written.version)
    assert isinstance(appended, EditResult)
    assert appended.action == "appended"

    patched = vault_patch.sync(
        NOTE,
        client=client,
        body=text("- pump"),
        target="Parts",
        target_type=VaultPatchTargetType.HEADING,
        operation=VaultPatchOperation.REPLACE,
        if_match=outline.version,
    )
    assert isinstance(patched, EditResult)
    assert patched.target == "Boiler::Parts"
    replaced = vault_patch.sync(
        NOTE,
        client=client,
        body=TextReplacement(find="- pump", replace="- pump „Größe 2“", section="Parts"),
        target_type=VaultPatchTargetType.TEXT,
    )
    assert isinstance(replaced, EditResult)
    assert replaced.action == "replaced"

    halfway = vault_patch.sync(
        NOTE,
        client=client,
        body=text(json.dumps("half open")),
        target="status",
        target_type=VaultPatchTargetType.FRONTMATTER,
    )
    assert isinstance(halfway, EditResult)
    properties = UpdatePropertiesInputProperties.from_dict({"status": "open"})
    updated = vault_update_properties.sync(
        client=client, body=UpdatePropertiesInput(path=NOTE, properties=properties, expected_version=halfway.version)
    )
    assert isinstance(updated, EditResult)
    assert updated.set_ == ["status"]

    moved = vault_move.sync(client=client, body=MoveInput(source="Inbox/One.md", destination="Done/One.md"))
    assert isinstance(moved, MoveResult)
    assert moved.destination == "Done/One.md"

    refusals = [
        vault_read.sync("Inbox/One.md", client=client),
        vault_patch.sync(NOTE, client=client, body=text("x"), target="Parts", if_match=outline.version),
        vault_patch.sync(NOTE, client=client, body=text("x"), target="Nothing"),
        vault_read.sync(NOTE, client=AuthenticatedClient(url, "f" * 64)),
    ]
    assert [refusal.code for refusal in refusals if isinstance(refusal, Failure)] == [
        ErrorCode.NOT_FOUND,
        ErrorCode.PRECONDITION_FAILED,
        ErrorCode.TARGET_NOT_FOUND,
        ErrorCode.UNAUTHORIZED,
    ]


def text(content: str) -> File:
    """A text as the client wants a raw body."""
    return File(payload=io.BytesIO(content.encode()))


if __name__ == "__main__":
    main(*sys.argv[1:])
