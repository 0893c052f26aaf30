"""Chow-Liu trees: the tree of largest total mutual information."""

from __future__ import annotations

from collections.abc import Sequence

from posteriori.densities.spanning_tree import Penalty, dependence_of_categories, spanning_forest
from posteriori.networks.scores import AIC, BIC, Score
from posteriori.statistics import CountTogether
from posteriori.statistics.distinct_rows import DistinctRows


def tree_parents(rows: DistinctRows, score: Score | None, root: int) -> Sequence[int]:
    """Return the parent of each variable in the tree, −1 for a root.

    A maximum spanning tree whose edges weigh I(x_u; x_v), each pair on the rows that have both, less the penalty of BIC
    or AIC (Chow & Liu 1968, equation 9; Koller & Friedman 2009, section 18.4.1).

    Raises
    ------
    ValueError
        The score is no BIC or AIC.
    """
    if score is not None and not isinstance(score, AIC | BIC):
        raise ValueError(f"score is {score!r}; a Chow-Liu tree takes 'bic', 'aic' or, for the likelihood alone, None")
    penalty: Penalty = None if score is None else "bic" if isinstance(score, BIC) else "aic"
    pairs = CountTogether().of(rows.codes, rows.assignment)
    return spanning_forest(dependence_of_categories(pairs).edge_weights(penalty)[0], root)
