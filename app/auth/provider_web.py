"""Requests to providers that the owner named: private addresses are fine, redirects are not followed (§5.11, §9.3)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from app.auth.key_sets import KeysUnavailableError

if TYPE_CHECKING:
    import httpx2

SECONDS: Final = 10.0
MAX_BYTES: Final = 1024 * 1024
_OK: Final = 200


class ProviderError(Exception):
    """A provider that does not answer as it should; the message says how, for the log."""


@dataclass(frozen=True, slots=True)
class ProviderWeb:
    """An ordinary client with bounds; blocking."""

    transport: "httpx2.BaseTransport | None" = None
    """How requests are sent; by default over the network."""

    def options(self) -> dict[str, Any]:
        """What every client of a provider is made with."""
        return {"transport": self.transport, "timeout": SECONDS, "follow_redirects": False, "trust_env": False}

    def get(self, url: str) -> bytes:
        """The body of an answer 200.

        Raises:
            ProviderError: There is none within the bounds.
        """
        import httpx2  # noqa: PLC0415 - 10 MB that a server without a provider does without

        body = bytearray()
        try:
            with httpx2.Client(**self.options()) as client, client.stream("GET", url) as answer:
                if answer.status_code != _OK:
                    raise ProviderError(f"{url} answers {answer.status_code}")
                for chunk in answer.iter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        raise ProviderError(f"{url} answers with more than {MAX_BYTES} bytes")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ProviderError(f"{url} does not answer") from error
        return bytes(body)

    def metadata(self, issuer: str) -> Mapping[str, Any]:
        """The discovery document of an issuer (OpenID Connect Discovery §4).

        Raises:
            ProviderError: There is none, or it is another's.
        """
        url = f"{issuer.removesuffix('/')}/.well-known/openid-configuration"
        try:
            document = json.loads(self.get(url))
        except ValueError:
            document = None
        if not isinstance(document, dict) or document.get("issuer") != issuer:
            raise ProviderError(f"{url} is not the document of {issuer}")
        return document

    def key_set(self, issuer: str, url: str | None) -> bytes:
        """The keys of an issuer, at `url` or where its discovery document says.

        Raises:
            KeysUnavailableError: They cannot be had.
        """
        try:
            return self.get(url or text_in(self.metadata(issuer), "jwks_uri"))
        except ProviderError as error:
            raise KeysUnavailableError(str(error)) from error


def text_in(document: Mapping[str, Any], name: str) -> str:
    """A text of a provider's document.

    Raises:
        ProviderError: It has none of that name.
    """
    value = document.get(name)
    if not isinstance(value, str):
        raise ProviderError(f"the provider's document has no {name}")
    return value
