"""The consent page: nothing on it is a link or an image made from what a client sent.

Source: auth-and-security.md §5.5, §9.2.
"""

import unicodedata
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
from app.pages import page

SHOWN_NAME_CHARACTERS: Final = 80
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_DEFAULT_HTTP_PORT: Final = 80


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
