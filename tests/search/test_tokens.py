from tokenizers import Tokenizer

from operations.search.onnx_models import BUNDLED_FOLDER, OnnxEmbedder, bundled_model
from operations.search.tokens import TokenBudget, WordCounter, estimate_tokens

TEXTS = (
    "The boiler, KE-8842071 (serviced in May).",
    "**Bold** and [[Linked Note|shown]]; don't, won't... ---",
    "Größe naïve 東京タワー café́ 📅 2024-05-01",
    "UPPER lower MiXed! !!! _under_score_ ^block-id #tag/sub",
    "",
    "  \t two  blanks \n and a line ",
)


def test_words_with_their_marks_count_as_the_tokenizer_counts_them() -> None:
    tokenizer = Tokenizer.from_file(str(BUNDLED_FOLDER / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    expected = [len(tokenizer.encode(text, add_special_tokens=False)) for text in TEXTS]
    counter = OnnxEmbedder(bundled_model()).count_tokens
    budget = TokenBudget(window=256, count=counter)

    assert budget.each(TEXTS) == expected
    assert [counter(text) for text in reversed(TEXTS)] == expected[::-1]


def test_a_counter_forgets_words_that_do_not_come_again_and_counts_on() -> None:
    asked: list[str] = []

    def lengths(words: list[str]) -> list[int]:
        asked.extend(words)
        return [len(word) for word in words]

    counter = WordCounter(lengths, most_words=3)

    assert [counter(text) for text in ("aa bbb", "c dddd", "aa e", "f aa", "gg aa", "bbb")] == [5, 5, 3, 3, 4, 3]
    assert asked == ["aa", "bbb", "c", "dddd", "e", "f", "gg", "bbb"]


def test_a_plain_function_counts_text_by_text() -> None:
    budget = TokenBudget(window=256, count=estimate_tokens)
    assert budget.each(["", "one two three four"]) == [0, estimate_tokens("one two three four")]
