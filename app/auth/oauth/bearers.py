"""Access tokens at the gate: whose they are, and what their grant allows (auth-and-security.md §5.7)."""

from dataclasses import replace

from app.auth.credentials import Principal, StaleTokenError, Verifier
from app.auth.jwt import ExpiredTokenError, InvalidTokenError
from app.auth.oauth.grants import Choice
from app.auth.oauth.scopes import is_read_only
from app.auth.oauth.tokens import Bearer, Tokens
from app.auth.policies import Policies, Rights
from operations.caller import WriteScope, write_scope

_JWT_BEGINS = b"eyJ"
"""The first bytes of every JSON object in base64url."""


def bearer_verifier(tokens: Tokens, policies: Policies) -> Verifier:
    """Knows the access tokens of our own authorization server.

    Raises of the result:
        StaleTokenError: A token of ours that is past its time.
    """

    def principal_of(token: bytes) -> Principal | None:
        if not token.startswith(_JWT_BEGINS):
            return None
        try:
            return principal_of_grant(tokens.verify(token.decode("latin-1")), policies)
        except ExpiredTokenError:
            raise StaleTokenError from None
        except InvalidTokenError:
            return None

    return principal_of


def principal_of_grant(bearer: Bearer, policies: Policies) -> Principal:
    """The principal of a valid access token: what is stored for its client, within what the owner chose at consent."""
    principal = f"client:{bearer.grant.client_id}"
    policy = policies.of(principal)
    choice, asked_to_read = bearer.grant.choice, is_read_only(bearer.scope)
    return Principal(
        label=principal,
        id=principal,
        policy=replace(policy, rights=narrowed(policy.rights, choice, read_only=asked_to_read)),
        can_widen=asked_to_read and not choice.read_only and not policy.rights.read_only,
    )


def narrowed(rights: Rights, choice: Choice, *, read_only: bool) -> Rights:
    """Rights that give neither more than the stored ones nor more than the choice."""
    prefixes = rights.write_prefixes
    if choice.write_prefix is not None:
        chosen = write_scope(choice.write_prefix)
        prefixes = (chosen,) if prefixes is None else _common(prefixes, chosen)
    return rights.model_copy(
        update={"read_only": rights.read_only or choice.read_only or read_only, "write_prefixes": prefixes}
    )


def _common(prefixes: tuple[WriteScope, ...], chosen: WriteScope) -> tuple[WriteScope, ...]:
    """The places that lie in one of the prefixes and in the chosen one."""
    inner = (
        chosen if prefix.covers_folder(chosen.path) else prefix if chosen.covers_folder(prefix.path) else None
        for prefix in prefixes
    )
    return tuple(place for place in inner if place is not None)
