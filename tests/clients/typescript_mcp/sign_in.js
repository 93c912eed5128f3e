// The TypeScript SDK's own client signs in, calls, refreshes and is sent away.
//
//   node sign_in.js <origin> <method> <seconds that an access token lives>
//
// Says what it has come to as one JSON object a line. After {"open": address} it waits until a browser that went there
// comes back to it.

import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [origin, method, seconds] = process.argv.slice(2);
const endpoint = new URL(`${origin}/mcp`);
const say = (said) => console.log(JSON.stringify(said));

/** Listens where the browser is sent back to. */
const callback = createServer();
await new Promise((listening) => callback.listen(0, "127.0.0.1", listening));
const redirectUrl = `http://127.0.0.1:${callback.address().port}/callback`;

/** What the browser comes back with, next time. */
const cameBack = () =>
  new Promise((resolve) => {
    callback.once("request", (request, response) => {
      response.end("done");
      resolve(new URL(request.url, redirectUrl).searchParams);
    });
  });

/** What a client keeps between two runs. */
class Memory {
  redirectUrl = redirectUrl;
  clientMetadata = {
    client_name: "TypeScript client",
    redirect_uris: [redirectUrl],
    token_endpoint_auth_method: method,
  };
  kept = {};

  state = () => "state-of-this-client";
  clientInformation = () => this.kept.client;
  saveClientInformation = (client) => void (this.kept.client = client);
  tokens = () => this.kept.tokens;
  saveTokens = (tokens) => void (this.kept.tokens = tokens);
  codeVerifier = () => this.kept.verifier;
  saveCodeVerifier = (verifier) => void (this.kept.verifier = verifier);
  redirectToAuthorization = (address) => say({ open: address.href });
  invalidateCredentials = (scope) => {
    for (const name of { all: ["client", "tokens", "verifier"], discovery: [] }[scope] ?? [scope]) delete this.kept[name];
  };
}

const memory = new Memory();

async function read() {
  const transport = new StreamableHTTPClientTransport(endpoint, { authProvider: memory });
  const client = new Client({ name: "typescript-client", version: "1" });
  await client.connect(transport);
  const answer = await client.callTool({ name: "vault_read", arguments: { path: "Note.md" } });
  await client.close();
  return answer.content[0].text;
}

/** Reads as one who is not known yet: the first attempt ends at the owner. */
async function readAfterSigningIn() {
  const arrival = cameBack();
  try {
    await read();
    throw new Error("nobody was asked");
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
  }
  const came = await arrival;
  await new StreamableHTTPClientTransport(endpoint, { authProvider: memory }).finishAuth(came.get("code"));
  say({ state: came.get("state"), iss: came.get("iss") });
  return read();
}

async function revoke() {
  const metadata = await (await fetch(`${origin}/.well-known/oauth-authorization-server`)).json();
  const { client, tokens } = memory.kept;
  const form = new URLSearchParams({ token: tokens.refresh_token, client_id: client.client_id });
  if (client.client_secret) form.set("client_secret", client.client_secret);
  return (await fetch(metadata.revocation_endpoint, { method: "POST", body: form })).status;
}

say({ read: await readAfterSigningIn() });
const first = memory.kept.tokens;
await wait((Number(seconds) + 1) * 1000);
say({ read: await read(), rotated: memory.kept.tokens.refresh_token !== first.refresh_token });
say({ revoked: await revoke() });
say({ read: await readAfterSigningIn() });
callback.close();
callback.closeAllConnections();
