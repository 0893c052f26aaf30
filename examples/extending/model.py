"""Add a model: one-dependence Bayes, in which a feature depends on the class and on at most one other feature.

A model is an estimator in one file of `classifiers/`: its parameters, which are annotated attributes (`priors`,
`columns` and `n_jobs` stand in the base), and `_blocks`, which says which density models which columns. Fits, sums,
updates, missing cells, files and predictions follow from these.

`ONE_DEPENDENCE` stands for one entry in `MODELS` of `registry.py`. It gives the model its name in the pool, in
`cross_validate`, in `compare` and on the command line, and allows it in model files. A variant of a model is only an
entry, with `parameters`; its name is the name of the model followed by the settings that differ ("tan 30").

Then add a test, which can begin with `posteriori.checks.check_model(OneDependenceBayes(), X, y)`: it checks Bayes' rule
and the conventions. Add a file to `changes/`. To export the class as `po.OneDependenceBayes`, list it in
`classifiers/__init__.py` and in `posteriori/__init__.py`, in the table and below it for type checkers.

An estimator of your own, outside of the library, is the class alone. After `posteriori.persistence.register_estimator`,
`save` and `load` take it, too.
"""

from __future__ import annotations

from typing import Any, ClassVar

from posteriori.classifiers.dependence import BACKOFF, COMMON, dependence_blocks
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.parameters import declares_parameters
from posteriori.densities import BackOff, KDependence
from posteriori.model import Block
from posteriori.model_cost import cost_of_pairs
from posteriori.registry import MODELS, ModelSpec
from posteriori.tables import Schema


@declares_parameters
class OneDependenceBayes(GenerativeEstimator):
    """p(x | y) = Π_j p(x_j | x_parent(j), y), where `backoff` pseudo-rows pull each table to p(x_j | y)."""

    backoff: float | None = 10.0
    bins: Any = "mdlp"
    alpha: float = 1.0

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"backoff": BACKOFF, **COMMON}

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        return dependence_blocks(schema, KDependence(1, BackOff(self.backoff, self.alpha)), self.bins)


ONE_DEPENDENCE = ModelSpec(
    name="one-dependence",
    title="one-dependence",
    description="each feature depends on at most one other",
    estimator=f"{__name__}:OneDependenceBayes",  # in the library "posteriori.classifiers.one_dependence:…"
    options=frozenset({"binned"}),
    cost=cost_of_pairs,
    # It sees the ranges, counts, missing cells and cardinalities of the columns (`TableSummary`). A candidate that
    # raises in a fit is skipped with a warning; it never stops the pool.
    decline=lambda table: "it needs two columns" if len(table.columns) < 2 else None,
    in_pool=True,
)


def register() -> None:
    """Add the entry, as if it stood in the library."""
    MODELS[ONE_DEPENDENCE.name] = ONE_DEPENDENCE
