"""How the server stands: the first part of the overview."""

from html import escape
from typing import Final

from app.readiness import Readiness
from app.ui.frame import Frame
from app.ui.words import count, size, when

_WORDS: Final = {"ready": "Ready", "degraded": "Works, with warnings", "building": "Getting ready", "failed": "Failed"}


def is_moving(said: Readiness) -> bool:
    """Whether the index or its model is on the way to another state by itself."""
    awaits_vectors = said.embedding.state == "waiting" and said.index.vectors < said.index.chunks
    return (
        said.index.state == "building"
        or said.embedding.state == "embedding"
        or said.embedding.download is not None
        or said.rerank.state == "downloading"
        or awaits_vectors
    )


def standing(frame: Frame, said: Readiness) -> str:
    """Markup of the section."""
    tone = "fine" if said.status == "ready" else "trouble" if said.status == "failed" else ""
    reloads = '<p class="hint">This page reloads every 5 seconds until this is done.</p>' if is_moving(said) else ""
    return f"""<section aria-labelledby="standing">
<div class="headline"><h2 id="standing">Status</h2> <p class="state {tone}">{_WORDS[said.status]}</p></div>
<dl class="facts">
<div><dt>Vault</dt><dd>{_vault(said)}</dd></div>
<div><dt>Index</dt><dd>{_index(frame, said)}</dd></div>
<div><dt>Search by meaning</dt><dd>{_model(said)}</dd></div>
<div><dt>Journal</dt><dd>{_journal(frame, said)}</dd></div>
</dl>
{_warnings(said)}{reloads}
</section>"""


def _vault(said: Readiness) -> str:
    return f"{count(said.vault.notes, 'note')}<small>{count(said.vault.documents, 'document')}</small>"


def _index(frame: Frame, said: Readiness) -> str:
    index = said.index
    match index.state:
        case "building":
            return _progress("Being built", index.progress)
        case "failed":
            return f"Failed<small>{escape(index.error or '')}</small>"
        case "ready":
            since = "" if index.built_at is None else f", compared {when(index.built_at, frame.now, frame.zone)}"
            return f"Up to date<small>{count(index.chunks, 'passage')}{since}</small>"


def _model(said: Readiness) -> str:
    embedding, index = said.embedding, said.index
    name = f"<small>{escape((embedding.model or '').partition('@')[0])}</small>"
    if embedding.download is not None:
        return _progress("Model is being fetched", embedding.download) + name
    if embedding.state == "failed":
        return f"Off, as the model failed{name}"
    if embedding.model is None or embedding.state == "off":
        return "Off<small>search goes by words alone</small>"
    if index.vectors < index.chunks:
        return _progress("Passages are being read", index.vectors / index.chunks) + name
    return f"On{name}"


def _journal(frame: Frame, said: Readiness) -> str:
    journal = said.journal
    if journal.state == "off":
        return "Off<small>changes cannot be undone</small>"
    kept = size(journal.bytes)
    if journal.oldest_at is not None:
        kept += f", since {when(journal.oldest_at, frame.now, frame.zone)}"
    return f"{'On' if journal.state == 'on' else 'Failed'}<small>{kept}</small>"


def _progress(label: str, share: float) -> str:
    percent = int(share * 100)
    return f'{label}: {percent} %<progress aria-label="{label}" max="100" value="{percent}"></progress>'


def _warnings(said: Readiness) -> str:
    texts = [*said.warnings, *said.recovered]
    if not texts:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<div class="alarm"><strong>Worth knowing</strong><ul>{items}</ul></div>\n'
