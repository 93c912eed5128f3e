"""Files as they are read on both surfaces.

Source: files.md, mcp-surface.md §3.
"""

import hashlib
import io
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image

from operations.caller import Caller, Surface
from operations.errors import ErrorCode, VaultError
from operations.files import ReadFileInput, read_file
from operations.store.paths import VaultPath
from tests.extraction.pdfs import document, show
from tests.harness import Server, fill

CALLER = Caller("test", Surface.MCP)
PDF = document(*(show(f"page {number}", 56, 700) for number in range(1, 8)))


def encoded(image: Image.Image, form: str, **options: Any) -> bytes:
    into = io.BytesIO()
    image.save(into, form, **options)
    return into.getvalue()


def opened(data: bytes) -> Image.Image:
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def version(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def test_a_small_picture_is_shown_byte_for_byte(server: Server) -> None:
    data = encoded(Image.new("RGB", (40, 30), (1, 2, 3)), "PNG")
    fill(server.root, {"a/P.PNG": data})
    answer = server.tool("vault_read_file", {"path": "a/P.PNG"})
    assert answer.pictures == (("image/png", data),)
    assert answer.texts == (
        f"P.PNG: 40 × 30 pixels, {len(data)} bytes; shown as it is",
        f"path: a/P.PNG\nversion: {version(data)}\nuri: obsidian://open?vault=vault&file=a%2FP.PNG",
    )
    plain = server.http("GET", "/files/a/P.PNG")
    assert (plain.status, plain.body, plain.headers["content-type"]) == (200, data, "image/png")
    assert plain.headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_a_large_photograph_is_fitted_upright_and_says_nothing_of_its_place(server: Server) -> None:
    noise = Image.effect_noise((3000, 2000), 90).convert("RGB")
    noise.paste((255, 0, 0), (0, 0, 3000, 400))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned clockwise by a quarter: the top becomes the right side
    exif.get_ifd(0x8825)[1] = "N"
    data = encoded(noise, "JPEG", exif=exif)
    fill(server.root, {"P.jpg": data})
    answer = server.tool("vault_read_file", {"path": "P.jpg"})
    ((media_type, content),) = answer.pictures
    assert media_type == "image/jpeg"
    assert len(content) <= 48 * 1024
    shown = opened(content)
    assert dict(shown.getexif()) == {}
    assert b"Exif" not in content
    assert abs(shown.height / shown.width - 1.5) < 0.01
    red, green, _ = shown.getpixel((shown.width - 5, shown.height // 2))  # type: ignore[misc]  # three channels
    assert red > 180 > 60 > green
    assert answer.texts[0] == (
        f"P.jpg: 2000 × 3000 pixels, {len(data)} bytes; shown at {shown.width} × {shown.height}, scaled down, "
        "written as JPEG, turned upright"
    )
    fitted = server.http("GET", "/files/P.jpg?fit=1")
    assert (fitted.body, fitted.headers["content-type"]) == (content, "image/jpeg")
    assert fitted.headers["etag"] == f'"{version(data)}-fit"'


def test_a_picture_that_can_be_seen_through_stays_so(server: Server) -> None:
    image = Image.new("RGBA", (2000, 1000), (0, 0, 255, 0))
    image.paste((0, 255, 0, 255), (0, 0, 1000, 1000))
    fill(server.root, {"P.png": encoded(image, "PNG")})
    ((media_type, content),) = server.tool("vault_read_file", {"path": "P.png"}).pictures
    assert media_type == "image/webp"
    shown = opened(content)
    assert shown.size == (1568, 784)
    assert [shown.getchannel("A").getpixel((x, 400)) for x in (100, 1500)] == [255, 0]


def test_a_bomb_is_refused_and_the_next_picture_is_shown(server: Server) -> None:
    bomb = encoded(Image.new("1", (20_000, 20_000)), "PNG")
    assert len(bomb) < 100_000
    fill(
        server.root,
        {"Bomb.png": bomb, "Torn.png": b"\x89PNG\r\n\x1a\nrest", "P.gif": encoded(Image.new("L", (4, 4)), "GIF")},
    )
    refused = server.tool("vault_read_file", {"path": "Bomb.png"})
    assert refused.code == "document_unsupported"
    assert refused.message == (
        "'Bomb.png' cannot be shown: the picture has 20000 × 20000 pixels; at most 64 million are read"
    )
    torn = server.tool("vault_read_file", {"path": "Torn.png"})
    assert torn.message == "'Torn.png' cannot be shown: the file is damaged, or is not the picture that its name says"
    assert server.tool("vault_read_file", {"path": "P.gif"}).pictures[0][0] == "image/gif"


def test_a_pdf_is_markdown_and_with_raw_its_pages(server: Server) -> None:
    fill(server.root, {"Files/D.pdf": PDF})
    text = server.tool("vault_read_file", {"path": "Files/D.pdf", "limit": 5})
    assert text.texts[0] == "Pages: 7\n\n# page 1\n\npage 1\n"
    assert "lines: 1-5 of 29, continue with start_line=6" in text.texts[1]
    assert server.http("GET", "/files/Files/D.pdf").headers["content-type"] == "text/markdown; charset=utf-8"
    pages = server.tool("vault_read_file", {"path": "Files/D.pdf", "raw": True})
    assert len(pages.pictures) == 5
    assert sum(len(content) for _, content in pages.pictures) <= 48 * 1024
    assert all(max(opened(content).size) <= 1568 for _, content in pages.pictures)
    assert pages.texts[0] == "D.pdf: pages 1-5 of 7 as pictures"
    assert pages.texts[1].endswith("pages: continue with start_line=6")
    rest = server.http("GET", "/files/Files/D.pdf?raw=1&start_line=6").json
    assert [(picture["page"], picture["media_type"]) for picture in rest["pictures"]] == [
        (6, "image/jpeg"),
        (7, "image/jpeg"),
    ]
    assert rest["detail"] == "D.pdf: pages 6-7 of 7 as pictures"
    beyond = server.tool("vault_read_file", {"path": "Files/D.pdf", "raw": True, "start_line": 8})
    assert (beyond.code, beyond.message) == ("invalid_parameter", "'Files/D.pdf' has 7 pages; there is no page 8")


def test_a_canvas_reads_as_markdown_and_with_raw_as_it_stands(server: Server) -> None:
    canvas = '{"nodes":[{"id":"1","type":"text","text":"Hello \\ud800","x":0,"y":0,"width":1,"height":1}]}'
    fill(server.root, {"C.canvas": canvas, "Torn.canvas": "{"})
    assert server.tool("vault_read_file", {"path": "C.canvas"}).texts[0] == (
        "# Canvas: 1 node, 0 edges\n\n[text]\nHello \ufffd"
    )
    assert server.tool("vault_read_file", {"path": "C.canvas", "raw": True}).texts[0] == canvas
    assert server.http("GET", "/files/C.canvas?raw=1").text == canvas
    assert server.tool("vault_read_file", {"path": "Torn.canvas"}).code == "canvas_malformed"
    assert server.tool("vault_read_file", {"path": "Torn.canvas", "raw": True}).texts[0] == "{"


def test_a_text_is_read_by_lines_in_the_encoding_that_it_has(server: Server) -> None:
    fill(
        server.root,
        {"T.txt": b"a\r\nb\rc\n\nlast", "W.csv": "Müller;5 €\n".encode("cp1252"), "B.log": b"\xff\0\1\2" * 50},
    )
    window = server.http("GET", "/files/T.txt?start_line=2&limit=3")
    assert window.body == b"b\rc\n\n"
    assert (window.headers["x-total-lines"], window.headers["x-next-line"]) == ("5", "5")
    whole = server.http("GET", "/files/T.txt")
    assert whole.body == server.stored("T.txt")
    assert "x-next-line" not in whole.headers
    assert server.http("GET", "/files/T.txt", headers={"If-None-Match": whole.headers["etag"]}).status == 304
    western = server.http("GET", "/files/W.csv")
    assert (western.text, western.headers["x-encoding"]) == ("Müller;5 €\n", "cp1252")
    assert server.tool("vault_read_file", {"path": "W.csv"}).texts[1].endswith("\nencoding: cp1252")
    assert server.tool("vault_read_file", {"path": "B.log"}).code == "document_unsupported"


def test_a_long_text_is_cut_at_a_line_end_and_a_longer_line_is_refused(server: Server) -> None:
    lines = ["x" * 60_000, "y" * 60_000, "z" * 200_000, "end"]
    fill(server.root, {"T.txt": "\n".join(lines)})
    first = server.tool("vault_read_file", {"path": "T.txt"})
    assert first.texts[0] == f"{lines[0]}\n"
    assert "lines: 1-1 of 4, continue with start_line=2" in first.texts[1]
    third = server.tool("vault_read_file", {"path": "T.txt", "start_line": 3})
    assert third.code == "too_large"
    assert third.message == (
        "line 3 of 'T.txt' has 200000 bytes, more than the 102400 that one answer may have; go on with start_line=4"
    )
    assert server.tool("vault_read_file", {"path": "T.txt", "start_line": 4}).texts[0] == "end"
    assert server.http("GET", "/files/T.txt?start_line=3&limit=1").text == f"{lines[2]}\n"


def test_what_cannot_be_read_says_what_can(server: Server) -> None:
    fill(server.root, {"A.zip": b"PK", "N.md": "note", "T.txt": "text", "F.d/x.txt": "x"})
    refused = server.tool("vault_read_file", {"path": "A.zip"})
    assert refused.code == "document_unsupported"
    assert refused.message.startswith("'A.zip' cannot be shown; .png, .jpg, .jpeg, .gif, .webp, .bmp, .avif, .canvas,")
    note = server.tool("vault_read_file", {"path": "N.md"})
    assert (note.code, note.message) == (
        "invalid_path",
        "'N.md' is a note; notes are read whole or in part (vault_read)",
    )
    assert server.tool("vault_read_file", {"path": "B.zip"}).code == "not_found"
    assert server.http("GET", "/files/T.txt?fit=1").code == "invalid_parameter"
    assert server.http("GET", "/files/T.txt?nope=1").code == "invalid_parameter"
    assert server.http("GET", "/files/F.d/").code in ("is_directory", "invalid_path", "not_found")
    small = replace(server.vault, config=replace(server.vault.config, max_file_bytes=3))
    with pytest.raises(VaultError) as error:
        read_file(small, CALLER, ReadFileInput(path=VaultPath("T.txt")))
    assert error.value.code is ErrorCode.TOO_LARGE
    assert error.value.message == "'T.txt' has 4 bytes; files of at most 3 are read"
