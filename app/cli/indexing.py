"""`vault-mcp index`: bring the index up to date, or build it anew."""

import time
from typing import Annotated

import typer

from app.cli.configured import OwnVaultArgument, log_to_stderr, opened, settings_of


def index(
    vault: OwnVaultArgument = None,
    *,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Throw the index away and build it anew.")] = False,
) -> None:
    """Bring the index of a vault up to date: its words, its documents, its vectors."""
    settings = settings_of(vault)
    log_to_stderr(settings, quiet=True)
    from app.cli.progress import building, show
    from app.cli.terminal import answers, remarks
    from operations.index.lead import discard_index

    if rebuild and settings.index.cache_path is not None:
        discard_index(settings.index.cache_path)
    began = time.monotonic()
    console = remarks()
    with opened(settings) as open_vault:
        show(building(open_vault), console, lambda step: console.print(f"{step.what}: {step.percent} %"))
        state, embedding = open_vault.index.state(), open_vault.search.state()
    for said in (*state.recovered, *state.warnings):
        console.print(said, style="yellow")
    answers().print(
        f"{state.notes} notes, {state.chunks} passages, {state.vectors} vectors in {time.monotonic() - began:.1f} s: "
        f"{state.cache.path or 'in memory, gone with this command'}",
        soft_wrap=True,
    )
    if embedding.state == "failed":
        console.print(f"Searched by words alone: {embedding.error}", style="red")
        raise typer.Exit(1)
