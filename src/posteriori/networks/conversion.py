"""A classifier as a network: the class is a parent of every feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posteriori.densities import ConditionalNormal, NormalDensity, TabularDensity, ungrouped
from posteriori.model import GenerativeModel
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import States
from posteriori.networks.network import BayesianNetwork
from posteriori.tables import Column


def network_of(model: GenerativeModel, target: Column) -> BayesianNetwork:
    """Return the network p(y)·Π_j p(x_j | y, parents of x_j) of a fitted classifier.

    Columns of numbers are continuous variables: normal ones of naive Bayes and trees, and those of discriminant
    analysis, each of which is regressed on the earlier ones. The states of a binned column are its bins, written as
    intervals such as "[39.2, 43.3)".

    Parameters
    ----------
    model : GenerativeModel
        Naive Bayes, a tree that all classes share, k-dependence, or discriminant analysis.
    target : Column
        The classes; its variable is called by the name of their column, or "class" where they had none.

    Raises
    ------
    ValueError
        A column holds numbers that are not in bins and not normal, or had no category; or the model is no network with
        the class above every feature.
    """
    schema = model.schema
    if model.of_class:
        raise ValueError("a class of several components is a mixture, which is no network of its columns alone")
    columns = {j: schema.columns[j] for j in schema.modelled}
    for column in columns.values():
        if column.kind == "categorical" and not column.labels:
            raise ValueError(f"column {column.name!r} had no category in training, so it has no states; leave it out")
    label = _unused(schema.target or "class", schema.names)
    states: dict[str, States] = {
        column.name: column.labels for column in columns.values() if column.kind == "categorical" or column.is_binned
    }
    tables: list[CPT | LinearGaussian] = [CPT(label, target.categories, {}, np.exp(model.log_prior))]
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        if block.shared:  # the density of a number within its bin, the same for all classes
            continue
        names = [schema.columns[j].name for j in block.columns]
        normals = block.density.conditional_normals(parameters) if isinstance(block.density, NormalDensity) else {}
        _require_network(block.density, names, states, normals)
        for position, normal in normals.items():
            of_states = {label: target.categories} | {names[p]: states[names[p]] for p in normal.of_codes}
            regressors = tuple(names[p] for p in normal.of_numbers)
            numbers = normal.intercept, normal.coefficients, normal.variance
            tables.append(LinearGaussian(names[position], regressors, of_states, *numbers))
        if len(normals) == len(names):
            continue
        density: Any = block.density
        for position, (above, table) in enumerate(density.conditional_tables(parameters)):
            if position not in normals:
                name = names[position]
                of_states = {label: target.categories} | {names[p]: states[names[p]] for p in above}
                tables.append(CPT(name, states[name], of_states, np.exp(table)))
    by_name = {table.variable: table for table in tables}
    ordered = [label, *(column.name for column in columns.values())]
    return BayesianNetwork(cpts=[by_name[name] for name in ordered])


def _require_network(
    density: Any, names: Sequence[str], states: Mapping[str, States], normals: Mapping[int, ConditionalNormal]
) -> None:
    """Raise ValueError unless each column of a block has a table or a normal density."""
    tabular = isinstance(density, TabularDensity) and isinstance(ungrouped(density), TabularDensity)
    for position, name in enumerate(names):
        if position in normals:
            continue
        if name not in states:
            raise ValueError(
                f"column {name!r} holds numbers that are no normal density given the class "
                f'({ungrouped(density).name}); cut it into bins by distributions="binned", or into categories first'
            )
        if not tabular:
            raise ValueError(
                f"a {ungrouped(density).name} model is no network with the class above every feature (its density has "
                "no method `conditional_tables`)"
            )


def _unused(name: str, taken: tuple[str, ...]) -> str:
    while name in taken:
        name += "_"
    return name
