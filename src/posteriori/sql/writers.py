"""Which function writes the log factors of each density."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from posteriori import densities
from posteriori.densities import FamilyTables, FullJointParameters, GroupedParameters, SmoothedFamilies
from posteriori.sql import correlated, counts, dependence, factors, forests, trees
from posteriori.sql.factors import Factor, FactorContext, FactorWriter


def grouped_factors(context: FactorContext, columns: Sequence[int], parameters: GroupedParameters) -> Iterator[Factor]:
    """Yield the log factors of the groups; p(x_j | g_j) is the same for all components."""
    codes = {
        columns[position]: parameters.groups.code_of_group(j, parameters.cardinalities[j])
        for j, position in enumerate(parameters.coded)
        if parameters.groups.of_categories[j]
    }
    write = next(each for density, each in WRITERS.items() if density.fitted is type(parameters.coarse))
    yield from write(replace(context, cells=context.cells.with_groups(codes)), columns, parameters.coarse)


def family_factors(context: FactorContext, columns: Sequence[int], parameters: SmoothedFamilies) -> Iterator[Factor]:
    """Yield the log factors of columns given their parents."""
    yield from dependence.dependence_factors(context, columns, parameters.tables)


def joint_factors(context: FactorContext, columns: Sequence[int], parameters: FullJointParameters) -> Iterator[Factor]:
    """Yield log p(x_j | x_1 … x_{j−1}, z): the chain rule makes a full joint table a family with all parents."""
    yield from dependence.dependence_factors(context, columns, FamilyTables.of_joint(parameters.log_probability))


# By class; densities of which all components share the parameters, such as `Binned`, have none.
WRITERS: dict[type[Any], FactorWriter] = {
    densities.AveragedOneDependence: dependence.averaged_factors,
    densities.Categorical: factors.categorical_factors,
    densities.Complement: counts.complement_factors,
    densities.Compound: counts.compound_factors,
    densities.FullJoint: joint_factors,
    densities.Gaussian: factors.gaussian_factors,
    densities.Grouped: grouped_factors,
    densities.KDependence: family_factors,
    densities.Missingness: factors.missingness_factors,
    densities.Multinomial: counts.multinomial_factors,
    densities.MultivariateGaussian: correlated.correlated_factors,
    densities.Poisson: counts.poisson_factors,
    densities.PoissonRate: counts.rate_factors,
    densities.Presence: counts.presence_factors,
    densities.RandomTrees: forests.forest_factors,
    densities.ScaledMultinomial: counts.scaled_factors,
    densities.SummedTrees: forests.forest_factors,
    densities.Tree: trees.tree_factors,
}


def writer_of(density: Any, model: str) -> FactorWriter:
    """Return the function that writes a density; ValueError if there is none."""
    if type(density) not in WRITERS:
        raise ValueError(
            f"{model} holds the density {density.name!r}, which no SELECT is written for (`WRITERS` of "
            "`posteriori.sql.writers`); choose a distribution of the library"
        )
    return WRITERS[type(density)]
