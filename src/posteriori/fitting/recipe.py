"""What the parameters of an estimator ask of a fit, as one value that is read at its door."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any

from posteriori.fitting.label_parameters import check_priors, components_of
from posteriori.fitting.parameter_groups import EM, Columns, Labels, em_options_of
from posteriori.learning.fit import EMOptions, FitResult, Plan, unrefined
from posteriori.model import Block, FactorWeights, GenerativeModel, Prior
from posteriori.sources import LabelledSource
from posteriori.tables import Batch, Column, Schema

LEARNED_TABLES = ("cells", "pairs")  # the `feature_weights` that replace log-probabilities by learned numbers


@dataclass(frozen=True, eq=False)
class ModelRequest:
    """What an estimator of one model asks of rows, and of what is learned from them.

    Attributes
    ----------
    name : str
        Of the estimator, for messages.
    columns, labels, em
        The groups of parameters, or their defaults; `em` is None if EM is no parameter of the estimator.
    has_labels : bool
        Whether `labels` is a parameter of the estimator.
    distributions, priors, random_state, n_jobs
        The parameters.
    feature_weights : "conditional", "cells", "pairs" or None
    learns_backoff : bool
        Whether the strength of the back-off is learned.
    reads_counts : bool
        Whether the model reads columns of counts.
    takes_two_values : bool
        Whether columns of two whole numbers are categories, unless `columns` says otherwise.
    blocks : callable
        From a schema to the densities and their columns.
    check_size : callable
        Takes a schema and the classes; raises ValueError if the model would take more memory than allowed.
    """

    name: str
    columns: Columns
    labels: Labels
    em: EM | None
    has_labels: bool
    distributions: Any
    priors: Any
    feature_weights: str | None
    learns_backoff: bool
    reads_counts: bool
    takes_two_values: bool
    random_state: Any
    n_jobs: int | None
    blocks: Callable[[Schema], tuple[Block, ...]]
    check_size: Callable[[Schema, Column], None]

    @cached_property
    def limits(self) -> EMOptions:
        """When EM ends, and the seed of its initializations: it is drawn once."""
        return EMOptions() if self.em is None else em_options_of(self.em, self.random_state)

    @property
    def chooses_categories(self) -> bool:
        """Whether columns of two whole numbers are categories."""
        stated = self.columns.categorical_features
        return self.takes_two_values if stated is None else self.columns.is_automatic

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
        of_class, given = self.components(target), self.priors
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
            self.labels.may_miss,
            self.feature_weights in LEARNED_TABLES,
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
        if self.feature_weights in LEARNED_TABLES:
            from posteriori.learning.learned_tables import learn_cells

            with_pairs = self.feature_weights == "pairs"
            weights = learn_cells(source, model, learned.statistics, to_observed_codes, sample, start, with_pairs)
        else:
            from posteriori.learning.weights import learn_weights

            weights = learn_weights(source, model, learned.statistics, to_observed_codes, start, sample)
        return replace(model, weights=weights)
