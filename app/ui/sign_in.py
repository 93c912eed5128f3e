"""The form of a person who is not signed in; it names neither vault nor version."""

from html import escape
from typing import Final

from starlette.responses import HTMLResponse

from app.pages import page

_TITLE: Final = "Sign in"


def sign_in_page(problem: str | None = None, status: int = 200) -> HTMLResponse:
    """The form.

    Args:
        problem: Why it is shown again.
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
</form>"""
    return page(_TITLE, body, status, form_action="'self'")
