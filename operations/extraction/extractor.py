"""Document extraction as the server sees it: bytes in, verdict out, whatever the bytes do.

A PDF is read, and a picture made to fit, in a process of its own under limits on memory, processor time and wall time,
so that a hostile file costs its own extraction and nothing else. One process is kept warm between documents, as
starting one takes longer than reading most documents.
"""

import hashlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Generic, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from operations.errors import ErrorCode, VaultError
from operations.extraction.protocol import LENGTH_BYTES, OUT_OF_MEMORY_EXIT, Job, frame_head, frame_length
from operations.extraction.verdict import Extraction, ExtractionStatus, Pictures, failed

DEFAULT_MEMORY_BYTES = 1024 * 1024 * 1024
OCR_MEMORY_BYTES = 2 * DEFAULT_MEMORY_BYTES
"""With the models that read pictures; a page takes 1.2 GiB of address space."""
DEFAULT_WORKERS = 2
DEFAULT_CACHE_CHARS = 16_000_000
START_SECONDS = 30.0
STOP_SECONDS = 5.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024
PIPE_BYTES = 64 * 1024
DOCUMENTS_PER_WORKER = 50
"""After this many documents a process is replaced, so that leaks and fragments of strange ones do not add up."""
SUFFIX = ".pdf"

# The worker sees no variable that could hold a credential; these are what an interpreter may need to start.
PASSED_VARIABLES = ("PATH", "PYTHONHOME", "PYTHONPATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LANG", "LC_ALL")

_verdicts = TypeAdapter(Extraction)
_pictures = TypeAdapter(Pictures)
_Value = TypeVar("_Value")


def ocr_is_installed() -> bool:
    """Whether the extra that reads scanned pages is there; it is not loaded for that."""
    return find_spec("rapidocr") is not None and find_spec("onnxruntime") is not None


class Extractor:
    """Extracts text from documents; safe to use from many threads at once. Close it to end its processes."""

    def __init__(
        self,
        *,
        max_pages: int,
        seconds: float,
        memory_bytes: int | None = None,
        workers: int = DEFAULT_WORKERS,
        cache_chars: int = DEFAULT_CACHE_CHARS,
        ocr: bool = False,
    ) -> None:
        """Nothing is started before the first document.

        Args:
            max_pages: Pages read of one document.
            seconds: Wall time for one document, start of the process apart; processor time is bounded by the same.
            memory_bytes: Address space of one process, the interpreter's own ~150 MiB included; by default 1 GiB, and
                2 GiB with OCR.
            workers: Documents read at the same time; further callers wait their turn.
            cache_chars: Characters of results kept; a document read again with the same bytes is answered from there.
            ocr: Read scanned pages too; only where the extra is installed.
        """
        self._max_pages = max_pages
        self._seconds = seconds
        self._ocr = ocr
        self._memory_bytes = memory_bytes or (OCR_MEMORY_BYTES if ocr else DEFAULT_MEMORY_BYTES)
        self._cache = _Cache(cache_chars)
        self._turns = threading.BoundedSemaphore(workers)
        self._lock = threading.Lock()
        self._idle: _Worker | None = None
        self._busy: set[_Worker] = set()
        self._is_closed = False

    def __enter__(self) -> Self:
        """Use as a context manager to close it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def extract(self, data: bytes, *, suffix: str) -> Extraction:
        """Read a document.

        Args:
            data: The file, whole.
            suffix: Of the document's path, any letter case; a suffix without a reader is `no_text`.

        Returns:
            A verdict, always: damage, a hang, a crash or too much memory is `failed` with a one-line reason that
            holds nothing from the document.

        Raises:
            VaultError: `extraction_unavailable` when the worker process cannot start or the extractor is closed.

        Source: vault-contract.md §8.
        """
        if suffix.lower() != SUFFIX:
            detail = f"there is no text reader for {suffix or 'files without a suffix'}"
            return Extraction(ExtractionStatus.NO_TEXT, pages=0, has_text_layer=False, text="", detail=detail)
        key = hashlib.sha256(data).digest()
        with self._lock:
            known = self._cache.get(key)
        if known is not None:
            return known
        with self._turns:
            with self._lock:
                known = self._cache.get(key)  # a caller before may have brought the same document
            verdict = known or self._extracted(data)
            with self._lock:
                self._cache.put(key, verdict)
        return verdict

    def close(self) -> None:
        """End every process; a document being read is refused with `extraction_unavailable`. Twice does no harm."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, None
            for worker in self._busy:
                worker.kill()
        if idle is not None:
            idle.stop()

    def fit_picture(self, data: bytes, *, max_bytes: int) -> Pictures:
        """A picture file as one picture of at most `max_bytes`; without one the detail says why, in words of ours.

        Raises:
            VaultError: As `extract`.

        Source: files.md (images).
        """
        return self._pictures({"job": Job.PICTURE, "max_bytes": max_bytes}, data)

    def page_pictures(self, data: bytes, *, first: int, count: int, max_bytes: int) -> Pictures:
        """Pages of a PDF as pictures of together at most `max_bytes`, from the page `first` (1-based) on.

        Raises:
            VaultError: As `extract`.

        Source: files.md (PDF, `raw`).
        """
        return self._pictures({"job": Job.PAGES, "first": first, "count": count, "max_bytes": max_bytes}, data)

    def _pictures(self, wanted: Mapping[str, str | int], data: bytes) -> Pictures:
        with self._turns:
            answer = self._answered(wanted, data, _pictures.validate_json)
        return answer.value or Pictures((), width=0, height=0, pages=0, detail=answer.reason)

    def _extracted(self, data: bytes) -> Extraction:
        wanted: dict[str, str | int] = {"job": Job.TEXT, "max_pages": self._max_pages, "ocr": self._ocr}
        answer = self._answered(wanted, data, _verdicts.validate_json)
        return answer.value or failed(answer.reason)

    def _answered(
        self, wanted: Mapping[str, str | int], data: bytes, parse: Callable[[bytes], _Value]
    ) -> "_Answer[_Value]":
        worker = self._take()
        answer = self._ask(worker, wanted, data, parse)
        if answer.is_worn_out and worker.served > 1:
            # The documents before may be to blame; a fresh process decides.
            answer = self._ask(self._take(), wanted, data, parse)
        return answer

    def _ask(
        self, worker: "_Worker", wanted: Mapping[str, str | int], data: bytes, parse: Callable[[bytes], _Value]
    ) -> "_Answer[_Value]":
        try:
            answer = worker.ask(wanted, data, parse, seconds=self._seconds)
        except BaseException:
            self._give_back(worker, is_usable=False)
            raise
        self._give_back(worker, is_usable=not answer.is_over)
        with self._lock:
            if self._is_closed:
                raise _closed()
        return answer

    def _take(self) -> "_Worker":
        with self._lock:
            if self._is_closed:
                raise _closed()
            worker, self._idle = self._idle, None
            if worker is not None and worker.is_running:
                self._busy.add(worker)
                return worker
        if worker is not None:
            worker.stop()
        worker = _Worker(self._memory_bytes)
        with self._lock:
            self._busy.add(worker)
            is_closed = self._is_closed
        if is_closed:
            self._give_back(worker, is_usable=False)
            raise _closed()
        return worker

    def _give_back(self, worker: "_Worker", *, is_usable: bool) -> None:
        with self._lock:
            self._busy.discard(worker)
            is_kept = is_usable and worker.served < DOCUMENTS_PER_WORKER and self._idle is None and not self._is_closed
            if is_kept:
                self._idle = worker
        if not is_kept:
            worker.stop()


@dataclass(frozen=True, slots=True)
class _Answer(Generic[_Value]):
    value: _Value | None
    reason: str = ""
    """Why there is no value."""
    is_over: bool = False
    """The process cannot serve another document."""
    is_worn_out: bool = False
    """It ended in a way that documents before this one can have caused."""


class _Worker:
    """One extraction process."""

    def __init__(self, memory_bytes: int) -> None:
        self.served = 0
        self._memory_bytes = memory_bytes
        command = [sys.executable, "-m", "operations.extraction.worker", str(memory_bytes)]
        environment = {name: os.environ[name] for name in PASSED_VARIABLES if name in os.environ}
        # A second heap of glibc's takes 64 MiB of address space, now and then, for a thread that needs none of it.
        environment["MALLOC_ARENA_MAX"] = "1"
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module, no word from outside
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd=Path(__file__).parents[2],  # where `operations` is found, installed or not
                env=environment,
            )
        except OSError as error:
            raise _unavailable() from error
        self._channel = _Channel(self._process)
        try:
            self._channel.exchange((), deadline=time.monotonic() + START_SECONDS)
        except _ChannelError as error:
            self.stop()
            raise _unavailable() from error

    @property
    def is_running(self) -> bool:
        """Whether the process is alive."""
        return self._process.poll() is None

    def ask(
        self,
        wanted: Mapping[str, str | int],
        data: bytes,
        parse: Callable[[bytes], _Value],
        *,
        seconds: float,
    ) -> _Answer[_Value]:
        """Have one document read."""
        self.served += 1
        head = json.dumps({**wanted, "seconds": seconds}).encode()
        try:
            body = self._channel.exchange(
                (frame_head(head), head, frame_head(data), data), deadline=time.monotonic() + seconds
            )
            return _Answer(parse(body))
        except _TooSlowError:
            return _Answer(None, f"reading the file takes longer than {seconds:g} s", is_over=True)
        except (_ChannelError, ValidationError):
            return _Answer(None, self._reason_to_end(seconds), is_over=True, is_worn_out=True)

    def kill(self) -> None:
        """End the process, however busy it is; who waits for its answer sees it end."""
        self._process.kill()

    def stop(self) -> None:
        """End the process and forget its pipes; only for whoever holds the worker."""
        self._process.kill()
        self._process.wait(STOP_SECONDS)
        self._channel.close()

    def _reason_to_end(self, seconds: float) -> str:
        try:
            exit_code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return "the reader lost its way in the file"
        if exit_code == OUT_OF_MEMORY_EXIT:
            return f"reading the file takes more than {self._memory_bytes // 2**20} MiB of memory"
        if exit_code == -signal.SIGXCPU:
            return f"reading the file takes longer than {seconds:g} s"
        return "the reader crashed on the file"


class _ChannelError(Exception):
    """The process does not answer in the agreed form any more."""


class _TooSlowError(_ChannelError):
    """The process does not answer in time."""


class _Channel:
    """The pipes to a process: sends and receives at once and never waits past the deadline."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None  # noqa: S101 - both were asked for as pipes
        assert process.stdout is not None  # noqa: S101
        self._streams = (process.stdin, process.stdout)
        self._input = process.stdin.fileno()
        self._output = process.stdout.fileno()
        os.set_blocking(self._input, False)
        os.set_blocking(self._output, False)

    def exchange(self, request: Sequence[bytes], *, deadline: float) -> bytes:
        """Send the parts of the request and return the next frame; the deadline is on the monotonic clock."""
        unsent = [memoryview(part) for part in request if part]
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._output, selectors.EVENT_READ)
            if unsent:
                selector.register(self._input, selectors.EVENT_WRITE)
            while (body := _frame(received)) is None:
                left = deadline - time.monotonic()
                ready = selector.select(left) if left > 0 else []
                if not ready:
                    if deadline <= time.monotonic():
                        raise _TooSlowError
                    continue
                for key, _ in ready:
                    if key.fd == self._output:
                        received += self._receive()
                    else:
                        unsent[0] = unsent[0][self._send(unsent[0]) :]
                        if not unsent[0]:
                            del unsent[0]
                        if not unsent:
                            selector.unregister(self._input)
        return body

    def close(self) -> None:
        """Close both pipes."""
        for stream in self._streams:
            stream.close()

    def _send(self, data: memoryview) -> int:
        try:
            return os.write(self._input, data[:PIPE_BYTES])
        except BlockingIOError:
            return 0
        except OSError as error:
            raise _ChannelError from error

    def _receive(self) -> bytes:
        try:
            data = os.read(self._output, PIPE_BYTES)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise _ChannelError from error
        if not data:
            raise _ChannelError
        return data


def _frame(received: bytearray) -> bytes | None:
    if len(received) < LENGTH_BYTES:
        return None
    length = frame_length(received[:LENGTH_BYTES])
    if length > MAX_ANSWER_BYTES or len(received) > LENGTH_BYTES + length:
        raise _ChannelError
    return bytes(received[LENGTH_BYTES:]) if len(received) == LENGTH_BYTES + length else None


class _Cache:
    """The verdicts used last, up to a number of characters; not safe without the owner's lock."""

    def __init__(self, max_chars: int) -> None:
        self._max_chars = max_chars
        self._chars = 0
        self._verdicts: OrderedDict[bytes, Extraction] = OrderedDict()

    def get(self, key: bytes) -> Extraction | None:
        if key in self._verdicts:
            self._verdicts.move_to_end(key)
        return self._verdicts.get(key)

    def put(self, key: bytes, verdict: Extraction) -> None:
        self._chars -= _weight(self._verdicts.pop(key)) if key in self._verdicts else 0
        self._verdicts[key] = verdict
        self._chars += _weight(verdict)
        while self._chars > self._max_chars:
            _, dropped = self._verdicts.popitem(last=False)
            self._chars -= _weight(dropped)


def _weight(verdict: Extraction) -> int:
    return len(verdict.text) + 1_000  # a verdict without text takes room as well


def _closed() -> VaultError:
    return VaultError(ErrorCode.EXTRACTION_UNAVAILABLE, "documents cannot be read now: the server is stopping")


def _unavailable() -> VaultError:
    return VaultError(
        ErrorCode.EXTRACTION_UNAVAILABLE,
        "documents cannot be read now: the process that reads them does not start; try again, and if it stays so "
        "the owner of the server should look at its free memory and at whether pypdf is installed",
    )
