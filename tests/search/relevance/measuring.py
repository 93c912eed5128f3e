"""A judged set over its vault, measured as a server answers it: the bundled model, every setting at its default.

`python -m tests.search.relevance.measuring` measures anew and writes the baselines that the tests compare with.
"""

import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import yaml
from pydantic import BaseModel, ConfigDict

from app.opening import open_vault
from operations.index.indexer import documents_without_text
from operations.search.evaluation import Found, Means, QueryKind, QuerySet, Report, evaluate, read_query_set, table_of
from operations.search.vectors import vector_share
from operations.vault import Vault
from tests.harness import settings_for
from tests.index.indexes import wait_for

HERE: Final = Path(__file__).parent
SHARED: Final = HERE.parents[3] / "shared"
"""Material that may not be handed on, beside the project where it is present."""
VECTOR_SECONDS: Final = 600.0
DIGITS: Final = 3
"""Of the floors, and of what is compared with them."""


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """A vault with the queries over it and the least that must be reached."""

    name: str
    vault: Path
    queries: Path
    recall_5: float
    recall_10: float
    mrr_10: float
    ndcg_10: float
    passage_recall_10: float

    @property
    def baseline(self) -> Path:
        """What was reached before."""
        return HERE / f"{self.name}.baseline.yaml"

    def read(self) -> QuerySet:
        """The queries."""
        return read_query_set(self.queries.read_text(encoding="utf-8"))


HOUSEHOLD: Final = JudgedSet(
    "household", HERE.parents[1] / "vaults" / "household", HERE / "household.yaml", 0.91, 0.955, 0.855, 0.875, 0.915
)
HELP: Final = JudgedSet(
    "obsidian-help",
    SHARED / "vaults" / "obsidian-help",
    SHARED / "relevance" / "obsidian-help.yaml",
    0.93, 0.965, 0.80, 0.84, 0.90,
)  # fmt: skip
KIND_FLOORS: Final = {
    QueryKind.IDENTIFIER: ("recall_5", 0.95),
    QueryKind.KEYWORD: ("recall_5", 0.95),
    QueryKind.QUESTION: ("recall_10", 0.93),
    QueryKind.TYPO: ("recall_10", 0.95),
    QueryKind.PARAPHRASE: ("recall_10", 0.75),
    QueryKind.MULTI_NOTE: ("recall_10", 0.85),
}
"""Source: search.md §8."""


class Baseline(BaseModel):
    """What the committed code reached."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    overall: dict[str, float]
    hits: tuple[str, ...]
    """Queries with an answer among the ten results."""
    passages: tuple[str, ...]
    """Those with the answering passage among them."""


def measured(judged: JudgedSet, state: Path) -> Report:
    """The set's queries over its vault, which is indexed from nothing."""
    queries = judged.read()
    excluded = ",".join(folder for folder in queries.exclude_dirs if not folder.startswith("."))
    settings = settings_for(judged.vault, state, {"EMBEDDING_ENABLED": "true", "SEARCH_EXCLUDE_DIRS": excluded})
    vault = open_vault(settings)
    try:
        vault.start()
        assert vault.index.wait_until_ready(VECTOR_SECONDS)
        wait_for(lambda: is_complete(vault), VECTOR_SECONDS)

        def find(query: str, count: int) -> list[Found]:
            outcome = vault.search.search(query, replace(vault.search.options, k=count))
            assert outcome.search_mode == "hybrid"
            return [Found(path=hit.passage.path, heading=hit.passage.heading) for hit in outcome.hits]

        return evaluate(queries.queries, find)
    finally:
        vault.close()


def is_complete(vault: Vault) -> bool:
    """Whether nothing is left to read or embed."""
    with vault.index.reader() as connection:
        return not documents_without_text(connection, 1) and vector_share(connection) == 1.0


def baseline_of(report: Report) -> Baseline:
    """What is kept of a report."""
    return Baseline(
        overall={name: round(value, 4) for name, value in figures_of(report.overall).items()},
        hits=tuple(score.id for score in report.scores if score.recall_10 > 0),
        passages=tuple(score.id for score in report.scores if score.passage_recall_10 > 0),
    )


def read_baseline(judged: JudgedSet) -> Baseline:
    """The committed baseline."""
    return Baseline.model_validate(yaml.safe_load(judged.baseline.read_text(encoding="utf-8")))


def figures_of(means: Means) -> dict[str, float]:
    """The measures by name, without the counts."""
    return {name: value for name, value in asdict(means).items() if isinstance(value, float)}


def main() -> None:
    """Measure every set there is and write its baseline."""
    for judged in (HOUSEHOLD, HELP):
        if not judged.vault.is_dir():
            print(f"{judged.name}: not here, skipped\n")  # noqa: T201 - run by hand
            continue
        with tempfile.TemporaryDirectory() as state:
            report = measured(judged, Path(state))
        kept = yaml.safe_dump(baseline_of(report).model_dump(mode="json"), sort_keys=False)
        judged.baseline.write_text(kept, encoding="utf-8")
        print(f"{judged.name}\n\n{table_of(report)}\n")  # noqa: T201 - run by hand


if __name__ == "__main__":
    main()
