from operations.search.excerpts import excerpt_of
from operations.search.tokens import estimate_tokens

LINES = "\n".join(f"Line {number} speaks of topic{number} and nothing else at all." for number in range(40))


def test_a_short_text_is_shown_whole_without_its_syntax() -> None:
    assert excerpt_of("## Head\n\n- [x] see [[A|it]]\n| a | b |", ["it"], tokens=160) == "Head\nsee it\na, b"


def test_the_lines_that_answer_are_shown_whole() -> None:
    excerpt = excerpt_of(LINES, ["topic17"], tokens=40)
    assert "topic17" in excerpt
    assert set(excerpt.split("\n")) <= set(LINES.split("\n"))
    assert estimate_tokens(excerpt) <= 40


def test_without_a_match_the_beginning_is_shown() -> None:
    assert excerpt_of(LINES, ["nowhere"], tokens=40).startswith("Line 0 speaks")
    assert excerpt_of(LINES, [], tokens=40).startswith("Line 0 speaks")


def test_a_rare_word_outweighs_a_frequent_one() -> None:
    assert "topic23" in excerpt_of(LINES, ["line", "topic23"], tokens=30)


def test_sentences_of_a_long_line_stay_together_on_one_line() -> None:
    text = " ".join(f"Sentence {number} is about thing{number} here." for number in range(60))
    excerpt = excerpt_of(text, ["thing30"], tokens=40)
    assert "thing30" in excerpt
    assert "\n" not in excerpt
    assert excerpt.endswith(".")


def test_a_line_without_spaces_is_cut() -> None:
    assert 0 < len(excerpt_of("x" * 50_000, [], tokens=20)) <= 80


def test_matched_words_are_marked_when_asked() -> None:
    assert excerpt_of("The boilers are serviced.", ["boiler"], tokens=40, mark=True) == "The ==boilers== are serviced."


def test_nothing_gives_nothing() -> None:
    assert excerpt_of(" \n", ["a"], tokens=10) == ""
