"""`vault-mcp search`: what `vault_search` answers, for a person or as JSON."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.configured import log_to_stderr, opened, settings_of

if TYPE_CHECKING:
    from rich.text import Text

    from operations.searching import HitRow, SearchResult

INDENT = 4
"""Blanks in front of a passage."""


class Mode(StrEnum):
    """By what passages are found."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"


def search(
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="[VAULT] QUERY",
            help="Folder of the vault, else VAULT_PATH; and what to look for, quoted when it has several words.",
            show_default=False,
        ),
    ],
    *,
    k: Annotated[int | None, typer.Option("-k", "--limit", metavar="1…50", help="Passages to show.")] = None,
    mode: Annotated[Mode, typer.Option(help="By meaning and words, or by words alone.")] = Mode.HYBRID,
    folder: Annotated[
        list[str] | None,
        typer.Option("--folder", metavar="FOLDER", help="Only below this folder; may be repeated."),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Only notes with this tag; may be repeated."),
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="TYPE", help="Only notes of this type; may be repeated.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each passage stands where it does.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what `GET /search` answers.")] = False,
) -> None:
    """Find the passages that answer a question or hold a word.

    Reads the index in the state folder, and builds what it lacks first.
    """
    *named, query = given
    if len(named) > 1:
        raise typer.BadParameter("a query of several words is quoted: vault-mcp search VAULT 'two words'")
    settings = settings_of(named[0] if named else None)
    log_to_stderr(settings, quiet=True)
    from pydantic import ValidationError

    from app.cli.progress import building, show
    from app.cli.terminal import remarks
    from app.validation import refusal_of
    from operations.caller import Caller, Surface
    from operations.searching import SearchInput, search_vault

    filters = {name: list(values) for name, values in (("folder", folder), ("tags", tag), ("type", type_)) if values}
    try:
        args = SearchInput.model_validate({"query": query, "k": k, "filters": filters, "explain": explain})
    except ValidationError as error:
        raise refusal_of(error, SearchInput) from error
    by_meaning = mode is Mode.HYBRID
    console = remarks()
    with opened(settings, by_meaning=by_meaning) as vault:
        # What another process keeps right is searched as it is: its vectors are on their way.
        show(
            building(vault, by_meaning=by_meaning and vault.index.leads),
            console,
            lambda step: console.print(f"{step.what}: {step.percent} %"),
        )
        result = search_vault(vault, Caller(principal="cli", surface=Surface.CLI), args)
    if as_json:
        typer.echo(result.model_dump_json(exclude_none=True))
    else:
        _print(result, query)


def _print(result: "SearchResult", query: str) -> None:
    from rich.padding import Padding

    from app.cli.terminal import answers, printable, remarks

    console = answers()
    for number, hit in enumerate(result.hits, start=1):
        if number > 1:
            console.print()
        console.print(_headline(hit))
        for shown in (_passage(printable(hit.excerpt), query), *map(_dimmed, _remarks_on(hit))):
            for line in shown.split():
                console.print(Padding(line, (0, 0, 0, INDENT)) if console.is_terminal else " " * INDENT + line.plain)
    said = remarks()
    for advisory in result.advisories or ():
        said.print(printable(advisory), style="yellow")
    if not result.hits:
        said.print("Nothing was found.")


def _headline(hit: "HitRow") -> "Text":
    from rich.text import Text

    from app.cli.terminal import printable

    # `path:line` first, as editors and terminals open it.
    line = Text.assemble((printable(hit.path), "bold cyan"), (f":{hit.line}", "cyan"))
    if hit.heading:
        line.append(f"  {printable(hit.heading)}", "bold")
    return line.append(f"  [{hit.found_by}{', identifier' if hit.pinned else ''}]", "dim")


def _passage(excerpt: str, query: str) -> "Text":
    from rich.text import Text

    from operations.search.words import STOP_WORDS, WORD, fold, stem

    shown = Text(excerpt)
    wanted = {stem(fold(word)) for word in WORD.findall(query) if fold(word) not in STOP_WORDS}
    for word in WORD.finditer(shown.plain):
        if stem(fold(word[0])) in wanted:
            shown.stylize("bold yellow", *word.span())
    return shown


def _dimmed(line: str) -> "Text":
    from rich.text import Text

    from app.cli.terminal import printable

    return Text(printable(line), "dim")


def _remarks_on(hit: "HitRow") -> list[str]:
    lines = [f"lacks: {', '.join(hit.missing)}"] if hit.missing else []
    if hit.more:
        lines.append(f"see also: {'; '.join(hit.more)}")
    if why := hit.explanation:
        ranks = {"words": why.lexical_rank, "meaning": why.dense_rank, "reranked": why.rerank_position}
        listed = ", ".join(f"{name} {rank}" for name, rank in ranks.items() if rank is not None)
        lines.append(f"ranks: {listed or 'none'}; {why.rule}, {why.score:.4f} with words at {why.lexical_weight:.2f}")
    return lines
