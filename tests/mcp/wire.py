"""Requests as bare JSON-RPC over HTTP, the way curl or n8n send them, in both protocol eras."""

import json
from typing import Any

import httpx

MODERN = "2026-07-28"
JSON_ONLY = "application/json"
JSON_OR_STREAM = "application/json, text/event-stream"


async def handshake(
    client: httpx.AsyncClient,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    url: str = "/mcp",
    accept: str = JSON_ONLY,
    **headers: str,
) -> httpx.Response:
    """A request of the handshake era: no session, no version header."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return await client.post(url, json=body, headers={"accept": accept, **headers})


async def modern(
    client: httpx.AsyncClient,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    url: str = "/mcp",
    accept: str = JSON_OR_STREAM,
    **headers: str,
) -> httpx.Response:
    """A request of the stateless era, with its envelope and routing headers."""
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
    params = {**(params or {}), "_meta": {**(params or {}).get("_meta", {}), **meta}}
    sent = {"accept": accept, "mcp-protocol-version": MODERN, "mcp-method": method, **headers}
    if "name" in params:
        sent["mcp-name"] = params["name"]
    return await client.post(url, json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers=sent)


def result_of(response: httpx.Response) -> dict[str, Any]:
    """The result of a JSON or streamed answer; fails when it is an error."""
    assert response.status_code == 200, response.text
    message = messages_of(response)[-1]
    assert "result" in message, message
    result: dict[str, Any] = message["result"]
    return result


def messages_of(response: httpx.Response) -> list[dict[str, Any]]:
    if response.headers["content-type"].startswith("text/event-stream"):
        return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]
    message: dict[str, Any] = response.json()
    return [message]


def text_of(result: dict[str, Any]) -> str:
    """The first text block of a tool result."""
    text: str = result["content"][0]["text"]
    return text
