"""Tables of the index: everything here is derived from the vault's files and can be thrown away.

A change of a table, of what a column means, or of a tokenizer raises `SCHEMA_VERSION`; the file is then built anew,
never migrated.
"""

from typing import Final

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text

SCHEMA_VERSION: Final = 3

metadata: Final = MetaData()

facts = Table(
    "facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
"""What the file was made with (schema version, digest of the reading and chunking code, embedding model) and when."""

files = Table(
    "files",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("path", Text, nullable=False, unique=True),
    Column("path_key", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("name_key", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("inode", BigInteger, nullable=False),
    Column("created_ns", BigInteger, nullable=False),
    Column("version", Text, nullable=False),
    Column("is_searched", Integer, nullable=False),
    Column("problem", Text),
    Index("files_by_path_key", "path_key"),
    Index("files_by_name_key", "name_key"),
    Index("files_by_folder", "folder"),
    Index("files_by_mtime", "mtime_ns"),
)
"""Every visible file, spelled as listed.

`path_key` is the path folded as deny rules fold it, which prefixes are compared with; `kind` is `note`, `document` or
`file`; `name_key` is the `link_key` that links are resolved by; `size mtime_ns inode` tell whether it must be read
again (an inode of -1 says so); `version` is empty while the bytes were not read (of other files only canvases are,
documents when their turn comes); `is_searched` is 0 for what search leaves out, which has no chunks; `problem` says
why there is no text, or none that is searched.
"""

texts = Table(
    "texts",
    metadata,
    Column("file_id", Integer, ForeignKey("files.id", ondelete="CASCADE"), primary_key=True),
    Column("text", Text, nullable=False),
    Column("body_start", Integer, nullable=False),
)
"""The text that stands for a file: a note's own (bytes that are no UTF-8 shown as U+FFFD), or what was extracted.
Offsets of chunks count its characters."""

headings = Table(
    "headings",
    metadata,
    Column("file_id", Integer, ForeignKey("files.id", ondelete="CASCADE"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("level", Integer, nullable=False),
    Column("line", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("path", Text),
    Column("block_id", Text),
    Index("headings_by_file", "file_id", "ordinal", unique=True),
)

blocks = Table(
    "blocks",
    metadata,
    Column("file_id", Integer, ForeignKey("files.id", ondelete="CASCADE"), nullable=False),
    Column("block_id", Text, nullable=False),
    Column("line", Integer, nullable=False),
    Index("blocks_by_file", "file_id"),
)

tags = Table(
    "tags",
    metadata,
    Column("file_id", Integer, ForeignKey("files.id", ondelete="CASCADE"), nullable=False),
    Column("tag", Text, nullable=False),
    Column("tag_key", Text, nullable=False),
    Column("inline_count", Integer, nullable=False),
    Column("property_count", Integer, nullable=False),
    Index("tags_by_file", "file_id"),
    Index("tags_by_key", "tag_key", "file_id"),
)
"""One row a spelling of a tag in a note, without `#`; `tag_key` is folded."""

properties = Table(
    "properties",
    metadata,
    Column("file_id", Integer, ForeignKey("files.id", ondelete="CASCADE"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("key", Text, nullable=False),
    Column("item", Integer),
    Column("type", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("number", Float),
    Column("json", Text, nullable=False),
    Index("properties_by_file", "file_id", "ordinal", "item"),
    Index("properties_by_key", "key", "text"),
)
"""One row a value: a list gives a row for each item (`item` 0, 1, …; an empty list one of type `list`), anything else
one with `item` null. `type` is `text number checkbox empty list object`; `text` is what is compared and shown, `number`
the value of a finite number, `json` the value itself."""

links = Table(
    "links",
    metadata,
    Column("file_id", Integer, ForeignKey("files.id", ondelete="CASCADE"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("is_embed", Integer, nullable=False),
    Column("line", Integer),
    Column("target", Text, nullable=False),
    Column("subpath", Text),
    Column("original", Text, nullable=False),
    Column("target_key", Text, nullable=False),
    Index("links_by_file", "file_id", "ordinal", unique=True),
    Index("links_by_target_key", "target_key"),
)
"""Every link as written that stays in the vault; a card of a canvas is one of kind `canvas`, without a line. `target`
is the decoded path part ("" for one into the note itself), `target_key` its `link_key`: what `files.name_key` is
compared with. Resolution happens when asked."""

tasks = Table(
    "tasks",
    metadata,
    Column("file_id", Integer, ForeignKey("files.id", ondelete="CASCADE"), primary_key=True),
    Column("line", Integer, primary_key=True),
    Column("path", Text, nullable=False),
    Column("path_key", Text, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("heading", Text),
    Column("lane", Text),
    Column("depth", Integer, nullable=False),
    Column("parent_line", Integer),
    Column("parent_block_id", Text),
    Column("status", Text, nullable=False),
    Column("status_char", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("created", Text),
    Column("scheduled", Text),
    Column("start", Text),
    Column("due", Text),
    Column("done", Text),
    Column("cancelled", Text),
    Column("priority", Text),
    Column("priority_rank", Integer, nullable=False),
    Column("recurrence", Text),
    Column("on_completion", Text),
    Column("task_id", Text),
    Column("depends_on", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("tags_fold", Text, nullable=False),
    Column("block_id", Text),
    Column("has_global_filter", Integer, nullable=False),
    Index(
        "tasks_by_status",
        *("status", "due", "scheduled", "start", "created", "done", "cancelled", "priority_rank", "depth"),
        *("mtime_ns", "path", "line", "path_key", "file_id", "heading", "lane", "tags_fold", "depends_on", "task_id"),
        "has_global_filter",
    ),
    Index("tasks_by_task_id", "task_id"),
    Index("tasks_by_parent", "file_id", "parent_line"),
)
"""Every task line. `path path_key mtime_ns` are those of its file, as lists are sorted by them; `lane` is the heading
of a board's task without the card limit; dates are days of the calendar; `depends_on`, `tags` and `tags_fold` (in
lower case) are lists as JSON; `has_global_filter` says whether the line holds the text without which the Tasks plugin
does not see it.

`tasks_by_status` covers all that lists filter and sort by: of 12,000 tasks it gives 50 in 2 ms, joins in 20 ms.

Source: tasks.md §6.
"""

boards = Table(
    "boards",
    metadata,
    Column("file_id", Integer, ForeignKey("files.id", ondelete="CASCADE"), primary_key=True),
    Column("done_lanes", Text, nullable=False),
)
"""Notes with tasks that are Kanban boards; `done_lanes` is a list of headings as JSON."""

chunks = Table(
    "chunks",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("file_id", Integer, ForeignKey("files.id", ondelete="CASCADE"), nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("heading", Text, nullable=False),
    Column("line", Integer, nullable=False),
    Column("end_line", Integer, nullable=False),
    Column("start", Integer, nullable=False),
    Column("end", Integer, nullable=False),
    Column("embedded_sha", LargeBinary, nullable=False),
    Index("chunks_by_file", "file_id", "ordinal", unique=True),
    Index("chunks_by_embedded_sha", "embedded_sha"),
)
"""Passages of a file. `heading` is the `::` path of the section ("" above the first heading), `start` and `end` are
offsets into `texts.text`, lines 1-based and inclusive, `embedded_sha` the SHA-256 of the text that is embedded."""

vectors = Table(
    "vectors",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("embedded_sha", LargeBinary, nullable=False, unique=True),
    Column("vector", LargeBinary, nullable=False),
)
"""Embeddings by what was embedded, little-endian float32 of length one; those of another model are dropped whole."""

CREATE_CHUNK_TERMS: Final = """
CREATE VIRTUAL TABLE IF NOT EXISTS chunk_terms USING fts5(
    body, title, heading, tags, aliases, properties, unsegmented,
    content='', contentless_delete=1,
    tokenize="porter unicode61 remove_diacritics 2"
)
"""
# SQLAlchemy has no word for virtual tables. Contentless, as the text stands in `texts`; a row's id is the chunk's.
# `unsegmented` holds the bigrams of text in scripts without spaces between words.

CREATE_TERM_COUNTS: Final = "CREATE VIRTUAL TABLE IF NOT EXISTS chunk_term_counts USING fts5vocab(chunk_terms, row)"

CREATE_VECTOR_BITS: Final = "CREATE VIRTUAL TABLE IF NOT EXISTS vector_bits USING vec0(bits bit[{dimension}])"
# One bit a dimension narrows the field; the float vectors of `vectors` decide. A row's id is the vector's.
