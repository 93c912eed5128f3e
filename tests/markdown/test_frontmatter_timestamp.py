"""The timestamp a write sets."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from operations.markdown.timestamps import bump_timestamp

NOW = datetime(2026, 11, 30, 4, 5, 6, 789012, tzinfo=timezone(timedelta(hours=5)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2025-01-02T03:04:05Z", "2026-11-29T23:05:06Z"),
        ("2025-01-02", "2026-11-29"),
        ("2025-01-02T03:04Z", "2026-11-29T23:05Z"),
        ("2025-01-02T03:04:05.250Z", "2026-11-29T23:05:06.789Z"),
        ("2025-01-02T03:04", "2026-11-29T23:05:06Z"),
        ("2025-01-02T03:04:05+02:00", "2026-11-29T23:05:06Z"),
        ("yesterday", "2026-11-29T23:05:06Z"),
        ("", "2026-11-29T23:05:06Z"),
    ],
)
def test_the_timestamp_becomes_now_in_utc_with_the_precision_of_the_note(old: str, new: str) -> None:
    before = f"---\nTimestamp: {old and old + ' '}# mine\nz: 1\n---\nbody\n"
    after = f"---\nTimestamp: {new} # mine\nz: 1\n---\nbody\n"
    assert bump_timestamp(before, "timestamp", NOW, always=False) == (after, True, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\na: b: c\n---\n", "the properties cannot be read (line 2, column 5)"),
        ("---\ntimestamp: {{date}}\n---\n", "'timestamp' holds a mapping"),
        ("---\ntimestamp: [a]\n---\n", "'timestamp' holds a list"),
        ("---\ntimestamp: <% tp.date.now() %>\n---\n", "'timestamp' holds a template's placeholder"),
    ],
)
@pytest.mark.parametrize("always", [True, False])
def test_a_note_that_cannot_carry_it_stays_as_it_is_and_says_why(text: str, reason: str, always: bool) -> None:
    assert bump_timestamp(text, "timestamp", NOW, always=always) == (text, False, reason)


def test_a_note_without_a_block_is_due_no_timestamp_unless_always() -> None:
    assert bump_timestamp("body\n", "timestamp", NOW, always=False) == ("body\n", False, None)
    reason = "the note has no properties block"
    assert bump_timestamp("body\n", "timestamp", NOW, always=True) == ("body\n", False, reason)


def test_an_anchor_in_use_keeps_the_timestamp_and_says_so() -> None:
    text = "---\ntimestamp: &t 2025-01-02\ncopy: *t\n---\n"
    after, bumped, reason = bump_timestamp(text, "timestamp", NOW, always=False)
    assert (after, bumped) == (text, False)
    assert reason is not None
    assert reason.startswith("'copy' refers to this value")


def test_a_note_without_the_key_gets_it_only_when_always_is_asked_for() -> None:
    text = "---\ntype: note\ntags: [a]\n---\n"
    utc = NOW.astimezone(UTC)
    assert bump_timestamp(text, "updated", utc, always=False) == (text, False, None)
    assert bump_timestamp(text, "updated", utc, always=True, field_order=("updated", "tags")) == (
        "---\ntype: note\nupdated: 2026-11-29T23:05:06Z\ntags: [a]\n---\n",
        True,
        None,
    )
