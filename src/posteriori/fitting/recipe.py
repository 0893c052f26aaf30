"""Recipe of a fit, as one value: a family of models and its parameters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from numbers import Real
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from posteriori.densities.capabilities import check_hyperparameters
from posteriori.fitting.label_parameters import components_of
from posteriori.fitting.parameter_groups import EM, Columns, Labels, columns_of, em_options_of
from posteriori.learning.fit import EMOptions, FitResult, Plan, unrefined
from posteriori.model import Block, FactorWeights, GenerativeModel, Prior
from posteriori.model.class_priors import check_priors
from posteriori.sources import LabelledSource
from posteriori.tables import Batch, Column, Schema


class Asked(Protocol):
    """An estimator as its parameters: what it asks of a fit."""

    def _validate_params(self) -> None:
        """Raise ValueError that names a parameter of a wrong type or value."""

    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return the densities and their columns."""

    def _check_size(self, schema: Schema, target: Column) -> None:
        """Raise ValueError if the model would take more memory than allowed."""


@dataclass(frozen=True, eq=False)
class Recipe:
    """Recipe of a fit: a family of models, which is a class of estimators, and its parameters.

    Two recipes are equal if they name one class and equal parameters; a list, a tuple and an array of the same values
    are. A recipe can be stored in a model file and sent to a worker.

    Attributes
    ----------
    family : type
        The class; it knows its densities (`_blocks`), whether it reads columns of counts (`reads_counts`), and whether
        columns of two whole numbers are categories, unless `columns` says otherwise (`takes_two_values`).
    parameters : mapping
        By name, as the constructors of the class and of its bases take them: a subclass with a constructor of its own
        states some of them itself.
    """

    family: type[Any]
    parameters: Mapping[str, Any]

    @classmethod
    def of(cls, estimator: BaseEstimator) -> Recipe:
        """Return the recipe of an estimator: later changes of its parameters do not change the recipe."""
        family: Any = type(estimator)
        _, stated = _names_of(family)
        held = [name for name in parameter_names(family) if name not in stated or hasattr(estimator, name)]
        return cls(family, {name: _copied(getattr(estimator, name)) for name in held})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.family is other.family and self.difference(other) is None

    def __hash__(self) -> int:
        return hash(self.family)

    def difference(self, other: Recipe, ignored: Collection[str] = ()) -> str | None:
        """Return the first parameter, except for some, whose values differ; None if all are equal."""
        names = (name for name in self.parameters if name not in ignored)
        return next((name for name in names if not _same(self.parameters[name], other.parameters[name])), None)

    def with_(self, **changed: Any) -> Recipe:
        """Return the recipe with other values of some parameters; `columns__dates` is one of the group `columns`."""
        if any("__" in name for name in changed):
            return Recipe.of(self.estimator().set_params(**changed))
        return replace(self, parameters={**self.parameters, **changed})

    @cached_property
    def _asked(self) -> Asked:
        """The class with these parameters, which is asked for what follows from them."""
        asked: Asked = self.estimator()
        return asked

    def __getstate__(self) -> dict[str, Any]:
        return {"family": self.family, "parameters": self.parameters}

    def estimator(self) -> Any:
        """Return a new estimator with these parameters."""
        family: Any = self.family
        _, stated = _names_of(family)
        given = {name: _copied(value) for name, value in self.parameters.items()}
        made = family(**{name: value for name, value in given.items() if name not in stated})
        for name in given.keys() & stated:
            setattr(made, name, given[name])
        return made

    def check(self) -> None:
        """Raise ValueError that names a parameter, or one of a stated density, of a wrong type or value."""
        self._asked._validate_params()
        given = self.distributions
        of_columns = given.items() if isinstance(given, Mapping) else ()
        for of_column, density in [("", given), *((f" of column {key!r}", value) for key, value in of_columns)]:
            check_hyperparameters(density, of_column)

    # The densities ----------------------------------------------------------------------------------------------

    def blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return the densities and their columns; raise ValueError if a density has an impossible hyperparameter."""
        blocks = self._asked._blocks(schema)
        for block in blocks:
            check_hyperparameters(block.density)
        return blocks

    def check_size(self, schema: Schema, target: Column) -> None:
        """Raise ValueError, before memory is allocated, if the model would take more than allowed."""
        self._asked._check_size(schema, target)

    # The parameters that several families have; a default where a family has them not -----------------------------

    @property
    def name(self) -> str:
        """Name of the class, for messages."""
        return self.family.__name__

    @property
    def reads_counts(self) -> bool:
        """Whether the model reads columns of counts."""
        return bool(self.family.reads_counts)

    @cached_property
    def columns(self) -> Columns:
        """The parameters on columns."""
        return columns_of(self.parameters.get("columns"))

    @property
    def has_labels(self) -> bool:
        """Whether `labels` is a parameter."""
        return "labels" in self.parameters

    @property
    def labels(self) -> Labels:
        """The parameters on labels."""
        return self.parameters.get("labels") or Labels()

    def unlabelled(self, complete: bool = True) -> Any:
        """Return how rows without label are handled: as is stated, else by EM if the model takes all rows to it.

        Raises ValueError if rows that are left out have a weight.
        """
        stated, is_weighed = self.labels.unlabelled, self.labels.unlabelled_weight != 1.0
        if stated is None:
            learns = is_weighed or (self.em is not None and not self.leaves_rows_out)
            return "learn" if learns and complete else "ignore"
        if is_weighed and self.labels.is_one_of("ignore"):
            raise ValueError(
                'unlabelled_weight weights rows that unlabelled="ignore" leaves out; leave out one of the two'
            )
        return stated

    def leaves_out_unlabelled(self, complete: bool = True) -> bool:
        """Return whether rows without label are left out."""
        handled = self.unlabelled(complete)
        return isinstance(handled, str) and handled == "ignore"

    @property
    def chooses_weight(self) -> bool:
        """Whether held-out rows choose the weight of rows without label."""
        return isinstance(self.labels.unlabelled_weight, str)

    @property
    def em(self) -> EM | None:
        """The parameters of EM; None if the family has none."""
        return (self.parameters["em"] or EM()) if "em" in self.parameters else None

    @property
    def distributions(self) -> Any:
        """The density of columns, as it is stated."""
        return self.parameters.get("distributions")

    @property
    def feature_weights(self) -> str | None:
        """Which weights of features are learned: "conditional", "cells" or None."""
        return self.parameters.get("feature_weights")

    @property
    def learns_backoff(self) -> bool:
        """Whether the strength of the back-off is learned."""
        return isinstance(self.parameters.get("backoff"), str)

    @property
    def n_jobs(self) -> int | None:
        """Number of threads; None or −1 uses one per core."""
        return self.parameters.get("n_jobs")

    @cached_property
    def limits(self) -> EMOptions:
        """When EM ends, and the seed of its initializations: it is drawn once."""
        return EMOptions() if self.em is None else em_options_of(self.em, self.parameters.get("random_state"))

    @property
    def chooses_categories(self) -> bool:
        """Whether columns of two whole numbers are categories."""
        stated = self.columns.categorical_features
        return bool(self.family.takes_two_values) if stated is None else self.columns.is_automatic

    @property
    def counts_copies_once(self) -> bool:
        """Whether rows judge what others have learned, so that copies of them would judge themselves."""
        return bool(self.leaves_rows_out) or self.parameters.get("combine") == "sum"

    @property
    def leaves_rows_out(self) -> str:
        """The parameter that is learned from leave-one-out predictions, for messages; empty if none is."""
        if self.learns_backoff:
            return 'backoff="learned"'
        return "" if self.feature_weights is None else f'feature_weights="{self.feature_weights}"'

    def components(self, target: Column) -> tuple[int, ...]:
        """Return the class of each component; empty if every class is one component."""
        return () if self.em is None else components_of(self.em.components_per_class, target)

    def prior(self, target: Column) -> Prior:
        """Return the prior of the components of all classes."""
        of_class, given = self.components(target), self.parameters.get("priors")
        if given is None or isinstance(given, Real):
            return Prior(float(given or 0.0), of_class=of_class)
        return Prior(fixed=check_priors(given, target), of_class=of_class)

    def plan(self, schema: Schema, target: Column) -> Plan:
        """Return the plan of a fit to rows of a schema.

        It holds the densities and their columns, the prior of the components, when EM stops, and how factor weights are
        learned if they are.
        """
        return Plan(
            self.blocks(schema),
            self.prior(target),
            self.limits,
            self._weighed if self.leaves_rows_out else None,
            not (self.labels.is_one_of("error") or self.leaves_out_unlabelled()),
            self.feature_weights == "cells",
        )

    def plan_for(self, source: LabelledSource, target: Column, complete: bool) -> Plan:
        """Return the plan of a fit to these rows.

        Raises
        ------
        ValueError
            More rows follow and the plan needs all, or labels are hidden and it needs them.
        """
        plan = self.plan(source.schema, target)
        wanted = unrefined(plan.blocks)
        if wanted and not complete:
            raise ValueError(f"{wanted[0]} looks at all rows twice, and partial_fit sees each once; use fit")
        if wanted and source.label_model is not None:
            raise ValueError(
                f"{wanted[0]} needs known labels, and components_per_class, label_noise and a mask hide them; leave "
                "one of them out"
            )
        learned = self.leaves_rows_out
        if learned and source.label_model is not None:
            raise ValueError(
                f"{learned} leaves each row out of its class, and components_per_class, label_noise and a mask hide "
                "the class; leave one of them out"
            )
        if learned and not complete:
            raise ValueError(f"{learned} takes all rows at once, and partial_fit sees each once; use fit")
        return plan

    def _weighed(
        self,
        learned: FitResult,
        source: LabelledSource,
        to_observed_codes: Callable[[Batch], Batch] | None = None,
        start: FactorWeights | None = None,
        sample: Batch | None = None,
    ) -> GenerativeModel:
        """Return the learned model with a learned back-off and learned factor weights, as far as they are asked for."""
        model = learned.model
        if self.learns_backoff and source.classes is not None:
            from posteriori.learning.backoff import learn_backoff

            model = learn_backoff(source, learned, self.prior(source.classes), to_observed_codes, sample)
        if self.feature_weights is None:
            return model
        if self.feature_weights == "cells":
            from posteriori.learning.learned_tables import learn_cells

            weights = learn_cells(source, model, learned.statistics, to_observed_codes, sample, start)
        else:
            from posteriori.learning.weights import learn_weights

            weights = learn_weights(source, model, learned.statistics, to_observed_codes, start, sample)
        return replace(model, weights=weights)


def recipe_of_classifier(estimator: object) -> Recipe | None:
    """Return the recipe of a classifier of one model; None for anything else."""
    is_one = isinstance(estimator, BaseEstimator) and is_classifier(estimator) and hasattr(type(estimator), "model_")
    recipe = getattr(estimator, "recipe", None) if is_one else None
    return recipe if isinstance(recipe, Recipe) else None


def parameter_names(family: Any) -> tuple[str, ...]:
    """Return the names of all parameters of a class of estimators, those of its bases included."""
    own, stated = _names_of(family)
    return (*own, *sorted(stated))


@lru_cache
def _names_of(family: Any) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return the names of the parameters that the constructor of a class takes, and those that only its bases' do.

    Cached, because scikit-learn finds them slowly.
    """
    own = tuple(family._get_param_names())
    bases = (base for base in family.__mro__[1:] if issubclass(base, BaseEstimator))
    return own, frozenset(name for base in bases for name in base._get_param_names()).difference(own)


def _copied(value: Any) -> Any:
    """Return a parameter; a copy of a group, whose values `set_params` changes in place."""
    return replace(value) if isinstance(value, Columns | EM | Labels) else value


def _same(one: Any, other: Any) -> bool:
    """Whether two parameters are equal; a list, a tuple and an array of the same values are."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, BaseEstimator):
        return type(one) is type(other) and _same(one.get_params(deep=False), other.get_params(deep=False))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):  # what they hold may be of several shapes
        return len(one) == len(other) and all(map(_same, one, other))
    sequences = (list, tuple, np.ndarray)
    if isinstance(one, sequences) and isinstance(other, sequences):
        return np.shape(one)[:1] == np.shape(other)[:1] and all(map(_same, np.atleast_1d(one), np.atleast_1d(other)))
    return bool(one == other)
