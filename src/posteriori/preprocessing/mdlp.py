"""Supervised discretisation by minimum description length (MDL)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from posteriori.densities import Binned
from posteriori.learning.cut_points import binned_schema
from posteriori.model import Block, reject_outside
from posteriori.reading import check_weights, infer_schema, read_labels, read_table
from posteriori.reading.matching import matched_places
from posteriori.sources import source_of
from posteriori.support.constraints import N_JOBS
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema, quote
from posteriori.tables.arrays import write_column


class MDLPDiscretizer(TransformerMixin, BaseEstimator):
    r"""Supervised discretisation: recursive minimisation of the class entropy, stopped by minimum description length.

    Each column is cut where the class entropy of the two parts is smallest, if the information gain exceeds the cost of
    describing the cut,

    .. math:: H(S) - \tfrac{N_1}{N} H(S_1) - \tfrac{N_2}{N} H(S_2) > \frac{\log_2 (N - 1)}{N}
              + \frac{\log_2 (3^k - 2) - k H(S) + k_1 H(S_1) + k_2 H(S_2)}{N},

    with N rows and k classes in S. Then the parts are cut by the same rule. A column without information about the
    classes stays in one bin. ``distributions="binned"`` and ``bins="mdlp"`` of the classifiers choose the same cut
    points by the same rule.

    Up to 50,000 rows (fewer with more than 167 columns) cut points are exact: every distinct value is a candidate, and
    a cut point lies midway between two of them. With more rows, all rows are counted between 1000 quantiles of a
    uniform sample of that size, and the cut points are chosen among these quantiles.

    Parameters
    ----------
    n_jobs : int, optional
        The number of threads; None or −1 for one per core. The result does not depend on it.

    Attributes
    ----------
    cuts_ : list of ndarray
        The cut points of each column, strictly increasing, in data units; bin b holds cuts[b − 1] ≤ x < cuts[b].
    bin_edges_ : list of ndarray
        The cut points of each column between −inf and inf.
    n_bins_ : ndarray (d,)
        The number of bins of each column; 1 if it is not cut.
    classes_ : ndarray (C,)
    n_features_in_ : int
    feature_names_in_ : ndarray (d,)
        The names of the columns, if they have names.

    Notes
    -----
    Cost: a pass over the rows and a sort of each column, O(n·log n) for n rows up to 50,000, then O(n) per level of the
    recursion. More rows take a second pass, O(n·d). At most twice 50,000 rows are in memory.

    References
    ----------
    Fayyad & Irani, Multi-interval discretization of continuous-valued attributes for classification learning, IJCAI
    1993, section 3.

    Examples
    --------
    >>> import numpy as np
    >>> import posteriori as po
    >>> X = np.array([[1.0, 5.0], [2.0, 7.0], [3.0, np.nan], [7.0, 6.0], [8.0, 5.0], [9.0, 7.0]])
    >>> bins = po.preprocessing.MDLPDiscretizer().fit(X, ["a", "a", "a", "b", "b", "b"])
    >>> bins.cuts_
    [array([5.]), array([], dtype=float64)]
    >>> bins.transform([[4.0, 6.0], [5.0, np.nan]])
    array([[ 0.,  0.],
           [ 1., nan]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"n_jobs": N_JOBS}

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the cut points.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            Numbers. NaN, None and null are missing cells, which do not affect the cut points.
        y : array-like (n,) or str
            The class of each row, or the name of the column of X that holds it.
        sample_weight : array-like (n,), optional
            The weight of each row, ≥ 0: a row of weight k counts as k rows. Weights that sum to less than 2 give no
            cut, so do not normalise them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A column is categorical, a cell is infinite, a label is missing or a weight is negative.
        """
        self._validate_params()
        if y is None:
            raise ValueError("MDLPDiscretizer requires y to be passed, but the target y is None")
        table = read_table(X)
        labels = read_labels(y, table)
        classes = labels.infer()
        weight = check_weights(sample_weight, table.n_rows)
        positions = [j for j in range(len(table.names)) if labels.name is None or j != labels.position]
        if not positions:
            raise ValueError(f"X has no column beside the target {labels.name!r}; give at least one feature")
        schema = _numeric(infer_schema(table, positions, target=labels.name))
        source = source_of(table, schema, positions, labels, classes, weight, n_jobs=self.n_jobs, local=True)
        self._schema = binned_schema(source, dict.fromkeys(range(len(positions)), "mdlp"), self.n_jobs)
        self.cuts_ = [np.array(column.cuts) for column in self._schema.columns]
        self.classes_ = write_column(classes)
        self.n_features_in_ = len(positions)
        if schema.named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def transform(self, X: Any) -> Any:
        """Return the index of the bin of each cell, from 0.

        Parameters
        ----------
        X : array-like or data frame (n, d)

        Returns
        -------
        ndarray of float64 (n, d)
            NaN if the cell is missing; a frame if `set_output` selects one.

        Raises
        ------
        ValueError
            A column of `fit` is absent, there is an additional column, or a cell is infinite.
        """
        check_is_fitted(self, "cuts_")
        table = read_table(X)
        positions = matched_places(table, self._schema, type(self).__name__, self._schema.target)
        return source_of(table, self._schema, positions, n_jobs=self.n_jobs, local=True).map(_bin_numbers)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the output columns, which equal those of the input.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names for columns without names in `fit`.
        """
        check_is_fitted(self, "cuts_")
        names: Array = _check_feature_names_in(self, input_features)
        return names

    @property
    def bin_edges_(self) -> list[Array]:
        """The cut points of each column between −inf and inf."""
        return [np.concatenate([[-np.inf], cuts, [np.inf]]) for cuts in self.cuts_]

    @property
    def n_bins_(self) -> Array:
        """The number of bins of each column."""
        return np.array([len(cuts) + 1 for cuts in self.cuts_])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


def _numeric(schema: Schema) -> Schema:
    """Return the schema with entirely missing columns as continuous; raise ValueError if a column is categorical."""
    columns = tuple(
        Column(c.name, "continuous", dtype=c.dtype) if c.kind == "categorical" and not c.categories else c
        for c in schema.columns
    )
    categorical = [column.name for column in columns if column.kind == "categorical"]
    if categorical:
        verb = "is" if len(categorical) == 1 else "are"
        raise ValueError(f"{quote(categorical)} {verb} categorical, without an order; leave out or encode as numbers")
    return replace(schema, columns=columns)


def _bin_numbers(batch: Batch) -> Array:
    reject_outside(Block(Binned(), tuple(range(len(batch.schema.columns)))), batch)
    bins = batch.codes.values.astype(np.float64) - 1.0
    bins[bins < 0] = np.nan
    return bins
