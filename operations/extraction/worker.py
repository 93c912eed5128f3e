"""The extraction process: reads documents from standard input, one after the other, and answers a verdict each.

Start with `python -m operations.extraction.worker <memory bytes>`. A request is a frame of JSON that says what to do
(`{"job": "text", "seconds": 60.0, "max_pages": 2000, "ocr": true}`) and a frame with the document; an answer is a frame
of JSON. The first answer says that the process is ready. The end of standard input ends it.
"""

import json
import logging
import os
import resource
import select
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, BinaryIO, Final

from operations.extraction.pdf import extract_pdf
from operations.extraction.protocol import LENGTH_BYTES, OUT_OF_MEMORY_EXIT, Job, frame_head, frame_length
from operations.extraction.verdict import Extraction, ExtractionStatus, Pictures

MAX_OPEN_FILES = 64
RECOGNISING_SHARE: Final = 0.8
"""Share of a document's time after which no page more is recognised, so that what was read so far is not lost."""


def main() -> int:
    """Serve requests until standard input ends; every limit is set before the first byte of a document is read."""
    memory_bytes = int(sys.argv[1])
    logging.disable()  # pypdf comments on damage, quoting the document
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing but answers may reach the parent
    _limit(memory_bytes)
    threading.Thread(target=_leave_with_the_parent, daemon=True).start()
    _write(answers, b"{}")
    try:
        while (head := _read(requests)) is not None:
            wanted = json.loads(head)
            data = _read(requests)
            if data is None:
                return 0
            _limit_cpu(float(wanted["seconds"]))
            answer = json.dumps(asdict(_done(wanted, data)), ensure_ascii=False)
            _write(answers, answer.encode("utf-8", "replace"))
    except MemoryError:  # in the reader, or already while the document was taken in
        return OUT_OF_MEMORY_EXIT
    return 0


def _done(wanted: Mapping[str, Any], data: bytes) -> Extraction | Pictures:
    """The answer to one request."""
    match wanted["job"]:
        case Job.PICTURE:
            from operations.extraction.pictures import fit_picture  # noqa: PLC0415 - most documents need none of it

            return fit_picture(data, max_bytes=wanted["max_bytes"])
        case Job.PAGES:
            from operations.extraction.pictures import page_pictures  # noqa: PLC0415

            return page_pictures(data, first=wanted["first"], count=wanted["count"], max_bytes=wanted["max_bytes"])
        case _:
            began = time.monotonic()
            verdict = extract_pdf(data, max_pages=wanted["max_pages"])
            if verdict.status is not ExtractionStatus.NEEDS_OCR or not wanted["ocr"]:
                return verdict
            from operations.extraction.ocr import with_recognised_text  # noqa: PLC0415

            left = wanted["seconds"] * RECOGNISING_SHARE - (time.monotonic() - began)
            return with_recognised_text(data, verdict, max_pages=wanted["max_pages"], seconds=left)


def _limit(memory_bytes: int) -> None:
    """No more memory than allowed, no files written, no memory image of a note's text left behind by a crash."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_NOFILE, MAX_OPEN_FILES)
    try:
        _lower(resource.RLIMIT_AS, memory_bytes)
    except (OSError, ValueError):
        if sys.platform != "darwin":  # macOS has no limit on address space; time and page limits still hold there
            raise


def _lower(limit: int, value: int) -> None:
    _, hard = resource.getrlimit(limit)
    allowed = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (allowed, allowed))


def _limit_cpu(seconds: float) -> None:
    """Allow this many seconds of processor time from now on; past them the system ends the process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    until = int(used.ru_utime + used.ru_stime + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (until if hard == resource.RLIM_INFINITY else min(until, hard), hard))


def _leave_with_the_parent() -> None:
    """End the process when the other end of standard input closes, however busy it is with a document."""
    poll = select.poll()
    poll.register(0, 0)  # asks for nothing but the hang-up, which is always told
    poll.poll()
    os._exit(0)


def _read(stream: BinaryIO) -> bytes | None:
    head = stream.read(LENGTH_BYTES)
    if len(head) < LENGTH_BYTES:
        return None
    return stream.read(frame_length(head))


def _write(stream: BinaryIO, body: bytes) -> None:
    stream.write(frame_head(body))
    stream.write(body)
    stream.flush()


if __name__ == "__main__":
    sys.exit(main())
