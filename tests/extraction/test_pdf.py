from io import BytesIO

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter

from operations.extraction.pdf import extract_pdf
from operations.extraction.verdict import Extraction, ExtractionStatus, failed
from tests.extraction.pdfs import FIRST_PAGE, RESOURCES, document, lines, pdf, show, stream


def extracted(data: bytes, *, max_pages: int = 100) -> Extraction:
    return extract_pdf(data, max_pages=max_pages)


def markdown(*pages: bytes) -> str:
    verdict = extracted(document(*pages))
    assert (verdict.status, verdict.pages, verdict.has_text_layer) == (ExtractionStatus.EXTRACTED, len(pages), True)
    assert verdict.extracted_chars == len(verdict.text)
    return verdict.text


def test_every_page_is_a_heading_and_font_sizes_are_headings_below_it() -> None:
    first = show("Vanta EcoSpark", 56, 800, size=18, font="F2") + show("Display", 56, 770, size=13, font="F2")
    second = show("Fault codes", 56, 800, size=13, font="F2")
    assert markdown(first + lines(["The upper line shows water.", "The lower one bar."], top=750), second) == (
        "Pages: 2\n\n# page 1\n\n## Vanta EcoSpark\n\n### Display\n\n"
        "The upper line shows water.\nThe lower one bar.\n\n# page 2\n\n### Fault codes\n"
    )


def test_cells_that_line_up_are_a_table_and_a_bold_first_row_is_its_header() -> None:
    rows = [("Code", "Meaning", "F2"), ("F28", "Ignition | failed", "F1"), ("E133", "Pressure", "F1")]
    page = b"".join(
        show(code, 56, 700 - 14 * i, font=font) + show(meaning, 160, 700 - 14 * i, font=font)
        for i, (code, meaning, font) in enumerate(rows)
    )
    assert markdown(page) == (
        "Pages: 1\n\n# page 1\n\n"
        "| Code | Meaning |\n| --- | --- |\n| F28 | Ignition \\| failed |\n| E133 | Pressure |\n"
    )


def test_a_table_without_a_bold_row_claims_no_header_and_keeps_empty_cells() -> None:
    page = b"".join(
        show(text, x, 700 - 14 * i)
        for i, row in enumerate((("Buildings", "650", "excess 250"), ("Contents", "75"), ("Water", "4", "none")))
        for text, x in zip(row, (56, 200, 320), strict=False)
    )
    assert markdown(page) == (
        "Pages: 1\n\n# page 1\n\n|  |  |  |\n| --- | --- | --- |\n"
        "| Buildings | 650 | excess 250 |\n| Contents | 75 |  |\n| Water | 4 | none |\n"
    )


def test_text_that_overruns_the_next_column_is_still_two_cells() -> None:
    page = show("Base and tall units in birch ply, oak fronts", 56, 700) + show("9,640.00", 186, 700)
    page += show("Fitting", 56, 686) + show("3,150.00", 186, 686)
    assert "| Base and tall units in birch ply, oak fronts | 9,640.00 |\n| Fitting | 3,150.00 |" in markdown(page)


PROSE = [
    "The boiler was serviced in the spring and the pressure vessel was found to be",
    "without air, so that the safety valve opened whenever the heating was switched",
    "on in the morning. It was filled to one bar and the valve has been quiet since",
    "then. The magnetic filter held a spoon of black dust that was rinsed out under",
    "the tap.",
    "Next visit in a year.",
]


def test_full_lines_are_joined_and_a_line_that_was_ended_on_purpose_is_not() -> None:
    assert markdown(lines(PROSE)) == f"Pages: 1\n\n# page 1\n\n{' '.join(PROSE[:5])}\nNext visit in a year.\n"


def test_a_hyphen_goes_only_where_the_document_proves_the_word() -> None:
    proved = [
        "An example: the pressure vessel was found without air, and this is the exam-",
        "ple of a word that the document writes in one piece elsewhere, but this well-",
        "known one is not, so that its hyphen is kept where the document has written it",
        "and nobody has to guess what the author of the text may have meant by his line",
    ]
    text = markdown(lines(proved))
    assert "this is the example of a word" in text
    assert "this well-known one" in text


def test_two_columns_of_prose_are_read_one_after_the_other() -> None:
    left = [f"left side sentence number {word} goes here" for word in ("one", "two", "three", "four", "five")]
    right = [f"right side sentence number {word} goes here" for word in ("one", "two", "three", "four", "five")]
    text = markdown(lines(left) + lines(right, x=310, top=779))
    assert " ".join(text.split()) == f"Pages: 1 # page 1 {' '.join(left)} {' '.join(right)}"


def test_monospaced_lines_are_a_fence_with_their_indentation_and_a_monospaced_word_is_a_span() -> None:
    prose = "BT /F1 10 Tf 1 0 0 1 56 700 Tm (Run the program ) Tj /F3 10 Tf (make check) Tj /F1 10 Tf ( before) Tj ET\n"
    code = show("def f():", 56, 680, font="F3") + show("return 1", 80, 668, font="F3")
    closing = lines(["and then wait until the colour of the lamp has changed to green again."], top=640)
    assert markdown(prose.encode() + code + closing) == (
        "Pages: 1\n\n# page 1\n\nRun the program `make check` before\n\n```\ndef f():\n    return 1\n```\n\n"
        "and then wait until the colour of the lamp has changed to green again.\n"
    )


def test_a_document_set_in_one_monospaced_font_is_prose() -> None:
    assert markdown(lines(["Dear reader", "all is well"], font="F3")) == (
        "Pages: 1\n\n# page 1\n\nDear reader\nall is well\n"
    )


def test_text_cannot_pretend_to_be_a_page_a_fence_a_rule_or_a_comment() -> None:
    texts = ["# page 9", "```", "------", "> said", "%% hidden", "#tag stays"]
    page = b"".join(show(text, 56, 700 - 30 * i) for i, text in enumerate(texts))
    assert markdown(page) == (
        "Pages: 1\n\n# page 1\n\n\\# page 9\n\n\\```\n\n\\------\n\n\\> said\n\n\\%\\% hidden\n\n#tag stays\n"
    )


def test_bullets_become_items_even_when_the_mark_stands_apart() -> None:
    page = show("•", 56, 700) + show("clean the casing", 76, 700) + show("• rinse the filter", 56, 686)
    assert markdown(page) == "Pages: 1\n\n# page 1\n\n- clean the casing\n- rinse the filter\n"


def test_letters_drawn_one_by_one_are_words_and_fake_bold_is_not_doubled() -> None:
    kerned = b"BT /F1 10 Tf 1 0 0 1 56 700 Tm [(B) 20 (oi) -5 (ler) -400 (house)] TJ ET\n"
    doubled = show("Total", 56, 660) + show("Total", 56.3, 660)
    assert markdown(kerned + doubled) == "Pages: 1\n\n# page 1\n\nBoiler house\n\nTotal\n"


def test_every_operator_that_shows_text_or_moves_the_line_is_understood() -> None:
    content = b"BT /F1 10 Tf 14 TL 56 700 Td (one) Tj (two) ' 0 0 (three) \" 0 -14 TD (four) Tj T* (five) Tj ET"
    assert markdown(content) == "Pages: 1\n\n# page 1\n\none\ntwo\nthree\nfour\nfive\n"


def test_turned_text_is_read_along_its_own_lines_after_the_upright_text() -> None:
    turned = b"BT /F1 10 Tf 0 1 -1 0 300 100 Tm (turned left) Tj ET BT /F1 10 Tf 0 1 -1 0 312 100 Tm (second) Tj ET\n"
    assert markdown(turned + show("the upright text of the page", 56, 700)) == (
        "Pages: 1\n\n# page 1\n\nthe upright text of the page\n\nturned left\nsecond\n"
    )


def test_text_inside_a_form_is_read_and_a_form_that_draws_itself_ends() -> None:
    form = stream(
        show("inside the form", 56, 700) + b"/Fm Do",
        b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources " + RESOURCES,
    )
    verdict = extracted(document(b"/Fm Do", extra={8: form}))
    assert verdict.status is ExtractionStatus.EXTRACTED
    assert "inside the form" in verdict.text


def test_ligatures_control_characters_and_unicode_forms_are_made_plain() -> None:
    cmap = (
        b"/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange\n"
        b"4 beginbfchar <41> <FB01> <42> <0065 0301> <43> <0007> <44> <00AD> endbfchar endcmap end"
    )
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 9 0 R >>"
    verdict = extracted(document(show("ABCD", 56, 700), extra={3: font, 9: stream(cmap)}))
    assert verdict.text == "Pages: 1\n\n# page 1\n\nfi\u00e9\n"


def test_the_title_and_the_links_once_each_frame_the_text() -> None:
    annotation = b"<< /Type /Annot /Subtype /Link /Rect [0 0 1 1] /A << /S /URI /URI (https://example.org/a b) >> >>"
    data = document(
        show("hello", 56, 700),
        page_entries=b"/Annots [%s %s]" % (annotation, annotation),
        extra={9: b"<< /Title (User guide) >>"},
        trailer=b"/Info 9 0 R",
    )
    assert extracted(data).text == (
        "Title: User guide\nPages: 1\nLinks: 1\n\n# page 1\n\nhello\n\n# links\n\n- <https://example.org/a%20b>\n"
    )


def test_pages_beyond_the_limit_are_counted_and_said() -> None:
    data = document(*(show(f"text {number}", 56, 700) for number in (1, 2, 3)))
    assert extracted(data, max_pages=2) == Extraction(
        ExtractionStatus.EXTRACTED,
        pages=3,
        has_text_layer=True,
        text="Pages: 3\n\n# page 1\n\ntext 1\n\n# page 2\n\ntext 2\n",
        detail="only the first 2 of 3 pages were read",
    )


def test_pictures_without_text_need_ocr() -> None:
    assert extracted(document(b"/Im Do")) == Extraction(
        ExtractionStatus.NEEDS_OCR, pages=1, has_text_layer=False, text="", detail="no text layer, only pictures"
    )


def test_an_empty_page_has_no_text() -> None:
    assert extracted(document(b"0 0 m 10 10 l S")) == Extraction(
        ExtractionStatus.NO_TEXT,
        pages=1,
        has_text_layer=False,
        text="",
        detail="the pages hold neither text nor pictures",
    )


def test_fonts_that_do_not_say_their_letters_need_ocr_and_give_no_gibberish() -> None:
    assert extracted(document(b"BT /F4 10 Tf 56 700 Td <00010002> Tj ET")) == Extraction(
        ExtractionStatus.NEEDS_OCR,
        pages=1,
        has_text_layer=False,
        text="",
        detail="the fonts do not say which letters they draw",
    )


def test_a_scanned_page_among_others_is_named() -> None:
    verdict = extracted(document(show("text", 56, 700), b"/Im Do"))
    assert (verdict.status, verdict.detail) == (ExtractionStatus.EXTRACTED, "page 2 has no text layer")


def test_a_damaged_page_costs_only_itself() -> None:
    bomb = stream(b" " * 80_000_000, compressed=True)
    verdict = extracted(document(show("text", 56, 700), b"", extra={FIRST_PAGE + 3: bomb}))
    assert verdict == Extraction(
        ExtractionStatus.EXTRACTED,
        pages=2,
        has_text_layer=True,
        text="Pages: 2\n\n# page 1\n\ntext\n\n# page 2\n",
        detail="page 2 could not be read",
    )


def encrypted(password: str) -> bytes:
    writer = PdfWriter(PdfReader(BytesIO(document(show("secret", 56, 700)))))
    writer.encrypt(user_password=password, owner_password="owner", algorithm="AES-256")
    target = BytesIO()
    writer.write(target)
    return target.getvalue()


def test_a_password_makes_it_encrypted() -> None:
    assert extracted(encrypted("sesame")) == Extraction(
        ExtractionStatus.ENCRYPTED,
        pages=0,
        has_text_layer=False,
        text="",
        detail="the file is encrypted and needs a password",
    )


def test_the_empty_password_is_tried_first() -> None:
    verdict = extracted(encrypted(""))
    assert verdict.status is ExtractionStatus.EXTRACTED
    assert "secret" in verdict.text


def test_bytes_that_are_no_pdf_are_failed() -> None:
    for data in (b"", b"%PDF-1.7\njunk\n", b"\x00" * 5_000, document(show("text", 56, 700))[:200]):
        assert extracted(data) == failed("the file is damaged or is not a PDF")


def test_a_wrong_cross_reference_table_is_made_anew() -> None:
    whole = document(show("saved", 56, 700))
    assert extracted(b"moved by a mail program\n" + whole).text == extracted(whole).text
    assert extracted(whole.replace(b" n \n", b" f \n")).text == extracted(whole).text


def test_a_file_cut_before_its_cross_reference_table_is_failed() -> None:
    whole = document(show("cut", 56, 700))
    assert extracted(whole[: whole.rindex(b"xref\n0")]) == failed("the file is damaged or is not a PDF")


def test_no_pages_is_failed() -> None:
    assert extracted(document()) == failed("the file has no pages")


def test_a_million_claimed_pages_count_as_the_ones_there_are() -> None:
    data = document(show("only one", 56, 700)).replace(b"/Count 1 >>", b"/Count 1000000 >>")
    verdict = extracted(data)
    assert (verdict.status, verdict.pages) == (ExtractionStatus.EXTRACTED, 1)


def test_a_page_tree_that_contains_itself_is_failed() -> None:
    tree = {1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >>"}
    assert extracted(pdf(tree)).status is ExtractionStatus.FAILED


def test_arrays_nested_by_the_thousand_are_failed() -> None:
    deep = b"[" * 50_000 + b"]" * 50_000
    assert extracted(document(deep + b" TJ")).status is ExtractionStatus.FAILED
    assert extracted(document(b"", extra={1: b"<< /Pages 2 0 R /X %s >>" % deep})).status is ExtractionStatus.FAILED


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=400), st.integers(0, 1_500), st.integers(0, 1_500))
def test_damage_anywhere_is_a_verdict_and_text_only_with_extracted(noise: bytes, start: int, length: int) -> None:
    whole = document(show("text", 56, 700) + b"/Im Do", show("more", 56, 700))
    verdict = extracted(whole[:start] + noise + whole[start + length :])
    assert (verdict.status is ExtractionStatus.EXTRACTED) == bool(verdict.text)
    assert "\n" not in verdict.detail
    assert verdict.text == verdict.text.encode().decode()


WORDS = st.lists(st.text("abcdefghijklmnopqrstuvwxyz0123456789.,-", min_size=1, max_size=9), min_size=1, max_size=6)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(WORDS, st.floats(20, 400), st.floats(20, 800), st.sampled_from([8, 10, 16])), max_size=12))
def test_no_drawn_word_is_lost_wherever_it_stands(drawn: list[tuple[list[str], float, float, int]]) -> None:
    places = {(round(x), round(y)): (words, size) for words, x, y, size in drawn}
    page = b"".join(show(" ".join(words), x, y, size=size) for (x, y), (words, size) in places.items())
    text = extracted(document(page + show("end", 500, 10))).text.replace("\\", "")
    found = sorted(character for character in text.split("# page 1\n", 1)[1] if character.isalnum())
    wanted = sorted(c for words, _ in places.values() for c in "".join(words) if c.isalnum())
    assert found == sorted([*wanted, *"end"])
