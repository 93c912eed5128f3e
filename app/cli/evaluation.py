"""`vault-mcp eval`: how well search answers a judged set of queries over a vault."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.configured import OwnVaultArgument, log_to_stderr, opened, settings_of

if TYPE_CHECKING:
    from operations.search.evaluation import Found, QuerySet, Report
    from operations.vault import Vault


def evaluate_queries(
    vault: OwnVaultArgument = None,
    *,
    queries: Annotated[Path, typer.Option("--queries", metavar="FILE", help="YAML file of judged queries.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the measures of every query as JSON.")] = False,
) -> None:
    """Measure search over a vault with queries of which the right answers are known.

    Shows recall, MRR and nDCG of notes and recall of passages, overall and by kind of query. Exit code 1 when a note
    that the set forbids is among ten results.
    """
    from app.settings.declaring import ConfigError
    from operations.search.evaluation import QuerySetError, read_query_set

    try:
        judged = read_query_set(queries.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, QuerySetError) as error:
        raise ConfigError(f"{queries} is no query set: {error}") from error
    settings = settings_of(vault)
    log_to_stderr(settings, quiet=True)
    from app.cli.progress import building, show
    from app.cli.terminal import remarks

    console = remarks()
    with opened(settings) as open_vault:
        show(building(open_vault), console, lambda step: console.print(f"{step.what}: {step.percent} %"))
        report = _measured(open_vault, judged)
    if as_json:
        typer.echo(_as_json(report))
    else:
        _print(report)
    for query_id, paths in report.never_found.items():
        console.print(f"{query_id}: must not be found: {', '.join(paths)}", style="red")
    if report.never_found:
        raise typer.Exit(1)


def _measured(vault: "Vault", judged: "QuerySet") -> "Report":
    from operations.search.evaluation import Found, evaluate

    # The set's folders are left out of the answers, and not out of the owner's index.
    options = replace(vault.search.options, hidden=judged.exclude_dirs)

    def find(query: str, count: int) -> "list[Found]":
        outcome = vault.search.search(query, replace(options, k=count))
        return [Found(hit.passage.path, hit.passage.heading) for hit in outcome.hits]

    return evaluate(judged.queries, find)


def _as_json(report: "Report") -> str:
    scores = [asdict(score) for score in report.scores]
    return json.dumps({"overall": asdict(report.overall), "queries": scores}, ensure_ascii=False)


def _print(report: "Report") -> None:
    from rich.table import Table

    from app.cli.terminal import answers
    from operations.search.evaluation import COLUMNS, rows_of

    table = Table(box=None, header_style="bold")
    for number, column in enumerate(COLUMNS):
        table.add_column(column, justify="left" if number == 0 else "right", no_wrap=number == 0)
    for row in rows_of(report):
        table.add_row(*row)
    answers().print(table)
