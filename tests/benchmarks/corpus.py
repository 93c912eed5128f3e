"""A vault made for measuring: the same number of notes and seed give the same bytes and times, on every machine.

    python -m tests.benchmarks.corpus --notes 10000 FOLDER

A note has properties, headings over words that are as unevenly spread as those of a language, identifiers that occur
once, links in every spelling, and in part tasks, tags, block ids, tables and code that looks like links. Hubs are notes
to which exactly `HUB_INBOUND` others link, once each. The manifest beside the vault names what to ask for, and how many
notes have it.
"""

import argparse
import datetime as dt
import json
import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from urllib.parse import quote

LEAST_NOTES = 20
HUB_INBOUND = 50
MOST_HUBS = 12
_NOTES_PER_HUB = 70
_VOCABULARY_SIZE = 20_000
_ZIPF_EXPONENT = 1.05
_WORD_RUNS = (160, 900)
_FIRST_DAY = dt.date(2023, 1, 2)
_DAYS = 1100
_EPOCH = 1_672_617_600  # the first day, in UTC seconds
_SAMPLES = 200

# The words of which every text is full; search must not be driven by them.
_COMMON = ("the", "of", "and", "to", "in", "is", "that", "for", "it", "with", "as", "on", "be", "at", "by", "this")
_HEADS = ("b", "ch", "d", "f", "g", "gl", "h", "k", "kr", "l", "m", "n", "p", "pr", "r", "s", "sp", "t", "tw", "v", "z")
_CORES = ("a", "e", "i", "o", "u", "ea", "oo", "ei")
_TAILS = ("", "", "l", "m", "n", "r", "s", "rk", "nt")
_FOLDERS = (
    "Projects",
    "Projects/Garden",
    "People",
    "Journal",
    "Library",
    "Library/Papers",
    "Work",
    "Work/Meetings/Old",
)
_TAGS = ("project", "person", "paper", "meeting", "garden", "idea", "review", "home")
_SUBTAGS = ("north", "south", "open", "later")
_TASK_STATES = (("todo", " ", 60), ("done", "x", 28), ("in_progress", "/", 8), ("cancelled", "-", 4))
_QUERY_RANKS = (40, 80, 160, 320, 640, 1250, 2500, 5000)
_TOKEN = re.compile(r"\w+")  # `ak`, `000012` of `AK-000012`; a search index without stemming has the same


@dataclass(frozen=True, slots=True)
class Query:
    """Words, and the number of notes whose file holds all of them."""

    words: str
    notes: int


@dataclass(frozen=True, slots=True)
class Identifier:
    """A text that occurs once in the vault."""

    text: str
    path: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is in a corpus."""

    notes: int
    seed: int
    bytes: int
    links: int
    tags: dict[str, int]
    """Notes by tag as it stands in their properties."""
    tasks: dict[str, int]
    """Checkbox lines by state."""
    queries: tuple[Query, ...]
    identifiers: tuple[Identifier, ...]
    hubs: tuple[str, ...]
    hub_inbound: int
    sample_paths: tuple[str, ...]
    task_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    folder: str
    name: str

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.name}.md"


@dataclass(frozen=True, slots=True)
class _Facts:
    """What the manifest wants to know of a note."""

    path: str
    bytes: int
    links: int
    tags: tuple[str, ...]
    task_states: tuple[str, ...]
    identifiers: tuple[str, ...]


class _Words:
    """A vocabulary in order of frequency; few of its words make up most of a text."""

    def __init__(self, seed: int) -> None:
        self.ranked = _vocabulary(seed)
        self._weights = list(accumulate(1 / (rank + 3) ** _ZIPF_EXPONENT for rank in range(len(self.ranked))))

    def draw(self, rng: random.Random, count: int) -> list[str]:
        return rng.choices(self.ranked, cum_weights=self._weights, k=count)


def write_corpus(folder: Path, notes: int, *, seed: int = 1) -> Manifest:
    """Fill an absent or empty folder with `notes` notes, at least `LEAST_NOTES`.

    Raises:
        ValueError: Too few notes, or the folder holds something.
    """
    if notes < LEAST_NOTES:
        raise ValueError(f"a corpus has at least {LEAST_NOTES} notes")
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty")
    words = _Words(seed)
    hubs = [_Place("Hubs", f"Hub {number:02d}") for number in range(min(MOST_HUBS, notes // _NOTES_PER_HUB))]
    ordinary = [_place(words, seed, index) for index in range(notes - len(hubs))]
    hub_links = _hub_links(hubs, len(ordinary), seed)
    asked = _queries(words, seed)
    hits = dict.fromkeys(asked, 0)
    all_facts: list[_Facts] = []
    for index, place in enumerate([*ordinary, *hubs]):
        text, facts = _note(words, seed, index, place, ordinary, hub_links.get(index, ()))
        _store(folder / facts.path, text, _EPOCH + index * 61 % (_DAYS * 86_400))
        all_facts.append(facts)
        tokens = set(_TOKEN.findall(text.lower()))
        for query in asked:
            hits[query] += tokens.issuperset(query.split())
    rng = _chance(seed, "samples")
    paths = [place.path for place in ordinary]
    with_tasks = [facts.path for facts in all_facts if facts.task_states]
    identifiers = [Identifier(text, facts.path) for facts in all_facts for text in facts.identifiers]
    return Manifest(
        notes=notes,
        seed=seed,
        bytes=sum(facts.bytes for facts in all_facts),
        links=sum(facts.links for facts in all_facts),
        tags=_counted(tag for facts in all_facts for tag in facts.tags),
        tasks=_counted(state for facts in all_facts for state in facts.task_states),
        queries=tuple(Query(query, found) for query, found in hits.items()),
        identifiers=tuple(identifiers[:: max(1, len(identifiers) // _SAMPLES)]),
        hubs=tuple(hub.path for hub in hubs),
        hub_inbound=HUB_INBOUND,
        sample_paths=tuple(rng.sample(paths, min(_SAMPLES, len(paths)))),
        task_paths=tuple(rng.sample(with_tasks, min(_SAMPLES, len(with_tasks)))),
    )


def _chance(seed: int, subject: str) -> random.Random:
    """Numbers of its own for each subject, so that a change to one leaves the others as they were."""
    return random.Random(f"{seed}/{subject}")  # noqa: S311 - a corpus, no secret


def _vocabulary(seed: int) -> list[str]:
    rng = _chance(seed, "vocabulary")
    found = dict.fromkeys(_COMMON)
    while len(found) < _VOCABULARY_SIZE:
        syllables = rng.choices((1, 2, 3), weights=(2, 6, 3))[0]
        word = "".join(rng.choice(_HEADS) + rng.choice(_CORES) + rng.choice(_TAILS) for _ in range(syllables))
        if len(word) > 2:
            found.setdefault(word)
    return list(found)


def _place(words: _Words, seed: int, index: int) -> _Place:
    rng = _chance(seed, f"place/{index}")
    first, second = rng.choices(words.ranked[300:4000], k=2)
    return _Place(rng.choice(_FOLDERS), f"{first.capitalize()} {second} {index:05d}")


def _hub_links(hubs: Sequence[_Place], notes: int, seed: int) -> dict[int, tuple[str, ...]]:
    """The one link to a hub that some notes have, by the note's index."""
    sources = _chance(seed, "hubs").sample(range(notes), len(hubs) * HUB_INBOUND)
    return {source: (_link(hubs[turn // HUB_INBOUND], turn),) for turn, source in enumerate(sources)}


def _link(place: _Place, turn: int) -> str:
    """A link to a note, in one of the four spellings that a move has to rewrite."""
    match turn % 4:
        case 0:
            return f"[[{place.name}]]"
        case 1:
            return f"[[{place.folder}/{place.name}|see there]]"
        case 2:
            return f"[[{place.name}#Overview]]"
        case _:
            return f"[see there]({quote(place.path)})"


def _queries(words: _Words, seed: int) -> tuple[str, ...]:
    rng = _chance(seed, "queries")
    single = [words.ranked[rank + rng.randrange(8)] for rank in _QUERY_RANKS]
    pairs = [" ".join(rng.sample(words.ranked[25:160], 2)) for _ in range(6)]
    triples = [" ".join(rng.sample(words.ranked[20:80], 3)) for _ in range(3)]
    common = [words.ranked[3], f"{words.ranked[1]} {single[3]}"]
    return tuple(dict.fromkeys([*single, *pairs, *triples, *common]))


def _note(
    words: _Words, seed: int, index: int, place: _Place, targets: Sequence[_Place], hub_links: tuple[str, ...]
) -> tuple[str, _Facts]:
    rng = _chance(seed, f"note/{index}")
    tags = rng.sample(_TAGS, rng.randint(1, 3))
    if rng.random() < 0.4:
        tags.append(f"{tags[0]}/{rng.choice(_SUBTAGS)}")
    links = [_some_link(rng, rng.choice(targets)) for _ in range(rng.randint(3, 8))] + list(hub_links)
    identifiers = tuple(_identifier(index * 3 + number) for number in range(rng.randint(0, 3)))
    prose = words.draw(rng, rng.randint(*_WORD_RUNS))
    for inserted in (*links, *identifiers):
        prose.insert(rng.randrange(len(prose)), inserted)
    tasks = [_task(rng, words) for _ in range(rng.randint(1, 5))] if rng.random() < 0.4 else []
    blocks = [*_sections(rng, words, prose), *_extras(rng, words, index)]
    if tasks:
        blocks += ["## Tasks", "\n".join(line for line, _ in tasks)]
    text = f"{_properties(rng, place, tags)}\n" + "\n\n".join(blocks) + "\n"
    states = tuple(state for _, state in tasks)
    return text, _Facts(place.path, len(text.encode()), len(links), tuple(tags), states, identifiers)


def _some_link(rng: random.Random, place: _Place) -> str:
    kind = rng.random()
    if kind < 0.03:
        return f"[[Nowhere {place.name}]]"
    if kind < 0.08:
        return f"![[{place.name}]]"
    return _link(place, rng.choices(range(4), weights=(60, 20, 10, 10))[0])


def _identifier(serial: int) -> str:
    letters, digits = divmod(serial, 1_000_000)
    return f"{chr(65 + letters // 26 % 26)}{chr(65 + letters % 26)}-{digits:06d}"


def _properties(rng: random.Random, place: _Place, tags: Sequence[str]) -> str:
    lines = ["---", f"title: {place.name}", "tags:", *(f"  - {tag}" for tag in tags), f"created: {_day(rng)}"]
    if rng.random() < 0.5:
        lines.append(f"status: {rng.choice(('draft', 'active', 'done'))}")
    if rng.random() < 0.25:
        lines.append(f"priority: {rng.randint(1, 5)}")
    if rng.random() < 0.15:
        lines += ["aliases:", f"  - {place.name.replace(' ', '-')}"]
    return "\n".join([*lines, "---", ""])


def _sections(rng: random.Random, words: _Words, prose: Sequence[str]) -> list[str]:
    headings = rng.randint(2, 6)
    length = -(-len(prose) // headings)
    blocks: list[str] = []
    for number in range(headings):
        title = "Overview" if number == 0 else f"{' '.join(words.draw(rng, rng.randint(1, 3))).capitalize()} {number}"
        blocks.append(f"{'#' * (1 if number == 0 else rng.choice((2, 2, 3)))} {title}")
        part = prose[number * length : (number + 1) * length]
        while part:
            size = rng.randint(30, 110)
            blocks.append(" ".join(part[:size]) + ".")
            part = part[size:]
    return blocks


def _extras(rng: random.Random, words: _Words, index: int) -> list[str]:
    blocks: list[str] = []
    if rng.random() < 0.2:
        blocks.append(f"Filed under #{rng.choice(_TAGS)}/{rng.choice(_SUBTAGS)} ^block{index}")
    if rng.random() < 0.1:
        blocks.append(f"> [!tip] {' '.join(words.draw(rng, 3))}\n> {' '.join(words.draw(rng, 14))}")
    if rng.random() < 0.08:
        rows = (f"| {' | '.join(words.draw(rng, 2))} |" for _ in range(4))
        blocks.append("\n".join(["| name | value |", "| --- | --- |", *rows]))
    if rng.random() < 0.06:
        blocks.append("```text\n- [ ] no task, [[no link]] and #notag inside a fence\n```")
    return blocks


def _task(rng: random.Random, words: _Words) -> tuple[str, str]:
    """A checkbox line and its state."""
    state, mark, _ = rng.choices(_TASK_STATES, weights=[weight for *_, weight in _TASK_STATES])[0]
    line = f"- [{mark}] {' '.join(words.draw(rng, rng.randint(3, 8)))}"
    if rng.random() < 0.15:
        line += f" #{rng.choice(_TAGS)}"
    if rng.random() < 0.75:
        line += f" 📅 {_day(rng)}" + rng.choice(("", "", " ⏫", " 🔽", " 🔁 every week"))
    elif rng.random() < 0.6:
        line += f" [due:: {_day(rng)}]"
    return (f"{line} ✅ {_day(rng)}" if state == "done" else line), state


def _day(rng: random.Random) -> dt.date:
    return _FIRST_DAY + dt.timedelta(days=rng.randrange(_DAYS))


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _store(file: Path, text: str, seconds: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    os.utime(file, (seconds, seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a corpus and, beside it, its manifest.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--notes", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    manifest = write_corpus(given.folder, given.notes, seed=given.seed)
    beside = given.folder.with_name(f"{given.folder.name}.manifest.json")
    beside.write_text(json.dumps(asdict(manifest), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
