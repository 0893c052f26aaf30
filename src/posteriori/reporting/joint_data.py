"""Input of a report on a joint model: what columns tell about each other, strange cells and rows, equal rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.joint_model import JointModel
from posteriori.joint.answers import CellFigures, cell_figures
from posteriori.joint.imputation import missing_cells
from posteriori.joint.law import Law
from posteriori.plotting.reading import cells_of
from posteriori.reading import Scan, read_table
from posteriori.reading.known_columns import KnownColumns
from posteriori.reporting.markup import number, percent
from posteriori.reporting.number_data import read_rows
from posteriori.support.formatting import cell_text
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

_FOLLOWS = 0.98  # of the entropy of a column is removed by another one
_ENOUGH = 0.8  # where no row disagrees: the rest is the smoothing of few rows
_LEFT = 0.02  # of the loss of a column that the other cells derive
_NOTHING = 0.01  # of the entropy


@dataclass(frozen=True)
class StrangeCell:
    """A cell that does not fit the other cells of its row."""

    row: int
    column: str
    value: str
    expected: str  # the most probable category with its probability, or mean ± standard deviation
    probability: float  # of the cell given the others; of a number that of its bin
    score: float  # nats


@dataclass(frozen=True)
class JointReport:
    """A fitted joint model and rows of a table."""

    model: JointModel
    X: Any

    @classmethod
    def of(cls, model: JointModel, X: Any) -> JointReport:
        """Open the rows; files and lazy tables are read into memory."""
        check_is_fitted(model)
        table = read_table(X, KnownColumns.of_model(model.schema_, None))
        rows: Any = table.frame if isinstance(table, Scan) else X
        return cls(model, rows.collect() if hasattr(rows, "collect") else rows)

    @property
    def law(self) -> Law:
        """The distribution of the columns."""
        found: Law = self.model.fitted_.law  # type: ignore[attr-defined]
        return found

    @cached_property
    def batch(self) -> Batch:
        """The cells of the rows."""
        return read_rows(self.model, self.X)

    @cached_property
    def figures(self) -> dict[str, CellFigures]:
        """How well each column is predicted, the one that follows most from the others first.

        Columns without known cells are left out, and so are parts of dates, which follow from each other.
        """
        found, columns = cell_figures(self.law, self.model._source(self.X)), self.model.schema_.columns
        known = {columns[j].name: one for j, one in found.items() if one.n and columns[j].part is None}
        return dict(sorted(known.items(), key=lambda item: -explained_share(item[1])))

    @cached_property
    def importance(self) -> Array:
        """`importance_` as an array (known column, other column), NaN on the diagonal and between parts of one date."""
        found = self.model.importance_.drop("known").to_numpy().astype(np.float64)
        sources = np.array([self.model.schema_.columns[j].source for j in self.law.columns])
        found[sources[:, np.newaxis] == sources] = np.nan
        return np.asarray(found)

    @cached_property
    def links(self) -> Array:
        """The greater share of both directions of each pair, (d, d), 0 where there is none."""
        found = np.nan_to_num(self.importance)
        return np.asarray(np.maximum(found, found.T))

    def ordered(self, most: int) -> list[int]:
        """Return the places of at most `most` columns, those with the strongest links, with related ones beside."""
        chosen = np.sort(np.argsort(-self.links.max(axis=1), kind="stable")[:most])
        if len(chosen) < 3:
            return [int(one) for one in chosen]
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        apart = 1.0 - np.minimum(self.links[np.ix_(chosen, chosen)], 1.0)
        np.fill_diagonal(apart, 0.0)
        tree = linkage(squareform(apart, checks=False), "average", optimal_ordering=True)
        return [int(one) for one in chosen[leaves_list(tree)]]

    @cached_property
    def derived(self) -> dict[str, list[str]]:
        """The columns that can be derived, each with those that alone suffice; with none if only all others do."""
        found, names = {}, self.law.names
        for k, name in enumerate(names):
            sources = [names[i] for i in range(len(names)) if self._determines(i, k)]
            one = self.figures.get(name)
            by_all = one is not None and one.loss_alone > 0 and one.loss_given_others <= _LEFT * one.loss_alone
            if sources or by_all:
                found[name] = sources
        return found

    def _determines(self, i: int, k: int) -> bool:
        """Whether one column determines another: it removes nearly all entropy, or much of it and no row disagrees."""
        share = np.nan_to_num(self.importance[i, k])
        if not _ENOUGH <= share < _FOLLOWS:
            return bool(share >= _FOLLOWS)
        coded = self.model.schema_.coded
        codes = self.batch.codes.values[:, [coded.index(self.law.columns[one]) for one in (i, k)]]
        codes = codes[(codes > 0).all(axis=1)]
        return len(np.unique(codes, axis=0)) == len(np.unique(codes[:, 0]))

    @cached_property
    def untold(self) -> list[str]:
        """The columns of several values that nothing tells about."""
        return [
            name
            for k, name in enumerate(self.law.names)
            if self.law.sizes[self.law.columns[k]] > 1
            and np.nan_to_num(self.importance[:, k]).max() < _NOTHING
            and (name not in self.figures or explained_share(self.figures[name]) < _NOTHING)
        ]

    @property
    def constant(self) -> list[str]:
        """The columns of one value."""
        return [self.model.schema_.names[j] for j, size in self.law.sizes.items() if size == 1]

    @cached_property
    def scores(self) -> Array:
        """How strange each cell is, (n, d), as `JointModel.score_cells` returns it."""
        return self.model.score_cells(self.X)

    @cached_property
    def log_density(self) -> Array:
        """Log p(x) of each row, (n,)."""
        return self.model.score_samples(self.X)

    def strange_cells(self, most: int, row: int | None = None) -> list[StrangeCell]:
        """Return the cells with the largest positive scores, of all rows or of one, the largest first."""
        scores = np.nan_to_num(self.scores if row is None else self.scores[row : row + 1])
        order = np.argsort(-scores, axis=None, kind="stable")[:most]
        places = zip(*np.unravel_index(order, scores.shape), strict=True)
        return [self._cell(int(i) + (row or 0), int(j)) for i, j in places if scores[i, j] > 0.0]

    def _cell(self, row: int, j: int) -> StrangeCell:
        one, law, name = self.batch.rows(np.array([row])), self.law, self.model.schema_.names[j]
        given = law.of_others(one, j)
        if j in law.grids:
            density = law.answer(j, given).density
            expected = f"{number(density.mean[0])} ± {number(density.std[0], 3)}"
        else:
            best = int(given[0].argmax())
            expected = f"{cell_text(law.categories(j)[best])} ({percent(float(given[0, best]))})"
        probability = float((given * law.likelihoods(one)[j]).sum())
        return StrangeCell(row, name, self._text(one, j), expected, probability, float(self.scores[row, j]))

    def _text(self, row: Batch, j: int) -> str:
        """Return a cell of one row, of a column that has tables, as text."""
        cell = float(cells_of(row, j)[0])
        if np.isnan(cell):
            return cell_text(None)
        return number(cell, 6) if j in self.law.grids else cell_text(self.law.categories(j)[int(cell) - 1])

    def row_texts(self, row: int) -> list[str]:
        """Return the cells of a row with their columns."""
        one, names = self.batch.rows(np.array([row])), self.model.schema_.names
        return [f"{names[j]} = {self._text(one, j)}" for j in self.law.columns]

    def strange_rows(self, most: int) -> Array:
        """Return the rows of the lowest log p(x), the lowest first."""
        return np.argsort(self.log_density, kind="stable")[:most]

    @cached_property
    def repeated(self) -> list[list[int]]:
        """The rows that are equal in all columns that the model reads, the most frequent first; see `equal_rows`."""
        return equal_rows(self.X, self.model.schema_)


def explained_share(figures: CellFigures) -> float:
    """Return the share of the loss of a column that the other cells of its rows take away; 0 if they do not help."""
    if figures.loss_alone <= 0:
        return 0.0
    return max(0.0, 1.0 - figures.loss_given_others / figures.loss_alone)


def equal_rows(X: Any, schema: Schema) -> list[list[int]]:
    """Return the rows that occur several times, as groups of positions, the largest first.

    Cells are compared as the table holds them, not by bins or codes; missing cells are equal to each other. Ignored
    columns, such as identifiers, are not compared.
    """
    if not (schema.named and nw.dependencies.is_into_dataframe(X)):
        X = np.asarray(X, object)
    given = list(schema.given)
    read = {column.source for column in schema.columns if not column.is_ignored}
    cells = []
    for name, lacks in missing_cells(X, given).items():
        if name in read:
            is_array = isinstance(X, np.ndarray)
            column = X[:, given.index(name)].tolist() if is_array else nw.from_native(X)[name].to_list()
            cells.append([None if is_missing else one for one, is_missing in zip(column, lacks, strict=True)])
    groups: dict[tuple[Any, ...], list[int]] = {}
    for i, row in enumerate(zip(*cells, strict=True)):
        groups.setdefault(row, []).append(i)
    return sorted((one for one in groups.values() if len(one) > 1), key=lambda one: -len(one))
