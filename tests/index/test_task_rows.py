"""Rows of tasks: made again when the rules change, moved with their note, and read in one go by every list.

Source: tasks.md §4, §6.
"""

from pathlib import Path

import pytest

from operations.index.queries import WHOLE_VAULT, Scope
from operations.index.service import VaultIndex
from operations.index.task_queries import (
    IndexedTask,
    SortKey,
    TaskFilter,
    TaskOrder,
    _statements,
    count_open_tasks,
    list_tasks,
)
from operations.index.task_rows import TaskRules
from operations.markdown.task_status import Status, StatusEntry, StatusRegistry
from operations.store.paths import VaultPath
from tests.index.indexes import running, write


def tasks_in(index: VaultIndex, scope: Scope = WHOLE_VAULT) -> list[IndexedTask]:
    with index.reader() as connection:
        found, total = list_tasks(connection, TaskFilter(), TaskOrder(SortKey.POSITION), scope, limit=100)
        assert total == len(found)
    return found


def test_other_statuses_at_the_next_start_give_other_rows(root: Path, state: Path) -> None:
    write(root, {"A.md": "- [?] ask\n- [ ] do\n"})
    with running(root, state) as index:
        assert [(task.description, task.status) for task in tasks_in(index)] == [
            ("ask", Status.TODO),
            ("do", Status.TODO),
        ]
    ideas = TaskRules(StatusRegistry.of([StatusEntry("?", " ", "NON_TASK")]), global_filter="do")
    with running(root, state, task_rules=ideas) as index:
        assert [task.description for task in tasks_in(index)] == ["do"]
        with index.reader() as connection:
            found, _ = list_tasks(connection, TaskFilter(has_global_filter=True), TaskOrder(), limit=9)
        assert [task.line for task in found] == [2]


def test_a_moved_note_takes_its_tasks_along(root: Path) -> None:
    write(root, {"A.md": "- [ ] one\n", "B/C.md": "- [x] two\n"})
    with running(root, None) as index:
        (root / "D").mkdir()
        (root / "A.md").rename(root / "D/A.md")
        index.moved([(VaultPath("A.md"), VaultPath("D/A.md"))])
        assert [(task.path, task.folder) for task in tasks_in(index)] == [("B/C.md", "B"), ("D/A.md", "D")]
        assert [task.path for task in tasks_in(index, Scope("d"))] == ["D/A.md"]
        with index.reader() as connection:
            assert count_open_tasks(connection) == 1
            assert count_open_tasks(connection, Scope(hidden=("D",))) == 0


@pytest.mark.parametrize("key", list(SortKey))
@pytest.mark.parametrize("is_blocked", [None, True])
def test_a_list_is_read_from_one_covering_index(root: Path, key: SortKey, is_blocked: bool | None) -> None:
    wanted = TaskFilter(statuses=frozenset({Status.TODO}), tag="home", headings=("A",), is_blocked=is_blocked)
    with running(root, None) as index, index.reader() as connection:
        for statement in _statements(wanted, TaskOrder(key), Scope("Home", hidden=("Secret",))):
            compiled = statement.compile(connection)
            expanded = compiled.construct_expanded_state({"limit": 50, "offset": 0})
            values = tuple(expanded.positional_parameters)
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {expanded.statement}", values).all()
            assert plan[0][3].startswith("SEARCH tasks USING COVERING INDEX tasks_by_status"), plan
            assert not any(row[3].startswith("SCAN tasks") for row in plan), plan
