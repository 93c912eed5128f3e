"""A PDF's bytes to a verdict and markdown. Runs in the worker process only, never beside other requests."""

from collections.abc import Iterator, Sequence
from io import BytesIO

from pypdf import PageObject, PasswordType, PdfReader
from pypdf.errors import DependencyError, LimitReachedError, PyPdfError
from pypdf.generic import ArrayObject, DictionaryObject, PdfObject

from operations.extraction.content import read_page
from operations.extraction.layout import PageLines, escape, render_pages
from operations.extraction.lines import clean, lines_in_reading_order
from operations.extraction.verdict import Extraction, ExtractionStatus, failed

MAX_CHARS = 8_000_000
"""Characters of one document, about twice the Bible; the rest is left out and the verdict says so."""
MAX_LINKS = 1_000
MAX_LINK_CHARS = 2_000
MAX_TITLE_CHARS = 300
NAMED_PAGES = 10
NO_TITLE = frozenset({"", "untitled"})


def extract_pdf(data: bytes, *, max_pages: int) -> Extraction:
    """Read a PDF; damage of any kind is a verdict, never an exception.

    Args:
        data: The file, whole.
        max_pages: Pages read from the start; the verdict says when there are more.

    Returns:
        `extracted` when any letter could be read; `needs_ocr` when there are only pictures or letters without a
        meaning; `no_text` when there is neither; `encrypted` when a password other than the empty one is needed.

    Raises:
        MemoryError: When the process may not take more memory, which ends its usefulness.

    Source: vault-contract.md §8, files.md (PDF), FR-076.
    """
    try:
        return _extract(data, max_pages)
    except MemoryError:
        raise
    except RecursionError:
        return failed("the file nests its objects too deeply to be read")
    except LimitReachedError:
        return failed("the file unpacks to more than a document may hold")
    except PyPdfError:
        return failed("the file is damaged or is not a PDF")
    except Exception:  # noqa: BLE001 - damaged objects make pypdf raise whatever the first wrong type leads to
        return failed("the file is damaged: its structure cannot be read")


def _extract(data: bytes, max_pages: int) -> Extraction:
    reader = PdfReader(BytesIO(data), strict=False)
    if reader.is_encrypted and (refusal := _unlock(reader)):
        return Extraction(ExtractionStatus.ENCRYPTED, pages=0, has_text_layer=False, text="", detail=refusal)
    pages = len(reader.pages)
    if not pages:
        return failed("the file has no pages")
    survey = _Survey()
    for number, page in enumerate(_first(reader, min(pages, max_pages)), start=1):
        survey.add(number, page)
        if survey.chars > MAX_CHARS:
            survey.is_cut = True
            break
    return _verdict(reader, survey, pages)


def _unlock(reader: PdfReader) -> str | None:
    """Open the file with the empty password, which is how files are protected from editing only; else say why not."""
    try:
        opened = reader.decrypt("")
    except (DependencyError, NotImplementedError):
        return "the file is encrypted in a way that cannot be read here"
    return None if opened is not PasswordType.NOT_DECRYPTED else "the file is encrypted and needs a password"


def _first(reader: PdfReader, count: int) -> Iterator[PageObject]:
    for index in range(count):
        yield reader.pages[index]


class _Survey:
    """What the pages read so far hold."""

    def __init__(self) -> None:
        self.pages: list[PageLines] = []
        self.chars = 0
        self.is_cut = False
        self.images = 0
        self.unreadable = 0
        self.damaged: list[int] = []
        self.without_text: list[int] = []
        self.cut: list[int] = []
        self.links: dict[str, None] = {}

    def add(self, number: int, page: PageObject) -> None:
        """Read one page; a damaged one is remembered and costs only itself."""
        try:
            content = read_page(page)
            lines = tuple(lines_in_reading_order(content.runs))
            width = float(page.mediabox.width)
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 - as above: any wrong type in a page's objects
            self.damaged.append(number)
            self.pages.append(PageLines(number, 0.0, ()))
            return
        self.images += content.images
        self.unreadable += content.unreadable
        self.chars += sum(len(line.text) for line in lines)
        self.pages.append(PageLines(number, width, lines))
        if not lines:
            self.without_text.append(number)
        if content.is_cut:
            self.cut.append(number)
        for link in _links_of(page):
            if len(self.links) < MAX_LINKS:
                self.links.setdefault(link)


def _verdict(reader: PdfReader, survey: _Survey, pages: int) -> Extraction:
    read = len(survey.pages)
    limits = [f"only the first {read} of {pages} pages were read"] if read < pages else []
    if survey.damaged:
        limits.append(f"{_named(survey.damaged)} could not be read")
    if not survey.chars:
        return _without_text(survey, pages, limits)
    if survey.without_text:
        limits.append(f"{_named(survey.without_text)} {_verb(survey.without_text)} no text layer")
    if survey.unreadable:
        limits.append(f"{survey.unreadable} characters are in fonts that do not say which letters they are")
    if survey.cut:
        limits.append(f"{_named(survey.cut)} {_verb(survey.cut)} more text than is read of one page")
    text = "\n\n".join(
        part for part in (_header(reader, survey, pages), render_pages(survey.pages), _footer(survey)) if part
    )
    return Extraction(
        ExtractionStatus.EXTRACTED, pages=pages, has_text_layer=True, text=f"{text}\n", detail="; ".join(limits)
    )


def _without_text(survey: _Survey, pages: int, limits: list[str]) -> Extraction:
    if len(survey.damaged) == len(survey.pages):
        return failed("no page of the file can be read", pages=pages)
    if survey.unreadable:
        reason = "the fonts do not say which letters they draw"
    elif survey.images:
        reason = "no text layer, only pictures"
    else:
        reason = "the pages hold neither text nor pictures"
    needs_ocr = survey.images or survey.unreadable
    status = ExtractionStatus.NEEDS_OCR if needs_ocr else ExtractionStatus.NO_TEXT
    return Extraction(status, pages=pages, has_text_layer=False, text="", detail="; ".join((reason, *limits)))


def _named(numbers: Sequence[int]) -> str:
    shown = ", ".join(str(number) for number in numbers[:NAMED_PAGES])
    more = f" and {len(numbers) - NAMED_PAGES} more" if len(numbers) > NAMED_PAGES else ""
    return f"page {shown}" if len(numbers) == 1 else f"pages {shown}{more}"


def _verb(numbers: Sequence[int]) -> str:
    return "has" if len(numbers) == 1 else "have"


def _header(reader: PdfReader, survey: _Survey, pages: int) -> str:
    title = _title(reader)
    facts = [f"Title: {title}"] if title else []
    facts.append(f"Pages: {pages}")
    if survey.links:
        facts.append(f"Links: {len(survey.links)}")
    return "\n".join(facts)


def _title(reader: PdfReader) -> str:
    try:
        title = reader.metadata.title if reader.metadata else None
    except (PyPdfError, AttributeError, LookupError, TypeError, ValueError):
        return ""  # a damaged information dictionary is no reason to lose the text
    text = escape(" ".join(clean(str(title or "")).replace("\xad", "").split())[:MAX_TITLE_CHARS])
    return "" if text.lower() in NO_TITLE else text


def _footer(survey: _Survey) -> str:
    return "\n".join(("# links", "", *(f"- <{link}>" for link in survey.links))) if survey.links else ""


def _links_of(page: PageObject) -> list[str]:
    """Addresses that the page links to, in file order; a damaged list of annotations has none."""
    try:
        annotations = page.get("/Annots")
        listed = annotations.get_object() if isinstance(annotations, PdfObject) else None
        return [link for entry in listed if (link := _link(entry))] if isinstance(listed, ArrayObject) else []
    except (PyPdfError, AttributeError, LookupError, TypeError, ValueError):
        return []


def _link(entry: PdfObject) -> str:
    annotation = entry.get_object()
    action = annotation.get("/A") if isinstance(annotation, DictionaryObject) else None
    action = action.get_object() if isinstance(action, PdfObject) else None
    address = str(action.get("/URI", "")) if isinstance(action, DictionaryObject) else ""
    # Blanks and angle brackets would end the link's markdown form early.
    plain = "".join(f"%{ord(character):02X}" if character in " <>" else character for character in clean(address))
    return plain if 0 < len(plain) <= MAX_LINK_CHARS else ""
