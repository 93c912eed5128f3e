"""The pages a person sees: server-rendered, without scripts, images or links made from what a client sent.

Everything shown is escaped text. Colours follow the system's light or dark mode.

Source: auth-and-security.md §4.9, §5.5, §9.2.
"""

import secrets
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from app.auth.oauth.clients import is_document_client
from app.auth.oauth.redirects import is_loopback
from app.auth.oauth.requests import AuthRequest
from app.auth.oauth.scopes import is_read_only

SHOWN_NAME_CHARACTERS: Final = 80
_NONCE_BYTES: Final = 16
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_DEFAULT_HTTP_PORT: Final = 80

_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #f4f5f7; --card: #ffffff; --line: #b4bac4;
  --quiet: #55606e; --accent: #4b3fbf; --on-accent: #ffffff; --alarm: #a3150f; --alarm-paper: #fdecea; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --paper: #16181c; --card: #202329; --line: #59616e;
  --quiet: #a9b3c1; --accent: #a99ff5; --on-accent: #17142e; --alarm: #ffb4ab; --alarm-paper: #45201d; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 34rem; margin: 0 auto; padding: 1.25rem 1.5rem; background: var(--card);
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
.buttons { display: flex; flex-wrap: wrap; gap: .75rem; }
button { flex: 1 1 8rem; padding: .7rem 1rem; font: inherit; font-weight: 600; border-radius: .5rem; cursor: pointer;
  color: var(--accent); background: transparent; border: 1px solid var(--accent); }
button.chosen { color: var(--on-accent); background: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
"""


def page(title: str, body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """A whole page; `title` is text, `body` is markup."""
    nonce = secrets.token_urlsafe(_NONCE_BYTES)
    markup = (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f'<style nonce="{nonce}">{_STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n'
    )
    policy = f"default-src 'none'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; frame-ancestors 'none'"
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


@dataclass(frozen=True, slots=True)
class Said:
    """What was sent and did not count."""

    problem: str
    status: int
    access: str
    write_prefix: str


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Approving at a provider instead."""

    issuer: str
    form_token: str


def consent_page(
    request: AuthRequest,
    handle: str,
    vault_name: str,
    *,
    said: Said | None = None,
    takes_key: bool = True,
    elsewhere: Elsewhere | None = None,
) -> HTMLResponse:
    """The question to the owner.

    Args:
        said: The last attempt, when it did not count.
        takes_key: The owner may approve by the server's key.
        elsewhere: The owner may approve at a provider.
    """
    name = shown_name(request.client.client_name)
    alarm = "" if said is None else f'<p class="alarm" role="alert" id="problem">{escape(said.problem)}</p>\n'
    access, write_prefix = ("full", "") if said is None else (said.access, said.write_prefix)
    body = f"""<h1>Let {escape(name)} use the vault “{escape(vault_name)}”?</h1>
{alarm}<dl>
<dt>Who asks</dt><dd>{escape(name)}, {escape(_identity(request))}</dd>
<dt>Where access goes</dt><dd>{escape(destination(request.redirect_uri))}</dd>
<dt>What it asks for</dt><dd>{_scope_words(request.scope)}</dd>
</dl>
{_loopback_warning(request)}<p class="note">Approve only if you have just started this connection yourself.
A name proves nothing; where access goes does.</p>
<form method="post" action="/oauth/consent">
<input type="hidden" name="request" value="{escape(handle)}">
{_access_choice(request.scope, access, write_prefix)}
{_key_field(has_problem=said is not None) if takes_key else ""}<div class="buttons">
{_APPROVE if takes_key else ""}{_elsewhere_button(elsewhere)}
<button type="submit" name="action" value="deny">Deny</button>
</div>
</form>"""
    return page("Allow access to your notes?", body, 200 if said is None else said.status)


_APPROVE: Final = '<button class="chosen" type="submit" name="action" value="approve">Approve</button>\n'


def _key_field(*, has_problem: bool) -> str:
    described, invalid = ("problem key-hint", ' aria-invalid="true"') if has_problem else ("key-hint", "")
    return f"""<label class="field" for="key">Key of this server</label>
<p class="hint" id="key-hint">The value of VAULT_MCP_API_KEY. It stays here; the program that asks never sees it.</p>
<input type="password" id="key" name="key" autocomplete="off" aria-describedby="{described}"{invalid}>
"""


def _elsewhere_button(elsewhere: Elsewhere | None) -> str:
    if elsewhere is None:
        return ""
    host = escape(urlsplit(elsewhere.issuer).netloc)
    return (
        f'<input type="hidden" name="csrf" value="{escape(elsewhere.form_token)}">'
        f'<button class="chosen" type="submit" name="action" value="oidc">Approve by signing in at {host}</button>\n'
    )


def shown_name(name: str | None) -> str:
    """A client's name as it may be shown: one line, nothing invisible, nothing that turns the reading direction."""
    visible = "".join(" " if character.isspace() else character for character in name or "")
    kept = "".join(character for character in visible if unicodedata.category(character) not in _INVISIBLE)
    return " ".join(kept.split())[:SHOWN_NAME_CHARACTERS] or "A program without a name"


def destination(redirect_uri: str) -> str:
    """Where the code goes, in words."""
    parts = urlsplit(redirect_uri)
    if is_loopback(redirect_uri):
        return f"a program on this computer (port {parts.port or _DEFAULT_HTTP_PORT})"
    if parts.scheme == "https":
        return parts.netloc
    return f"the app that opens {parts.scheme}:"


def _identity(request: AuthRequest) -> str:
    if is_document_client(request.client.client_id):
        return f"which says so at {urlsplit(request.client.client_id).netloc}"
    when = datetime.fromtimestamp(request.client.client_id_issued_at or 0, tz=UTC)
    return f"which registered itself on {when.day} {when:%B %Y}"


def _loopback_warning(request: AuthRequest) -> str:
    """Anybody can name another's document; where every address is this computer, nothing else tells them apart."""
    client = request.client
    if not is_document_client(client.client_id) or not all(map(is_loopback, client.raw_redirect_uris)):
        return ""
    return (
        '<p class="alarm">Any program on this computer can say it is this one. '
        "Go on only if you have started it yourself.</p>\n"
    )


def _scope_words(scope: str) -> str:
    return "Reading your notes" if is_read_only(scope) else "Reading, writing, moving and deleting your notes"


def _access_choice(scope: str, access: str, write_prefix: str) -> str:
    if is_read_only(scope):
        return '<input type="hidden" name="access" value="read">'
    full, read = ("", " checked") if access == "read" else (" checked", "")
    return f"""<fieldset>
<legend>Access</legend>
<label class="choice"><input type="radio" name="access" value="full"{full}> Full: read and change notes</label>
<label class="choice"><input type="radio" name="access" value="read"{read}> Read only</label>
</fieldset>
<label class="field" for="write-prefix">Limit writes to (optional)</label>
<p class="hint" id="write-hint">A folder such as Inbox, or one note such as Inbox/Log.md. Empty: the whole vault.</p>
<input type="text" id="write-prefix" name="write_prefix" value="{escape(write_prefix)}"
 aria-describedby="write-hint" autocomplete="off" spellcheck="false">"""
