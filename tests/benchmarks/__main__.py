"""Measure every row and print the table: `python -m tests.benchmarks [--rows KIND] [--notes N] [--quick]`."""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from tests.benchmarks.corpus import write_corpus
from tests.benchmarks.index_rows import measure_index
from tests.benchmarks.rows import Effort, Row, bench, measure

QUICK = Effort(requests=100, writes=20, seconds=0.4)
_HEADS = ("what", "ratio to the floor", "Vault MCP", "floor", "aim")


class Kind(StrEnum):
    """Which rows are measured; each kind has servers of its own."""

    REQUESTS = "requests"
    INDEX = "index"
    MEANING = "meaning"


def run(folder: Path, notes: int, effort: Effort, kind: Kind = Kind.REQUESTS) -> list[Row]:
    """Every row of a kind, measured over a corpus written into `folder`."""
    vault, state = folder / "vault", folder / "state"
    state.mkdir()
    manifest = write_corpus(vault, notes)
    match kind:
        case Kind.REQUESTS:
            with bench(vault, state, manifest, effort) as running:
                return list(measure(running))
        case Kind.INDEX:
            return list(measure_index(vault, state, manifest, effort))
        case Kind.MEANING:
            # Half a second and 50 MB that the other rows do without.
            from tests.benchmarks.meaning_rows import measure_meaning  # noqa: PLC0415

            return list(measure_meaning(vault, state, manifest, effort))


def table(rows: Iterable[Row]) -> str:
    """The rows as a markdown table."""
    lines = [_HEADS, tuple("---" for _ in _HEADS)]
    lines += [(row.name, f"{row.ratio:.2f}", str(row.ours), str(row.floor), row.aim) for row in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the server against its floors.")
    parser.add_argument("--rows", type=Kind, choices=list(Kind), default=Kind.REQUESTS, help="what is measured")
    parser.add_argument("--notes", type=int, default=1000, help="size of the corpus")
    parser.add_argument("--quick", action="store_true", help="a tenth of the effort, for a look")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vault-mcp-bench-") as folder:
        sys.stdout.write(table(run(Path(folder), given.notes, QUICK if given.quick else Effort(), given.rows)))


if __name__ == "__main__":
    main()
