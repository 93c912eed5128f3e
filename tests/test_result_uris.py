"""`uri` is in every result about one file and in every row that names one.

Source: mcp-surface.md §3, §10.
"""

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from operations.catalogue import OPERATIONS
from operations.registry import Operation

WITHOUT = {
    "FoundNote": "the answer is the plugin's, which names files only",
    "HeadingRow": "its path is that of a heading",
    "ChangedFile": "a file of the past, which may be gone or stand elsewhere by now",
    "SkippedRow": "a file that is not as the change left it, and may be gone",
    "FileDiff": "a diff stands beside the result or rows that have the link",
    "ListResult": "its path is a folder",
    "FolderResult": "its path is a folder",
    "DeleteResult": "the file is gone",
    "DeleteFolderResult": "its path is a folder that is gone",
}
"""Models that name a path and have no link, each with its reason."""
NAMES_A_FILE = {"path", "filename", "destination", "source"}


def models_in(annotation: Any) -> set[type[BaseModel]]:
    """A model and those inside it, one that holds itself too."""
    found: set[type[BaseModel]] = set()
    pending = [annotation]
    while pending:
        one = pending.pop()
        pending.extend(get_args(one))
        if isinstance(one, type) and issubclass(one, BaseModel) and one not in found:
            found.add(one)
            pending.extend(field.annotation for field in one.model_fields.values())
    return found


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_what_names_a_file_links_it(operation: Operation) -> None:
    lacking = {
        model.__name__
        for model in models_in(operation.result_model)
        if NAMES_A_FILE & model.model_fields.keys() and "uri" not in model.model_fields
    }
    assert lacking - WITHOUT.keys() == set()


def test_every_exception_is_still_one() -> None:
    lacking = {
        model.__name__
        for operation in OPERATIONS
        for model in models_in(operation.result_model)
        if NAMES_A_FILE & model.model_fields.keys() and "uri" not in model.model_fields
    }
    assert WITHOUT.keys() <= lacking
