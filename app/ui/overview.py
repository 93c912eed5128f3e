"""The overview: how the server stands, what was changed, who gets in, how to connect."""

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.responses import Response

from app.ui.access import grants_table, tokens_table
from app.ui.changes import SHOWN, History, changes_list
from app.ui.connecting import connecting
from app.ui.frame import Frame
from app.ui.owner import Owner
from app.ui.standing import is_moving, standing
from app.ui.words import refusal
from operations.errors import VaultError

RELOAD_SECONDS: Final = 5
_NO_JOURNAL: Final = (
    "<p>The journal is off (<code>journal.enabled: false</code>): changes are not kept and cannot be undone.</p>"
)
_NO_HISTORY: Final = "<p>The list of changes is switched off (<code>server.disabled_tools</code>).</p>"


async def overview(frame: Frame, owner: Owner, offset: int) -> Response:
    """The page.

    Args:
        offset: Changes that are left out at the beginning.
    """
    said = await owner.standing()

    async def changes() -> str:
        return await _changes(frame, owner, offset)

    async def tokens() -> str:
        return tokens_table(frame, await owner.tokens())

    async def grants() -> str:
        return grants_table(frame, await owner.grants())

    body = f"""<h1>{frame.name}</h1>
{standing(frame, said)}
<section aria-labelledby="changes"><h2 id="changes">Recent changes</h2>
{await _or_refusal(changes)}
</section>
<section aria-labelledby="access"><h2 id="access">Access</h2>
<h3>Named tokens</h3>
{await _or_refusal(tokens)}
<h3>Sign-ins</h3>
{await _or_refusal(grants)}
</section>
<section aria-labelledby="connect"><h2 id="connect">Connect a client</h2>
{connecting(owner.origin, frame.vault_name)}
</section>"""
    return frame.page(frame.vault_name, body, reload_seconds=RELOAD_SECONDS if is_moving(said) else None)


async def _changes(frame: Frame, owner: Owner, offset: int) -> str:
    if not owner.runtime.vault.journal.options.enabled:
        return _NO_JOURNAL
    if "vault_history" not in owner.runtime.operations:
        return _NO_HISTORY
    result = await owner.changes(SHOWN, offset)
    return changes_list(frame, History(result, offset, can_undo=await owner.can_undo()))


async def _or_refusal(part: Callable[[], Awaitable[str]]) -> str:
    """Markup of a part; what it refuses stands in its place, and the others stay."""
    try:
        return await part()
    except VaultError as error:
        return refusal(error)
