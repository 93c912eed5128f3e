"""Scanned documents with the extra `ocr`, and what is said of them without it.

Run with the extra: `uv run --extra ocr pytest tests/extraction/test_ocr.py`.
"""

import shutil
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from operations.extraction.extractor import Extractor, ocr_is_installed
from operations.extraction.verdict import Extraction, ExtractionStatus
from tests.harness import serving

HOUSEHOLD = Path(__file__).parents[1] / "vaults" / "household"
CARD = "Health/Files/2025-10-12 Vaccination card (scan).pdf"
with_extra = pytest.mark.skipif(not ocr_is_installed(), reason="the extra `ocr` is not installed")
DOCUMENT_SECONDS = 120.0


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    """A vault with nothing but the scanned card."""
    root = tmp_path / "vault"
    (root / CARD).parent.mkdir(parents=True)
    shutil.copy(HOUSEHOLD / CARD, root / CARD)
    return root


def test_without_ocr_a_scan_says_that_it_needs_it(scan: Path, tmp_path: Path) -> None:
    expected = {"extraction": "needs_ocr", "pages": 1, "has_text_layer": False, "extracted_chars": 0}
    with serving(scan, tmp_path / "state", {"DOC_OCR": "false"}) as server:
        seen = server.tool("vault_read", {"path": CARD, "outline": True}).structured
        assert {name: seen[name] for name in expected} == expected
        read = server.tool("vault_read_file", {"path": CARD})
        assert (read.code, read.message) == (
            "document_no_text",
            f"no text comes from '{CARD}' (needs_ocr): no text layer, only pictures; raw shows its pages",
        )
        assert len(server.tool("vault_read_file", {"path": CARD, "raw": True}).pictures) == 1


@with_extra
def test_a_scanned_card_is_found_by_what_is_printed_on_it(scan: Path, tmp_path: Path) -> None:
    with serving(scan, tmp_path / "state", {"VAULT_MCP_DOCUMENTS__EXTRACT_SECONDS": "120"}) as server:
        text = server.tool("vault_read", {"path": CARD})
        assert text.texts[0].startswith("Pages: 1\n\n# page 1\n\nVACCINATION CARD\n")
        assert "NF24-207" in text.texts[0]
        assert "Stamp: Millbrook Surgery\n" in text.texts[0]
        seen = server.tool("vault_read", {"path": CARD, "outline": True}).structured
        assert (seen["extraction"], seen["has_text_layer"]) == ("extracted", False)
        assert seen["detail"] == "the text was recognised in pictures and may hold mistakes"
        # The document thread of the index takes the text from the extractor's cache.
        found: list[Any] = []
        until = time.monotonic() + DOCUMENT_SECONDS
        while not found and time.monotonic() < until:
            found = server.tool("vault_search", {"query": "NF24-207 booster"}).structured["hits"]
        assert [(hit["path"], hit["kind"], hit["heading"]) for hit in found] == [(CARD, "document", "page 1")]


@with_extra
def test_the_models_are_in_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recognition runs in this process here, where a connection would be seen."""
    from operations.extraction.ocr import with_recognised_text  # noqa: PLC0415 - the extra

    def refuse(*_: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    before = Extraction(ExtractionStatus.NEEDS_OCR, pages=1, has_text_layer=False, text="", detail="")
    after = with_recognised_text((HOUSEHOLD / CARD).read_bytes(), before, max_pages=1, seconds=DOCUMENT_SECONDS)
    assert after.status is ExtractionStatus.EXTRACTED


@with_extra
def test_pages_that_there_is_no_time_for_are_left_out_and_said(tmp_path: Path) -> None:
    from operations.extraction.ocr import with_recognised_text  # noqa: PLC0415 - the extra

    before = Extraction(ExtractionStatus.NEEDS_OCR, pages=3, has_text_layer=False, text="", detail="only pictures")
    data = (HOUSEHOLD / CARD).read_bytes()
    assert with_recognised_text(data, before, max_pages=3, seconds=-1.0) == before
    after = with_recognised_text(data, before, max_pages=3, seconds=DOCUMENT_SECONDS)
    assert after.detail.endswith("; only the first 1 of 3 pages were read")


@with_extra
def test_a_scan_that_pdfium_cannot_open_stays_as_it_was() -> None:
    from operations.extraction.ocr import with_recognised_text  # noqa: PLC0415 - the extra

    before = Extraction(ExtractionStatus.NEEDS_OCR, pages=1, has_text_layer=False, text="", detail="only pictures")
    after = with_recognised_text(b"%PDF-1.7 junk", before, max_pages=1, seconds=DOCUMENT_SECONDS)
    assert (after.status, after.detail) == (
        ExtractionStatus.NEEDS_OCR,
        "only pictures; reading its pictures failed",
    )


@with_extra
def test_the_process_that_reads_pictures_has_room_for_them() -> None:
    with Extractor(max_pages=1, seconds=DOCUMENT_SECONDS, ocr=True) as extractor:
        verdict = extractor.extract((HOUSEHOLD / CARD).read_bytes(), suffix=".pdf")
        assert verdict.status is ExtractionStatus.EXTRACTED
