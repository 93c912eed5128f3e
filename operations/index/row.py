"""The shape in which rows go to the database."""

from typing import TypeAlias

# Plain tuples in the order of the table's columns behind `file_id`: a vault has hundreds of thousands of rows.
Row: TypeAlias = tuple[str | int | float | None, ...]
