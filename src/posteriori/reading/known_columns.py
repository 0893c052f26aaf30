"""Types, roles and marks of columns of files that are known before their cells are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from posteriori.reading.file_frames import Types
from posteriori.reading.written_numbers import Role
from posteriori.tables.schema import Column, Schema


@dataclass(frozen=True)
class KnownColumns:
    """Types, roles and marks of columns of text files that are known before their cells are read.

    Attributes
    ----------
    types : dict
        Stated types. Strings among them stay strings even if all are dates.
    categories, labels : collection of str
        Columns of categories and labels, which keep their spelling.
    texts : collection of str
        Columns of strings of a model.
    numbers : collection of str
        Columns that are numbers, whatever they look like.
    dates : collection of str
        Columns of strings that a model reads as dates.
    marks : mapping of str to sequence of str
        The marks of missing cells in columns of a model.
    with_na : collection of str
        Columns of a model in which NA is a category.
    """

    types: Types = field(default_factory=dict)
    categories: Collection[str] = ()
    labels: Collection[str] = ()
    texts: Collection[str] = ()
    numbers: Collection[str] = ()
    dates: Collection[str] = ()
    marks: Mapping[str, Sequence[str]] = field(default_factory=dict)
    with_na: Collection[str] = ()

    @classmethod
    def of_model(cls, schema: Schema, target: Column | None = None) -> KnownColumns:
        """Return the types, roles and marks of the columns that a model was trained on."""
        columns, name = schema.columns, schema.target if target is None else target.name
        known = (*columns, *([target] if target else []))
        is_number = target is not None and target.kind == "continuous"
        return cls(
            labels=[] if name is None or is_number else [name],
            texts={column.name for column in known if column.holds_strings},
            numbers={one.name for one in known if one.kind == "continuous" and one.part is None and not one.valueless},
            # They are read in the format of the training rows.
            dates={column.part.of for column in known if column.part is not None and column.part.type.format},
            marks={column.source: column.marks for column in known if column.marks},
            with_na={column.name for column in known if column.part is None and "NA" in column.categories},
        )

    def joined(self, other: KnownColumns) -> KnownColumns:
        """Return the union of both."""
        return KnownColumns(
            dict(self.types) | dict(other.types),
            {*self.categories, *other.categories},
            {*self.labels, *other.labels},
            {*self.texts, *other.texts},
            {*self.numbers, *other.numbers},
            {*self.dates, *other.dates},
            dict(self.marks) | dict(other.marks),
            {*self.with_na, *other.with_na},
        )

    def role(self, name: str) -> Role:
        """Return the role of a column."""
        places = {"label": self.labels, "category": self.categories, "number": self.numbers}
        roles: dict[Role, Collection[str]] = cast(Any, places)
        return next((role for role, names in roles.items() if name in names), "feature")

    def is_fixed(self, name: str) -> bool:
        """Return whether the type of a column is known."""
        return name in self.types or name in self.texts


NOTHING_KNOWN = KnownColumns()
