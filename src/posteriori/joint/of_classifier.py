"""A fitted classifier as a law: of its features and of the class, which is a column like the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.fitting.fitted import Fitted
from posteriori.joint import answers
from posteriori.joint.findings import Not, likelihood_if_any, likelihood_of, require_probability
from posteriori.joint.grids import NumberGrid, answer_of
from posteriori.joint.law import Law
from posteriori.joint.questions import read_question
from posteriori.model.answer import Answer
from posteriori.model.beliefs import NoTablesError, Tables
from posteriori.model.conditional import ColumnGivenOthers, cells_of_column, require_joint, within_bins
from posteriori.model.generative_model import log_normalised
from posteriori.model.number_cells import NumberCells
from posteriori.model.posterior import draw_rows
from posteriori.scoring.posterior import RowsOfDicts
from posteriori.sources import LabelledSource
from posteriori.support.checks import generator
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema
from posteriori.tables.arrays import write_column

_CELLS = 64  # of an outer bin
_BEYOND = 0.25  # of the range of a column: the width of an outer bin without training rows
_DRAWN = 2000  # rows that show the range of the numbers of a model without training rows
_IMPOSSIBLE = "what is known is impossible; state something else"


def law_of(fitted: Fitted) -> Law:
    """Return the law of the columns and the class of a classifier whose columns have tables.

    Raises
    ------
    NoTablesError
        A column has none: numbers that are not cut into bins, or several parents; or the factors are weighted.
    """
    model = fitted.model
    if model.weights is not None:
        raise NoTablesError("the factors of the columns are weighted, which is no joint distribution")
    tables, schema = Tables.of(model), model.schema
    label = replace(fitted.target, name=fitted.target.name or "class")
    of_class = model.of_class or tuple(range(model.n_classes))
    is_class = np.equal.outer(np.array(of_class), np.arange(model.n_classes)).astype(np.float64)
    place = len(schema.columns)
    with_label = Tables(tables.log_prior, (*tables.columns, place), (*tables.parents, -1), (*tables.tables, is_class))
    grids = {j: _grid(fitted, j, schema.columns[j]) for j in tables.columns if schema.columns[j].is_binned}
    return Law(replace(schema, columns=(*schema.columns, label)), (with_label,), np.ones(1), grids)


def _grid(fitted: Fitted, j: int, column: Column) -> NumberGrid:
    """Return the cells of each bin of a column within the range of the training rows, and p(cell | bin)."""
    cuts = np.array(column.cuts or ())
    low, high, whole = _range(fitted, j, column)
    if not len(cuts) and low == high:
        return NumberGrid(NumberCells(np.array([low]), np.array([high])), np.zeros(1, np.int64), np.ones(1))
    cells = _cells_of_bins(cuts, low, high, float(whole))
    if whole and len(np.unique(np.searchsorted(cuts, cells.low, side="right"))) <= len(cuts):
        cells = _cells_of_bins(cuts, low, high, 0.0)  # a bin without a whole number
    code = np.searchsorted(cuts, cells.low, side="right")
    weight = within_bins(fitted.model, j, cells, code)
    return NumberGrid(cells, code, weight / np.bincount(code, weight)[code])


def _cells_of_bins(cuts: Array, low: float, high: float, step: float) -> NumberCells:
    """Return one cell of each bin between two cuts, in which a density is constant, and more of the outer bins."""
    ends = np.array([low, *cuts, high])
    span = float(ends.max() - ends.min())
    if len(cuts):  # a bin without training rows has a width, too
        low, high = (
            end if apart else cut
            for end, apart, cut in (
                (low, low < cuts[0], cuts[0] - _BEYOND * span),
                (high, high > cuts[-1], cuts[-1] + _BEYOND * span),
            )
        )
    first, last = (cuts[0], cuts[-1]) if len(cuts) else (high, high)
    upper = np.linspace(last, high, _CELLS + 1)[:-1] if last < high else np.empty(0)
    lows = np.concatenate([np.linspace(low, first, _CELLS + 1)[:-1], cuts[:-1], upper])
    if not step:
        lows = np.unique(lows)
        return NumberCells(lows, np.append(lows[1:], high))
    lows = np.unique(np.ceil(lows))
    return NumberCells(lows, np.maximum(np.append(lows[1:] - 1.0, np.floor(high)), lows), step)


def _range(fitted: Fitted, j: int, column: Column) -> tuple[float, float, bool]:
    """Return the smallest and the largest number of a column, and whether all are whole.

    They are those of the training rows, or of rows that a model draws which was made of parameters.
    """
    ranges = fitted.ranges
    if ranges is not None:
        if not np.isfinite(ranges.lowest[j]):
            raise NoTablesError(f"the range of {column.name!r} is unknown")
        return float(ranges.lowest[j]), float(ranges.highest[j]), bool(ranges.whole[j])
    rng, model = generator(0), fitted.model
    component = rng.choice(model.n_components, _DRAWN, p=np.exp(model.log_prior) / np.exp(model.log_prior).sum())
    drawn = np.asarray(draw_rows(model, component, rng)[j], np.float64)
    return float(drawn.min()), float(drawn.max()), bool((drawn == np.rint(drawn)).all())


def answer(fitted: Fitted, question: str) -> Any:
    """Answer a question; see `OneModel.query`."""
    asked = askable(fitted)
    return asked.answer(question) if isinstance(asked, AskedModel) else answers.answer(asked, question)


def askable(fitted: Fitted) -> Law | AskedModel:
    """Return the law of a model, if it is one of tables, and the model with its columns elsewhere.

    A column that no finding names is unknown, which is not the same as missing: no density of missingness counts.
    """
    try:
        return law_of(fitted)
    except NoTablesError:
        return AskedModel(replace(fitted, model=fitted.model.ignore_missingness_except([])))


@dataclass(frozen=True)
class AskedModel:
    """A fitted classifier of any densities, whose columns and class answer questions about each other.

    Of a column that shares no density with others, all findings can be known, as p(finding | z); of the others, single
    values. It has the columns and the steps of numbers as a `Law` has them, for whatever reads findings.
    """

    fitted: Fitted

    def __post_init__(self) -> None:
        require_joint(self.fitted.model)

    @cached_property
    def schema(self) -> Schema:
        """The columns, and the class as the last one."""
        label = replace(self.fitted.target, name=self.fitted.target.name or "class")
        return replace(self.fitted.model.schema, columns=(*self.fitted.model.schema.columns, label))

    @property
    def names(self) -> list[str]:
        """The names of the columns, and of the class."""
        return list(self.schema.names)

    def place(self, name: str) -> int:
        """Return the position of a column; ValueError if there is none."""
        if name not in self.names:
            raise ValueError(f"there is no column {name!r}; {closest(str(name), self.names)}")
        return self.names.index(name)

    @cached_property
    def grids(self) -> Mapping[int, NumberGrid]:
        """The cells of each column of numbers, by its position."""
        model, found = self.fitted.model, {}
        for j, column in enumerate(model.schema.columns):
            if column.is_binned:
                found[j] = _grid(self.fitted, j, column)
            elif column.kind == "continuous" and j not in model.unread:
                low, high, whole = _range(self.fitted, j, column)
                cells = cells_of_column(model, j, low, high, whole)
                found[j] = NumberGrid(cells, np.arange(len(cells)), np.ones(len(cells)))
        return found

    @cached_property
    def sizes(self) -> dict[int, int]:
        """The number of codes of each column: categories, bins, or cells of numbers."""
        found = {j: column.cardinality for j, column in enumerate(self.schema.columns)}
        return found | {j: len(grid.cells) for j, grid in self.grids.items() if not self.schema.columns[j].is_binned}

    def conditional(self, name: str) -> ColumnGivenOthers:
        """Return p(column | the others); ValueError if the model has no joint distribution, or no such column."""
        j = self.place(name)
        coded = j not in self.grids or self.schema.columns[j].is_binned
        return ColumnGivenOthers(self.fitted.model, j, None if coded else self.grids[j].cells)

    def probabilities(self, name: str, batch: Batch, also: Array | float = 0.0) -> Array:
        """Return p(code | the other cells) of a column or of the class in rows, (n, K), and what else is known."""
        model = self.fitted.model
        if self.place(name) == len(model.schema.columns):
            with np.errstate(invalid="ignore"):
                log_joint = model.by_class(model.log_joint_of_components(batch) + also)
            return np.asarray(np.exp(log_normalised(log_joint)))
        one = self.conditional(name)
        return one.of_codes(batch, also) if one.cells is None else one.of_cells(batch, also)

    def log_likelihood(self, name: str, finding: Any) -> Array:
        """Return log p(finding | z), (Z,), of the class, or of a column that shares no density with others."""
        model, of_codes = self.fitted.model, likelihood_of(self, name, finding)[1]
        if self.place(name) == len(model.schema.columns):
            of_class = model.of_class or tuple(range(model.n_classes))
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(of_codes)[list(of_class)])
        one = self.conditional(name)
        if not one.is_independent:
            raise ValueError(
                f"{name!r} shares a density with other columns, so that a single value of it can be known, and no set "
                "or range; fit a JointModel to ask that"
            )
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(one.of_components() @ of_codes))

    def known(self, given: Mapping[str, Any]) -> tuple[Batch, Array]:
        """Return findings as a row, and log p(findings | z) of those that no row can hold, (1, Z)."""
        cells, also = {}, np.zeros((1, self.fitted.model.n_components))
        for name, finding in given.items():
            column = self.schema.columns[self.place(name)]
            is_class = self.place(name) == len(self.schema.columns) - 1
            if is_class or _is_several(finding) or self._is_part_alone(name):
                also = also + self.log_likelihood(name, finding)
            elif column.part is not None:
                (cells[column.source],) = column.part.times(np.array([float(finding)]))
            else:
                j, of_codes = likelihood_of(self, name, finding)
                cells[name] = finding if j in self.grids else self.categories(j)[int(of_codes.argmax())]
        return RowsOfDicts(self.fitted.schema, self.fitted.recipe.name, "conditional").batch(cells), also

    def _is_part_alone(self, name: str) -> bool:
        """Return whether a column is a part of dates of which no row can hold it alone, as it can hold a whole date."""
        part = self.schema.columns[self.place(name)].part
        return part is not None and (not part.is_number or self.conditional(name).is_independent)

    def conditionals(self, source: LabelledSource, name: str, y: Any) -> Answer:
        """Return the distribution of a feature in rows; see `OneModel.answer`."""
        j = self.place(name)
        also = None if y is None else self._of_labels(y, source.table.n_rows)

        def of_batch(batch: Batch) -> Array:
            rows = slice(batch.start, batch.start + len(batch))
            return self.probabilities(name, batch, 0.0 if also is None else also[rows])

        return self.answer_about(j, source.with_width(self.sizes[j]).map(of_batch))

    def _of_labels(self, y: Any, n: int) -> Array:
        """Return log p(label | z), (n, Z)."""
        name, model = self.schema.names[-1], self.fitted.model
        labels = list(y)
        if len(labels) != n:
            raise ValueError(f"y holds {len(labels)} labels, and X {n} rows; give one per row")
        known = {
            one: self.log_likelihood(name, one) for one in set(labels) if one is not None and one == one
        }  # NaN is not itself
        return np.stack([known.get(one, np.zeros(model.n_components)) for one in labels])

    def answer(self, question: str) -> Any:
        """Answer a question; see `JointModel.query`."""
        read = read_question(question, self)
        if read.is_event:
            return self._probability(read.asked, read.given)
        found = {name: self._distribution(name, read.given) for name in read.asked}
        return next(iter(found.values())) if len(found) == 1 else found

    def _distribution(self, name: str, given: Mapping[str, Any]) -> Any:
        """Return the density of numbers, or a dict of categories."""
        j = self.place(name)
        if j in self.grids:
            return self.answer_about(j, _possible(self.probabilities(name, *self.known(given)))).density
        categories = self.categories(j)
        if any(self._needs_single(one, finding) for one, finding in given.items()):
            return {one: self._probability({name: one}, given) for one in categories}
        of_codes = _possible(self.probabilities(name, *self.known(given)))[0]
        return dict(zip(categories, of_codes.tolist(), strict=True))

    def _probability(self, event: Mapping[str, Any], given: Mapping[str, Any]) -> float:
        """Return p(event | given), of one column after the other: p(a, b | c) = p(a | c) p(b | a, c).

        A range r of a column that shares a density with others is asked for last, so that nothing is asked given it:
        p(a | r, c) = p(a, r | c) / p(r | c).
        """
        ranges = {name: finding for name, finding in given.items() if self._needs_single(name, finding)}
        if len(ranges) == 1:
            known = {name: finding for name, finding in given.items() if name not in ranges}
            of_range = self._probability(ranges, known)
            if of_range == 0.0:
                raise ValueError(_IMPOSSIBLE)
            return min(self._probability({**event, **ranges}, known) / of_range, 1.0)
        found, known = 1.0, dict(given)
        for name in sorted(event, key=lambda one: self._needs_single(one, event[one])):
            require_probability(self, name, event[name])
            of_codes = likelihood_if_any(self, name, event[name])
            found *= float(_possible(self.probabilities(name, *self.known(known)))[0] @ of_codes) if found else 0.0
            known[name] = event[name]
        return min(found, 1.0)

    def _needs_single(self, name: str, finding: Any) -> bool:
        """Return whether a finding is several values of a column that shares a density with others."""
        is_class = self.place(name) == len(self.schema.columns) - 1
        return _is_several(finding) and not is_class and not self.conditional(name).is_independent

    def answer_about(self, j: int, of_codes: Array) -> Answer:
        """Return the probabilities of the codes of a column as an answer: categories, or cells of numbers."""
        return answer_of(self.schema.columns[j], of_codes, self.grids.get(j))

    def categories(self, j: int) -> list[Any]:
        """Return the categories of a column, in the order of their codes."""
        found: list[Any] = write_column(self.schema.columns[j]).tolist()
        return found


def _is_several(finding: Any) -> bool:
    return isinstance(finding, Not | set | frozenset | list | tuple)


def _possible(probability: Array) -> Array:
    if np.isnan(probability).any():
        raise ValueError(_IMPOSSIBLE)
    return probability
