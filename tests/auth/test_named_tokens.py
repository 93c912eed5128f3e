"""Named tokens in their database: what is stored, what is refused, and what other processes see."""

import os
import re
import sqlite3
import stat
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.auth.database import AuthDatabase
from app.auth.named_tokens import NamedTokens
from app.auth.policies import Policies, Rights
from app.settings.declaring import ConfigError
from operations.caller import Profile, write_scope
from operations.errors import ErrorCode, VaultError
from operations.store.paths import FolderPath

START = datetime(2026, 3, 15, 10, 30, tzinfo=UTC)
TOKEN = re.compile(r"vmt_[0-9a-hjkmnp-tv-z]{10}_[A-Za-z0-9_-]{43}")


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def database(tmp_path: Path) -> Iterator[AuthDatabase]:
    opened = AuthDatabase.of_state(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def named(database: AuthDatabase, clock: Clock) -> NamedTokens:
    return NamedTokens(database, clock, max_live=3)


def code_of(refusal: pytest.ExceptionInfo[VaultError]) -> ErrorCode:
    return refusal.value.code


def test_a_token_is_found_by_its_text_alone_and_its_secret_is_nowhere(named: NamedTokens, tmp_path: Path) -> None:
    created, text = named.create("n8n")
    assert TOKEN.fullmatch(text)
    assert named.find(text.encode()) == created
    for wrong in (text[:-1], text + "A", text.replace("vmt_", "vmx_"), text[:15] + "A" * 43, "", "vmt_" + "z" * 54):
        assert named.find(wrong.encode()) is None
    stored = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert text[-43:].encode() not in stored


def test_the_files_are_for_their_owner_alone(named: NamedTokens, tmp_path: Path) -> None:
    named.create("n8n")
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("auth.db", "auth.db-wal", "auth.db-shm"), 0o600)


def test_a_file_that_others_can_read_is_narrowed(tmp_path: Path) -> None:
    AuthDatabase.of_state(tmp_path).close()
    (tmp_path / "auth.db").chmod(0o644)
    AuthDatabase.of_state(tmp_path).close()
    assert stat.S_IMODE((tmp_path / "auth.db").stat().st_mode) == 0o600


def test_a_folder_that_everybody_may_write_to_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(ConfigError, match="everybody may write"):
        AuthDatabase.of_state(tmp_path)


def test_a_link_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    (tmp_path / "auth.db").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="cannot be used"):
        AuthDatabase.of_state(tmp_path)


def test_a_file_of_a_newer_version_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    AuthDatabase.of_state(tmp_path).close()
    with sqlite3.connect(tmp_path / "auth.db") as connection:
        connection.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (b"999",))
    with pytest.raises(ConfigError, match="schema version 999"):
        AuthDatabase.of_state(tmp_path)


def test_a_damaged_file_is_no_start_and_no_empty_list_of_tokens(tmp_path: Path) -> None:
    (tmp_path / "auth.db").write_bytes(b"no database" * 1000)
    with pytest.raises(ConfigError, match="cannot be used"):
        AuthDatabase.of_state(tmp_path)
    assert (tmp_path / "auth.db").read_bytes() == b"no database" * 1000


@pytest.mark.parametrize("label", ["", " ", "x" * 81, "a\nb", "zero\u200bwidth", "static", "STDIO", "client:x", "all"])
def test_a_label_that_cannot_be_told_apart_or_read_is_refused(named: NamedTokens, label: str) -> None:
    with pytest.raises(VaultError) as refusal:
        named.create(label)
    assert code_of(refusal) is ErrorCode.INVALID_PARAMETER
    assert named.all() == []


def test_a_label_is_unique_whatever_its_letter_case_until_it_is_revoked(named: NamedTokens) -> None:
    named.create("Straße")
    with pytest.raises(VaultError) as refusal:
        named.create("STRASSE")
    assert code_of(refusal) is ErrorCode.ALREADY_EXISTS
    named.revoke("strasse")
    named.create("STRASSE")
    assert [token.label for token in named.all()] == ["STRASSE"]


def test_only_so_many_live_at_once_and_an_expired_one_counts_no_more(named: NamedTokens, clock: Clock) -> None:
    for label in "abc":
        named.create(label, days=1)
    with pytest.raises(VaultError) as refusal:
        named.create("d")
    assert code_of(refusal) is ErrorCode.TOO_LARGE
    clock.now += timedelta(days=1)
    named.create("d")


def test_a_token_ends_at_its_time_to_the_second(named: NamedTokens, clock: Clock) -> None:
    text = named.create("short", days=1)[1].encode()
    clock.now += timedelta(days=1) - timedelta(seconds=1)
    assert named.find(text) is not None
    clock.now += timedelta(seconds=1)
    assert named.find(text) is None


def test_rotating_ends_the_old_secret_and_keeps_id_label_and_rights(named: NamedTokens, database: AuthDatabase) -> None:
    created, old = named.create("n8n", rights=Rights(read_only=True))
    rotated, new = named.rotate(created.id)
    assert (rotated.id, rotated.label) == (created.id, "n8n")
    assert named.find(old.encode()) is None
    assert named.find(new.encode()) is not None
    assert Policies(database).of(created.id).rights.read_only


def test_revoking_acts_at_once_in_every_process(named: NamedTokens, tmp_path: Path, clock: Clock) -> None:
    text = named.create("n8n")[1].encode()
    other = AuthDatabase.of_state(tmp_path)
    try:
        seen = NamedTokens(other, clock, max_live=3)
        assert seen.find(text) is not None
        named.revoke("N8N")
        assert seen.find(text) is None
    finally:
        other.close()


def test_rights_that_change_act_at_once_here_and_in_every_process(database: AuthDatabase, tmp_path: Path) -> None:
    other = AuthDatabase.of_state(tmp_path)
    try:
        here, there = Policies(database), Policies(other)
        for read_only in (True, False, True):
            here.set_rights("static", Rights(read_only=read_only))
            assert [one.of("static").rights.read_only for one in (here, there, here, there)] == [read_only] * 4
    finally:
        other.close()


def test_revoking_all_ends_every_token_and_says_which(named: NamedTokens) -> None:
    texts = [named.create(label)[1].encode() for label in "ab"]
    assert [token.label for token in named.revoke_all()] == ["a", "b"]
    assert [named.find(text) for text in texts] == [None, None]
    assert named.revoke_all() == []


@pytest.mark.parametrize("act", ["rotate", "revoke", "named"])
def test_a_token_that_is_not_there_is_refused_by_name(named: NamedTokens, act: str) -> None:
    named.create("gone")
    named.revoke("gone")
    with pytest.raises(VaultError, match="no token 'gone'") as refusal:
        getattr(named, act)("gone")
    assert code_of(refusal) is ErrorCode.NOT_FOUND


def test_of_many_that_make_the_same_label_at_once_one_wins(tmp_path: Path, clock: Clock) -> None:
    outcomes: list[str] = []

    def make() -> None:
        database = AuthDatabase.of_state(tmp_path)
        try:
            NamedTokens(database, clock, max_live=50).create("same")
            outcomes.append("made")
        except VaultError as refusal:
            outcomes.append(refusal.code.value)
        finally:
            database.close()

    AuthDatabase.of_state(tmp_path).close()
    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["already_exists"] * 7 + ["made"]


def test_rights_come_back_as_they_were_stored(database: AuthDatabase) -> None:
    policies = Policies(database)
    rights = Rights(
        read_only=True,
        allowed=frozenset({"vault_read"}),
        profile=Profile.ADAPTIVE,
        apps=False,
        write_prefixes=(write_scope("Inbox"), write_scope("Log.md")),
        hidden_folders=(FolderPath("Private/Ä"),),
    )
    policies.set_rights("client:x", rights)
    assert policies.of("client:x").rights == rights
    assert policies.of("somebody else").rights == Rights()


def test_promotions_and_rights_do_not_overwrite_each_other(database: AuthDatabase) -> None:
    policies = Policies(database)
    assert policies.promote("t", ["vault_map", "vault_read"]) == {"vault_map", "vault_read"}
    policies.set_rights("t", Rights(profile=Profile.CORE))
    assert policies.promote("t", ["vault_map", "vault_move"]) == {"vault_move"}
    assert policies.demote("t", ["vault_map", "vault_list"]) == {"vault_map"}
    policy = policies.of("t")
    assert policy.rights.profile is Profile.CORE
    assert policy.promoted == {"vault_read", "vault_move"}
    assert policies.demote("t", ["vault_read", "vault_move"]) == {"vault_read", "vault_move"}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("rights", "{"),
        ("rights", '{"read_only": "yes"}'),
        ("rights", '{"unknown": 1}'),
        ("rights", '{"write_prefixes": ["../x"]}'),
        ("promoted", "{}"),
        ("promoted", "[1]"),
    ],
)
def test_rights_that_cannot_be_read_give_none(database: AuthDatabase, tmp_path: Path, column: str, value: str) -> None:
    policies = Policies(database)
    policies.set_rights("t", Rights())
    with sqlite3.connect(tmp_path / "auth.db") as connection:
        connection.execute(f"UPDATE policies SET {column} = ?", (value,))  # noqa: S608 - our own column names
    with pytest.raises(VaultError) as refusal:
        policies.of("t")
    assert code_of(refusal) is ErrorCode.INTERNAL


def test_a_change_by_another_connection_is_noticed_and_a_read_is_none(
    database: AuthDatabase, named: NamedTokens
) -> None:
    before = database.changes
    named.all()
    assert database.changes == before
    named.create("n8n")
    assert database.changes != before


def test_a_writer_that_holds_on_makes_the_next_one_busy(
    database: AuthDatabase, tmp_path: Path, named: NamedTokens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.auth.database.BUSY_SECONDS", 0.05)
    text = named.create("n8n")[1].encode()
    other = AuthDatabase.of_state(tmp_path)
    impatient = NamedTokens(other, Clock(), max_live=3)
    try:
        with database.write():
            assert impatient.find(text) is not None, "readers do not wait"
            with pytest.raises(VaultError) as refusal:
                impatient.revoke("n8n")
        assert code_of(refusal) is ErrorCode.BUSY
    finally:
        other.close()
    assert os.access(tmp_path / "auth.db", os.W_OK)
