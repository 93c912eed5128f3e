"""Links of a published vault that reach nothing: each was looked at by hand once and is unresolved in Obsidian too."""

from collections import Counter
from pathlib import Path

import pytest

from operations.link_index import IndexedLinks
from operations.linking.graph import Problem, broken_links, described
from tests.index.indexes import running

HELP = Path(__file__).parents[3] / "shared" / "vaults" / "obsidian-help"

PICTURES_LEFT_OUT = {
    "Backlinks.png": 2,
    "Excerpt from Mother of All Demos (1968).ogg": 1,
    "Mac-OS-DateTime.png": 1,
    "Roam-Importer-importing.png": 1,
    "Style-guide-modal-example.png": 1,
    "application-installer-current-version.png": 1,
    "bases-map-places.png": 1,
    "bases-noshadow.png": 2,
    "ios-share-sheet-add-location.png": 1,
    "ios-share-sheet-extension.png": 1,
    "ios-share-sheet-locations.png": 1,
    "ios-share-sheet-set-template.png": 1,
    "link-block-heading.png": 1,
    "notion-content.png": 1,
    "notion-export-2.png": 1,
    "notion-export.png": 1,
    "notion-integration.png": 1,
    "notion-token.png": 1,
    "obsidian-cli.mp4": 1,
    "obsidian-graph-view.png": 1,
    "version-history-collaboration.png": 1,
    "web-clipper-kde.png": 1,
}
"""Media that this copy of the vault does not hold; one is a link, the others embeds."""
NOTES_LEFT_OUT = {"Obsidian Headless": 5}
EXAMPLES = {"Example": 4, "Example.md": 2}
"""Links that the page about links shows."""


@pytest.mark.skipif(not HELP.is_dir(), reason="obsidian-help is not part of the project")
def test_every_unresolved_link_of_the_help_vault_is_one_that_was_looked_at() -> None:
    with running(HELP, None) as index, index.reader() as connection:
        links = IndexedLinks(connection)
        found = described(links, broken_links(links))
    missing = Counter(broken.link.target for broken in found if broken.problem is Problem.MISSING_FILE)
    assert missing == {**PICTURES_LEFT_OUT, **NOTES_LEFT_OUT, **EXAMPLES}
    others = [(broken.link.source, broken.link.original, broken.problem) for broken in found]
    # The id stands directly behind the embed, without the white space that makes it one (markdown-semantics §8.1).
    assert [each for each in others if each[2] is not Problem.MISSING_FILE] == [
        (
            "Obsidian Sync/Version history.md",
            "![[Collaborate on a shared vault#^version-history-image]]",
            Problem.MISSING_BLOCK,
        )
    ]
