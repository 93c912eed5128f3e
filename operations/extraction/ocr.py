"""Text of scanned pages, by the optional extra `ocr`. Runs in the worker process only.

The models lie inside the wheel, nothing is downloaded.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

from PIL import Image

from operations.extraction.layout import escape
from operations.extraction.lines import clean
from operations.extraction.pages import PageDrawer
from operations.extraction.verdict import Extraction, ExtractionStatus

SAME_LINE: Final = 0.6
"""Centres of two boxes of one line lie closer than this share of their height."""
HASTE: Final = 1.5
"""A page is begun when as much time is left as this many of the slowest page before."""


class _Box(NamedTuple):
    """A stretch of text on a page, in pixels."""

    left: float
    middle: float
    height: float
    text: str


def with_recognised_text(data: bytes, verdict: Extraction, *, max_pages: int, seconds: float) -> Extraction:
    """The verdict on a document that needs OCR, with the text its pictures show.

    Args:
        seconds: Time for all pages; those that do not fit are left out, and the verdict says so.

    Raises:
        MemoryError: When the process may not take more memory.
    """
    try:
        texts = _texts(data, max_pages, time.monotonic() + seconds)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - damaged pages and models raise anything; the document is no worse than before
        return replace(verdict, detail=f"{verdict.detail}; reading its pictures failed")
    if not any(texts):
        return verdict
    body = "\n\n".join(f"# page {number}\n\n{text}".rstrip() for number, text in enumerate(texts, start=1))
    limit = f"; only the first {len(texts)} of {verdict.pages} pages were read" if len(texts) < verdict.pages else ""
    return Extraction(
        ExtractionStatus.EXTRACTED,
        pages=verdict.pages,
        has_text_layer=False,
        text=f"Pages: {verdict.pages}\n\n{body}\n",
        detail=f"the text was recognised in pictures and may hold mistakes{limit}",
    )


def _texts(data: bytes, max_pages: int, deadline: float) -> list[str]:
    """The text of each page that there is time for."""
    read = _load()
    texts: list[str] = []
    slowest = 0.0
    with PageDrawer(data) as drawer:
        for number in range(1, min(drawer.pages, max_pages) + 1):
            began = time.monotonic()
            if began + HASTE * slowest > deadline:
                break
            texts.append(_joined(read(drawer.draw(number))))
            slowest = max(slowest, time.monotonic() - began)
    return texts


_Reader: TypeAlias = Callable[[Image.Image], list[_Box]]


@cache
def _load() -> _Reader:
    """The models, loaded once a process: a picture in, boxes out."""
    # Optional, without types, and a second to load: hence no imports at the top.
    cv2: Any = import_module("cv2")
    numpy: Any = import_module("numpy")
    rapidocr: Any = import_module("rapidocr")
    cv2.setNumThreads(1)
    engine: Any = rapidocr.RapidOCR(
        params={
            # One thread: processor time is bounded as wall time is.
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            "Global.log_level": "critical",
        }
    )

    def read(picture: Image.Image) -> list[_Box]:
        found: Any = engine(numpy.asarray(picture))
        texts: tuple[str, ...] = found.txts or ()
        boxes: list[list[list[float]]] = found.boxes.tolist() if texts else []
        return [_box(corners, text) for corners, text in zip(boxes, texts, strict=True)]

    return read


def _box(corners: list[list[float]], text: str) -> _Box:
    ys = [y for _, y in corners]
    return _Box(min(x for x, _ in corners), sum(ys) / len(ys), max(ys) - min(ys), " ".join(clean(text).split()))


def _joined(boxes: list[_Box]) -> str:
    """The boxes of a page as lines from top to bottom, what stands beside each other on one line."""
    ordered = sorted((box for box in boxes if box.text), key=lambda box: box.middle)
    lines: list[list[_Box]] = [[box] for box in ordered[:1]]
    for above, box in pairwise(ordered):
        if box.middle - above.middle < SAME_LINE * min(above.height, box.height):
            lines[-1].append(box)
        else:
            lines.append([box])
    return "\n".join(escape(" ".join(box.text for box in sorted(line, key=lambda box: box.left))) for line in lines)
