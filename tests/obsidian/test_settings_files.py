"""Obsidian's own files: what they say, and that nothing about them can hurt."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.obsidian_settings import ObsidianSettings
from operations.store.tree import MAX_SETTINGS_BYTES, ObsidianFile, Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "vault" / ".obsidian").mkdir(parents=True)
    return tmp_path / "vault"


@pytest.fixture
def settings(root: Path) -> Iterator[ObsidianSettings]:
    with Tree.open(root) as tree:
        yield ObsidianSettings(tree)


def put(root: Path, file: ObsidianFile, data: bytes) -> Path:
    path = root / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_file_is_read_anew_on_every_call(root: Path, settings: ObsidianSettings) -> None:
    assert settings.members(ObsidianFile.APP).text("newFileFolderPath") == ""
    file = put(root, ObsidianFile.APP, b'{"newFileFolderPath": " Inbox "}')
    assert settings.members(ObsidianFile.APP).text("newFileFolderPath") == "Inbox"
    stamp = file.stat()
    file.write_bytes(b'{"newFileFolderPath": " Outbx "}')
    os.utime(file, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert settings.members(ObsidianFile.APP).text("newFileFolderPath") == "Outbx"
    file.unlink()
    assert settings.read(ObsidianFile.APP).is_usable is False


def test_a_file_of_a_plugin_is_read_from_the_plugins_folder(root: Path, settings: ObsidianSettings) -> None:
    put(root, ObsidianFile.TASKS, b'\xef\xbb\xbf{"globalFilter": "#task", "setDoneDate": false, "size": 3}')
    members = settings.members(ObsidianFile.TASKS)
    assert members.text("globalFilter") == "#task"
    assert members.switch("setDoneDate", default=True) is False
    assert members.whole("size", 4) == 3


def test_a_key_of_the_wrong_type_counts_as_not_there(root: Path, settings: ObsidianSettings) -> None:
    put(
        root,
        ObsidianFile.APP,
        b'{"a": 5, "b": "yes", "c": true, "d": [1, "x", "\\udc00", {}], "e": [], "f": "\\ud800"}',
    )
    members = settings.members(ObsidianFile.APP)
    assert (members.text("a"), members.text("f")) == ("", "")
    assert members.switch("b", default=True) is True
    assert members.whole("c", 4) == 4
    assert members.texts("d") == ["x"]
    assert [each.values for each in members.objects("d")] == [{}]
    assert members.texts("c") == []
    assert members.objects("c") == []
    assert members.object("e").values == {}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"{", "it is not JSON"),
        (b"\xff\xfe{", "it is not JSON"),
        (b"", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"[]", "it holds a list, which it should not"),
        (b"null", "it holds null, which it should not"),
        (b"true", "it holds a switch, which it should not"),
        (b" " * MAX_SETTINGS_BYTES + b"{}", "it has more than 1048576 bytes"),
    ],
    ids=["cut", "no utf-8", "empty", "endless nesting", "list", "null", "switch", "too large"],
)
def test_an_unusable_file_counts_as_missing_and_is_said_once(
    root: Path, settings: ObsidianSettings, caplog: pytest.LogCaptureFixture, data: bytes, problem: str
) -> None:
    put(root, ObsidianFile.APP, data)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            found = settings.read(ObsidianFile.APP)
            assert (found.problem, found.is_usable, dict(found.members.values)) == (problem, False, {})
    assert [record.message for record in caplog.records] == ["a settings file of Obsidian cannot be used"]
    assert list(settings.problems()) == [
        f".obsidian/app.json cannot be used: {problem}; it counts as missing",
    ]


def test_a_problem_that_comes_back_is_said_again(
    root: Path, settings: ObsidianSettings, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        for data in (b"{", b"{}", b"{"):
            put(root, ObsidianFile.APP, data)
            settings.read(ObsidianFile.APP)
    assert len(caplog.records) == 2


def test_links_and_pipes_are_never_followed(root: Path, settings: ObsidianSettings, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_bytes(b'{"folder": "Out"}')
    (root / ".obsidian" / "daily-notes.json").symlink_to(outside)
    (root / ".obsidian" / "plugins").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(root / ".obsidian" / "templates.json")
    link = "it is a link or lies behind one, and links are not followed"
    assert settings.read(ObsidianFile.DAILY_NOTES).problem == link
    assert settings.read(ObsidianFile.CALENDAR).problem == link
    assert settings.read(ObsidianFile.TEMPLATES).problem == "it is no regular file"


def test_a_workspace_that_cannot_be_read_is_no_problem_of_the_vault(root: Path, settings: ObsidianSettings) -> None:
    put(root, ObsidianFile.WORKSPACE, b"{")
    assert settings.read(ObsidianFile.WORKSPACE).problem == "it is not JSON"
    assert list(settings.problems()) == []


def test_a_community_plugin_is_on_only_when_it_is_listed(root: Path, settings: ObsidianSettings) -> None:
    assert settings.lists_plugin("calendar") is False
    put(root, ObsidianFile.COMMUNITY_PLUGINS, b'["calendar"]')
    assert settings.lists_plugin("calendar") is True
    assert settings.lists_plugin("periodic-notes") is False
    put(root, ObsidianFile.COMMUNITY_PLUGINS, b'{"calendar": true}')
    assert settings.lists_plugin("calendar") is False


@pytest.mark.parametrize(
    ("data", "off"),
    [
        (None, False),
        (b'["daily-notes"]', False),
        (b"[]", True),
        (b'{"daily-notes": true}', False),
        (b'{"daily-notes": false}', True),
        (b"{}", False),
        (b"{", False),
    ],
)
def test_a_core_plugin_is_off_only_when_that_is_said(
    root: Path, settings: ObsidianSettings, data: bytes | None, off: bool
) -> None:
    if data is not None:
        put(root, ObsidianFile.CORE_PLUGINS, data)
    assert settings.switches_off("daily-notes") is off
