"""The columns of a table beside those of a model: matched by name, and what the table lacks."""

from __future__ import annotations

from collections.abc import Sequence

from posteriori.support.suggestions import similar
from posteriori.tables.blocks import BlockTable, check_blocks, no_counts
from posteriori.tables.messages import quote
from posteriori.tables.schema import Schema
from posteriori.tables.table import Table
from posteriori.user_warnings import warn

ABSENT = -1  # the position of a column that a table lacks
_ONE_LETTER = 0.85  # the similarity of a name to itself with a letter changed


def matched_places(
    table: Table,
    schema: Schema,
    model: str,
    target: str | None = None,
    *,
    warn_of_lost_names: bool = True,
    may_lack: bool = False,
) -> tuple[int, ...]:
    """Return the position in a table of each column of a schema; the table may also hold the target.

    Columns are matched by name, in any order, where both sides have names; otherwise by position. Other columns are
    ignored with a warning, where both sides have names.

    Parameters
    ----------
    table, schema
    model : str
        The name of the model in messages.
    target : str, optional
        The name of the column of labels, or of the column that a joint model predicts, which the table may lack.
    warn_of_lost_names : bool, default True
        Whether a table without names, for columns that have names, gives a warning.
    may_lack : bool, default False
        Whether a column that the table lacks is unknown in every row, with a warning; its position is `ABSENT`.

    Raises
    ------
    TypeError, ValueError
        As `check_blocks`; or the number of columns without names is another one; or a column is absent that may not
        be: with `may_lack`, a block of counts, all columns, or one that seems to have another spelling in the table.
    """
    if isinstance(table, BlockTable) or schema.container == "scipy":
        check_blocks(table, schema, model)
    if (places := _places_by_number(table, schema, model)) is not None:
        return schema.spread(places)
    if schema.named and not table.named and warn_of_lost_names:
        warn(f"X does not have valid feature names, but {model} was fitted with feature names")
    elif table.named and not schema.named:
        warn(f"X has feature names, but {model} was fitted without feature names")
    place_of = {name: place for place, name in enumerate(table.names)}
    names = [name for name in table.names if name != target or target in schema.given]
    if not (schema.named and table.named):
        if len(names) != len(schema.given):
            raise ValueError(
                f"X has {len(names)} features, but {model} is expecting {len(schema.given)} features as input."
            )
        return schema.spread([place_of[name] for name in names])
    known = set(schema.given)
    extra = [name for name in names if name not in known]
    absent = [name for name in schema.given if name not in place_of and not (may_lack and name == target)]
    if absent and may_lack:
        _accept_absent(absent, extra, schema, model)
    elif absent:
        raise ValueError(f"X lacks {quote(absent)}, which {model} was trained on; add it, empty where unknown")
    elif extra:
        warn(f"X has {quote(extra)}, which {model} was not trained on; ignored")
    return schema.spread([place_of.get(name, ABSENT) for name in schema.given])


def _places_by_number(table: Table, schema: Schema, model: str) -> list[int] | None:
    """Return the positions of the columns `given` if one side has no names, and the others are numbers of its columns.

    Frames of arrays have the labels 0, 1, …, which are no names until columns are chosen or put in another order.
    """
    if schema.named == table.named or "pandas" not in (table.container, schema.container):
        return None
    numbers = [str(j) for j in range(len(schema.given if table.named else table.names))]
    if table.named:
        place_of = {name: place for place, name in enumerate(table.names)}
        return [place_of[one] for one in numbers] if place_of.keys() == set(numbers) else None
    if table.container != "pandas" or not set(schema.given) <= set(numbers):
        return None
    if extra := [one for one in numbers if one not in schema.given]:
        warn(f"X has {quote(extra)}, which {model} was not trained on; ignored")
    return [int(name) for name in schema.given]


def _accept_absent(absent: Sequence[str], extra: Sequence[str], schema: Schema, model: str) -> None:
    """Warn of columns that a table lacks; raise ValueError if these are all, blocks of counts or misspelt."""
    if pair := misspelt(absent, extra):
        raise ValueError(
            f"X lacks {quote(pair[:1])}, which {model} was trained on; is it {pair[1]!r}? "
            "Rename one, or remove the other column"
        )
    if is_another_table(absent, schema):
        raise ValueError(f"X has none of the columns that {model} was trained on; is it another table?")
    for column in schema.columns:
        if column.name in absent and column.kind == "counts" and column.text is None:
            raise no_counts(column.name)
    also = f"; ignored: {quote(extra)}, which it was not trained on" if extra else ""
    if used := without_unused(absent, schema):
        warn(f"X lacks {quote(used)}, which {model} was trained on: unknown in every row{also}")
    elif extra:
        warn(f"X has {quote(extra)}, which {model} was not trained on; ignored")


def is_another_table(absent: Sequence[str], schema: Schema) -> bool:
    """Return whether a table without these columns has none of which a model uses cells."""
    return len(absent) == len(schema.given) or set(without_unused(schema.given, schema)) <= set(absent)


def without_unused(names: Sequence[str], schema: Schema) -> list[str]:
    """Return the columns of which a model uses cells: not identifiers, and not columns without a value."""
    used = {schema.columns[j].source for j in schema.modelled if not schema.columns[j].valueless}
    return [name for name in names if name in used]


def misspelt(absent: Sequence[str], extra: Sequence[str]) -> tuple[str, str] | None:
    """Return an absent column and another one of the table with nearly the same name; None if there are no such two."""
    pairs = ((name, similar(name, extra, cutoff=_ONE_LETTER)) for name in absent)
    return next(((name, found) for name, found in pairs if found is not None), None)
