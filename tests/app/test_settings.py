"""Settings: layers, spellings, refusals, derived defaults, and the two documents that repeat the declarations."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from app.settings.configs import check_tool_names, require_api_key, vault_config
from app.settings.declaring import ConfigError
from app.settings.loading import load_settings
from app.settings.model import Declared, Row, Settings, as_text, declared_settings, effective
from operations.vault import DeleteMode, TimestampPolicy, VaultConfig

PROJECT = Path(__file__).resolve().parents[2]
KEY = "0123456789abcdef" * 4
NO_FILE = {"VAULT_MCP_CONFIG": ""}

Load = Callable[..., Settings]


def value(settings: Settings, key: str) -> object:
    found: object = settings
    for name in key.split("."):
        found = getattr(found, name)
    return found


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    folder = tmp_path / "Home Vault"
    folder.mkdir()
    return folder


@pytest.fixture
def load(tmp_path: Path, vault: Path) -> Load:
    def load_with(text: str = "", **environ: str) -> Settings:
        file = tmp_path / "config.yaml"
        file.write_text(text, encoding="utf-8")
        return load_settings(str(vault), {"VAULT_MCP_CONFIG": str(file), **environ})

    return load_with


def as_yaml(key: str, text: str) -> str:
    """A file with one setting, each part of its key on a line of its own."""
    *sections, name = key.split(".")
    lines = [f"{'  ' * depth}{section}:" for depth, section in enumerate(sections)]
    return "\n".join([*lines, f"{'  ' * len(sections)}{name}: {text}", ""])


def refusal(load: Load, text: str = "", **environ: str) -> str:
    with pytest.raises(ConfigError) as refused:
        load(text, **environ)
    return str(refused.value)


# --- layers


def test_without_file_and_variables_the_defaults_hold(vault: Path) -> None:
    settings = load_settings(str(vault), NO_FILE)
    derived = {
        "vault.path",
        "vault.name",
        "server.public_url",
        "server.worker_threads",
        "server.state_dir",
        "index.cache_path",
    }
    plain = Settings()
    for key in declared_settings().keys() - derived:
        assert value(settings, key) == value(plain, key), key
    assert settings.api_key is None
    assert {key: str(source) for key, source in settings.sources.items()} == {"vault.path": "argument"}


def test_the_index_has_three_states_default_off_and_a_path(load: Load, tmp_path: Path) -> None:
    assert load().index.cache_path == Path(str(load().server.state_dir)) / "index.db"
    assert load(INDEX_CACHE_PATH="").index.cache_path is None
    assert load("index:\n  cache_path:\n").index.cache_path is None
    assert load("index:\n  cache_path: ''\n").index.cache_path is None
    elsewhere = tmp_path / "elsewhere.db"
    assert load(INDEX_CACHE_PATH=str(elsewhere)).index.cache_path == elsewhere


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(load: Load) -> None:
    settings = load("server:\n  port: 9000\n  host: 0.0.0.0\n", BIND_PORT="9001")
    assert (settings.server.port, settings.server.host, settings.locks.wait_seconds) == (9001, "0.0.0.0", 5.0)  # noqa: S104
    assert str(settings.sources["server.port"]) == "environment (BIND_PORT)"
    assert str(settings.sources["server.host"]) == "file (config.yaml, line 3)"
    assert "locks.wait_seconds" not in settings.sources


def test_the_argument_wins_over_every_layer(tmp_path: Path, vault: Path) -> None:
    settings = load_settings(str(vault), {**NO_FILE, "VAULT_PATH": str(tmp_path / "elsewhere")})
    assert (settings.vault.path, str(settings.sources["vault.path"])) == (vault, "argument")


def test_every_setting_can_be_set_by_its_own_variable(vault: Path) -> None:
    for declared in declared_settings().values():
        if not declared.is_path:
            default = as_text(value(Settings(), declared.key))
            settings = load_settings(str(vault), {**NO_FILE, declared.variable: default})
            assert str(settings.sources[declared.key]) == f"environment ({declared.variable})"


def test_a_kept_name_and_the_own_name_may_agree_in_different_spellings(load: Load) -> None:
    assert load(READONLY_MODE="1", VAULT_MCP_SERVER__READ_ONLY="yes").server.read_only is True


def test_a_kept_name_and_the_own_name_that_differ_refuse_to_start(load: Load) -> None:
    assert refusal(load, BIND_PORT="1", VAULT_MCP_SERVER__PORT="2") == (
        "server.port: BIND_PORT and VAULT_MCP_SERVER__PORT differ; set one of them"
    )


def test_an_empty_variable_counts_as_unset(load: Load) -> None:
    settings = load("server:\n  port: 9000\n", BIND_PORT="", VAULT_MCP_SERVER__PORT="", VAULT_MCP_NO__SUCH="")
    assert settings.server.port == 9000


# --- the file


def test_config_yaml_beside_the_package_is_read_unless_another_is_named(tmp_path: Path, vault: Path) -> None:
    (tmp_path / "config.yaml").write_text("server:\n  port: 9000\n", encoding="utf-8")
    other = tmp_path / "other.yaml"
    other.write_text("server:\n  port: 9001\n", encoding="utf-8")
    ports = [
        load_settings(str(vault), environ, package_root=tmp_path).server.port
        for environ in ({}, {"VAULT_MCP_CONFIG": str(other)}, {"VAULT_MCP_CONFIG": ""})
    ]
    assert ports == [9000, 9001, 8080]


def test_no_file_beside_the_package_is_no_error(tmp_path: Path, vault: Path) -> None:
    assert load_settings(str(vault), {}, package_root=tmp_path).server.port == 8080


def test_a_named_file_must_exist(tmp_path: Path, vault: Path) -> None:
    missing = tmp_path / "missing.yaml"
    with pytest.raises(ConfigError) as refused:
        load_settings(str(vault), {"VAULT_MCP_CONFIG": str(missing)})
    assert str(refused.value) == f"VAULT_MCP_CONFIG: cannot read {missing}: No such file or directory"


def test_sections_whose_keys_are_all_commented_out_are_empty(load: Load) -> None:
    assert load("server:\n#  port: 1\nnotes: {}\n").server.port == 8080


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("server:\n  prt: 1\n", "server.prt (config.yaml, line 2): is no setting; the nearest is server.port"),
        ("sever:\n  port: 1\n", "sever.port (config.yaml, line 2): is no setting; the nearest is server.port"),
        ("sever:\n", "sever (config.yaml, line 1): is no setting; the nearest is server"),
        ("port: 1\n", "port (config.yaml, line 1): is no setting; the nearest is server.port"),
        ("server: 3\n", "server (config.yaml, line 1): must hold keys, one a line"),
        ("- server\n", "config.yaml, line 1: must hold sections such as `server:`"),
        ("server:\n  port: 1\n  port: 2\n", "server.port (config.yaml, line 3): stands twice, first on line 2"),
        ("server:\n  ? [a]\n  : 1\n", "config.yaml, line 2: a key must be a plain word"),
        ("server: [\n", "config.yaml, line 2, column 1: is not valid YAML"),
        ("server:\n  host: *lost\n", "config.yaml, line 2, column 9: is not valid YAML"),
        ("server:\n  host: 2024-13-45\n", "config.yaml: holds a value that YAML cannot express"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_refused_with_its_place(load: Load, text: str, message: str) -> None:
    assert refusal(load, text) == message


def test_a_file_that_is_no_utf8_is_refused(tmp_path: Path, vault: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_bytes(b"vault:\n  name: \xff\n")
    with pytest.raises(ConfigError) as refused:
        load_settings(str(vault), {"VAULT_MCP_CONFIG": str(file)})
    assert str(refused.value) == f"{file}: is not UTF-8 text (byte 15)"


@pytest.mark.parametrize(
    "text",
    [
        "auth:\n  api_key: s3cr3t-value\n",
        "server:\n  api_key: s3cr3t-value\n",
        "api_key: s3cr3t-value\n",
        "VAULT_MCP_API_KEY: s3cr3t-value\n",
        "auth:\n  api_key: [s3cr3t-value\n",
        "auth:\n  api_key: *s3cr3t-value\n",
        "auth:\n  api_key: !s3cr3t-value x\n",
        "auth:\n  token: s3cr3t-value\n",
        "server:\n  public_url: https://u:s3cr3t-value@vault.example\n",
    ],
)
def test_a_secret_in_a_file_refuses_to_start_without_showing_it(load: Load, text: str) -> None:
    assert "s3cr3t" not in refusal(load, text)


def test_a_key_in_a_file_is_told_where_keys_come_from(load: Load) -> None:
    assert refusal(load, "auth:\n  api_key: s3cr3t-value\n") == (
        "auth.api_key (config.yaml, line 2): secrets come from the environment only; "
        "set VAULT_MCP_API_KEY and remove this line"
    )


def test_paths_in_the_file_are_relative_to_the_file_and_in_the_environment_to_the_current_folder(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = tmp_path / "current"
    current.mkdir()
    monkeypatch.chdir(current)
    settings = load("server:\n  state_dir: state\n", LOG_DIR="logs")
    assert (settings.server.state_dir, settings.log.dir) == (tmp_path / "state", current / "logs")


# --- unknown variables


def test_a_misspelt_variable_is_refused_with_the_nearest_key(load: Load) -> None:
    assert refusal(load, VAULT_MCP_SERVER__PROT="1") == (
        "server.prot (VAULT_MCP_SERVER__PROT in the environment): is no setting; the nearest is server.port"
    )


# --- values


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("notes.max_bytes", "16 MiB", 16 * 1024**2),
        ("notes.max_bytes", "2gib", 2 * 1024**3),
        ("notes.max_bytes", "1 KiB", 1024),
        ("notes.max_bytes", "512 B", 512),
        ("notes.max_bytes", "700", 700),
        ("locks.wait_seconds", "0.5", 0.5),
        ("server.read_only", "ON", True),
        ("server.read_only", "off", False),
        ("server.read_only", "1", True),
        ("server.read_only", "no", False),
        ("log.level", "WARNING", "warning"),
        ("delete.mode", "Trash", "trash"),
        ("documents.suffixes", "PDF, .Epub", (".pdf", ".epub")),
        ("documents.suffixes", "none", ()),
        ("vault.protected_paths", "none", ()),
        ("vault.hidden_folders", "Private, Work/Secret/", ("Private", "Work/Secret")),
        ("server.allowed_hosts", "LAN:8080, notes.example.", ("lan:8080", "notes.example")),
        ("server.cors_origins", "https://App.example:443, null", ("https://app.example", "null")),
        ("server.public_url", "HTTPS://Vault.Example:443/", "https://vault.example"),
        ("server.public_url", "http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("mcp.instructions_note", "Meta/Instructions.md", "Meta/Instructions.md"),
        ("mcp.ignored_arguments", "none", ()),
        ("mcp.instructions", "none", None),
        ("vault.protected_paths", "Auto", "auto"),
        ("vault.protected_paths", "Auto, Work", ("Auto", "Work")),
        ("links.orphan_exclude_folders", "none", ()),
        ("periodic.daily.folder", "/", ""),
        ("periodic.daily.folder", "Journal/Days/", "Journal/Days"),
        ("periodic.weekly.format", "GGGG/[Week] WW", "GGGG/[Week] WW"),
        ("periodic.yearly.template", "none", None),
        ("periodic.week_start", "Monday", "monday"),
    ],
)
def test_a_value_reads_the_same_in_both_layers(load: Load, key: str, text: str, expected: object) -> None:
    from_file = load(as_yaml(key, text))
    from_environment = load(**{declared_settings()[key].variable: text})
    assert (value(from_file, key), value(from_environment, key)) == (expected, expected)


def test_an_item_of_a_sequence_may_hold_a_comma(load: Load) -> None:
    settings = load('vault:\n  hidden_folders:\n    - "Private, old"\n    - Work\n')
    assert settings.vault.hidden_folders == ("Private, old", "Work")


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        ("server.port", "abc", "input should be a valid integer, unable to parse string as an integer"),
        ("server.port", "yes", "must be a number"),
        ("server.port", "65536", "input should be less than or equal to 65535"),
        ("server.port", "", "input should be a valid integer, unable to parse string as an integer"),
        ("server.header_seconds", "0", "input should be greater than 0"),
        ("server.header_seconds", ".inf", "input should be a finite number"),
        ("server.read_only", "maybe", "must be one of true, false, on, off, yes, no, 1, 0"),
        ("server.state_dir", "", "must not be blank; leave it out for the default"),
        ("server.state_dir", '"  "', "must not be blank; leave it out for the default"),
        ("vault.name", "2024", "must be text; put quotes around it"),
        ("notes.max_bytes", "16 MB", "must be bytes as a whole number, or text such as 16 MiB (B, KiB, MiB, GiB)"),
        ("notes.max_bytes", "0", "input should be greater than 0"),
        ("notes.timestamp", 'never', "input should be 'if_present', 'always' or 'off'"),
        ("notes.field_order", "{a: 1}", "must be a list, or text with commas"),
        ("documents.suffixes", "pdf, md", "must not hold .md: notes, scripts and HTML are never stored as files"),
        ("files.write_suffixes", "[tar.gz]", "must be file suffixes such as .pdf"),
        ("documents.folder", "A/B", "must be the name of one folder, not a path"),
        ("vault.hidden_folders", '/', "must name folders below the vault's root, not the root itself"),
        ("mcp.max_text_bytes", "1000", "input should be greater than or equal to 1024"),
        ("mcp.instructions_note", "a.pdf", "must be the vault path of a note, ending in .md"),
        ("periodic.daily.folder", "../x", "'../x' has '..'; write the path from the vault's root"),
        ("periodic.daily", "x", "must hold keys, one a line"),
        ("periodic.hourly", "{folder: x}", "is no setting; the nearest is periodic.locale"),
        ("periodic.locale", "de", "input should be 'en'"),
        ("server.allowed_hosts", "https://a.example", "must be a host name or address with an optional port"),
        ("server.cors_origins", "a.example", "must be scheme://host or scheme://host:port and nothing else"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_refused_with_key_and_place(load: Load, key: str, text: str, message: str) -> None:
    assert refusal(load, as_yaml(key, text)) == f"{key} (config.yaml, line {1 + key.count('.')}): {message}"


@pytest.mark.parametrize("form", ["[]", "[.]YYYY", "[..]/YYYY", "YYYY/"])
def test_a_format_that_makes_no_name_refuses_to_start(load: Load, form: str) -> None:
    assert refusal(load, DAILY_NOTES_FORMAT=form).startswith(
        "periodic.daily.format (DAILY_NOTES_FORMAT): must make the name of a note: "
    )


def test_a_first_day_of_the_week_that_is_none_refuses_to_start(load: Load) -> None:
    assert refusal(load, VAULT_MCP_PERIODIC__WEEK_START="noday").startswith("periodic.week_start (")


@pytest.mark.parametrize("folder", ["../outside", ".obsidian", "a\\b"])
def test_a_folder_that_the_path_rules_refuse_refuses_to_start(load: Load, folder: str) -> None:
    assert refusal(load, VAULT_MCP_VAULT__HIDDEN_FOLDERS=folder).startswith(
        "vault.hidden_folders (VAULT_MCP_VAULT__HIDDEN_FOLDERS"
    )


@given(st.text(max_size=40), st.sampled_from(sorted(declared_settings())))
def test_any_text_in_a_variable_is_a_value_or_a_refusal_that_names_the_key(text: str, key: str) -> None:
    declared = declared_settings()[key]
    try:
        settings = load_settings(None, {**NO_FILE, declared.variable: text, "HOME": "/nowhere"})
    except ConfigError as refused:
        message = str(refused)
    else:
        message = f"{key} is {value(settings, key)!r}"
    assert message.startswith(f"{key} ")


@pytest.mark.parametrize("key", [key for key, declared in declared_settings().items() if not declared.is_path])
def test_the_effective_text_of_a_value_reads_back_as_the_value(vault: Path, key: str) -> None:
    settings = load_settings(str(vault), NO_FILE)
    row = next(row for row in effective(settings) if row.key == key)
    again = load_settings(str(vault), {**NO_FILE, declared_settings()[key].variable: row.value})
    assert value(again, key) == value(settings, key)


# --- derived defaults


@pytest.mark.parametrize(
    ("environ", "origin"),
    [
        ({}, "http://127.0.0.1:8080"),
        ({"BIND_PORT": "9000", "BIND_HOST": "localhost"}, "http://127.0.0.1:9000"),
        ({"BIND_HOST": "::1"}, "http://127.0.0.1:8080"),
        ({"BIND_HOST": "0.0.0.0"}, None),  # noqa: S104
        ({"BIND_HOST": "::"}, None),
        ({"RENDER_EXTERNAL_URL": "https://x.onrender.example", "RAILWAY_PUBLIC_DOMAIN": "y.example"}, "https://x.onrender.example"),
        ({"RAILWAY_PUBLIC_DOMAIN": "y.example"}, "https://y.example"),
        ({"PUBLIC_URL": "https://z.example", "RENDER_EXTERNAL_URL": "https://x.example"}, "https://z.example"),
    ],
)  # fmt: skip
def test_the_public_origin_falls_back_to_the_platform_then_to_loopback(
    vault: Path, environ: Mapping[str, str], origin: str | None
) -> None:
    assert load_settings(str(vault), {**NO_FILE, **environ}).server.public_url == origin


@pytest.mark.parametrize(
    "text",
    [
        "http://vault.example",
        "https://vault.example/base",
        "https://vault.example?x=1",
        "https://u:p@vault.example",
        "vault.example",
        "ftp://localhost",
        "https://vault.example//",
        "https://vault.example#a",
    ],
)
def test_a_public_origin_that_is_none_refuses_to_start_and_names_the_variable(vault: Path, text: str) -> None:
    for variable in ("PUBLIC_URL", "RENDER_EXTERNAL_URL"):
        with pytest.raises(ConfigError) as refused:
            load_settings(str(vault), {**NO_FILE, variable: text})
        assert re.match(rf"server\.public_url \(.*{variable}.*\): must be ", str(refused.value))
        assert text not in str(refused.value)


def test_the_state_folder_is_the_platforms_with_name_and_hash_of_the_real_path(tmp_path: Path, vault: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(vault)
    other = tmp_path / "other" / "Home Vault"
    other.mkdir(parents=True)
    environ = {**NO_FILE, "XDG_STATE_HOME": str(tmp_path / "state")}
    folders = [load_settings(str(path), environ).server.state_dir for path in (vault, link, other)]
    assert folders[0] == folders[1] != folders[2]
    assert folders[0] is not None
    assert folders[0].parent == tmp_path / "state" / "vault-mcp"
    assert re.fullmatch(r"Home-Vault-[0-9a-f]{12}", folders[0].name)


def test_a_relative_xdg_state_home_is_ignored(vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    settings = load_settings(str(vault), {**NO_FILE, "XDG_STATE_HOME": "state", "HOME": str(tmp_path)})
    assert settings.server.state_dir is not None
    assert settings.server.state_dir.parent == tmp_path / ".local" / "state" / "vault-mcp"


def test_on_macos_the_state_folder_lies_in_application_support(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    settings = load_settings(str(vault), {**NO_FILE, "HOME": str(tmp_path)})
    assert settings.server.state_dir is not None
    assert settings.server.state_dir.parent == tmp_path / "Library" / "Application Support" / "vault-mcp"


def test_a_state_folder_inside_the_vault_refuses_to_start(load: Load, vault: Path) -> None:
    assert refusal(load, VAULT_MCP_SERVER__STATE_DIR=str(vault / ".state")) == (
        f"server.state_dir: {vault / '.state'} lies inside the vault; choose a folder outside of it"
    )


def test_a_vault_that_is_no_folder_refuses_to_start(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(ConfigError) as refused:
        load_settings(None, {**NO_FILE, "VAULT_PATH": str(missing)})
    assert str(refused.value) == f"vault.path (VAULT_PATH): {missing} is no folder"


def test_without_a_vault_the_path_stays_open_for_the_sample() -> None:
    settings = load_settings(None, NO_FILE)
    assert (settings.vault.path, settings.vault.name, settings.server.state_dir) == (None, None, None)
    with pytest.raises(ConfigError):
        vault_config(settings)


def test_worker_threads_follow_the_cores_unless_set(load: Load) -> None:
    default = load().server.worker_threads
    assert default is not None
    assert 4 <= default <= 32
    assert load(VAULT_MCP_SERVER__WORKER_THREADS="3").server.worker_threads == 3


# --- the static key


@pytest.mark.parametrize("text", ["", "   ", "\n"])
def test_a_blank_key_is_no_key_and_serving_needs_one(vault: Path, text: str) -> None:
    settings = load_settings(str(vault), {**NO_FILE, "VAULT_MCP_API_KEY": text})
    assert settings.api_key is None
    with pytest.raises(ConfigError) as refused:
        require_api_key(settings)
    assert str(refused.value) == (
        "VAULT_MCP_API_KEY is not set; make a key with `openssl rand -hex 32`, or start with --generate-key"
    )


def test_white_space_around_a_key_is_cut_and_the_key_is_never_shown(vault: Path) -> None:
    settings = load_settings(str(vault), {**NO_FILE, "VAULT_MCP_API_KEY": f" {KEY}\n"})
    assert require_api_key(settings).get_secret_value() == KEY
    assert effective(settings)[-1] == Row("VAULT_MCP_API_KEY", "***", "environment")
    assert KEY not in repr(settings) + str(settings) + repr(effective(settings))


@pytest.mark.parametrize("text", ["two words", "tab\there", "schlüssel", "nul\x00", "a,b", "k" * 8193])
def test_a_key_that_no_header_could_carry_refuses_to_start_without_showing_it(vault: Path, text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_settings(str(vault), {**NO_FILE, "VAULT_MCP_API_KEY": text})
    assert str(refused.value).startswith("VAULT_MCP_API_KEY must ")
    assert text not in str(refused.value)


@pytest.mark.parametrize(("word", "mode"), [("on", "on"), ("'ON'", "on"), ("off", "off"), ("Auto", "auto")])
def test_an_unquoted_on_is_no_trap_for_the_index_document(load: Load, word: str, mode: str) -> None:
    assert load(f"index:\n  document: {word}\n").index.document.value == mode
    assert load(VAULT_MCP_INDEX__DOCUMENT=word.strip("'")).index.document.value == mode


# --- what is made of settings


def test_the_vaults_configuration_carries_the_values(load: Load) -> None:
    settings = load(
        "vault:\n  name: Mine\n  hidden_folders: [Private]\n  protected_paths: Me\n"
        "server:\n  read_only: on\nwrites:\n  require_version: yes\n"
        "notes:\n  timestamp: always\n  timestamp_key: updated\n  field_order: title, tags\n  max_bytes: 1 KiB\n"
        "documents:\n  suffixes: epub\n  folder: Sources\n  max_bytes: 2 KiB\n  max_pages: 3\n  extract_seconds: 4\n"
        "files:\n  write_suffixes: png\n  write_folders: Pictures\ndelete:\n  mode: trash\n"
    )
    made = vault_config(settings)
    expected = {
        "name": "Mine",
        "hidden_folders": ("Private",),
        "protected_paths": ("Me",),
        "read_only": True,
        "require_version": True,
        "timestamp": TimestampPolicy.ALWAYS,
        "timestamp_key": "updated",
        "field_order": ("title", "tags"),
        "max_note_bytes": 1024,
        "document_suffixes": (".epub",),
        "documents_folder": "Sources",
        "max_document_bytes": 2048,
        "max_document_pages": 3,
        "extract_seconds": 4.0,
        "attachment_suffixes": (".png",),
        "attachment_folders": ("Pictures",),
        "delete_mode": DeleteMode.TRASH,
    }
    assert {name: getattr(made, name) for name in expected} == expected


def test_the_defaults_of_the_vaults_configuration_are_those_of_the_settings(vault: Path) -> None:
    made = vault_config(load_settings(str(vault), NO_FILE))
    bare = VaultConfig(name="Home Vault")
    # Which files may be stored or read as text is the settings' to say, the time zone the machine's.
    decided_above = {"attachment_suffixes", "text_suffixes", "timezone"}
    for name in set(VaultConfig.__slots__) - decided_above:
        assert getattr(made, name) == getattr(bare, name), name


def test_an_unknown_tool_to_disable_refuses_to_start(load: Load) -> None:
    settings = load(DISABLED_TOOLS="vault_read, vault_wirte")
    check_tool_names(settings, ["vault_read", "vault_write", "vault_wirte"])
    with pytest.raises(ConfigError) as refused:
        check_tool_names(settings, ["vault_read", "vault_write"])
    assert str(refused.value) == (
        "server.disabled_tools (DISABLED_TOOLS): no tool is named 'vault_wirte'; the nearest is vault_write"
    )


def test_effective_lists_every_setting_with_its_source(load: Load) -> None:
    rows = {row.key: row for row in effective(load("server:\n  read_only: on\n", PROTECTED_PATHS="none"))}
    assert list(rows) == [*declared_settings(), "VAULT_MCP_API_KEY"]
    assert rows["server.read_only"] == Row("server.read_only", "true", "file (config.yaml, line 2)")
    assert rows["vault.protected_paths"] == Row("vault.protected_paths", "none", "environment (PROTECTED_PATHS)")
    assert rows["server.port"] == Row("server.port", "8080", "default")
    assert rows["VAULT_MCP_API_KEY"] == Row("VAULT_MCP_API_KEY", "none", "default")


# --- the documents that repeat the declarations


def leaves(tree: dict[str, object], prefix: str = "") -> Iterator[str]:
    for name, below in tree.items():
        if isinstance(below, dict):
            yield from leaves(below, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def uncommented(text: str) -> str:
    return re.sub(r"^#", "", text, flags=re.MULTILINE)


def test_the_example_file_holds_every_setting_at_its_default(tmp_path: Path, vault: Path) -> None:
    text = uncommented((PROJECT / "config.example.yaml").read_text(encoding="utf-8"))
    keys = list(leaves(yaml.safe_load(text)))
    assert keys == list(declared_settings())
    file = tmp_path / "config.yaml"
    file.write_text(text, encoding="utf-8")
    from_file = load_settings(str(vault), {"VAULT_MCP_CONFIG": str(file)})
    defaults = load_settings(str(vault), NO_FILE)
    assert {key: value(from_file, key) for key in keys} == {key: value(defaults, key) for key in keys}


def test_the_example_file_changes_nothing_as_it_is(load: Load) -> None:
    text = (PROJECT / "config.example.yaml").read_text(encoding="utf-8")
    assert load(text).sources.keys() == {"vault.path"}


def test_the_example_file_says_what_every_setting_means() -> None:
    text = (PROJECT / "config.example.yaml").read_text(encoding="utf-8")
    for declared in declared_settings().values():
        indent = "  " * declared.key.count(".")
        assert f"#{indent}# {declared.meaning[:-1]}" in text, declared.key


def table_row(declared: Declared) -> str:
    kept = f"`{declared.kept_variable}`" if declared.kept_variable else ""
    return f"| `{declared.key}` | {declared.type} | {declared.default} | {kept} | {declared.meaning} |"


def test_the_table_in_the_documentation_is_the_declarations() -> None:
    page = (PROJECT / "docs" / "settings.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [table_row(declared) for declared in declared_settings().values()]
