"""Tables of `auth.db` (auth-and-security.md §6). Times are whole seconds since 1970, UTC; secrets stand as hashes only.

Tables of the authorization server belong to the same `metadata`, so that one call makes them all.
"""

from typing import Final

from sqlalchemy import Column, Index, Integer, LargeBinary, MetaData, Table, Text, text

SCHEMA_VERSION: Final = 1

metadata: Final = MetaData()

meta: Final = Table(
    "meta",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", LargeBinary, nullable=False),
)
"""What holds for the whole file."""

tokens: Final = Table(
    "tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("label", Text, nullable=False),
    Column("label_key", Text, nullable=False),
    Column("secret_sha256", LargeBinary, nullable=False),
    Column("created_at", Integer, nullable=False),
    Column("rotated_at", Integer),
    Column("expires_at", Integer),
    Column("revoked_at", Integer),
)
"""Named tokens. `label_key` is the label as it is compared."""

Index("tokens_by_label", tokens.c.label_key, unique=True, sqlite_where=text("revoked_at IS NULL"))

policies: Final = Table(
    "policies",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("rights", Text, nullable=False),
    Column("promoted", Text, nullable=False),
)
"""Rights of principals, as JSON: `static`, `stdio`, a token's id, or `client:` and the id of an OAuth client.

`promoted` stands beside `rights`, as calls change it and the owner the rest.
"""

resets: Final = Table(
    "resets",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("number", Integer, nullable=False),
)
"""How often the owner emptied a principal's list: what servers added to it before, for as long as they run, is over."""

usage: Final = Table(
    "usage",
    metadata,
    Column("principal", Text, primary_key=True),
    Column("last_used_at", Integer, nullable=False),
    Column("rest", Integer, nullable=False, default=0),
    Column("handshake", Integer, nullable=False, default=0),
    Column("modern", Integer, nullable=False, default=0),
)
"""When a principal last came, and how often on each surface and protocol era."""

tool_calls: Final = Table(
    "tool_calls",
    metadata,
    Column("tool", Text, primary_key=True),
    Column("calls", Integer, nullable=False),
)
"""How often each tool was used, by whomever (mcp-surface §7.4)."""

ui_sessions: Final = Table(
    "ui_sessions",
    metadata,
    Column("handle_sha256", LargeBinary, primary_key=True),
    Column("created_at", Integer, nullable=False),
    Column("last_used_at", Integer, nullable=False),
    Column("expires_at", Integer, nullable=False),
)
"""People who are signed in to the status page."""
