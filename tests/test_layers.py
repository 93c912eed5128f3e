"""Who may do what: rules of the source that no linter knows."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
WRITERS = {
    "operations/store/writes.py",
    "operations/store/trash.py",
    "operations/store/tree.py",  # makes `.trash`
    "operations/store/locks.py",  # files of the state folder
    "operations/store/journal.py",  # likewise
    "operations/store/journal_images.py",  # likewise
}
_CHANGING_CALLS = {
    "write_text",
    "write_bytes",
    "unlink",
    "rename",
    "replace",
    "rmdir",
    "mkdir",
    "makedirs",
    "remove",
    "rmtree",
    "truncate",
    "link",
    "symlink",
}


def test_init_files_stay_empty() -> None:
    filled = [
        str(file.relative_to(ROOT))
        for folder in ("app", "operations")
        for file in (ROOT / folder).rglob("__init__.py")
        if file.read_bytes()
    ]
    assert filled == []


def test_only_the_writing_modules_of_the_store_change_files() -> None:
    found: list[str] = []
    for file in (ROOT / "operations").rglob("*.py"):
        name = str(file.relative_to(ROOT))
        if name in WRITERS:
            continue
        calls = (node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
        found.extend(f"{name}:{call.lineno}" for call in calls if changes_a_file(call))
    assert found == []


def test_tokens_are_signed_and_verified_in_one_module() -> None:
    importers = {
        str(file.relative_to(ROOT))
        for file in (ROOT / "app").rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "jose")
        or (isinstance(node, ast.Import) and any(name.name.partition(".")[0] == "jose" for name in node.names))
    }
    assert importers == {"app/auth/jwt.py"}


def test_files_of_the_vault_change_through_one_gate() -> None:
    gate = {
        "operations/committing.py",
        "operations/index_document.py",  # what it writes is no change of a caller's, and can be made again
        "operations/memory_templates.py",  # makes a vault's first files
    }
    found: list[str] = []
    for file in (ROOT / "operations").rglob("*.py"):
        name = str(file.relative_to(ROOT))
        if name in gate or name.startswith("operations/store/"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in (
                "operations.store.writes",
                "operations.store.trash",
            ):
                found += [f"{name}: {alias.name}" for alias in node.names if alias.name in _WRITING_FUNCTIONS]
    assert found == []


_WRITING_MODULES = {"operations.store.writes", "operations.store.trash"}
_WRITING_FUNCTIONS = {
    "create",
    "replace",
    "remove",
    "rename",
    "make_folders",
    "remove_empty_folder",
    "move_name",
    "move_to_trash",
    "take_from_trash",
    "delete_permanently",
}


def changes_a_file(call: ast.Call) -> bool:
    """`os.unlink(…)`, `shutil.rmtree(…)` and `open` for writing; methods of texts and of our own modules are not."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.value.id in ("os", "shutil") and function.attr in _CHANGING_CALLS
    if isinstance(function, ast.Name) and function.id == "open":
        mode = call.args[1] if len(call.args) > 1 else None
        return isinstance(mode, ast.Constant) and isinstance(mode.value, str) and bool(set(mode.value) & set("wax+"))
    return False
