"""The commands of a documentation page, and a plain HTTP client that sends what they say."""

import http.client
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

DOCS = Path(__file__).parents[2] / "docs"
_COMMAND = re.compile(r"```sh\n(curl .*?)```", re.DOTALL)
_CODE = re.compile(r"```js\n// (\w+)\n(.*?)```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Command:
    """One `curl` of a page."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    data: str | None

    def send(
        self, server: str, key: str, *, put_in: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> Answer:
        """Send it to a server of the test.

        Args:
            put_in: What stands in the command for something of the reader's, with what it is here.
            folder: Where the files are that it names.
        """
        said = {"KEY": key, **(put_in or {})}
        parts, host = urlsplit(_filled(self.url, said)), urlsplit(server).netloc
        target = f"{quote(parts.path)}?{parts.query}" if parts.query else quote(parts.path)
        body = b"" if self.data is None else self.data.encode()
        if self.data is not None and self.data.startswith("@"):
            assert folder is not None
            body = (folder / self.data[1:]).read_bytes()
        connection = http.client.HTTPConnection(host, timeout=30)
        try:
            connection.request(self.method, target, body, {name: _filled(value, said) for name, value in self.headers})
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()


def commands_in(page: str) -> list[Command]:
    """The commands of a page, in order."""
    return [_parsed(found) for found in _COMMAND.findall((DOCS / page).read_text(encoding="utf-8"))]


def code_in(page: str) -> dict[str, str]:
    """The JavaScript of a page by the name in its first comment."""
    return dict(_CODE.findall((DOCS / page).read_text(encoding="utf-8")))


def _parsed(text: str) -> Command:
    words = shlex.split(text.replace("\\\n", " "))
    assert words.pop(0) == "curl"
    method, url, data = "", "", None
    headers: list[tuple[str, str]] = []
    while words:
        match words.pop(0):
            case "-X":
                method = words.pop(0)
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                headers.append((name, value))
            case "--data" | "--data-binary":
                data = words.pop(0)
            case word:
                assert not word.startswith("-"), word
                url = word
    return Command(method or ("GET" if data is None else "POST"), url, tuple(headers), data)


def _filled(text: str, said: Mapping[str, str]) -> str:
    for name, value in said.items():
        text = text.replace(name, value)
    return text
