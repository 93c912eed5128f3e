"""What every page for a person has in common: server-rendered, without scripts, its style under a nonce.

Everything shown is escaped text. Colours follow the system's light or dark mode.

Source: auth-and-security.md §4.9, §9.2.
"""

import secrets
from collections.abc import Mapping
from html import escape
from typing import Final

from starlette.responses import HTMLResponse

_NONCE_BYTES: Final = 16

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #f4f5f7; --card: #ffffff; --line: #b4bac4;
  --quiet: #55606e; --accent: #4b3fbf; --on-accent: #ffffff; --alarm: #a3150f; --alarm-paper: #fdecea; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --paper: #16181c; --card: #202329; --line: #59616e;
  --quiet: #a9b3c1; --accent: #a99ff5; --on-accent: #17142e; --alarm: #ffb4ab; --alarm-paper: #45201d; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
main.card { max-width: 34rem; margin: 0 auto; padding: 1.25rem 1.5rem; background: var(--card);
  border: 1px solid var(--line); border-radius: .75rem; }
h1 { margin: 0 0 .75rem; font-size: 1.35rem; line-height: 1.3; overflow-wrap: anywhere; }
dl { margin: 0 0 1rem; } dt { color: var(--quiet); font-size: .875rem; }
dd { margin: 0 0 .5rem; font-weight: 600; overflow-wrap: anywhere; }
fieldset { margin: 0 0 1rem; padding: .25rem 1rem .5rem; border: 1px solid var(--line); border-radius: .5rem; }
legend { padding: 0 .25rem; } .choice { display: flex; gap: .6rem; align-items: baseline; padding: .2rem 0; }
label.field { display: block; font-weight: 600; }
.hint { margin: .15rem 0 .4rem; color: var(--quiet); font-size: .875rem; }
input[type=text], input[type=password] { width: 100%; margin-bottom: 1rem; padding: .6rem .7rem; font: inherit;
  color: inherit; background: transparent; border: 1px solid var(--quiet); border-radius: .5rem; }
.alarm, .note { margin: 0 0 1rem; padding: .7rem .9rem; border-radius: .5rem; border: 1px solid currentColor; }
.alarm { color: var(--alarm); background: var(--alarm-paper); }
main.card form + form { margin-top: .75rem; }
.buttons { display: flex; flex-wrap: wrap; gap: .75rem; }
button { flex: 1 1 8rem; padding: .7rem 1rem; font: inherit; font-weight: 600; border-radius: .5rem; cursor: pointer;
  color: var(--accent); background: transparent; border: 1px solid var(--accent); }
button.chosen { color: var(--on-accent); background: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
"""


def page(
    title: str,
    body: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    head: str = "",
    form_action: str | None = None,
) -> HTMLResponse:
    """A page that is one card; arguments as of `document`."""
    body = f'<main class="card">\n{body}\n</main>'
    return document(title, body, status, headers, head=head, form_action=form_action)


def document(
    title: str,
    body: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    style: str = "",
    head: str = "",
    form_action: str | None = None,
) -> HTMLResponse:
    """A whole page.

    Args:
        title: Text.
        body: Markup of everything visible.
        style: Rules beside those of every page.
        head: Markup of further elements of the head.
        form_action: Where forms may lead. Not for forms whose answer is a redirect elsewhere, as browsers hold the
            whole chain against it.
    """
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    markup = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n{head}<title>{escape(title)}</title>\n'
        f'<style nonce="{nonce}">{_STYLE}{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n'
    )
    policy = f"default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
    if form_action is not None:
        policy += f"; form-action {form_action}"
    return HTMLResponse(
        markup,
        status,
        {
            "Content-Security-Policy": policy,
            "X-Frame-Options": "DENY",
            # With no-referrer the form would send `Origin: null`.
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
            "X-Robots-Tag": "noindex",
            **(headers or {}),
        },
    )


def message_page(title: str, message: str, status: int = 400, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """A page that says one thing."""
    return page(title, f"<h1>{escape(title)}</h1>\n<p>{escape(message)}</p>", status, headers)
