"""The parameters of a pool, and the table that it is asked to learn from, each as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from posteriori.fitting.parameter_groups import Columns, Labels
from posteriori.fitting.recipe import Recipe
from posteriori.learning.folded_data import FoldedData
from posteriori.support.checks import generator

FEW_ROWS = 200  # with fewer, folds are assigned several times, and the weights are shrunk more


@dataclass(frozen=True)
class Data:
    """A labelled table as users give it: the arguments of `fit`."""

    X: Any
    y: Any = None
    sample_weight: Any = None
    classes: Any = None  # all classes, where more rows follow
    groups: Any = None


@dataclass(frozen=True, eq=False)
class PoolParameters:
    """The parameters of a pool, as `GenerativeClassifier` documents them."""

    members: Any
    pool: str
    folds: int
    penalty: float
    distributions: Any
    missing: str
    priors: Any
    labels: Labels
    columns: Columns
    language: str | None
    time_budget: float | None
    random_state: Any
    n_jobs: int | None

    @classmethod
    def of(cls, recipe: Recipe) -> PoolParameters:
        """Return the parameters of a recipe; ValueError if a pool cannot do what its labels ask for."""
        recipe.check()
        labels = recipe.labels
        if labels.label_noise is not None or isinstance(labels.unlabelled_weight, str):
            raise ValueError(
                f"a pool has no label_noise, and a number as unlabelled_weight, but labels is {labels}; leave it "
                "out, or choose NaiveBayes, GaussianDiscriminant or TreeAugmentedNaiveBayes"
            )
        asked = {one.name: recipe.parameters[one.name] for one in fields(cls)}  # a subclass may have others, too
        return cls(**{**asked, "labels": labels, "columns": recipe.columns})

    @cached_property
    def seed(self) -> int:
        """The seed of the assignment of rows to folds: it is drawn once."""
        return int(generator(self.random_state).integers(2**31))

    @property
    def selects(self) -> bool:
        """Whether the candidates are those of the registry."""
        return isinstance(self.members, str)

    @property
    def weighs(self) -> bool:
        """Whether the members are weighed, and not the best one chosen."""
        return self.pool == "log_linear"

    @property
    def stated_densities(self) -> Mapping[Any, Any]:
        """The densities that `distributions` states by column."""
        return self.distributions if isinstance(self.distributions, Mapping) else {}

    def penalty_on(self, folded: FoldedData) -> float:
        """Return the penalty of the weights, which grows if rows are few."""
        return self.penalty * max(1.0, FEW_ROWS / len(folded.y_true))
