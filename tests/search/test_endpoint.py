import json
from collections.abc import Callable, Iterator

import httpx
import numpy as np
import pytest

from operations.search.embedder import EmbeddingUnavailableError
from operations.search.endpoint import ATTEMPTS, BATCH_TEXTS, EndpointEmbedder


def embedder_of(
    answer: Callable[[httpx.Request], httpx.Response], pauses: list[float] | None = None
) -> EndpointEmbedder:
    client = httpx.Client(transport=httpx.MockTransport(answer))
    pause = pauses.append if pauses is not None else lambda _seconds: None
    return EndpointEmbedder("http://localhost:11434/v1", "mini", api_key="sesame", client=client, pause=pause)


def lengths(request: httpx.Request) -> httpx.Response:
    texts = json.loads(request.content)["input"]
    data = [{"index": index, "embedding": [float(len(text)), 1.0]} for index, text in enumerate(texts)]
    return httpx.Response(200, json={"data": data[::-1]})


def test_texts_go_in_batches_and_vectors_come_back_in_their_order() -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return lengths(request)

    texts = ["x" * (number * 7 % 50 + 1) for number in range(BATCH_TEXTS + 5)]
    rows = embedder_of(answer).embed_passages(texts)
    expected = np.asarray([[len(text), 1] for text in texts], dtype=np.float32)
    assert np.allclose(rows, expected / np.linalg.norm(expected, axis=1, keepdims=True))
    assert [len(json.loads(request.content)["input"]) for request in asked] == [BATCH_TEXTS, 5]
    assert {str(request.url) for request in asked} == {"http://localhost:11434/v1/embeddings"}
    assert {request.headers["authorization"] for request in asked} == {"Bearer sesame"}
    assert json.loads(asked[0].content)["model"] == "mini"


def test_the_width_is_learnt_from_the_first_answer() -> None:
    embedder = embedder_of(lengths)
    assert (embedder.dimension, embedder.name, embedder.window) == (2, "mini@localhost:11434", 512)


def test_a_failure_that_passes_is_tried_again_with_growing_pauses() -> None:
    answers = iter([httpx.Response(503), httpx.Response(429)])
    pauses: list[float] = []
    embedder = embedder_of(lambda request: next(answers, None) or lengths(request), pauses)
    assert embedder.embed_passages(["boiler"]).shape == (1, 2)
    assert len(pauses) == 2
    assert 0.5 <= pauses[0] <= 0.75
    assert 1.0 <= pauses[1] <= 1.5


@pytest.mark.parametrize(
    ("answer", "cause", "attempts"),
    [
        (httpx.Response(500), "localhost:11434 answers 500", ATTEMPTS),
        (httpx.Response(401), "localhost:11434 answers 401", 1),
        (httpx.Response(302, headers={"location": "http://elsewhere/"}), "localhost:11434 answers 302", 1),
        (httpx.Response(200, text="<html>"), "localhost:11434 answers with something that is no JSON", 1),
        (httpx.Response(200, json=[]), "localhost:11434 does not answer with one vector for each text", 1),
        (httpx.Response(200, json={"data": []}), "localhost:11434 does not answer with one vector for each text", 1),
        (
            httpx.Response(200, json={"data": [{"embedding": [True]}]}),
            "localhost:11434 does not answer with one vector for each text",
            1,
        ),
        (
            httpx.Response(200, content=b'{"data":[{"embedding":[NaN]}]}'),
            "localhost:11434 does not answer with one vector for each text",
            1,
        ),
    ],
)
def test_a_failure_names_its_cause_and_no_secret(answer: httpx.Response, cause: str, attempts: int) -> None:
    asked: list[httpx.Request] = []

    def reply(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    with pytest.raises(EmbeddingUnavailableError) as failure:
        embedder_of(reply).embed_passages(["boiler"])
    assert (str(failure.value), len(asked)) == (cause, attempts)


def test_a_query_is_asked_once_within_seconds_and_then_the_endpoint_rests() -> None:
    now = [100.0]
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(503) if now[0] < 110 else lengths(request)

    client = httpx.Client(transport=httpx.MockTransport(answer))
    embedder = EndpointEmbedder("http://localhost:11434/v1", "mini", client=client, clock=lambda: now[0])
    for moment in (100.0, 100.1, 109.9):
        now[0] = moment
        with pytest.raises(EmbeddingUnavailableError, match=r"^localhost:11434 answers 503$"):
            embedder.embed_query("boiler")
    assert len(asked) == 1
    assert asked[0].extensions["timeout"] == {"connect": 5.0, "read": 5.0, "write": 5.0, "pool": 5.0}
    now[0] = 110.0
    assert embedder.embed_query("boiler").shape == (2,)
    embedder.embed_passages(["boiler"])
    assert asked[-1].extensions["timeout"] == {"connect": 5.0, "read": 60.0, "write": 60.0, "pool": 60.0}


def test_an_answer_that_trickles_ends_too() -> None:
    now = [0.0]

    class Trickle(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            while True:
                now[0] += 2
                yield b" "

    client = httpx.Client(transport=httpx.MockTransport(lambda _request: httpx.Response(200, stream=Trickle())))
    embedder = EndpointEmbedder("http://localhost:11434/v1", "mini", client=client, clock=lambda: now[0])
    with pytest.raises(EmbeddingUnavailableError, match=r"^localhost:11434 does not answer in time$"):
        embedder.embed_query("boiler")
    assert now[0] == 6


def test_an_endpoint_that_is_not_there_is_said() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(EmbeddingUnavailableError, match="localhost:11434 cannot be reached: ConnectError"):
        embedder_of(refuse).embed_query("boiler")


def test_vectors_of_another_width_are_refused() -> None:
    widths = iter([2, 3])

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"data": [{"index": 0, "embedding": [1.0] * next(widths)}]})

    embedder = embedder_of(answer)
    embedder.embed_query("a")
    with pytest.raises(EmbeddingUnavailableError, match="answers with 3 numbers a text, before it was 2"):
        embedder.embed_query("b")
