"""The form of a person who is not signed in; it names neither vault nor version."""

from html import escape
from typing import Final
from urllib.parse import urlsplit

from starlette.responses import HTMLResponse

from app.auth.oauth.pages import Elsewhere
from app.pages import page

_TITLE: Final = "Sign in"


def sign_in_page(problem: str | None, status: int, elsewhere: Elsewhere | None) -> HTMLResponse:
    """The form.

    Args:
        problem: Why it is shown again.
        elsewhere: The provider at which a person may sign in instead.
    """
    alarm, more = "", 'aria-describedby="key-hint"'
    if problem is not None:
        alarm = f'<p class="alarm" role="alert" id="problem">{escape(problem)}</p>\n'
        more = 'aria-describedby="problem key-hint" aria-invalid="true"'
    body = f"""<h1>{_TITLE}</h1>
{alarm}<form method="post" action="/ui/sign-in">
<input type="text" name="username" value="owner" autocomplete="username" hidden>
<label class="field" for="key">Key of this server</label>
<p class="hint" id="key-hint">The value of VAULT_MCP_API_KEY.</p>
<input type="password" id="key" name="key" autocomplete="current-password" required autofocus {more}>
<div class="buttons"><button class="chosen" type="submit">Sign in</button></div>
</form>{"" if elsewhere is None else _other_form(elsewhere)}"""
    # Browsers hold the redirect to a provider, and those behind it, against the policy of the form.
    return page(_TITLE, body, status, form_action="'self'" if elsewhere is None else None)


def signed_in_page() -> HTMLResponse:
    """A page of ours between a provider and the overview: the cookie does not go along where others lead to."""
    body = '<h1>You are signed in</h1>\n<p><a href="/">Go on to the overview</a></p>'
    head = '<meta http-equiv="refresh" content="0; url=/">\n'
    return page("You are signed in", body, form_action="'self'", head=head)


def _other_form(elsewhere: Elsewhere) -> str:
    return f"""
<form method="post" action="/ui/sign-in">
<input type="hidden" name="action" value="oidc">
<input type="hidden" name="csrf" value="{escape(elsewhere.form_token)}">
<div class="buttons"><button type="submit">Sign in at {escape(urlsplit(elsewhere.issuer).netloc)}</button></div>
</form>"""
