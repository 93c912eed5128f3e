"""`vault-mcp models`: embedding models and rerankers, which are here, which is used."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.configured import log_to_stderr, settings_of

if TYPE_CHECKING:
    from rich.table import Table

    from app.settings.model import Settings
    from operations.search.model_cache import KnownModel

models = typer.Typer(
    name="models", help="List the models that search can use, or fetch one.", invoke_without_command=True
)


@models.callback()
def _list_by_default(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        list_models()


@models.command("list")
def list_models() -> None:
    """List the models there are, with their size, and say which are in the cache and which are used."""
    settings = settings_of(None, required=False)
    from app.cli.terminal import answers
    from app.settings.configs import embedding_config
    from operations.search.model_cache import ModelKind, known_models

    known = known_models(embedding_config(settings).cache_dir)
    console = answers()
    used = _used(settings)
    console.print(_table([model for model in known if model.kind is ModelKind.EMBEDDING], used))
    console.print()
    console.print(_table([model for model in known if model.kind is ModelKind.RERANKER], used))


@models.command()
def pull(name: Annotated[str, typer.Argument(help="Name of the model as `vault-mcp models list` has it.")]) -> None:
    """Fetch a model into the cache; one that is damaged there is fetched again."""
    settings = settings_of(None, required=False)
    log_to_stderr(settings, quiet=True)
    from app.cli.progress import Step, show
    from app.cli.terminal import answers, remarks
    from app.settings.configs import embedding_config
    from operations.errors import ErrorCode, VaultError
    from operations.search.model_cache import BackgroundDownload, DownloadState, is_bundled

    if is_bundled(name):
        answers().print("The bundled model is part of the package; there is nothing to fetch.")
        return
    cache_dir = embedding_config(settings).cache_dir
    download = BackgroundDownload(name, cache_dir)
    download.start()

    def steps() -> Iterator[Step]:
        while not download.wait(0.1):
            yield Step(f"Fetching {name}", download.progress.share)

    console = remarks()
    show(steps(), console, lambda step: console.print(f"{step.what}: {step.percent} %"))
    progress = download.progress
    if progress.state is not DownloadState.READY:
        raise VaultError(ErrorCode.NOT_FOUND, progress.error or f"'{name}' cannot be fetched")
    answers().print(f"{name} is in {cache_dir}. It is used from the next start on where the settings name it.")


def _used(settings: "Settings") -> frozenset[str]:
    """Names in lower case of what the settings name, where they name something of this list."""
    from operations.search.model_cache import BUNDLED_WORD, is_bundled
    from operations.vault import RerankMode

    embedding, rerank = settings.embedding, settings.rerank
    used: set[str] = set()
    if embedding.enabled and embedding.path is None and embedding.endpoint is None:
        name = embedding.model or BUNDLED_WORD
        used.add(BUNDLED_WORD if is_bundled(name) else name.lower())
    if rerank.mode is not RerankMode.NONE and rerank.path is None:
        used.add(rerank.model.lower())
    return frozenset(used)


def _table(listed: "list[KnownModel]", used: frozenset[str]) -> "Table":
    from rich.table import Table

    table = Table(box=None, header_style="bold")
    table.add_column(f"{listed[0].kind.value} model", no_wrap=True)
    for column in ("numbers", "size", "here", "used"):
        table.add_column(column)
    for model in listed:
        table.add_row(
            model.name,
            str(model.dimension or ""),
            f"{model.megabytes} MB" if model.megabytes else "",
            "yes" if model.is_here else "",
            "yes" if model.name.lower() in used else "",
        )
    return table
