"""Log lines: both forms, context, and what must never stand in one."""

import json
import logging
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.log import (
    FILE_NAME,
    JsonFormatter,
    LineFormatter,
    LogFormat,
    LogLevel,
    TextFormatter,
    cleaner,
    configure_logging,
    operation,
    principal,
    request_id,
)

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
TOKEN = "vmt_0123456789_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"


@pytest.fixture(autouse=True)
def restored_loggers() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    names = [name for name, found in logging.root.manager.loggerDict.items() if isinstance(found, logging.Logger)]
    levels = {name: logging.getLogger(name).level for name in names}
    yield
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
            handler.close()
    root.setLevel(level)
    for name, found in logging.root.manager.loggerDict.items():
        if isinstance(found, logging.Logger):
            found.setLevel(levels.get(name, logging.NOTSET))


def record(message: str, *args: object, level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    return logging.getLogger("app.test").makeRecord("app.test", level, "f.py", 1, message, args, None, extra=extra)


def as_json(formatter: LineFormatter, made: logging.LogRecord) -> dict[str, object]:
    line = formatter.format(made)
    assert "\n" not in line
    value = json.loads(line)
    assert isinstance(value, dict)
    return value


@pytest.fixture
def json_lines() -> LineFormatter:
    return JsonFormatter(cleaner(None))


@pytest.fixture
def text_lines() -> LineFormatter:
    return TextFormatter(cleaner(None))


def test_a_json_line_holds_time_level_logger_message_context_and_values(json_lines: LineFormatter) -> None:
    made = record("index built", notes=3, path=Path("a/b.md"), seconds=0.5, empty=None)
    made.created = 1_700_000_000.25
    tokens = request_id.set("r1"), operation.set("vault_read"), principal.set("static")
    line = as_json(json_lines, made)
    for variable, token in zip((request_id, operation, principal), tokens, strict=True):
        variable.reset(token)
    assert line == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "info",
        "logger": "app.test",
        "message": "index built",
        "request_id": "r1",
        "operation": "vault_read",
        "principal": "static",
        "notes": 3,
        "path": "a/b.md",
        "seconds": 0.5,
        "empty": None,
    }


def test_a_text_line_reads_left_to_right_and_quotes_what_has_spaces(text_lines: LineFormatter) -> None:
    made = record("note %s", "indexed", level=logging.WARNING, path="Daily Notes/a.md", plain="b.md", notes=3)
    made.created = 1_700_000_000.25
    assert text_lines.format(made) == (
        '2023-11-14T22:13:20.250Z WARNING app.test note indexed path="Daily Notes/a.md" plain=b.md notes=3'
    )


def test_a_value_cannot_begin_a_new_line_or_turn_the_reading_direction(
    json_lines: LineFormatter, text_lines: LineFormatter
) -> None:
    hostile = "a\n2023-11-14T22:13:20Z INFO fake\x1b[2J\x7f\x85\u2028\u202e\ud800"
    text = text_lines.format(record(hostile, path=hostile))
    raw = json_lines.format(record(hostile, path=hostile))
    for character in "\n\x1b\x7f\x85\u2028\u202e\ud800":
        assert character not in text
        assert character not in raw
    assert json.loads(raw)["path"] == hostile
    assert "\\u000a2023" in text


def fail(message: str) -> None:
    raise ValueError(message)


def test_a_traceback_is_kept_and_none_of_its_lines_can_pass_for_a_record(
    json_lines: LineFormatter, text_lines: LineFormatter
) -> None:
    made = record("failed", level=logging.ERROR)
    with pytest.raises(ValueError, match="fake") as caught:
        fail(f"first\n2023-11-14 INFO fake {TOKEN}")
    made.exc_info = (ValueError, caught.value, caught.value.__traceback__)
    first, *rest = text_lines.format(made).split("\n")
    assert first.endswith("ERROR   app.test failed")
    assert len(rest) > 2
    assert all(line.startswith("    ") for line in rest)
    trace = as_json(json_lines, made)["trace"]
    assert isinstance(trace, str)
    assert trace.endswith("fake vmt_0123456789_***")


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"x {TOKEN} y", "x vmt_0123456789_*** y"),
        ("vmr_abcDEF-123", "vmr_***"),
        (f"got {JWT}.", "got ***."),
        ("eyJhbGciOiJub25lIn0.e30.", "***"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("bearer  abc", "bearer  ***"),
        ("/cb?code=abc&state=xyz&page=2", "/cb?code=***&state=***&page=2"),
        ("grant&code_verifier=a-b_c~d&client_secret=x", "grant&code_verifier=***&client_secret=***"),
        ('{"token": "abc", "id_token":"d"}', '{"token": "***", "id_token":"***"}'),
        ("{'password': 'abc'}", "{'password': '***'}"),
        ("CLIENT_ASSERTION=abc access_token=e", "CLIENT_ASSERTION=*** access_token=***"),
        ("refresh_token=abc", "refresh_token=***"),
        ("?key=abc", "?key=***"),
    ],
)  # fmt: skip
def test_what_looks_like_a_credential_is_masked(text: str, clean: str) -> None:
    assert cleaner(None)(text) == clean


@pytest.mark.parametrize(
    "text", ["the key is wrong", "monkey=1", "zip_code=1", "a.b.c", "code: not_found", "eyJ", "Tokens/a.md"]
)
def test_plain_words_stay(text: str) -> None:
    assert cleaner(None)(text) == text


def test_known_secrets_are_masked_wherever_they_stand(json_lines: LineFormatter) -> None:
    formatter = JsonFormatter(cleaner(None, ["k-e.y+1", "k-e.y"]))
    line = formatter.format(record("got %s", "xk-e.y+1x", note="k-e.y", deep={"a": ["k-e.y+1"]}))
    assert "k-e" not in line
    assert json.loads(line)["message"] == "got x***x"


def test_fields_named_like_secrets_are_masked_and_our_error_code_is_not(json_lines: LineFormatter) -> None:
    line = as_json(
        json_lines, record("refused", code="not_found", token="abc", Password="d", deep={"api_key": "e", "x": 1})
    )
    assert {name: line[name] for name in ("code", "token", "Password", "deep")} == {
        "code": "not_found",
        "token": "***",
        "Password": "***",
        "deep": {"api_key": "***", "x": 1},
    }


def test_paths_below_the_vault_are_written_relative_to_it(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    link = tmp_path / "link"
    link.symlink_to(vault)
    clean = cleaner(link)
    assert clean(f"read '{vault}/Home/Boiler.md' and {link}/a.md") == "read 'Home/Boiler.md' and a.md"
    assert clean(f"[Errno 13] denied: '{vault}'") == "[Errno 13] denied: '.'"
    for other in (f"{vault}2/a.md", f"/x{vault}/a.md", f"{vault}.old"):
        assert clean(other) == other


@given(st.text(max_size=80))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    clean = cleaner(Path("/data/vault"), ["s3cr3t-k3y"])
    assert clean(clean(text)) == clean(text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_gives_one_line_that_is_valid_json(message: str, value: str) -> None:
    line = JsonFormatter(lambda text: text).format(record("%s", message, value=value))
    assert line.isprintable() or not any(ord(character) < 32 for character in line)
    assert json.loads(line)["message"] == message
    assert json.loads(line)["value"] == value


# --- configuration


def test_lines_go_to_stderr_in_the_form_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = []
    for style, is_terminal in (
        (LogFormat.JSON, True),
        (LogFormat.TEXT, False),
        (LogFormat.AUTO, True),
        (LogFormat.AUTO, False),
    ):
        monkeypatch.setattr("sys.stderr.isatty", lambda is_terminal=is_terminal: is_terminal)
        configure_logging(LogLevel.INFO, style, None)
        logging.getLogger("app.test").info("here")
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        forms.append("json" if line.startswith("{") else "text")
    assert forms == ["json", "text", "text", "json"]


def test_lines_below_the_level_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogLevel.WARNING, LogFormat.TEXT, None)
    logging.getLogger("app.test").info("quiet")
    logging.getLogger("app.test").warning("loud")
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["loud"]


def test_libraries_stay_at_warning_even_at_debug(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogLevel.DEBUG, LogFormat.TEXT, None)
    for name in (
        "httpx",
        "httpx2",
        "httpcore",
        "authlib",
        "sqlalchemy.engine",
        "mcp",
        "mcp.server.lowlevel",
    ):
        logging.getLogger(name).info("chatter of %s", name)
        logging.getLogger(name).warning("finding of %s", name)
    logging.getLogger("operations.notes").debug("ours")
    written = capsys.readouterr().err
    assert logging.getLogger("uvicorn.access").level == logging.WARNING  # the server cuts it off from the root
    assert "chatter" not in written
    assert written.count("finding") == 7
    assert written.count("ours") == 1


def test_no_library_is_louder_than_the_level(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogLevel.ERROR, LogFormat.TEXT, None)
    logging.getLogger("httpx").warning("finding")
    assert capsys.readouterr().err == ""


def test_a_record_of_any_logger_is_cleaned(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogLevel.INFO, LogFormat.JSON, None, vault=Path("/data/vault"), secrets=["s3cr3t-k3y"])
    logging.getLogger("some.library").warning("key %s for /data/vault/a.md", "s3cr3t-k3y")
    assert json.loads(capsys.readouterr().err)["message"] == "key *** for a.md"


def test_a_log_folder_gets_a_file_that_only_the_owner_can_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs" / "deep"
    configure_logging(LogLevel.INFO, LogFormat.AUTO, folder)
    logging.getLogger("app.test").info("naïve \ud800")
    file = folder / FILE_NAME
    assert file.read_text(encoding="utf-8") == capsys.readouterr().err
    assert json.loads(file.read_text(encoding="utf-8"))["message"] == "naïve \ud800"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_second_configuration_replaces_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging(LogLevel.INFO, LogFormat.TEXT, tmp_path)
    configure_logging(LogLevel.INFO, LogFormat.TEXT, None)
    logging.getLogger("app.test").info("once")
    assert capsys.readouterr().err.count("once") == 1
    assert (tmp_path / FILE_NAME).read_text(encoding="utf-8") == ""
