"""What a search found."""

from html import escape

from app.ui.words import count
from operations.searching import HitRow, SearchResult


def found(query: str, result: SearchResult) -> str:
    """Markup of the answers, best first."""
    items = "\n".join(map(_hit, result.hits))
    hits = f'<ol class="rows hits">\n{items}\n</ol>' if result.hits else "<p>Nothing found.</p>"
    notes = "".join(f"<p>{escape(advisory)}</p>\n" for advisory in result.advisories or ())
    return f"""<p class="back"><a href="/">Back to the overview</a></p>
<h1>Search: {escape(query)}</h1>
<div class="panel"><p class="hint" role="status">{count(len(result.hits), "passage")}</p>
{notes}{hits}
</div>"""


def _hit(hit: HitRow) -> str:
    heading = "" if hit.heading is None else f" › {escape(hit.heading.replace('::', ' › '))}"
    return (
        f'<li><div><h2><a href="{escape(hit.uri)}">{escape(hit.title)}</a></h2>'
        f"<small>{escape(hit.path)}{heading} · line {hit.line}</small>"
        f'<p class="excerpt">{escape(hit.excerpt)}</p></div></li>'
    )
