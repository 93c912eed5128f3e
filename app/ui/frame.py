"""What stands around every page of a person who is signed in, and how the pages look."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, tzinfo
from html import escape
from pathlib import Path
from typing import Final

from starlette.responses import HTMLResponse

from app.pages import document

_STYLE: Final = Path(__file__).with_name("status_page.css").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Frame:
    """One request of somebody who is signed in."""

    vault_name: str
    version: str
    now: datetime
    zone: tzinfo | None
    token_for: Callable[[str], str]
    """What a form for an action has to carry."""

    @property
    def name(self) -> str:
        """Markup of the vault's name."""
        return escape(self.vault_name)

    def page(
        self, title: str, body: str, status: int = 200, *, query: str = "", reload_seconds: int | None = None
    ) -> HTMLResponse:
        """A whole page; `title` is text, `body` the markup of its main part.

        Args:
            query: What stands in the search box.
            reload_seconds: After which the browser asks for the page again.
        """
        head = "" if reload_seconds is None else f'<meta http-equiv="refresh" content="{reload_seconds}">\n'
        markup = f"""<a class="skip" href="#content">Skip to content</a>
<header class="top">
<p class="brand"><a href="/">Vault MCP</a></p>
<form class="find" role="search" action="/">
<label class="unseen" for="q">Search the vault</label>
<input type="search" id="q" name="q" value="{escape(query)}" placeholder="Search the vault" autocomplete="off" required>
<button type="submit">Search</button>
</form>
{self.form("sign-out", '<button class="plain" type="submit">Sign out</button>')}
</header>
<main class="wide" id="content">
{body}
</main>
<footer><p>Vault MCP {escape(self.version)}</p></footer>"""
        whole_title = title if title == self.vault_name else f"{title} – {self.vault_name}"
        return document(whole_title, markup, status, style=_STYLE, head=head, form_action="'self'")

    def form(self, action: str, content: str, **hidden: str) -> str:
        """Markup of a form for `/ui/<action>`; `content` is markup, `hidden` the text of hidden fields."""
        fields = {"csrf": self.token_for(action), **hidden}
        inputs = "".join(
            f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in fields.items()
        )
        return f'<form method="post" action="/ui/{action}">{inputs}{content}</form>'

    def message(self, title: str, message: str, status: int) -> HTMLResponse:
        """A page that says one thing."""
        return self.page(
            title,
            f'<div class="panel"><h1>{escape(title)}</h1>\n<p>{escape(message)}</p>\n'
            '<p><a href="/">Back to the overview</a></p></div>',
            status,
        )
