"""Measure every row and print the table: `python -m tests.benchmarks [--notes N] [--quick]`."""

import argparse
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.benchmarks.corpus import write_corpus
from tests.benchmarks.rows import Effort, Row, bench, measure

QUICK = Effort(requests=100, writes=20, seconds=0.4)
_HEADS = ("what", "ratio to the floor", "Vault MCP", "floor", "aim")


def run(folder: Path, notes: int, effort: Effort) -> list[Row]:
    """Every row, measured over a corpus written into `folder`."""
    vault = folder / "vault"
    manifest = write_corpus(vault, notes)
    with bench(vault, folder / "state", manifest, effort) as running:
        return list(measure(running))


def table(rows: Iterable[Row]) -> str:
    """The rows as a markdown table."""
    lines = [_HEADS, tuple("---" for _ in _HEADS)]
    lines += [(row.name, f"{row.ratio:.2f}", str(row.ours), str(row.floor), row.aim) for row in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the server against its floors.")
    parser.add_argument("--notes", type=int, default=1000, help="size of the corpus")
    parser.add_argument("--quick", action="store_true", help="a tenth of the effort, for a look")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vault-mcp-bench-") as folder:
        sys.stdout.write(table(run(Path(folder), given.notes, QUICK if given.quick else Effort())))


if __name__ == "__main__":
    main()
