"""Small PDFs written by hand, so that a test shows every object it depends on."""

import zlib
from collections.abc import Mapping, Sequence

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
BOLD = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>"
COURIER = b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>"
UNMAPPED = (
    b"<< /Type /Font /Subtype /Type0 /BaseFont /Odd /Encoding /Identity-H /DescendantFonts "
    b"[<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Odd /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
    b"/Supplement 0 >> >>] >>"
)
PICTURE = b"/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray"
RESOURCES = b"<< /Font << /F1 3 0 R /F2 4 0 R /F3 5 0 R /F4 6 0 R >> /XObject << /Im 7 0 R /Fm 8 0 R >> >>"
FIRST_PAGE = 10


def pdf(objects: Mapping[int, bytes], *, trailer: bytes = b"") -> bytes:
    """A file of these objects; object 1 is the catalogue."""
    body = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    offsets: dict[int, int] = {}
    for number, content in sorted(objects.items()):
        offsets[number] = len(body)
        body += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(body)
    size = max(objects) + 1
    body += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        body += b"%010d 00000 %s \n" % (offsets.get(number, 0), b"n" if number in offsets else b"f")
    body += b"trailer\n<< /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, trailer, start)
    return bytes(body)


def stream(data: bytes, entries: bytes = b"", *, compressed: bool = False) -> bytes:
    """A stream object's content."""
    if compressed:
        data, entries = zlib.compress(data), entries + b" /Filter /FlateDecode"
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def document(
    *pages: bytes, extra: Mapping[int, bytes] | None = None, page_entries: bytes = b"", trailer: bytes = b""
) -> bytes:
    """A document whose pages have these content streams; fonts are F1 plain, F2 bold, F3 Courier, F4 unreadable."""
    kids = b" ".join(b"%d 0 R" % (FIRST_PAGE + 2 * i) for i in range(len(pages)))
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(pages)),
        3: HELVETICA,
        4: BOLD,
        5: COURIER,
        6: UNMAPPED,
        7: stream(
            b"\x00", b"/Type /XObject /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray"
        ),
    }
    for i, content in enumerate(pages):
        number = FIRST_PAGE + 2 * i
        objects[number] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources %s /Contents %d 0 R %s >>"
            % (RESOURCES, number + 1, page_entries)
        )
        objects[number + 1] = stream(content)
    return pdf({**objects, **(extra or {})}, trailer=trailer)


def show(text: str, x: float, y: float, *, size: float = 10, font: str = "F1") -> bytes:
    """Operators that draw one line."""
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /{font} {size} Tf 1 0 0 1 {x} {y} Tm ({escaped}) Tj ET\n".encode("cp1252")


def lines(texts: Sequence[str], *, x: float = 56, top: float = 780, pitch: float = 12, font: str = "F1") -> bytes:
    """Operators that draw lines below each other."""
    return b"".join(show(text, x, top - pitch * i, font=font) for i, text in enumerate(texts))
