from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from operations.errors import ErrorCode, VaultError
from operations.store.paths import FolderPath, VaultPath, decode_url_path, is_visible_name, listed_path, safe_resolve
from tests.conformance.cases import refused_with


class Paths(BaseModel):
    path: VaultPath
    folder: FolderPath = FolderPath("")


def test_the_parts_of_a_path_are_what_their_names_say() -> None:
    path = VaultPath("/Home/Heating/Boiler.old.MD")
    assert path.segments == ("Home", "Heating", "Boiler.old.MD")
    assert (path.name, path.stem, path.suffix) == ("Boiler.old.MD", "Boiler.old", ".md")
    assert path.parent == "Home/Heating"
    assert isinstance(path.parent, FolderPath)
    assert path.parent.child("New.md") == "Home/Heating/New.md"
    assert not path.is_root


@pytest.mark.parametrize("name", ["README", "index.md.", "index."])
def test_a_name_with_no_letters_after_its_last_dot_has_no_suffix(name: str) -> None:
    assert (VaultPath(name).stem, VaultPath(name).suffix) == (name, "")


def test_the_root_is_a_folder_without_segments_and_its_own_parent() -> None:
    root = FolderPath("/")
    assert root == ""
    assert root.is_root
    assert root.segments == ()
    assert root.parent == root
    assert root.child("a.md") == "a.md"


@pytest.mark.parametrize("raw", ["Home/", "/Home/", "./Home", "Home/."])
def test_a_folder_may_be_written_with_slashes_around_it(raw: str) -> None:
    assert FolderPath(raw) == "Home"


@pytest.mark.parametrize("raw", ["", "/", ".", "Home/", "a//b.md", "//"])
def test_a_file_needs_a_name_and_no_empty_segments(raw: str) -> None:
    with refused_with("invalid_path"):
        VaultPath(raw)


@pytest.mark.parametrize("name", ["../x.md", "a/b.md", ".hidden", "", "x" * 256])
def test_a_child_is_one_lawful_name(name: str) -> None:
    with refused_with("invalid_path"):
        FolderPath("Home").child(name)


def test_a_name_has_at_most_255_bytes_and_the_message_says_so() -> None:
    assert VaultPath("é" * 127 + "a") == "é" * 127 + "a"
    with refused_with("invalid_path") as refusal:
        VaultPath("é" * 128)
    assert refusal.error is not None
    assert refusal.error.message.endswith("has a name of 256 bytes; a name has at most 255 bytes (UTF-8)")


@pytest.mark.parametrize(
    "raw", ["\ufe00.git/x.md", "\u3164.git", "\u00ad.obsidian/app.json", "\u3164", "\u2800", "\u00a0"]
)
def test_a_name_that_some_file_systems_see_as_hidden_or_nobody_sees_is_refused(raw: str) -> None:
    with refused_with("invalid_path"):
        VaultPath(raw)
    assert not is_visible_name(raw.partition("/")[0])


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a:b.md", "has ':', which Windows and some sync tools cannot store; leave it out"),
        (" a.md", "begins with a space; start the name with another character"),
        ("Reports.", "ends with a dot, which Windows drops; leave it out"),
        ("aux .tar.gz", "is a device name on Windows; choose another"),
        ("a\u202eb.md", "has the invisible character U+202E; leave it out"),
    ],
)
def test_a_new_name_is_refused_with_the_segment_and_the_reason(name: str, reason: str) -> None:
    path = safe_resolve(f"Home/{name}")
    with pytest.raises(VaultError) as caught:
        path.require_creatable()
    assert caught.value.code is ErrorCode.INVALID_PATH
    assert caught.value.message == f"'{name}' {reason}".replace("\u202e", "\\u202e")


@pytest.mark.parametrize(
    ("raw", "text"), [(b"a%20b.md", "a b.md"), (b"%25%32%35", "%25"), (b"50%.md", "50%.md"), (b"caf%C3%A9", "café")]
)
def test_a_url_is_decoded_exactly_once(raw: bytes, text: str) -> None:
    assert decode_url_path(raw) == text


@pytest.mark.parametrize("raw", [b"caf%E9.md", b"\xff", b"%ED%A0%80", b"%C0%AE"])
def test_a_url_that_is_not_strict_utf8_is_refused(raw: bytes) -> None:
    with refused_with("invalid_path"):
        decode_url_path(raw)


def test_a_model_makes_paths_of_text_and_its_schema_says_string() -> None:
    model = Paths.model_validate({"path": "/Home/cafe\u0301.md", "folder": "Home/"})
    assert (type(model.path), type(model.folder)) == (VaultPath, FolderPath)
    assert model.model_dump(mode="json") == {"path": "Home/café.md", "folder": "Home"}
    assert Paths.model_validate_json('{"path": "/a.md"}').path == "a.md"
    assert Paths.model_json_schema()["properties"]["path"] == {"title": "Path", "type": "string"}


@pytest.mark.parametrize("call", [Paths.model_validate, lambda data: Paths.model_validate_json('{"path": "../x"}')])
def test_a_model_lets_the_refusal_of_a_path_through(call: Any) -> None:
    with refused_with("invalid_path"):
        call({"path": "../x"})


def test_a_model_refuses_what_is_no_text() -> None:
    with pytest.raises(ValidationError, match="valid string"):
        Paths.model_validate({"path": 7})


def test_a_path_as_listed_keeps_its_spelling_everywhere_it_is_carried() -> None:
    listed = listed_path("Home", "cafe\u0301.md")
    assert listed == "Home/cafe\u0301.md"
    assert listed is not None
    assert VaultPath(listed) == listed
    assert Paths(path=listed).path == listed
    assert listed.normalized == "Home/caf\u00e9.md"


@pytest.mark.parametrize("name", [".git", "a\\b", "a\nb", "%2e%2e", "\udcff.md", "\u200b", "x" * 256])
def test_a_listed_name_that_no_path_can_spell_has_no_path(name: str) -> None:
    assert listed_path("Home", name) is None
