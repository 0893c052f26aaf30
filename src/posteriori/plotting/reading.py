"""Quantities that figures need from a fitted model: densities of one feature, posteriors, class indices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.dependence import KDependenceBayes
from posteriori.classifiers.estimator import OfClasses
from posteriori.classifiers.trees import ChowLiuTree, TreeAugmentedNaiveBayes
from posteriori.model import (
    Posterior,
    batch_of_column,
    cannot_hold,
    draw_components,
    draw_rows,
    log_marginal,
    reject_outside,
)
from posteriori.reading import read_labels, read_table
from posteriori.sources.table_source import warn_of_unseen
from posteriori.support.checks import LARGEST
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema, quote
from posteriori.tables.batch import joined

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LARGEST_LOG = 500.0  # of a density; a score that is no density (`Complement`) may be larger than a float holds


_FEWEST = 20  # cells, to judge the tails
_HEAVY = 8.0  # times the usual distance from 0
_NARROWEST = 1e-200  # of the largest number, so that quotients stay finite
_LARGEST = 1e308  # a margin beyond it would be infinite
_LARGEST_SINH = 710.0  # sinh of more overflows
_MARGIN = 0.06  # of the range of the numbers
_MOST_CUTS = 1000  # that are drawn as jumps


def evenly(n: int, most: int) -> Array:
    """Return at most so many positions of n rows, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))


def posterior_of(model: OfClasses) -> Posterior:
    """Return the posterior of a fitted classifier, under the class prior of its training rows."""
    check_is_fitted(model)
    return model.fitted_.training_posterior


def read_batch(model: OfClasses, X: Any) -> Batch:
    """Return rows as one batch of numbers and codes; warn of categories unseen in training."""
    batch = joined(list(model._source(X).stream(lambda batch: batch)))
    if batch.unseen:
        warn_of_unseen(batch.unseen)
    return batch.with_schema(posterior_of(model).schema)


def cells_of(rows: Batch, column: int) -> Array:
    """Return the cells of a column as numbers or codes, NaN where missing; all NaN in another kind of column.

    Numbers beyond ±1e150 are that: greater ones have no place on an axis, whose margins would overflow.
    """
    schema = rows.schema
    if schema.columns[column].kind not in ("continuous", "categorical"):
        return np.full(len(rows), np.nan)
    if schema.columns[column].kind == "continuous":
        values = rows.numbers.values[:, schema.of_kind("continuous").index(column)].astype(np.float64)
        return np.clip(values, -LARGEST, LARGEST)
    codes = rows.codes.values[:, schema.coded.index(column)]
    return np.where(codes == 0, np.nan, codes)


@dataclass(frozen=True)
class Scale:
    """Axis on which a number x is at u(x): x itself, or arsinh(x / w), linear near 0 and logarithmic beyond w."""

    width: float | None = None  # w, in data units; None for a linear axis

    @classmethod
    def of(cls, cells: Array) -> Scale:
        """Choose the scale for the cells of a column, without missing ones.

        It is linear unless the greatest absolute value is more than 8 times the sum of the interquartile range and
        the absolute median, or, where more than three quarters of the cells are 0, 8 times a small value other than
        0 (their 10 % quantile).
        """
        size = np.abs(cells)
        nonzero = size[size > 0]
        if len(cells) < _FEWEST or len(np.unique(nonzero)) < _FEWEST:
            return cls()
        low, middle, high = np.quantile(cells, [0.25, 0.5, 0.75])
        small = float(np.quantile(nonzero, 0.1))
        usual = float(high - low + abs(middle)) or small
        small = max(small, float(size.max()) * _NARROWEST)
        return cls(small) if size.max() > _HEAVY * usual else cls()

    def position(self, x: Array) -> Array:
        """Return u(x)."""
        return x if self.width is None else np.arcsinh(x / self.width)

    def number(self, u: Array) -> Array:
        """Return the number x at a position u; beyond ±1e308 it is that."""
        if self.width is None:
            return u
        most = min(math.log(2.0) + math.log(_LARGEST) - math.log(self.width), _LARGEST_SINH)
        number: Array = self.width * np.sinh(np.clip(u, -most, most))
        return number

    def grid(self, low: float, high: float, points: int) -> Array:
        """Return numbers that are evenly spaced along the axis, from low to high."""
        ends = self.position(np.array([low, high]))
        return np.clip(self.number(np.linspace(float(ends[0]), float(ends[1]), points)), low, high)

    def per_unit_of_axis(self, x: Array, density: Array) -> Array:
        """Convert a density per data unit to one per unit of the axis, p(x)·dx/du, so that areas are probabilities."""
        return density if self.width is None else density * np.hypot(x, self.width)

    def apply(self, ax: Axes) -> None:
        """Give the horizontal axis this scale."""
        if self.width is None:
            return
        from matplotlib.ticker import AsinhLocator, FuncFormatter

        ax.set_xscale("asinh", linear_width=self.width)
        ax.xaxis.set_major_locator(AsinhLocator(self.width, numticks=8, base=10))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.6g}".replace("-", "\N{MINUS SIGN}")))


@dataclass(frozen=True)
class Feature:
    """Column of a fitted classifier, with its marginal densities.

    Its cells are numbers or codes, (n,); NaN where missing.
    """

    fitted: Posterior
    position: int

    @classmethod
    def of(cls, model: OfClasses, feature: str | int) -> Feature:
        """Find a feature by its name or index; raise ValueError if it does not exist."""
        fitted = posterior_of(model)
        return cls(fitted.ignore_missingness_except(()), _position(fitted.schema, feature))

    @property
    def column(self) -> Column:
        """Name, kind and categories of the column."""
        return self.fitted.schema.columns[self.position]

    @property
    def cuts(self) -> Array:
        """Positions where the density may jump: the cut points of all models."""
        points = (model.schema.columns[self.position].cuts or () for model in self.fitted.models)
        return np.array(sorted({point for one in points for point in one}), np.float64)

    @property
    def categorical(self) -> bool:
        """Whether the column is categorical."""
        return self.column.kind == "categorical"

    @cached_property
    def whole(self) -> bool:
        """Whether the distribution is discrete on whole numbers."""
        return self.categorical or bool(self.out_of_support(np.array([0.5]))[0])

    def out_of_support(self, cells: Array) -> Array:
        """Return which cells are out of support, (n,): cells that one of the models cannot produce."""
        outside: Array = np.any([cannot_hold(model, self.position, cells) for model in self.fitted.models], axis=0)
        return outside

    def densities(self, cells: Array) -> Array:
        """Return p(x_j | y), (n, C); for a pool, the mixture of the members by their normalized weights."""
        each = [
            np.exp(np.minimum(log_marginal(model, self.position, cells), _LARGEST_LOG)) for model in self.fitted.models
        ]
        return np.tensordot(self.fitted.shares, each, axes=1)

    def log_density(self, cells: Array) -> Array:
        """Return the marginal log p(x_j) in nats, (n,)."""
        log_prior = self.fitted.class_log_prior
        with np.errstate(divide="ignore"):
            log_shares = np.log(self.fitted.shares)
        each = [log_marginal(model, self.position, cells) + log_prior for model in self.fitted.models]
        stacked = np.concatenate([one + share for one, share in zip(each, log_shares, strict=True)], axis=1)
        log_density: Array = np.logaddexp.reduce(stacked, axis=1)
        return log_density

    def posterior(self, cells: Array) -> Array:
        """Return p(y | x_j), (n, C), with all other columns missing; NaN if no class can produce the cell."""
        return np.exp(self.fitted.log_posterior(batch_of_column(self.fitted.schema, self.position, cells)))

    def around(self, cells: Array) -> tuple[float, float]:
        """Return the range of the cells of some rows with a margin; ValueError if all are missing."""
        if np.isnan(cells).all():
            raise ValueError(f"column {self.column.name!r} of X has no cell with a value, so no range")
        low, high = float(np.nanmin(cells)), float(np.nanmax(cells))
        margin = _MARGIN * (high - low) or 1.0
        return low - margin, high + margin

    def along(self, points: Array, most_cuts: int = _MOST_CUTS) -> Array:
        """Return the points of a curve within the support: whole numbers, or two points beside each jump."""
        if self.whole:
            points = np.unique(points.round())
        else:
            cuts = self.cuts[(self.cuts > points[0]) & (self.cuts < points[-1])]
            cuts = cuts[evenly(len(cuts), most_cuts)]
            points = np.unique(np.concatenate([points, cuts, np.nextafter(cuts, -np.inf)]))
        return points[~self.out_of_support(points)]

    def training_range(self, model: OfClasses) -> tuple[float, float] | None:
        """Return the smallest and the largest number of the training rows; None if they are unknown."""
        ranges = model.fitted_.first.ranges
        if ranges is None or not ranges.lowest[self.position] <= ranges.highest[self.position]:
            return None
        return float(ranges.lowest[self.position]), float(ranges.highest[self.position])

    def sample(self, label: Array) -> Array:
        """Sample one cell per given class from each model that has a share of p(x), (M, n), with a fixed seed."""
        drawn = []
        for model in (self.fitted.models[m] for m in np.flatnonzero(self.fitted.shares)):
            rng = np.random.default_rng(0)
            drawn.append(draw_rows(model, draw_components(model, label, rng), rng)[self.position])
        return np.stack(drawn)

    def read(self, model: OfClasses, X: Any) -> Array:
        """Return the cells of the rows; raise ValueError if a cell is out of support."""
        pairs = [(one, [b for b in one.blocks if self.position in b.columns]) for one in self.fitted.models]

        def read_batch(batch: Batch) -> Array:
            for one, blocks in pairs:
                for block in blocks:
                    reject_outside(block, batch.with_schema(one.schema))
            if self.categorical:
                codes = batch.codes.values[:, batch.schema.coded.index(self.position)]
                return np.where(codes == 0, np.nan, codes)
            return batch.numbers.values[:, batch.schema.of_kind("continuous").index(self.position)]

        cells: Array = model._source(X).map(read_batch)
        return cells


def _position(schema: Schema, feature: Any) -> int:
    n_features = len(schema.names)
    if feature in schema.names:
        position = schema.names.index(feature)
    elif isinstance(feature, int | np.integer) and -n_features <= feature < n_features:
        position = int(feature) % n_features
    else:
        raise ValueError(
            f"{feature!r} is not the name or the index of a feature; the features are {quote(schema.names)}"
        )
    column = schema.columns[position]
    if column.is_ignored:
        raise ValueError(f"{quote([column.name])} is ignored: {column.reason}; name it in keep and fit again")
    return position


Parents = dict[str, dict[str, float | None]]  # of each column, with their information in nats where it is known


def parents_of(model: OfClasses) -> dict[Any, Parents]:
    """Return the parents of each column by class; the key None if all classes share them; empty for other models."""
    if not model._is_fitted:
        return {}
    if isinstance(model, KDependenceBayes):
        return {None: {child: dict.fromkeys(of_child) for child, of_child in model.parents_.items()}}
    if not isinstance(model, TreeAugmentedNaiveBayes | ChowLiuTree):
        return {}

    def informed(tree: Any, nats: Any) -> Parents:
        return {child: {} if one is None else {one: float(nats[one, child])} for child, one in tree.items()}

    tree: dict[Any, Any] = model.tree_
    nats: dict[Any, Any] = model.edge_information_
    if any(isinstance(one, dict) for one in tree.values()):
        return {label: informed(tree[label], nats[label]) for label in tree}
    return {None: informed(tree, nats)}


def given_class_numbers(classes: Array, y: Any, X: Any) -> Array | None:
    """Return the class index of each row, (n,), and None without labels; ValueError if there are labels and no rows."""
    if y is None:
        return None
    if X is None:
        raise ValueError("y needs X; give the rows that it labels too")
    return class_numbers(classes, y, X)


def class_numbers(classes: Array, y: Any, X: Any) -> Array:
    """Return the class index of each row, (n,); y may be the name of a column of X."""
    table = read_table(X)
    column = Column("y", "categorical", tuple(classes.tolist()))
    return read_labels(y, table).components(column, slice(0, table.n_rows))
