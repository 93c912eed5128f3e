"""Notes for property tests: pieces of every block form, joined at random with every line end."""

from hypothesis import strategies as st

LINE_PIECES = (
    "# ",
    "## ",
    "### ",
    "#",
    "- ",
    "* ",
    "1. ",
    "2) ",
    "> ",
    "    ",
    "  ",
    "\t",
    "---",
    "===",
    "***",
    "```",
    "~~~",
    "%%",
    "%% x %%",
    "$$",
    "|",
    "| a | b |",
    "|---|---|",
    "<div>",
    "<!--",
    "-->",
    "[a]: /b",
    "[^1]: ",
    " ^id",
    "^id2",
    "word",
    "Überblick",
    "\u2028",
    "\udc80",
    "::",
    "`",
)

NEWLINES = ("\n", "\r\n", "\r")

WHOLE_LINES = (
    "# A",
    "## B",
    "## B ^h1",
    "### C::D ##",
    "text ^p1",
    "- item ^i1",
    "  - child",
    "> quoted",
    "^t1",
    "1. one",
    "```",
    "| a | b |",
    "|---|---|",
    "%%",
    "",
    "",
    "",
)

lines = st.one_of(st.sampled_from(WHOLE_LINES), st.lists(st.sampled_from(LINE_PIECES), max_size=4).map("".join))


@st.composite
def notes(draw: st.DrawFn, first: tuple[str, ...] = ()) -> str:
    """A note of up to 14 lines below the `first` ones; byte order mark, properties and final line end vary."""
    newline = st.sampled_from(NEWLINES) if draw(st.booleans()) else st.just(draw(st.sampled_from(NEWLINES)))
    body = [*first, *draw(st.lists(lines, max_size=14))]
    start = draw(st.sampled_from(("", "", "\ufeff", "---\na: 1\n---\n", "\ufeff---\r\na: 1\r\n---\r\n")))
    text = start + "".join(line + draw(newline) for line in body)
    return text if draw(st.booleans()) else text.rstrip("\r\n")


# Nothing above the first lines can hide them, so these always have a heading or a labelled block.
notes_with_heading = st.sampled_from((("# Zed", ""), ("Zed", "===", ""), ("## Zed ^z1", ""))).flatmap(notes)
notes_with_block_id = st.sampled_from(
    (
        ("text ^z1", ""),
        ("- item ^z1", ""),
        ("a", "b", "^z1", ""),
        ("> q", "", "^z1", ""),
        ("| a |", "|---|", "", "^z1", ""),
    )
).flatmap(notes)

contents = (
    st.lists(st.one_of(lines, st.just("")), min_size=1, max_size=5)
    .map("\n".join)
    .filter(lambda content: "\udc80" not in content)
)
