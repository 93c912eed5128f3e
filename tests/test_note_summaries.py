"""What a note without a description is said to be about: its first sentence."""

import pytest

from operations.markdown.index_document import MAX_DESCRIPTION
from operations.note_summaries import first_sentence


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", ""),
        ("# Only a heading\n", ""),
        ("# Boiler\n\nServiced in May. Next time in June.\n", "Serviced in May."),
        ("One line\nand its second. Then more.\n", "One line and its second."),
        ("No end at all\n\nAnother paragraph.\n", "No end at all"),
        ("Version 1.2 is out. Good.\n", "Version 1.2 is out."),
        ("See e.g. the manual. Good.\n", "See e.g. the manual."),
        ("Is it on? Yes.\n", "Is it on?"),
        ("設定完了。次の行。\n", "設定完了。"),
        ("A **bold** [[Home/Car|car]] and [a link](x.md) #tag.\n", "A bold car and a link #tag."),
        ("> [!note] Callout\n> inside\n\nOutside.\n", "Outside."),
        ("```js\nlet code. Here\n```\n\n| a | b |\n| - | - |\n\n---\n\nProse.\n", "Prose."),
        ("~~~~\n~~~\nstill code.\n~~~~\nProse.\n", "Prose."),
        ("<!-- hidden -->\n![[Pic.png]]\nkey:: value\n\nProse.\n", "Prose."),
        ("- a list item. Second sentence\n", "a list item."),
        ("1. [ ] first\n   goes on\n2. second\n", "first goes on"),
        ("Before a list\n- item\n", "Before a list"),
        ("x" * 300, "x" * (MAX_DESCRIPTION - 1) + "…"),
    ],
)
def test_the_first_sentence_of_a_body(body: str, sentence: str) -> None:
    assert first_sentence(body) == sentence
