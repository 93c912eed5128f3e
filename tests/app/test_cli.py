"""The command line as a person meets it: the installed script, one process a call."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.harness import KEY, fill

SCRIPT = str(Path(sys.executable).with_name("vault-mcp"))


def run(*arguments: str, cwd: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    """`vault-mcp …` in a process of its own, with an environment of its own."""
    keep = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return subprocess.run(  # noqa: S603 - our own program
        [SCRIPT, *arguments],
        cwd=cwd,
        env={**keep, "HOME": str(cwd), **environ},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_serve_without_a_key_says_how_to_make_one_and_exits_2(tmp_path: Path) -> None:
    fill(tmp_path, {"vault/A.md": "a\n"})
    done = run("serve", "vault", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("vault-mcp: VAULT_MCP_API_KEY is not set; make a key with `openssl rand -hex 32`")
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_not_there_exits_2_and_names_it(tmp_path: Path) -> None:
    done = run("serve", "nowhere", cwd=tmp_path, VAULT_MCP_API_KEY=KEY)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere is no folder" in done.stderr


def test_config_shows_every_value_with_its_layer_and_never_the_key(tmp_path: Path) -> None:
    fill(tmp_path, {"vault/A.md": "a\n"})
    done = run("config", "vault", cwd=tmp_path, VAULT_MCP_API_KEY=KEY, BIND_PORT="9999")
    assert done.returncode == 0, done.stderr
    assert re.search(r"server\.port +9999 +environment \(BIND_PORT\)", done.stdout)
    assert re.search(r"locks\.wait_seconds +5 +default", done.stdout)
    assert KEY not in done.stdout + done.stderr


def test_openapi_prints_the_committed_contract(tmp_path: Path) -> None:
    done = run("openapi", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert yaml.safe_load(done.stdout)["openapi"].startswith("3.1")
    assert done.stdout == (Path(__file__).parents[2] / "openapi.yaml").read_text(encoding="utf-8")


def test_doctor_passes_on_a_plain_vault_and_fails_on_a_broken_configuration(tmp_path: Path) -> None:
    fill(tmp_path, {"vault/A.md": "a\n"})
    well = run("doctor", "vault", cwd=tmp_path, VAULT_MCP_API_KEY=KEY)
    assert well.returncode == 0, well.stdout + well.stderr
    assert re.search(r"ok +vault: 1 visible file", well.stdout)
    ill = run("doctor", "vault", cwd=tmp_path, BIND_PORT="many")
    assert ill.returncode == 1
    assert re.search(r"bad +configuration: server\.port", ill.stdout)


def test_help_lists_the_commands_and_needs_no_vault(tmp_path: Path) -> None:
    done = run("--help", cwd=tmp_path)
    assert done.returncode == 0
    for command in ("serve", "stdio", "search", "index", "eval", "models", "config", "openapi", "doctor"):
        assert command in done.stdout
    shown = " ".join(done.stdout.split())
    assert "Exit codes: 0 done, 1 refused or findings, 2 a configuration or a call that cannot be used." in shown


@pytest.mark.parametrize("command", ["", "serve", "search", "index", "eval", "models", "models pull"])
def test_help_imports_nothing_that_takes_long(command: str, tmp_path: Path) -> None:
    program = "import sys; from app.cli.main import app; app(sys.argv[1:], standalone_mode=False); print(*sys.modules)"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, *command.split(), "--help"],
        cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True,
    )  # fmt: skip
    loaded = {module.partition(".")[0] for module in done.stdout.splitlines()[-1].split()}
    assert "app" in loaded
    assert loaded & {"fastembed", "onnxruntime", "numpy", "sqlalchemy", "fastapi", "mcp", "httpx", "pydantic"} == set()


def test_stdio_answers_a_client_and_ends_with_its_input(tmp_path: Path) -> None:
    fill(tmp_path, {"vault/A.md": "# A\n\ntext\n"})
    keep = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"vault_read","arguments":{"path":"A.md"}}}\n'
    hello = (
        '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        '"clientInfo":{"name":"test","version":"1"}}}\n{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [SCRIPT, "stdio", "vault", "--read-only"],
        cwd=tmp_path,
        env={**keep, "HOME": str(tmp_path)},
        input=hello + call,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == 2
    assert '"text":"# A\\n\\ntext\\n"' in answers[1]
