"""The registration of the library's densities: which names `distributions` accepts, and what a model file may hold.

One entry of `REGISTRY` makes a density known to `NaiveBayes(distributions=...)` and to `save` and `load`.
The other features of a model use the optional methods of the density (`posteriori.densities.capabilities`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from posteriori.densities.categorical import Binned, Categorical
from posteriori.densities.compound import Compound
from posteriori.densities.conditional import BackOff
from posteriori.densities.covariances import (
    Chain,
    Diagonal,
    LedoitWolf,
    OracleApproximating,
    PerClass,
    Pooled,
    PseudoRows,
    Regularized,
    ShrinkToDiagonal,
    ShrinkToIdentity,
)
from posteriori.densities.dependence import AveragedOneDependence, KDependence
from posteriori.densities.full_joint import FullJoint
from posteriori.densities.gaussian import Gaussian
from posteriori.densities.grouped import Grouped
from posteriori.densities.missingness import Missingness
from posteriori.densities.multivariate import MultivariateGaussian
from posteriori.densities.poisson import Poisson, PoissonRate
from posteriori.densities.presence import Presence
from posteriori.densities.random_trees import RandomTrees
from posteriori.densities.summed_trees import SummedTrees
from posteriori.densities.tree import Tree
from posteriori.densities.tree_parameters import Forest
from posteriori.densities.words import Complement, Multinomial, ScaledMultinomial
from posteriori.statistics.forests import TreeStructure
from posteriori.statistics.grouped import Groups


@dataclass(frozen=True)
class Registration:
    """A density of the library and the other classes that belong to it."""

    # A frozen dataclass that implements `Density`. Its class attribute `fitted` is the class of its parameters.
    density: type[Any]
    # the dataclasses that a field of the density may hold, such as a pooling or a shrinkage
    parts: tuple[type[Any], ...] = ()
    # Given for a density of independent columns that `distributions` accepts by its `name`: for each field of the
    # density, the parameter of `NaiveBayes` that sets it. Fields that are not listed keep their defaults.
    options: Mapping[str, str] | None = None
    # what the command line and the report call a column of numbers with this density; None: a number
    label: str | None = None

    @property
    def stored(self) -> tuple[type[Any], ...]:
        """The classes that a model file may name: the density, its parameters and its parts."""
        return (self.density, self.density.fitted, *self.parts)

    def configured(self, parameters: Any) -> Any:
        """Return the density with its `options` read from an estimator."""
        assert self.options is not None
        return self.density(**{field: getattr(parameters, name) for field, name in self.options.items()})


def _options(**fields: str) -> Mapping[str, str]:
    return MappingProxyType(fields)


REGISTRY: tuple[Registration, ...] = (
    Registration(AveragedOneDependence, (BackOff,)),
    Registration(Binned, options=_options(bins="bins")),
    Registration(Categorical, options=_options(alpha="alpha")),
    Registration(Complement, options=_options(alpha="alpha"), label="count (complement)"),
    Registration(Compound, options=_options(alpha="alpha"), label="count (Dirichlet-multinomial)"),
    Registration(FullJoint),
    Registration(Gaussian, options=_options(predictive="predictive")),
    Registration(Grouped, (Groups,)),
    Registration(KDependence, (BackOff,)),
    Registration(Missingness),
    Registration(Multinomial, options=_options(alpha="alpha"), label="count (multinomial)"),
    Registration(
        MultivariateGaussian,
        (
            PerClass,
            Pooled,
            PseudoRows,
            Regularized,
            Chain,
            Diagonal,
            LedoitWolf,
            OracleApproximating,
            ShrinkToDiagonal,
            ShrinkToIdentity,
        ),
    ),
    Registration(Poisson, options=_options(), label="count (Poisson)"),
    Registration(PoissonRate, options=_options(), label="count (Poisson rate)"),
    Registration(Presence, options=_options(alpha="alpha"), label="count (presence)"),
    Registration(RandomTrees, (TreeStructure,)),
    Registration(ScaledMultinomial, options=_options(alpha="alpha"), label="count (scaled multinomial)"),
    Registration(SummedTrees, (TreeStructure,)),
    Registration(Tree, (BackOff, Forest)),
)


def stored_classes() -> Iterator[type[Any]]:
    """Yield the classes of densities that a model file may name. Shared parts are yielded once per density."""
    for registration in REGISTRY:
        yield from registration.stored


def find_stored_class(name: str) -> type[Any] | None:
    """Return the class with this name that a model file may hold; None if there is none."""
    return next((kind for kind in stored_classes() if kind.__name__ == name), None)


def column_label(distribution: str | None, default: str) -> str:
    """Return the label of a column of numbers under the density of this name; the default if it has none."""
    return next((entry.label for entry in REGISTRY if entry.density.name == distribution and entry.label), default)


def named_densities(parameters: Any) -> dict[str, Any]:
    """Return the densities that `distributions` accepts by name, configured by the parameters of an estimator.

    Parameters
    ----------
    parameters : object
        Has an attribute for each parameter that a registration names, as `NaiveBayes` does.

    Returns
    -------
    dict of str to Density
    """
    return {entry.density.name: entry.configured(parameters) for entry in REGISTRY if entry.options is not None}


def named_density(name: str, parameters: Any) -> Any:
    """Return one of `named_densities` by its name; None if there is no such density."""
    for entry in REGISTRY:
        if entry.options is not None and entry.density.name == name:
            return entry.configured(parameters)
    return None
