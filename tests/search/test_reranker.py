"""The cross-encoder here is made by the test: a model of two steps that adds up the numbers of a pair's tokens."""

import shutil
from pathlib import Path

import pytest

from operations.search.onnx_models import BUNDLED_FOLDER
from operations.search.reranker import CrossEncoder, RerankUnavailableError, blend

FLOAT, INT64 = 1, 7


def field(number: int, value: int | bytes | str) -> bytes:
    """One field of a protocol buffer."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*data, value))


def value_info(name: str, element_type: int, *dimensions: str | int) -> bytes:
    shape = b"".join(field(1, field(2, size) if isinstance(size, str) else field(1, size)) for size in dimensions)
    return field(1, name) + field(2, field(1, field(1, element_type) + field(2, shape)))


def node(operator: str, source: str, target: str, attribute: bytes) -> bytes:
    return field(1, source) + field(2, target) + field(4, operator) + field(5, attribute)


def token_adder() -> bytes:
    """An ONNX model: `logits = ReduceSum(Cast(input_ids), axis 1)`.

    Source: onnx.proto3 of ONNX 1.6, operators of set 11.
    """
    cast = node("Cast", "input_ids", "numbers", field(1, "to") + field(3, FLOAT) + field(20, 2))
    axes = field(1, "axes") + field(8, 1) + field(20, 7)
    add = node("ReduceSum", "numbers", "logits", axes)
    graph = field(1, cast) + field(1, add) + field(2, "adder")
    graph += field(11, value_info("input_ids", INT64, "batch", "sequence"))
    graph += field(12, value_info("logits", FLOAT, "batch", 1))
    return field(1, 7) + field(8, field(1, "") + field(2, 11)) + field(7, graph)


@pytest.fixture
def encoder_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "adder"
    shutil.copytree(BUNDLED_FOLDER, folder, ignore=shutil.ignore_patterns("model.onnx"))
    (folder / "model.onnx").write_bytes(token_adder())
    return folder


def test_a_cross_encoder_of_a_folder_scores_each_text(encoder_folder: Path) -> None:
    encoder = CrossEncoder.of_folder(encoder_folder, threads=1)
    texts = ["the", "the the", "the " * 20, ""]
    scores = encoder.scores("boiler", texts)
    step = scores[1] - scores[0]
    assert step > 0
    assert [round((score - scores[3]) / step) for score in scores] == [1, 2, 20, 0]
    assert encoder.scores("boiler", []) == []


@pytest.mark.parametrize("damage", [b"no model", None])
def test_a_missing_or_damaged_cross_encoder_is_said(damage: bytes | None, encoder_folder: Path) -> None:
    model = encoder_folder / "model.onnx"
    model.unlink() if damage is None else model.write_bytes(damage)
    with pytest.raises(RerankUnavailableError):
        CrossEncoder.of_folder(encoder_folder).scores("boiler", ["a"])


def test_a_cross_encoder_that_is_not_in_the_cache_is_not_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(RerankUnavailableError):
        CrossEncoder.of_cache("Xenova/ms-marco-MiniLM-L-6-v2", tmp_path).scores("boiler", ["a"])


def test_the_blend_trusts_the_first_places_more_than_the_last() -> None:
    assert blend([0.0] * 12) == list(range(12))
    assert blend([5.0, 4.0, 3.0]) == [0, 1, 2]
    # The last of twelve is judged best: 0.6 of the judgement against what the first have earned.
    assert blend([0.0] * 11 + [1.0]).index(11) == 3
    # The second is judged best: a quarter of the judgement is more than one place.
    assert blend([0.0, 1.0, *[0.0] * 10])[0] == 1
    assert blend([]) == []
    assert blend([1.0]) == [0]
