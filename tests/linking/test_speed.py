"""Bounds that only an answer file by file would break."""

import time

from operations.linking.resolver import LinkResolver


def test_twenty_thousand_notes_of_one_name_are_told_apart_without_looking_at_all_of_them() -> None:
    paths = [f"f{number % 100}/g{number}/README.md" for number in range(20_000)]
    started = time.monotonic()
    resolver = LinkResolver(paths)
    by_end = [resolver.resolve(path, f"{path.split('/')[1]}/README") for path in paths]
    by_folder = [resolver.resolve(path, "README") for path in paths]
    # Some 0.3 s where this was written; one file after the other takes minutes.
    assert time.monotonic() - started < 10
    assert by_end == paths
    assert by_folder == paths


def test_a_link_text_longer_than_any_path_costs_nothing() -> None:
    resolver = LinkResolver(["N.md"])
    hostile = "a" + "\u0301\u0316" * 2_000_000
    started = time.monotonic()
    assert resolver.resolve("N.md", hostile) is None
    assert resolver.resolve("N.md", f"./{hostile}") is None
    assert time.monotonic() - started < 5
