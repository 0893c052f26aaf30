"""Lists of predictions for people: sorted, cut to the first rows, with the reasons of each row, and rounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from posteriori.cli.messages import UserError
from posteriori.cli.options import spellings
from posteriori.support.suggestions import closest

if TYPE_CHECKING:
    import polars as pl

    from posteriori.reading import Scan
    from posteriori.scoring.decisions import Decision
    from posteriori.scoring.files import RowPredictor

COST = "expected_cost"
_WAITING = 1 << 16  # rows that wait until the best ones are chosen among them
_DIGITS = 6  # of a number
_DECIMALS = 4  # of a probability, and of a part in nats
_NEAR_ONE = 1.0 - 10.0**-_DECIMALS  # the highest that is written of a probability below 1
_SMALL = 0.001  # a probability that is written with two digits

AddReasons = Callable[["RowPredictor", int, Any], "RowPredictor"]


@dataclass(frozen=True)
class Predicting:
    """The predictor of a command, and what a list needs beside it."""

    predictor: RowPredictor
    labels: Sequence[Any] | None  # None where a number is predicted
    decision: Decision | None
    add_reasons: AddReasons | None  # adds columns, given their number and the class; None where there is none

    @property
    def probabilities(self) -> list[str]:
        """The columns of the probabilities of classes, where all of them are predicted."""
        from posteriori.scoring.files import probability_column

        return [name for name in map(probability_column, self.labels or ()) if name in self.predictor.columns]


@dataclass(frozen=True)
class Order:
    """The column of results by which a list is sorted, highest first, and the class whose probability it holds."""

    column: str
    label: Any = None


_TEXTS = ("prediction", "set", "outside")  # results that have no order


def order_of(sort: str, made: Predicting) -> Order:
    """Return the order that --sort names.

    Raises
    ------
    UserError
        It is no class and no column of results, or costs are asked for without --costs.
    """
    from posteriori.scoring.files import probability_column

    for label in made.labels or ():
        if sort in (label, *spellings(label)):
            return Order(probability_column(label), label)
    results = [name for name in made.predictor.columns if name not in _TEXTS]
    if sort == "cost" and made.labels is not None:
        if made.decision is None or made.decision.cost is None:
            raise UserError("--sort cost needs the costs of decisions; add --costs FILE")
        return Order(COST)
    if made.labels is None and sort in ("mean", "prediction"):
        return Order("prediction")
    if sort in results:
        return Order(sort, dict(zip(made.probabilities, made.labels or (), strict=True)).get(sort))
    if made.labels is None:
        raise UserError(f"--sort is {sort!r}; {closest(sort, ['mean', *results], 'columns to sort by')}")
    known = [spellings(label)[0] for label in made.labels]
    raise UserError(f"--sort is {sort!r}, which is not a class of the model; {closest(sort, known, 'classes')}")


def list_of(
    frames: Iterable[pl.DataFrame],
    made: Predicting,
    order: Order | None,
    top: int | None,
    reasons_of: Callable[[pl.Series], pl.DataFrame] | None,
    number: str,
    proba: bool,
) -> pl.DataFrame:
    """Return the rows of a list, rounded; with `top` only that many rows and a block of others are in memory.

    Parameters
    ----------
    frames : iterable of DataFrame
        The predictions, with the columns of the table before them; all probabilities if `order` needs them.
    reasons_of : callable, optional
        Returns the columns of reasons of rows, by their numbers.
    number : str
        The name of the column for the number of each row in its table.
    proba : bool
        Whether the probabilities of all classes are wanted.
    """
    found = _best(_numbered(frames, made, order, number), made, order, top)
    if reasons_of is not None:
        found = found.hstack(reasons_of(found[number]))
    hidden = [] if proba or order is None else [name for name in made.probabilities if name != order.column]
    return _rounded(found, made).drop(hidden)


def _numbered(
    frames: Iterable[pl.DataFrame], made: Predicting, order: Order | None, number: str
) -> Iterable[pl.DataFrame]:
    """Yield frames with the numbers of their rows, and with the expected cost of each decision if it sorts them."""
    import polars as pl

    from posteriori.tables.polars import exactly

    start = 0
    for frame in frames:
        rows = pl.int_range(start, start + frame.height, eager=True).alias(number)
        start += frame.height
        if order is not None and order.column == COST:
            assert made.decision is not None
            assert made.decision.cost is not None
            p = frame.select(exactly(*made.probabilities)).to_numpy()
            frame = frame.with_columns(pl.Series(COST, (p @ made.decision.cost).min(axis=1)))
        yield frame.insert_column(0, rows)


def _best(frames: Iterable[pl.DataFrame], made: Predicting, order: Order | None, top: int | None) -> pl.DataFrame:
    """Return all rows, or the first ones of the order; of equal rows the earlier one comes first."""
    import polars as pl

    from posteriori.tables.polars import exactly

    others = [name for name in made.probabilities if order is not None and name != order.column]

    def cut(held: Sequence[pl.DataFrame]) -> pl.DataFrame:
        found = pl.concat(held)
        if order is None:
            return found
        key = found[order.column]
        if order.label is not None and others:  # the log-odds, which differ where all probabilities are 1
            key = key.log() - found.select(exactly(*others)).sum_horizontal().log()
        key = key.fill_nan(None)  # a row that no class can produce comes last
        return found[key.arg_sort(descending=True, nulls_last=True)].head(found.height if top is None else top)

    held: list[pl.DataFrame] = []
    n_held = 0
    for frame in frames:
        held.append(frame)
        n_held += frame.height
        if top is not None and n_held > 2 * top + _WAITING:
            held = [cut(held)]
            n_held = held[0].height
    return cut(held)


def reasons_of_rows(predictor: RowPredictor, scan: Scan, names: Sequence[str]) -> Callable[[pl.Series], pl.DataFrame]:
    """Return a function from the numbers of some rows to their reasons, which reads and predicts these rows again."""
    import numpy as np
    import polars as pl

    from posteriori.tables.polars import exactly

    def of_rows(numbers: pl.Series) -> pl.DataFrame:
        places = np.sort(numbers.to_numpy())
        parts = predictor.source(scan.at(places)).stream(predictor.predicted)
        found = pl.concat([part.frame.select(exactly(*names)) for part in parts])
        return found[np.searchsorted(places, numbers.to_numpy())]

    return of_rows


def with_reserved(predictor: RowPredictor, names: Sequence[str]) -> RowPredictor:
    """Return a predictor with the names of further results, which no column of the table may have."""
    return replace(predictor, columns=[*predictor.columns, *names])


def row_column(beside: Scan | None) -> str:
    """Return the name of the column for the number of a row, which the table may have too."""
    return "row_number" if beside is not None and "row" in beside.names else "row"


def _rounded(frame: pl.DataFrame, made: Predicting) -> pl.DataFrame:
    """Round numbers to six digits, and probabilities and parts in nats to four decimals.

    A probability below 0.001 keeps two digits, and one below 1 is written as 0.9999 at most.
    """
    import numpy as np

    of_table = frame.columns.index("prediction")
    in_nats = made.labels is not None
    p_names = made.probabilities
    some = [frame[name].to_numpy() for name in p_names]
    for column in frame.iter_columns():
        place = frame.columns.index(column.name)
        if not column.dtype.is_float() or place < of_table or (in_nats and place == of_table):
            continue
        if column.name in p_names:
            p = column.to_numpy()
            written = np.where(p < _SMALL, column.round_sig_figs(2).to_numpy(), p.round(_DECIMALS))
            certain = sum(other > 0 for other in some) == 1
            shown = np.where(certain, written, np.minimum(written, _NEAR_ONE))
            frame = frame.with_columns(type(column)(column.name, shown))
        else:
            short = column.round_sig_figs(_DIGITS)
            is_part = in_nats and (column.name.endswith("_part") or column.name in ("log_odds", "strangeness"))
            frame = frame.with_columns(column.round(_DECIMALS) if is_part else short)
    return frame
