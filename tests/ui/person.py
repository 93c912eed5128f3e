"""A person with a browser, as far as a test needs one: keeps the cookie, sends the forms that pages hold."""

import re
from dataclasses import dataclass
from html import unescape
from typing import Final
from urllib.parse import urlencode

from tests.harness import Answer, Server

ORIGIN: Final = "https://vault.example"
FORM: Final = "application/x-www-form-urlencoded"
COOKIE: Final = "__Host-vault-mcp-ui"
_FORM: Final = re.compile(r'<form method="post" action="(/ui/[a-z-]+)">(.*?)</form>', re.DOTALL)
_HIDDEN: Final = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


@dataclass
class Person:
    """One browser at one server."""

    server: Server
    cookie: str | None = None
    """Name and value, as the browser sends them."""
    origin: str | None = ORIGIN

    def open(self, target: str = "/") -> Answer:
        """Ask for a page."""
        return self.server.http("GET", target, headers=self._headers(), auth=False)

    def send(self, path: str, **fields: str) -> Answer:
        """Send a form."""
        headers = [*self._headers(), ("Content-Type", FORM)]
        if self.origin is not None:
            headers.append(("Origin", self.origin))
        answer = self.server.http("POST", path, urlencode(fields), headers, auth=False)
        given = answer.headers.get("set-cookie")
        if given is not None:
            self.cookie = given.partition(";")[0]
        return answer

    def sign_in(self, key: str | None = None) -> Answer:
        """Type the key, the right one unless another is given."""
        return self.send("/ui/sign-in", key=self.server.key if key is None else key)

    def form(self, page: Answer, action: str, **holding: str) -> dict[str, str]:
        """The hidden fields of the one form on a page that leads to an action and holds these values."""
        shown = [dict(_HIDDEN.findall(body)) for path, body in _FORM.findall(page.text) if path == f"/ui/{action}"]
        [fields] = [
            {name: unescape(value) for name, value in form.items()}
            for form in shown
            if all(unescape(form.get(name, "")) == value for name, value in holding.items())
        ]
        return fields

    def _headers(self) -> list[tuple[str | bytes, str | bytes]]:
        return [] if self.cookie is None else [("Cookie", self.cookie)]
