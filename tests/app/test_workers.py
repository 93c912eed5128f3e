"""The worker pool: what it promises to those who wait, and to those who no longer do."""

import threading
from collections.abc import Iterator
from contextvars import ContextVar

import anyio
import anyio.to_thread
import pytest

from app.workers import Workers
from operations.errors import ErrorCode, VaultError

pytestmark = pytest.mark.anyio

PATIENCE_SECONDS = 10.0
asked_by: ContextVar[str] = ContextVar("asked_by", default="nobody")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def workers() -> Iterator[Workers]:
    pool = Workers(1)
    yield pool
    pool.close()


class Gated:
    """Work that says when it has begun and waits to be let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.may_end = threading.Event()
        self.ended = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.may_end.wait(PATIENCE_SECONDS)
        self.ended.set()
        return "done"

    async def has_begun(self) -> None:
        assert await anyio.to_thread.run_sync(self.begun.wait, PATIENCE_SECONDS)


async def test_an_answer_comes_from_another_thread_with_the_callers_context(workers: Workers) -> None:
    asked_by.set("a request")
    assert await workers.run(lambda: (asked_by.get(), threading.current_thread() is threading.main_thread())) == (
        "a request",
        False,
    )


async def test_a_refusal_reaches_the_caller_as_it_was_raised(workers: Workers) -> None:
    refusal = VaultError(ErrorCode.NOT_FOUND, "nothing in the vault is named 'a.md'")

    def refuse() -> None:
        raise refusal

    with pytest.raises(VaultError) as raised:
        await workers.run(refuse)
    assert raised.value is refusal


async def test_work_that_has_begun_is_waited_for_when_its_caller_is_cancelled(workers: Workers) -> None:
    work = Gated()
    left: list[bool] = []

    async def call() -> None:
        try:
            await workers.run(work)
        finally:
            left.append(work.ended.is_set())

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await work.has_begun()
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await anyio.wait_all_tasks_blocked()
                assert left == []
            work.may_end.set()
    assert left == [True]


async def test_work_that_waits_for_a_thread_is_dropped_when_its_caller_is_cancelled(workers: Workers) -> None:
    first, second = Gated(), Gated()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(workers.run, first)
            await first.has_begun()
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(workers.run, second)
                await anyio.wait_all_tasks_blocked()
                waiting.cancel_scope.cancel()
            first.may_end.set()
        assert await workers.run(lambda: "next") == "next"
    assert (first.ended.is_set(), second.begun.is_set()) == (True, False)


async def test_no_more_calls_run_at_once_than_there_are_threads() -> None:
    pool = Workers(2)
    calls = [Gated() for _ in range(3)]
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for call in calls:
                tasks.start_soon(pool.run, call)
                await anyio.wait_all_tasks_blocked()
            await calls[1].has_begun()
            assert [call.begun.is_set() for call in calls] == [True, True, False]
            for call in calls:
                call.may_end.set()
    assert [call.ended.is_set() for call in calls] == [True, True, True]
    pool.close()
