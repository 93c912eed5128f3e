import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from operations.errors import ErrorCode, VaultError
from operations.extraction.extractor import Extractor
from operations.extraction.verdict import Extraction, ExtractionStatus, failed
from tests.extraction.pdfs import document, show

MEBIBYTE = 2**20
WORKER = "operations.extraction.worker"
GOOD = document(show("hello", 56, 700))
GOOD_VERDICT = Extraction(
    ExtractionStatus.EXTRACTED, pages=1, has_text_layer=True, text="Pages: 1\n\n# page 1\n\nhello\n", detail=""
)
# Each page costs the parser seconds: a page's budget of operators, many pages over.
ENDLESS = document(*[b"0 0 m " * 300_000] * 20)
# More numbers than fit, all of them operands of one operator that never comes.
GREEDY = document(b"0 " * 2_500_000)


@pytest.fixture
def extractor() -> Iterator[Extractor]:
    with Extractor(max_pages=100, seconds=20) as extractor:
        yield extractor


def children() -> set[int]:
    listed = subprocess.run(["ps", "-axo", "pid=,ppid=,args="], capture_output=True, encoding="utf-8", check=True)  # noqa: S607 - wherever the system keeps it
    rows = (line.split(maxsplit=2) for line in listed.stdout.splitlines())
    return {int(pid) for pid, parent, command in rows if int(parent) == os.getpid() and WORKER in command}


def test_a_document_is_read_in_another_process_that_stays_warm(extractor: Extractor) -> None:
    before = children()
    assert extractor.extract(GOOD, suffix=".PDF") == GOOD_VERDICT
    first = children() - before
    assert len(first) == 1
    assert extractor.extract(GOOD + b"\n", suffix=".pdf") == GOOD_VERDICT
    assert children() - before == first


def test_closing_ends_every_process_and_refuses_what_comes_after() -> None:
    before = children()
    extractor = Extractor(max_pages=100, seconds=20)
    extractor.extract(GOOD, suffix=".pdf")
    extractor.close()
    extractor.close()
    assert children() - before == set()
    with pytest.raises(VaultError) as refusal:
        extractor.extract(document(show("other", 56, 700)), suffix=".pdf")
    assert refusal.value.code is ErrorCode.EXTRACTION_UNAVAILABLE
    assert refusal.value.message == "documents cannot be read now: the server is stopping"


def test_damaged_bytes_are_failed_with_a_reason_and_the_process_goes_on(extractor: Extractor) -> None:
    before = children()
    damaged = extractor.extract(b"%PDF-1.7\njunk\n", suffix=".pdf")
    assert damaged == failed("the file is damaged or is not a PDF")
    assert damaged.extracted_chars == 0
    first = children() - before
    assert extractor.extract(GOOD, suffix=".pdf") == GOOD_VERDICT
    assert children() - before == first


def test_an_endless_document_is_failed_in_time_and_the_next_one_is_read() -> None:
    with Extractor(max_pages=100, seconds=1) as extractor:
        assert extractor.extract(ENDLESS, suffix=".pdf") == failed("reading the file takes longer than 1 s")
        assert extractor.extract(GOOD, suffix=".pdf") == GOOD_VERDICT


def test_a_document_that_takes_too_much_memory_is_failed_and_the_next_one_is_read() -> None:
    with Extractor(max_pages=100, seconds=20, memory_bytes=192 * MEBIBYTE) as extractor:
        assert extractor.extract(GOOD, suffix=".pdf") == GOOD_VERDICT
        assert extractor.extract(GREEDY, suffix=".pdf") == failed("reading the file takes more than 192 MiB of memory")
        assert extractor.extract(GOOD + b"\n", suffix=".pdf") == GOOD_VERDICT


def test_a_process_that_cannot_start_is_a_refusal() -> None:
    with (
        Extractor(max_pages=100, seconds=20, memory_bytes=MEBIBYTE) as extractor,
        pytest.raises(VaultError) as refusal,
    ):
        extractor.extract(GOOD, suffix=".pdf")
    assert refusal.value.code is ErrorCode.EXTRACTION_UNAVAILABLE


def test_another_suffix_has_no_text_and_starts_nothing(extractor: Extractor) -> None:
    before = children()
    assert extractor.extract(b"PK", suffix=".docx") == Extraction(
        ExtractionStatus.NO_TEXT, pages=0, has_text_layer=False, text="", detail="there is no text reader for .docx"
    )
    assert children() == before


def test_the_same_bytes_are_answered_without_reading_them_again() -> None:
    before = children()
    extractor = Extractor(max_pages=100, seconds=20)
    with closing(extractor):
        first = extractor.extract(GOOD, suffix=".pdf")
    assert children() == before
    assert extractor.extract(GOOD, suffix=".pdf") is first


def test_results_beyond_the_bound_are_forgotten() -> None:
    others = [document(show(f"text {i}", 56, 700)) for i in range(3)]
    with Extractor(max_pages=100, seconds=20, cache_chars=2_500) as extractor:
        first = extractor.extract(GOOD, suffix=".pdf")
        for other in others:
            extractor.extract(other, suffix=".pdf")
        again = extractor.extract(GOOD, suffix=".pdf")
    assert again == first
    assert again is not first


def test_no_more_documents_are_read_at_once_than_allowed() -> None:
    before = children()
    most = 0
    done = threading.Event()
    verdicts: list[Extraction] = []
    with Extractor(max_pages=100, seconds=20, workers=2) as extractor:
        documents = [document(show(f"text {i}", 56, 700), *[b"0 0 m " * 20_000] * 2) for i in range(6)]
        threads = [
            threading.Thread(target=lambda data=data: verdicts.append(extractor.extract(data, suffix=".pdf")))
            for data in documents
        ]

        def watch() -> None:
            nonlocal most
            while not done.is_set():
                most = max(most, len(children() - before))
                done.wait(0.01)

        watcher = threading.Thread(target=watch)
        watcher.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        done.set()
        watcher.join(60)
    assert most == 2
    assert [verdict.status for verdict in verdicts] == [ExtractionStatus.EXTRACTED] * 6
    assert {verdict.text.split("\n")[4] for verdict in verdicts} == {f"text {i}" for i in range(6)}


def test_closing_refuses_a_document_that_is_being_read() -> None:
    before = children()
    extractor = Extractor(max_pages=100, seconds=60)
    refusals: list[VaultError] = []

    def read() -> None:
        try:
            extractor.extract(ENDLESS, suffix=".pdf")
        except VaultError as refusal:
            refusals.append(refusal)

    thread = threading.Thread(target=read)
    thread.start()
    waiting = threading.Event()
    for _ in range(1_000):
        if children() - before:
            break
        waiting.wait(0.01)
    extractor.close()
    thread.join(60)
    assert not thread.is_alive()
    assert [refusal.code for refusal in refusals] == [ErrorCode.EXTRACTION_UNAVAILABLE]
    assert children() == before


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_process_sees_no_variable_that_could_hold_a_credential(
    extractor: Extractor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_MCP_API_KEY", "a-key-nobody-may-see")
    before = children()
    extractor.extract(GOOD, suffix=".pdf")
    (worker,) = children() - before
    with open(f"/proc/{worker}/environ", "rb") as environment:  # noqa: PTH123 - a kernel file without a size
        assert b"a-key-nobody-may-see" not in environment.read()


def test_no_process_outlives_its_parent_even_in_the_middle_of_a_document() -> None:
    command = [sys.executable, "-m", WORKER, str(1024 * MEBIBYTE)]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603 - our own program
    assert worker.stdin is not None
    assert worker.stdout is not None
    with worker.stdout:
        assert worker.stdout.read(10) == (2).to_bytes(8) + b"{}"
        head = b'{"job": "text", "max_pages": 100, "seconds": 60}'
        worker.stdin.write(b"".join((len(head).to_bytes(8), head, len(ENDLESS).to_bytes(8), ENDLESS)))
        worker.stdin.close()
        assert worker.wait(10) == 0
        assert worker.stdout.read() == b""
