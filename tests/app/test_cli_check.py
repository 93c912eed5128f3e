"""`vault-mcp check`, as a person and a script meet it."""

import json
from pathlib import Path

import pytest

from tests.app.terminals import on_terminal
from tests.app.test_cli import run
from tests.harness import fill

WORDS = {"EMBEDDING_ENABLED": "false"}
SCRIPTS = {**WORDS, "VAULT_MCP_MAINTENANCE__ALLOW_WRITABLE_SCRIPTS": "true"}


def vault_of(home: Path, files: dict[str, str | bytes]) -> None:
    fill(home, {f"vault/{path}": content for path, content in files.items()})


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({"A.md": "# A\n"}, 0),
        ({"A.md": "[[Gone]]\n"}, 0),
        ({"A.md": b"caf\xe9\n"}, 1),
        ({"A.md": b"caf\xe9\n", ".scripts/check_a.py": "raise SystemExit(2)"}, 2),
        ({"A.md": "# A\n", ".scripts/check_a.py": "print('fine')"}, 0),
    ],
)
def test_the_exit_code_says_whether_there_are_errors_or_a_check_failed(
    tmp_path: Path, files: dict[str, str | bytes], status: int
) -> None:
    vault_of(tmp_path, files)
    done = run("check", "vault", cwd=tmp_path, **SCRIPTS)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


def test_a_person_gets_a_table_and_a_last_line_that_counts(tmp_path: Path) -> None:
    vault_of(tmp_path, {"A.md": "[[Gone]]\n", "Home/B.md": b"x\n\xe9\n"})
    done = run("check", "vault", cwd=tmp_path, **WORDS)
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert ["warning", "A.md:1", "[[Gone]] leads to no file"] in [[cell.strip() for cell in row] for row in rows]
    assert ["error", "Home/B.md:2", "holds bytes that are not UTF-8"] in [
        [cell.strip() for cell in row] for row in rows
    ]
    assert done.stdout.splitlines()[-1] == (
        "10 checks: 8 ok, 2 with findings, 0 failed, 0 legacy, 0 skipped; findings: error 1, warning 1, info 0"
    )


def test_a_script_gets_json_and_may_name_the_checks(tmp_path: Path) -> None:
    vault_of(tmp_path, {"A.md": "[[Gone]]\n"})
    done = run("check", "vault", "--json", "--only", "links", "--only", "names", cwd=tmp_path, **WORDS)
    assert [one["check"] for one in json.loads(done.stdout)["checks"]] == ["links", "names"]
    refused = run("check", "vault", "--only", "nope", cwd=tmp_path, **WORDS)
    assert (refused.returncode, "there is no check 'nope'" in refused.stderr) == (1, True)


def test_a_note_cannot_steer_the_terminal(tmp_path: Path) -> None:
    vault_of(tmp_path, {"A.md": "[[Go\x1b[31mne]]\n"})
    assert "\x1b[31mne" not in on_terminal("check", "vault", cwd=tmp_path, **WORDS)
