"""Laws of resolution and moves over made-up vaults with every form of link."""

import json
import posixpath

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from operations.linking.graph import graph_links, reached_by
from operations.linking.moves import Move, affected_keys
from operations.linking.names import folded, folder_of, link_key, spellings
from operations.linking.resolver import LinkResolver
from operations.markdown.canvas_text import canvas_nodes
from operations.markdown.links import Link, LinkKind, extract_links
from tests.linking.planning import after_move, candidates_of, planned, planned_if_sayable
from tests.linking.texts import Texts

FOLDERS = ("", "A", "B", "A/B", "A/B/C", "Größe", "a b")
STEMS = ("N", "n", "Plan", "Über uns", "a (b", "v1.2", "x.md", "it's", "100% [x", "A", "$5", "Straße", "q & a;", "C#")
SUFFIXES = (".md", ".md", ".md", ".png", ".canvas")

files = st.builds(
    lambda folder, stem, suffix: f"{folder}/{stem}{suffix}" if folder else stem + suffix,
    st.sampled_from(FOLDERS),
    st.sampled_from(STEMS),
    st.sampled_from(SUFFIXES),
)


def relative(path: str, source: str) -> str:
    return posixpath.relpath(f"/{path}", f"/{folder_of(source)}")


def encoded(path: str) -> str:
    return "".join(f"%{ord(each):02X}" if each in " ()%#&" else each for each in path)


@st.composite
def link_texts(draw: st.DrawFn, source: str, paths: list[str], *, in_property: bool = False) -> str:
    path = draw(st.sampled_from(paths))
    written = draw(
        st.sampled_from(
            (path, path.rpartition("/")[2], "/".join(path.split("/")[-2:]), f"/{path}", relative(path, source))
        )
    )
    if draw(st.booleans()):
        written = written.removesuffix(".md")
    if in_property:
        return f"[[{written}]]"
    form = draw(st.integers(0, 5))
    return (
        f"[[{written}]]",
        f"![[{written}|x]]",
        f"[[{written}#H]]",
        f"[t]({encoded(written)})",
        f'![t](<{written}> "T")',
        f"[t]({encoded(written)}#h)",
    )[form]


@st.composite
def canvases(draw: st.DrawFn, source: str, paths: list[str]) -> str:
    nodes: list[dict[str, object]] = [
        {"id": "1", "type": "file", "file": draw(st.sampled_from(paths))},
        {"id": "2", "type": "text", "text": f"ä {draw(link_texts(source, paths))}\n"},
    ]
    return json.dumps(
        {"nodes": nodes, "edges": []}, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from((None, 1)))
    )


@st.composite
def notes(draw: st.DrawFn, source: str, paths: list[str]) -> str:
    links = draw(st.lists(link_texts(source, paths), max_size=4))
    in_properties = draw(st.lists(link_texts(source, paths, in_property=True), max_size=2))
    quote = draw(st.sampled_from(("'", '"')))
    lines = [f"  - {quote}{link.replace(quote, quote * 2)}{quote}" for link in in_properties if quote == "'"]
    lines += [f"  - {json.dumps(link)}" for link in in_properties if quote == '"']
    block = ["---", "up:", *lines, "---"] if lines else []
    body = [draw(st.sampled_from(("- {}", "> {}", "text {} text", "| {} |", "# {}"))).format(link) for link in links]
    newline = draw(st.sampled_from(("\n", "\r\n")))
    return newline.join([*block, *body, "[r]: " + encoded(paths[0]), ""])


@st.composite
def vaults(draw: st.DrawFn) -> dict[str, str | None]:
    paths = draw(st.lists(files, min_size=2, max_size=9, unique_by=folded))
    texts: dict[str, str | None] = {}
    for path in paths:
        if path.endswith(".md"):
            texts[path] = draw(notes(path, paths))
        elif path.endswith(".canvas"):
            texts[path] = draw(canvases(path, paths))
        else:
            texts[path] = None
    return texts


@st.composite
def moves(draw: st.DrawFn, texts: Texts) -> Move:
    source = draw(st.sampled_from(sorted(texts)))
    if folder_of(source) and draw(st.booleans()):
        source = folder_of(source)
        parent = draw(st.sampled_from(FOLDERS))
        move = Move(source, f"{parent}/F".removeprefix("/"))
        assume(not f"{move.destination}/".startswith(f"{source}/"))
    else:
        suffix = "." + source.rpartition(".")[2]
        folder, stem = draw(st.sampled_from(FOLDERS)), draw(st.sampled_from(STEMS))
        move = Move(source, f"{folder}/{stem}{suffix}".removeprefix("/"))
    after = [folded(move.new_path(path)) for path in texts]
    assume(move.source != move.destination and len(set(after)) == len(after))
    return move


def targets_in(texts: Texts) -> dict[str, list[str | None]]:
    """For each file with links what each of them reaches, in document order; definitions behind the others."""
    resolver = LinkResolver(texts)
    targets: dict[str, list[str | None]] = {}
    for path, text in texts.items():
        if text is None:
            continue
        targets[path] = [reached_by(resolver, link) for link in graph_links(path, text)]
        links = extract_links(text) if path.endswith(".md") else canvas_text_links(text)
        is_counted = path.endswith(".canvas")
        targets[path] += [
            resolver.resolve(path, link.path) for link in links if is_counted or link.kind is LinkKind.REFERENCE
        ]
    return targets


def canvas_text_links(text: str) -> list[Link]:
    return [link for node in canvas_nodes(text) for link in extract_links(node.text("text") or "")]


def assert_all_kept(before: dict[str, list[str | None]], after: dict[str, list[str | None]], move: Move) -> None:
    """Every link that reached a file reaches it still; one that reached nothing may have come to reach something."""
    assert after.keys() == {move.new_path(path) for path in before}
    for path, targets in before.items():
        now = after[move.new_path(path)]
        assert len(now) == len(targets)
        for was, reaches in zip(targets, now, strict=True):
            assert was is None or reaches == move.new_path(was)


@given(st.data())
@settings(max_examples=500, deadline=None)
def test_every_link_reaches_after_a_move_what_it_reached_before(data: st.DataObject) -> None:
    texts = data.draw(vaults())
    move = data.draw(moves(texts))
    plan = planned_if_sayable(texts, move)
    if plan is None:
        return
    assert_all_kept(targets_in(texts), targets_in(after_move(texts, move, plan)), move)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_move_there_and_back_leaves_every_link_where_it_was(data: st.DataObject) -> None:
    texts = data.draw(vaults())
    move = data.draw(moves(texts))
    back = Move(move.destination, move.source)
    assume(not f"{back.destination}/".startswith(f"{back.source}/"))
    # A folder that moves into one that exists would not come back alone.
    assume(not any(path.startswith(f"{move.destination}/") for path in texts))
    plan = planned_if_sayable(texts, move)
    there = texts if plan is None else after_move(texts, move, plan)
    plan_back = None if plan is None else planned_if_sayable(there, back)
    if plan_back is None:
        return
    again = after_move(there, back, plan_back)
    assert_all_kept(targets_in(texts), targets_in(again), Move("", ""))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_files_without_a_link_of_an_affected_key_never_change(data: st.DataObject) -> None:
    texts = data.draw(vaults())
    move = data.draw(moves(texts))
    whole = planned_if_sayable(texts, move)
    if whole is None:
        return
    assert planned(texts, move, candidates_of(texts, affected_keys(move, texts))) == whole


def slow_resolve(paths: list[str], source: str, target: str) -> str | None:
    """The rules of links-and-moves §2.3 as they read, one file after the other."""
    if not target:
        return source
    folder = folder_of(source)
    for spelling in spellings(target):
        if target.startswith(("./", "../")):
            joined = posixpath.normpath(f"{folder}/{spelling}".removeprefix("/"))
            hits = [path for path in paths if folded(path) == folded(joined)]
        else:
            hits = [path for path in paths if folded(path) == folded(spelling.removeprefix("/"))]
            if not hits and not spelling.startswith("/"):
                hits = [path for path in paths if f"/{folded(path)}".endswith(f"/{folded(spelling)}")]
                below = [path for path in hits if not folder or path.startswith(f"{folder}/")]
                hits = sorted(below or hits, key=lambda path: (len(path), path))
        if hits:
            return hits[0]
    return None


@given(st.lists(files, min_size=1, max_size=14, unique_by=folded), st.data())
@settings(max_examples=500, deadline=None)
def test_a_link_reaches_what_the_rules_say_file_by_file_and_the_files_of_its_key_suffice(
    paths: list[str], data: st.DataObject
) -> None:
    source = data.draw(st.sampled_from(paths))
    path = data.draw(st.sampled_from(paths))
    segments = path.split("/")
    end = "/".join(segments[data.draw(st.integers(0, len(segments) - 1)) :])
    target = data.draw(st.sampled_from((path, end, f"/{path}", relative(path, source), f"./{end}", f"../{end}")))
    target = data.draw(st.sampled_from((target, target.removesuffix(".md"), target.upper())))
    expected = slow_resolve(paths, source, target)
    resolver = LinkResolver(paths)
    assert [resolver.resolve(source, target), resolver.resolve(source, target)] == [expected, expected]
    same_key = [each for each in paths if link_key(each) == link_key(target)]
    assert LinkResolver(same_key).resolve(source, target) == expected


@given(st.lists(files, min_size=2, max_size=14, unique_by=folded), st.data())
@settings(max_examples=300, deadline=None)
def test_a_renamed_resolver_answers_as_one_made_anew(paths: list[str], data: st.DataObject) -> None:
    move = data.draw(moves(dict.fromkeys(paths)))
    renames = {path: move.new_path(path) for path in move.moved(paths)}
    before = LinkResolver(paths)
    after, anew = before.renamed(renames), LinkResolver([move.new_path(path) for path in paths])
    assert sorted(after.paths) == sorted(anew.paths)
    assert sorted(before.paths) == sorted(paths)
    for source in paths:
        for path in (*paths, *after.paths):
            for target in (path, path.rpartition("/")[2].removesuffix(".md")):
                assert after.resolve(source, target) == anew.resolve(source, target)
                assert before.resolve(source, target) == LinkResolver(paths).resolve(source, target)


UNIQUE = ("Home.md", "House/Boiler.md", "House/Old pump.md", "House/Plans/Attic.md", "Work/Größe.md", "Files/pic 1.png")
NEW_NAMES = ("Fresh", "Neu & gut", "It's (one)", "Ü 2")


@st.composite
def vaults_of_one_style(draw: st.DrawFn) -> dict[str, str | None]:
    """No two files share a name; links are bare, from the root, or relative destinations in a note that stays.

    A note that moves may keep the longer relative way back that it got: `../House/Plan.md` still holds there.
    """
    texts: dict[str, str | None] = {}
    for source in UNIQUE:
        lines: list[str] = []
        for path in draw(st.lists(st.sampled_from(UNIQUE), max_size=5)):
            bare = path.rpartition("/")[2]
            forms = [f"[[{bare.removesuffix('.md')}]]", f"![[{bare}|x]]", f"[[/{path}#H]]", f"> [t](</{path}>)"]
            if source.startswith("Work/") and folder_of(path):
                forms.append(f"- [t]({relative(path, source).replace(' ', '%20')})")
            lines.append(draw(st.sampled_from(forms)))
        texts[source] = "\r\n".join(lines) if source.endswith(".md") else None
    return texts


@given(vaults_of_one_style(), st.data())
@settings(max_examples=500, deadline=None)
def test_moving_back_restores_every_byte_where_names_are_unique(
    texts: dict[str, str | None], data: st.DataObject
) -> None:
    source = data.draw(st.sampled_from((*UNIQUE[1:4], UNIQUE[-1], "House", "House/Plans")))
    name = data.draw(st.sampled_from(NEW_NAMES)) + (f".{source.rpartition('.')[2]}" if "." in source else "")
    move = Move(source, data.draw(st.sampled_from(("Work/", "Else/where/", "Files/"))) + name)
    assume(not move.destination.startswith(f"{source}/"))
    there = after_move(texts, move, planned(texts, move))
    back = Move(move.destination, move.source)
    assert after_move(there, back, planned(there, back)) == texts
