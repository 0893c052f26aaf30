"""The steps of fitting and cross-validating models, with expected costs, for reports of progress."""

from __future__ import annotations

from posteriori.tables.progress import Step

DESCRIBING = "describing columns"
READING = "reading"
CUTTING = "choosing cut points"
COUNTING = "statistics"
COUNTING_AGAIN = "statistics of chosen structures"
FITTING = "fitting"
SCORING = "cross-validating"
POOLING = "pooling"


def first_steps(n_rows: int, n_columns: int) -> list[Step]:
    """Return the steps that read the rows before models are fitted.

    The costs are seconds that one thread took on tables of 2·10⁵ to 1.6·10⁶ rows and 50 columns.
    """
    cells = n_rows * n_columns / 1e7
    return [Step(DESCRIBING, 0.9 * cells), Step("categories", 0.1 * cells), Step(READING, 0.6 * cells, 2)]


def fitting_steps(n_rows: int, n_columns: int, n_evaluated: int, n_candidates: int, folds: int) -> list[Step]:
    """Return the steps from the cells in memory to the models of all candidates and folds."""
    cells = n_rows * n_columns / 1e7
    pairs = cells * n_columns / 50
    share = n_candidates / 10
    return [
        Step(CUTTING, 0.5 + 0.5 * cells, 3),
        Step(COUNTING, 1.4 * pairs * share),
        Step(COUNTING_AGAIN, 1.0 * cells, 2),
        Step(FITTING, 3.8 * share * (folds + 1) / 6),
        Step(SCORING, 2.0 * share * n_evaluated / 5e4 * (n_columns / 50) ** 2),
        Step(POOLING, 1.0 * n_evaluated / 5e4),
    ]
