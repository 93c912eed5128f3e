"""Pictures made to fit a budget of bytes, and pages of PDFs as such pictures. Runs in the worker process only.

Source: files.md (images, PDF).
"""

import base64
import math
from collections.abc import Callable
from io import BytesIO
from typing import Final

from PIL import Image, ImageOps, UnidentifiedImageError

from operations.extraction.pages import PageDrawer, UnreadableError
from operations.extraction.verdict import Picture, Pictures

MAX_EDGE: Final = 1568
"""Pixels of the long edge: what vision models look at; they scale larger pictures down themselves."""
MIN_EDGE: Final = 64
MAX_PIXELS: Final = 64_000_000
"""Pixels of a picture that is decoded at all: with four bytes each, and a second copy while it is scaled down, they
stay below the process's memory."""
MAX_JPEG_PIXELS: Final = 200_000_000
"""A JPEG is scaled down while it is decoded; phones write more than a hundred million pixels."""
QUALITIES: Final = (85, 75, 65, 55, 45)
"""Tried in this order at full size, before the picture gets smaller at the last of them."""
MAX_SHRINKS: Final = 12
SHRINK_MARGIN: Final = 0.95

_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "AVIF")
_SHOWN_AS_THEY_ARE: Final = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
_ORIENTATION: Final = 0x0112
_TURNED: Final = range(5, 9)
"""Orientations that swap width and height."""


def fit_picture(data: bytes, *, max_bytes: int) -> Pictures:
    """A picture file as one picture of at most `max_bytes`; damage of any kind is a reason, never an exception.

    What fits already and carries no metadata is passed on byte for byte. All else is written anew, which leaves its
    metadata behind: where a photograph was taken stays here.

    Raises:
        MemoryError: When the process may not take more memory.
    """
    try:
        Image.MAX_IMAGE_PIXELS = None  # ours is looked at below, with both figures
        with Image.open(BytesIO(data), formats=_FORMATS) as image:
            width, height = image.size
            most = MAX_JPEG_PIXELS if image.format in ("JPEG", "MPO") else MAX_PIXELS
            if width * height > most:
                return _none(f"the picture has {width} × {height} pixels; at most {most // 1_000_000} million are read")
            return _fitted(image, data, max_bytes)
    except MemoryError:
        raise
    except UnidentifiedImageError:
        return _none("the file is damaged, or is not the picture that its name says")
    except Exception:  # noqa: BLE001 - damaged files make decoders raise whatever the first wrong value leads to
        return _none("the file is damaged: it cannot be decoded")


def page_pictures(data: bytes, *, first: int, count: int, max_bytes: int) -> Pictures:
    """Pages of a PDF as pictures that together have at most `max_bytes`.

    Args:
        first: The first page, 1-based.
        count: Pages at most.

    Raises:
        MemoryError: As `fit_picture`.
    """
    try:
        drawer = PageDrawer(data)
    except UnreadableError as error:
        return _none(str(error))
    with drawer:
        pages = drawer.pages
        numbers = range(first, min(first + count, pages + 1))
        budget = max_bytes // max(len(numbers), 1)
        pictures = [picture for number in numbers if (picture := _page(drawer, number, budget)) is not None]
    drawn = {picture.page for picture in pictures}
    lost = [str(number) for number in numbers if number not in drawn]
    detail = f"page {', '.join(lost)} cannot be shown" if lost else ""
    return Pictures(tuple(pictures), width=0, height=0, pages=pages, detail=detail)


def _page(drawer: PageDrawer, number: int, max_bytes: int) -> Picture | None:
    try:
        found = _encoded(_shrunk(drawer.draw(number), MAX_EDGE), max_bytes)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - as above; a page that cannot be drawn costs only itself
        return None
    if found is None:
        return None
    media_type, content, image = found
    return Picture(media_type, base64.b64encode(content).decode("ascii"), *image.size, page=number)


def _fitted(image: Image.Image, data: bytes, max_bytes: int) -> Pictures:
    width, height = image.size
    exif = image.getexif()
    orientation = exif.get(_ORIENTATION, 1)
    is_animated = getattr(image, "n_frames", 1) > 1
    media_type = _SHOWN_AS_THEY_ARE.get(image.format or "")
    has_metadata = bool(exif) or any(key in image.info for key in ("exif", "xmp", "XML:com.adobe.xmp", "comment"))
    if media_type and len(data) <= max_bytes and max(image.size) <= MAX_EDGE and not is_animated and not has_metadata:
        image.load()
        picture = Picture(media_type, base64.b64encode(data).decode("ascii"), width, height)
        return Pictures((picture,), width=width, height=height, pages=0, detail="as it is")
    image.draft("RGB", (MAX_EDGE, MAX_EDGE))  # JPEG alone can leave out what is not needed while it decodes
    small = _upright(_shrunk(_in_colour(image), MAX_EDGE), orientation)
    found = _encoded(small, max_bytes)
    if found is None:
        return _none(f"the picture cannot be made to fit {max_bytes} bytes")
    encoded_type, content, shown = found
    whole_width, whole_height = (height, width) if orientation in _TURNED else (width, height)
    done = [
        f"{'scaled down' if shown.size != (whole_width, whole_height) else 'same size'}",
        f"written as {encoded_type.removeprefix('image/').upper()}",
        *(["turned upright"] if orientation in range(2, 9) else []),
        *(["first frame alone"] if is_animated else []),
    ]
    picture = Picture(encoded_type, base64.b64encode(content).decode("ascii"), *shown.size)
    return Pictures((picture,), width=whole_width, height=whole_height, pages=0, detail=", ".join(done))


def _in_colour(image: Image.Image) -> Image.Image:
    """The picture as RGB, or RGBA where it can be seen through."""
    if image.mode.startswith("I;16"):
        # A plain conversion would cut off at 255, which leaves all but the darkest parts white.
        return _shrunk(image.convert("I"), MAX_EDGE).point(_to_eight_bits).convert("L").convert("RGB")
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        return image.convert("RGBA")
    return image if image.mode == "RGB" else image.convert("RGB")


def _to_eight_bits(value: float) -> float:
    return value * (1 / 256) + 0


def _shrunk(image: Image.Image, edge: int) -> Image.Image:
    """The picture with a long edge of at most `edge`."""
    ratio = edge / max(image.size)
    return image if ratio >= 1 else _scaled(image, ratio)


def _scaled(image: Image.Image, ratio: float) -> Image.Image:
    size = (max(round(image.width * ratio), 1), max(round(image.height * ratio), 1))
    return image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)


def _upright(image: Image.Image, orientation: int) -> Image.Image:
    if orientation not in range(2, 9):
        return image
    image.getexif()[_ORIENTATION] = orientation
    return ImageOps.exif_transpose(image)


def _encoded(image: Image.Image, max_bytes: int) -> tuple[str, bytes, Image.Image] | None:
    """Media type and bytes of the best picture that fits, and the picture; `None` when none does."""
    media_type, encode = _encoder_for(image)
    content = b""
    for quality in QUALITIES:
        content = encode(image, quality)
        if len(content) <= max_bytes:
            return media_type, content, image
    for _ in range(MAX_SHRINKS):
        if max(image.size) <= MIN_EDGE:
            return None
        ratio = min(math.sqrt(max_bytes / len(content)) * SHRINK_MARGIN, SHRINK_MARGIN)
        image = _scaled(image, max(ratio, MIN_EDGE / max(image.size)))
        content = encode(image, QUALITIES[-1])
        if len(content) <= max_bytes:
            return media_type, content, image
    return None


def _encoder_for(image: Image.Image) -> tuple[str, Callable[[Image.Image, int], bytes]]:
    if image.mode == "RGBA" and image.getchannel("A").getextrema() != (255, 255):
        return "image/webp", _as_webp
    return "image/jpeg", _as_jpeg


def _as_jpeg(image: Image.Image, quality: int) -> bytes:
    into = BytesIO()
    image.convert("RGB").save(into, "JPEG", quality=quality, optimize=True)
    return into.getvalue()


def _as_webp(image: Image.Image, quality: int) -> bytes:
    into = BytesIO()
    image.save(into, "WEBP", quality=quality, method=4, exif=b"", xmp=b"")
    return into.getvalue()


def _none(reason: str) -> Pictures:
    return Pictures((), width=0, height=0, pages=0, detail=reason)
