"""A drawn table beside a real one: columns, pairs of columns, a classifier that tells them apart, and copied rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl

from posteriori.classifiers import GenerativeClassifier
from posteriori.comparison.result import text_table
from posteriori.fitting.parameter_groups import Columns
from posteriori.joint.copies import row_keys
from posteriori.model_selection.metrics import area_under_curve
from posteriori.plotting.reading import cells_of
from posteriori.reading import infer_schema, read_rows, read_table
from posteriori.sources import source_of
from posteriori.support.formatting import plural
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema, Table, quote
from posteriori.user_warnings import warn

_BINS = 8  # of a column of numbers, by quantiles of the real rows
_MOST_CODES = 20  # of a column of categories; rarer ones are one
_ROWS_OF_PAIRS = 20_000
_ROWS_TO_JUDGE = 5000  # of each table, for the classifier
_FEWEST_TO_JUDGE = 20  # distinct rows
_ROWS_ASKED, _ROWS_NEAR = 1000, 5000  # whose nearest real row is looked for, and real rows that it is looked for among
_ROWS_AT_ONCE = 100
_SHOWN = 5  # pairs in the text


@dataclass(frozen=True)
class TableComparison:
    """How a drawn table differs from a real one.

    Attributes
    ----------
    columns : polars DataFrame
        A line per column, the greatest distance first: ``column``, ``kind``, ``distance`` in [0, 1], and the shares of
        missing cells, ``missing_real`` and ``missing_drawn``. The distance of known cells is the total variation of
        categories, and the Kolmogorov–Smirnov distance of numbers; NaN if a table has none.
    pairs : polars DataFrame
        A line per pair of columns, the greatest difference first: ``column``, ``other``, ``real`` and ``drawn``, which
        are Cramér's V in each table, in [0, 1], without its bias, and ``difference``, drawn less real. Numbers count by
        their eighths of the real rows.
    auc : float
        The AUC of a pool (`GenerativeClassifier`) that tells real from drawn rows, held out by cross-validation with
        equal rows in one fold: 0.5 if it cannot, 1 if it always can. NaN for fewer than 20 distinct rows.
    copies : float
        The share of drawn rows that equal a real row in all columns; missing cells are equal.
    repeats : float
        The share of real rows that equal another real row.
    nearest : polars DataFrame
        The distance to the nearest real row, of ``rows`` "drawn", and of "real" rows to another one: its 5 % quantile
        ``q05`` and its ``median``. It is the mean over the columns of the difference of numbers over their range, and
        of 0 or 1 for categories and cells that one row lacks (Gower).
    n_real, n_drawn : int
        The numbers of rows.
    """

    columns: pl.DataFrame
    pairs: pl.DataFrame
    auc: float
    copies: float
    repeats: float
    nearest: pl.DataFrame
    n_real: int
    n_drawn: int

    @property
    def sentences(self) -> list[str]:
        """The facts, a sentence each."""
        known = self.columns.filter(pl.col("distance").is_finite())
        found = []
        if len(known):
            worst = known.row(0, named=True)
            most = f", {worst['column']!r} most, by {worst['distance']:.3f}" if worst["distance"] else ""
            found.append(f"Columns differ by {np.mean(known['distance'].to_numpy()):.3f} on average{most}.")
        if len(self.pairs):
            pair = self.pairs.row(0, named=True)
            most = (
                f", that of {pair['column']!r} and {pair['other']!r} most: {pair['real']:.3f} in the real table, "
                f"{pair['drawn']:.3f} in the drawn one"
            )
            mean = float(np.abs(self.pairs["difference"].to_numpy()).mean())
            found.append(f"The dependence of pairs differs by {mean:.3f} on average{most if mean else ''}.")
        found.append(
            "Too few rows for a classifier that tells real from drawn rows."
            if np.isnan(self.auc)
            else f"A classifier that tells real from drawn rows has an AUC of {self.auc:.3f} (0.5: it cannot)."
        )
        found.append(
            f"{self.copies:.1%} of the drawn rows are copies of a real row; {self.repeats:.1%} of the real rows equal "
            "another real row."
        )
        drawn, real = self.nearest.rows(named=True)
        found.append(
            f"The nearest real row is at a distance of {drawn['median']:.4f} from a drawn row (median; 5 % quantile "
            f"{drawn['q05']:.4f}), and of {real['median']:.4f} from another real row ({real['q05']:.4f})."
        )
        return found

    def __str__(self) -> str:
        head = f"{plural(self.n_drawn, 'drawn row')} beside {plural(self.n_real, 'real row')}"
        names = ["column", "distance", "missing: real", "drawn"]
        columns = [
            [row["column"], *(f"{row[one]:.3f}" for one in ("distance", "missing_real", "missing_drawn"))]
            for row in self.columns.iter_rows(named=True)
        ]
        pairs = [
            [f"{row['column']} – {row['other']}", *(f"{row[one]:.3f}" for one in ("real", "drawn"))]
            for row in self.pairs.head(_SHOWN).iter_rows(named=True)
        ]
        parts = [head, text_table(names, columns)]
        if pairs:
            parts.append(text_table(["dependence of", "real", "drawn"], pairs))
        return "\n\n".join([*parts, "\n".join(self.sentences)])


def compare_tables(real: Any, drawn: Any, *, random_state: Any = 0) -> TableComparison:
    """Compare a drawn table with a real one: how like it is, and whether it repeats its rows.

    Parameters
    ----------
    real, drawn : array-like, data frame or path
        Tables of the same columns; those that one of them lacks are left out, with a warning. So are columns that
        identify the real rows, and columns without a value in one table, which `TableComparison.columns` lists.
    random_state : int, default 0
        Seed of the samples of large tables, and of the classifier.

    Returns
    -------
    TableComparison

    Raises
    ------
    ValueError
        The tables share no column, or a column holds numbers in one and categories in the other.

    Notes
    -----
    A good synthetic table has small distances, small differences of dependences and an AUC near 0.5, and is not nearer
    to the real rows than these are to each other. The facts of columns and copies are of all rows, those of pairs of at
    most 20,000, the classifier of 5,000 of each table, and the nearest rows of 1,000, among 5,000 real ones. For an
    honest AUC, the real rows should be others than those that the model learned from.

    Cost: O(n d²) for n rows of d columns, and a fit of a pool, in seconds.

    References
    ----------
    Gower, A general coefficient of similarity and some of its properties, Biometrics 27 (1971). Bergsma, A
    bias-correction for Cramér's V and Tschuprow's T, Journal of the Korean Statistical Society 42 (2013). Lopez-Paz &
    Oquab, Revisiting classifier two-sample tests, ICLR (2017).

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> drawn = po.JointModel().fit(penguins).sample(344, random_state=0, no_copies=True)
    >>> found = po.compare_tables(penguins, drawn)
    >>> found.copies, found.columns["distance"].max() < 0.1
    (0.0, True)
    """
    rng = np.random.default_rng(random_state)
    schema, cells = _read_both(real, drawn)
    every = list(range(len(schema.columns)))
    columns = pl.DataFrame([_of_column(schema.columns[j], *(one[:, j] for one in cells)) for j in every])
    left = [j for j in every if all((~np.isnan(one[:, j])).any() for one in cells)]
    if not left:
        raise ValueError("no column has a value in both tables; give tables of the same columns")
    if len(left) < len(every):
        lacking = [schema.names[j] for j in every if j not in left]
        warn(f"no value in one of the tables: {quote(lacking)}; left out of pairs, copies and the classifier")
    schema = replace(schema, columns=tuple(schema.columns[j] for j in left))
    cells = cells[0][:, left], cells[1][:, left]
    keys = [row_keys(one) for one in cells]
    of_real = Counter(keys[0])
    return TableComparison(
        columns.sort("distance", descending=True, nulls_last=True, maintain_order=True),
        _pairs(schema, [_sample(one, _ROWS_OF_PAIRS, rng) for one in cells]),
        _auc(schema, [_sample(one, _ROWS_TO_JUDGE, rng) for one in cells], int(rng.integers(2**31))),
        float(np.mean([key in of_real for key in keys[1]])),
        float(np.mean([of_real[key] > 1 for key in keys[0]])),
        _nearest(schema, *cells, rng),
        len(cells[0]),
        len(cells[1]),
    )


# Reading -----------------------------------------------------------------------------------------------------------


def _read_both(real: Any, drawn: Any) -> tuple[Schema, tuple[Array, Array]]:
    """Return the columns that both tables have, and the cells of each, (n, d): numbers or codes, NaN where missing."""
    first = read_table(real)
    mine = infer_schema(first, keep=(), dates="parts")
    second = read_rows(drawn, mine, "the real table")
    places = _shared_places(first, second)
    at = list(places), list(places.values())
    shared = {first.names[j] for j in places}
    mine = replace(mine, columns=tuple(column for column in mine.columns if column.source in shared))
    theirs = _schema_of_drawn(mine, second, at[1])
    pairs = list(zip(mine.columns, theirs.columns, strict=True))
    schema = replace(mine, columns=tuple(_joined(*pair) for pair in pairs))
    found = [_cells(*one, schema) for one in zip((first, second), at, strict=True)]
    compared = [j for j, one in enumerate(schema.columns) if one.kind in ("continuous", "categorical")]
    kept = replace(schema, columns=tuple(schema.columns[j] for j in compared))
    return kept, (found[0][:, compared], found[1][:, compared])


def _shared_places(real: Table, drawn: Table) -> dict[int, int]:
    """Return the position in the drawn table of each column of the real one that both have, by its position."""
    if not (real.named and drawn.named):
        if len(real.names) != len(drawn.names):
            raise ValueError(
                f"the real table has {len(real.names)} columns and the drawn one {len(drawn.names)}; give the same ones"
            )
        return {j: j for j in range(len(real.names))}
    place = {name: k for k, name in enumerate(drawn.names)}
    found = {j: place[name] for j, name in enumerate(real.names) if name in place}
    if not found:
        raise ValueError("the tables have no column in common; give a drawn table of the columns of the real one")
    for table, others in (("real", drawn.names), ("drawn", real.names)):
        lone = [name for name in (real if table == "real" else drawn).names if name not in others]
        if lone:
            warn(f"only the {table} table has {quote(lone)}; left out")
    return found


def _schema_of_drawn(mine: Schema, table: Table, positions: Sequence[int]) -> Schema:
    """Return the columns of the drawn table, of the kinds of the real one where its data types allow."""
    of_source: dict[str, list[Column]] = {}
    for column in mine.columns:
        of_source.setdefault(column.source, []).append(column)
    sources = dict(zip(positions, of_source.values(), strict=True))
    known = {j: tuple(one) for j, one in sources.items() if one[0].is_ignored or one[0].part is not None}
    categorical = [j for j, one in sources.items() if j not in known and one[0].kind == "categorical"]
    return infer_schema(table, positions, categorical, known=known)


def _joined(mine: Column, theirs: Column) -> Column:
    """Return the column that covers both tables."""
    both = not (mine.has_no_kind or theirs.has_no_kind or mine.is_ignored)
    if both and (mine.kind != theirs.kind or not (mine.kinds & theirs.kinds or not mine.kinds)):
        words = [
            "numbers" if one.kind == "continuous" else f"categories that are {' and '.join(sorted(one.kinds))}"
            for one in (mine, theirs)
        ]
        raise ValueError(
            f"column {mine.name!r} holds {words[0]} in the real table and {words[1]} in the drawn one; convert one"
        )
    return mine.extended(theirs, mixed=True)


def _cells(table: Table, places: Sequence[int], schema: Schema) -> Array:
    def of_batch(batch: Any) -> Array:
        return np.column_stack([cells_of(batch, j) for j in range(len(schema.columns))])

    return np.concatenate(list(source_of(table, schema, schema.spread(places)).stream(of_batch, "reading")))


def _sample(cells: Array, most: int, rng: np.random.Generator) -> Array:
    """Return the rows in random order, at most so many."""
    return np.asarray(cells[rng.permutation(len(cells))[:most]])


# Columns and pairs -------------------------------------------------------------------------------------------------


def _of_column(column: Column, real: Array, drawn: Array) -> dict[str, Any]:
    known = [one[~np.isnan(one)] for one in (real, drawn)]
    distance = np.nan
    if min(map(len, known)):
        values = np.unique(np.concatenate(known))
        below = [np.searchsorted(np.sort(one), values, side="right") / len(one) for one in known]
        apart = below[0] - below[1]
        is_number = column.kind == "continuous"
        distance = float(np.abs(apart).max() if is_number else np.abs(np.diff(apart, prepend=0.0)).sum() / 2.0)
    missing = [1.0 - len(some) / len(one) for some, one in zip(known, (real, drawn), strict=True)]
    kind = "numbers" if column.kind == "continuous" else "categories"
    names = ("column", "kind", "distance", "missing_real", "missing_drawn")
    return dict(zip(names, (column.name, kind, distance, *missing), strict=True))


def _pairs(schema: Schema, cells: Sequence[Array]) -> pl.DataFrame:
    coded = [_codes(column, *(one[:, j] for one in cells)) for j, column in enumerate(schema.columns)]
    lines = []
    for a, b in combinations(range(len(coded)), 2):
        real, drawn = (cramers_v(one, other) for one, other in zip(coded[a], coded[b], strict=True))
        lines.append((schema.names[a], schema.names[b], real, drawn, drawn - real))
    number = pl.Float64()
    types = {"column": pl.String(), "other": pl.String(), "real": number, "drawn": number, "difference": number}
    found = pl.DataFrame(lines, types, orient="row")
    return found.sort(pl.col("difference").abs(), descending=True, maintain_order=True)


def _codes(column: Column, *cells: Array) -> list[Array]:
    """Return the codes of the cells of a column in both tables, −1 where missing: bins of numbers, or categories."""
    if column.kind == "continuous":
        known = cells[0][~np.isnan(cells[0])]
        # A frequent value may be several quantiles; a cut just above each keeps it apart from others.
        cuts = np.unique(np.quantile(known, np.arange(1, _BINS) / _BINS, method="inverted_cdf"))
        return [np.where(np.isnan(one), -1, np.searchsorted(cuts, one, side="left")) for one in cells]
    values, counts = np.unique(np.concatenate(cells), return_counts=True)
    counts, values = counts[~np.isnan(values)], values[~np.isnan(values)]
    code = np.full(len(values), _MOST_CODES - 1)
    frequent = np.argsort(-counts, kind="stable")[: _MOST_CODES - (len(values) > _MOST_CODES)]
    code[frequent] = np.arange(len(frequent))
    return [np.where(np.isnan(one), -1, code[np.searchsorted(values[:-1], one)]) for one in cells]


def cramers_v(one: Array, other: Array) -> float:
    """Return Cramér's V of two columns of codes, less its bias, in [0, 1]; 0 if one is constant. Code −1 is missing.

    Examples
    --------
    >>> codes = np.arange(400) % 4
    >>> cramers_v(codes, codes), cramers_v(codes // 2, codes % 2), cramers_v(codes, codes * 0)
    (1.0, 0.0, 0.0)
    """
    known = (one >= 0) & (other >= 0)
    n = int(known.sum())
    if n < 2:
        return 0.0
    width = int(other.max()) + 1
    counts = np.bincount(one[known] * width + other[known], minlength=(int(one.max()) + 1) * width).reshape(-1, width)
    counts = counts[np.ix_(counts.any(axis=1), counts.any(axis=0))]
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    sizes = np.array(counts.shape, np.float64)
    phi = float(((counts - expected) ** 2 / expected).sum()) / n - float((sizes - 1.0).prod()) / (n - 1)
    least = float((sizes - (sizes - 1.0) ** 2 / (n - 1)).min()) - 1.0
    return min(float(np.sqrt(max(phi, 0.0) / least)), 1.0) if least > 1e-9 else 0.0


# Rows --------------------------------------------------------------------------------------------------------------


def _auc(schema: Schema, cells: Sequence[Array], seed: int) -> float:
    """Return the held-out AUC of a pool that tells real from drawn rows; equal rows are in the same fold."""
    both = np.concatenate(cells)
    place: Mapping[bytes, int] = {key: k for k, key in enumerate(dict.fromkeys(row_keys(both)))}
    if len(place) < _FEWEST_TO_JUDGE or min(map(len, cells)) < _FEWEST_TO_JUDGE // 2:
        return float("nan")
    frame = pl.DataFrame([_series(f"c{j}", column, both[:, j]) for j, column in enumerate(schema.columns)])
    labels = np.repeat([0, 1], [len(one) for one in cells])
    pool = GenerativeClassifier(random_state=seed, columns=Columns(keep=frame.columns, text=None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its folds and members, which are no concern of the caller
        held_out = pool.fit(frame, labels, groups=np.array([place[key] for key in row_keys(both)])).out_of_fold_
    return area_under_curve(held_out.y_true, np.exp(held_out.log_posterior))


def _series(name: str, column: Column, cells: Array) -> pl.Series:
    known = ~np.isnan(cells)
    if column.kind == "continuous":
        return pl.Series(name, cells, nan_to_null=True)
    codes = np.where(known, cells, 0.0).astype(np.int64).tolist()
    return pl.Series(name, [str(code) if code else None for code in codes], pl.String)


def _nearest(schema: Schema, real: Array, drawn: Array, rng: np.random.Generator) -> pl.DataFrame:
    """Return the quantiles of the distance to the nearest real row, of drawn rows, and of real rows to others."""
    near = _sample(real, _ROWS_NEAR, rng)
    is_number = np.array([column.kind == "continuous" for column in schema.columns])
    span = np.nanmax(real, axis=0) - np.nanmin(real, axis=0)
    # Of categories any difference counts 1, and so it does of numbers that are constant in the real table.
    scale = np.where(is_number & (span > 0), span, np.finfo(np.float64).tiny)
    lines = []
    for rows, asked in (("drawn", _sample(drawn, _ROWS_ASKED, rng)), ("real", near[:_ROWS_ASKED])):
        found = np.empty(len(asked))
        for start in range(0, len(asked), _ROWS_AT_ONCE):
            part = slice(start, min(start + _ROWS_AT_ONCE, len(asked)))
            apart = _distances(asked[part], near, scale)
            if rows == "real":
                apart[np.arange(len(apart)), np.arange(part.start, part.stop)] = np.inf
            found[part] = apart.min(axis=1)
        found = found[np.isfinite(found)]  # a single real row has no other
        q05, median = np.quantile(found, [0.05, 0.5]) if len(found) else (np.nan, np.nan)
        lines.append({"rows": rows, "q05": float(q05), "median": float(median)})
    return pl.DataFrame(lines)


def _distances(one: Array, other: Array, scale: Array) -> Array:
    """Return the Gower distance of the rows of two tables, (n, m)."""
    total = np.zeros((len(one), len(other)))
    for j, unit in enumerate(scale):
        with np.errstate(over="ignore"):
            apart = np.minimum(np.abs(one[:, j, np.newaxis] - other[:, j]) / unit, 1.0)
        lacks = np.isnan(one[:, j])[:, np.newaxis], np.isnan(other[:, j])
        total += np.where(lacks[0] | lacks[1], lacks[0] != lacks[1], apart)
    return total / len(scale)
