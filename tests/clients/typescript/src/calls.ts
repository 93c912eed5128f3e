// What a program does with types generated from the contract: `node calls.js <url> <key>`.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";

import type { components, paths } from "./contract.js";

type ErrorCode = components["schemas"]["ErrorCode"];

const [baseUrl, key] = process.argv.slice(2);
assert(baseUrl !== undefined && key !== undefined, "usage: calls.js <url> <key>");

const client = createClient<paths, "application/json">({
  baseUrl,
  headers: { Accept: "application/json", Authorization: `Bearer ${key}` },
});
const texts = createClient<paths, "text/markdown">({ baseUrl, headers: { Authorization: `Bearer ${key}` } });

const path = "Home/Boiler.md";
const raw = { bodySerializer: (body: unknown) => String(body) };

const ready = await client.GET("/readyz");
assert.equal(ready.data?.status, "ready");
assert.equal(ready.data.vault.notes, 2);

const listed = await client.GET("/folder/{path}", { params: { path: { path: "Home" } } });
assert.deepEqual(
  listed.data?.entries.map((entry) => [entry.path, entry.kind]),
  [[path, "note"]],
);

const read = await client.GET("/vault/{path}", { params: { path: { path }, query: { include: ["version", "tags"] } } });
assert(read.data !== undefined && "body" in read.data);
assert.deepEqual(read.data.frontmatter, { status: "closed" });
assert.match(read.data.body, /^# Boiler\n/);
assert.equal(read.response.headers.get("etag"), `"${read.data.version}"`);
const version = read.data.version;
assert(version !== undefined);

const text = await texts.GET("/vault/{path}", { params: { path: { path }, query: { section: "Parts" } }, parseAs: "text" });
assert.match(text.data ?? "", /- valve/);

const outline = await client.GET("/vault/{path}", { params: { path: { path }, query: { outline: true } } });
assert(outline.data !== undefined && "headings" in outline.data);
assert.deepEqual(
  outline.data.headings.map((heading) => heading.path),
  ["Boiler", "Boiler::Parts", "Boiler::Notes"],
);

const rooms = { path: { path: "Inbox/Räume.md" } };
const written = await client.PUT("/vault/{path}", { params: rooms, body: "# Räume\n\nKüche\n", ...raw });
assert(written.data !== undefined && "action" in written.data);
assert.equal(written.data.action, "created");
const appended = await client.POST("/vault/{path}", {
  params: { ...rooms, header: { "If-Match": written.data.version } },
  body: "Bad",
  ...raw,
});
assert.equal(appended.data?.action, "appended");

const patched = await client.PATCH("/vault/{path}", {
  params: {
    path: { path },
    header: { Target: "Parts", "Target-Type": "heading", Operation: "replace", "If-Match": version },
  },
  body: "- pump",
  ...raw,
});
assert.equal(patched.data?.target, "Boiler::Parts");
const replaced = await client.PATCH("/vault/{path}", {
  params: { path: { path }, header: { "Target-Type": "text" } },
  body: { find: "- pump", replace: "- pump „Größe 2“", section: "Parts" },
});
assert.equal(replaced.data?.action, "replaced");

const halfway = await client.PATCH("/vault/{path}", {
  params: { path: { path }, header: { "Target-Type": "frontmatter", Target: "status" } },
  body: JSON.stringify("half open"),
  ...raw,
});
assert(halfway.data !== undefined);
const updated = await client.PATCH("/properties", {
  body: { path, properties: { status: "open" }, expected_version: halfway.data.version },
});
assert.deepEqual(updated.data?.set, ["status"]);

const moved = await client.POST("/move", { body: { source: "Inbox/One.md", destination: "Done/One.md" } });
assert.equal(moved.data?.destination, "Done/One.md");

const refusals = [
  await client.GET("/vault/{path}", { params: { path: { path: "Inbox/One.md" } } }),
  await client.PATCH("/vault/{path}", {
    params: { path: { path }, header: { Target: "Parts", "If-Match": version } },
    body: "x",
    ...raw,
  }),
  await client.PATCH("/vault/{path}", { params: { path: { path }, header: { Target: "Nothing" } }, body: "x", ...raw }),
  await client.GET("/server", { headers: { Authorization: `Bearer ${"f".repeat(64)}` } }),
];
const codes: ErrorCode[] = ["not_found", "precondition_failed", "target_not_found", "unauthorized"];
assert.deepEqual(
  refusals.map((refusal) => refusal.error?.code),
  codes,
);
