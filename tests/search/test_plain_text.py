import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operations.search.plain_text import plain_text


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("## Heading", "Heading"),
        ("> [!warning]- Hot\n> > deep", "Hot\ndeep"),
        ("- [x] done\n* star\n12. twelfth", "done\nstar\ntwelfth"),
        ("see [[Folder/Note]], [[Note#Part]] and [[Note|shown]]", "see Note, Note Part and shown"),
        ("![[picture.png]] [label](https://x.org/a_(b)) ![alt](p.png)", "picture.png label alt"),
        ("**bold** *so* _so_ ==mark== ~~gone~~ `code`", "bold so so mark gone code"),
        ("snake_case_name stays", "snake_case_name stays"),
        ("before %%hidden%% after <!-- gone --> end", "before after end"),
        ("an %% open mark stays", "an %% open mark stays"),
        ("| a | b |\n| --- | :-: |\n| 1 | 2 |", ", a, b,\n, 1, 2,"),
        ("```python\nprint(1)\n```", "print(1)"),
        ("text<br/>more <b>bold</b>, 3 < 4 > 2", "text more bold , 3 < 4 > 2"),
        ("at https://www.example.org/path?x=1 and <http://h.io>", "at example.org and h.io"),
        ("claim[^1] ^block-id\n[^1]: source", "claim\nsource"),
        ("-5 degrees, 1.5 bar", "-5 degrees, 1.5 bar"),
        ("---\ntext\n***", "text"),
        ("Plain prose. With 3.5 and KE-8842071, don't.", "Plain prose. With 3.5 and KE-8842071, don't."),
        ("", ""),
    ],
)
def test_syntax_goes_and_words_stay(markdown: str, plain: str) -> None:
    assert plain_text(markdown) == plain


@given(st.text(alphabet=st.sampled_from("ab [](){}<>!|*_`~=%#^-:/.\n\t1é"), max_size=200))
def test_any_text_becomes_lines_without_blank_ends(markdown: str) -> None:
    plain = plain_text(markdown)
    assert all(line and line == line.strip(" \t\r") for line in plain.split("\n") if plain)


@pytest.mark.parametrize(
    "unit",
    ["[[", "](", "[a](", "<a ", "<!--", "%%", "* ", "`", "> ", "http://", "a_", "_a", "| ", "[^", "![", "!!!\t", "^"],
)
def test_a_long_run_of_marks_takes_linear_time(unit: str) -> None:
    started = time.process_time()
    plain_text(unit * (200_000 // len(unit)))
    assert time.process_time() - started < 2
