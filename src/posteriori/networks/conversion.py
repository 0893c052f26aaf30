"""A classifier of categories and bins as a network: the class is a parent of every feature."""

from __future__ import annotations

import numpy as np

from posteriori.densities import TabularDensity, ungrouped
from posteriori.model import GenerativeModel
from posteriori.networks.cpt import CPT
from posteriori.networks.network import BayesianNetwork
from posteriori.tables import Column
from posteriori.typing import Array


def network_of(model: GenerativeModel, target: Column) -> BayesianNetwork:
    """Return the network p(y)·Π_j p(x_j | y, parents of x_j) of a fitted classifier of categories and bins.

    The states of a column of numbers are its bins, written as intervals such as "[39.2, 43.3)".

    Parameters
    ----------
    model : GenerativeModel
        Naive Bayes, a tree that all classes share, or k-dependence.
    target : Column
        The classes; its variable is called by the name of their column, or "class" where they had none.

    Raises
    ------
    ValueError
        A column holds numbers that are not cut into bins, or had no category; or the model is no network with the
        class above every feature.
    """
    schema = model.schema
    if model.of_class:
        raise ValueError("a class of several components is a mixture, which is no network of its columns alone")
    columns = {j: schema.columns[j] for j in schema.modelled}
    for column in columns.values():
        if column.kind != "categorical" and not column.is_binned:
            raise ValueError(
                f"column {column.name!r} holds numbers, and a network's variables have states; "
                'cut it into bins by distributions="binned", or into categories first'
            )
        if not column.labels:
            raise ValueError(f"column {column.name!r} had no category in training, so it has no states; leave it out")
    label = _unused(schema.target or "class", schema.names)
    parents: dict[int, tuple[int, ...]] = {}
    tables: dict[int, Array] = {}
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        density = block.density
        if block.shared:  # the density of a number within its bin, the same for all classes
            continue
        if not isinstance(density, TabularDensity) or not isinstance(ungrouped(density), TabularDensity):
            raise ValueError(
                f"a {ungrouped(density).name} model is no network with the class above every feature (its density has "
                "no method `conditional_tables`)"
            )
        for position, (above, table) in enumerate(density.conditional_tables(parameters)):
            j = block.columns[position]
            parents[j], tables[j] = tuple(block.columns[p] for p in above), np.exp(table)
    states = {column.name: column.labels for column in columns.values()}
    cpts = [CPT(label, target.categories, {}, np.exp(model.log_prior))]
    for j, column in columns.items():
        name = column.name
        of_states = {label: target.categories} | {schema.names[p]: states[schema.names[p]] for p in parents[j]}
        cpts.append(CPT(name, states[name], of_states, tables[j]))
    return BayesianNetwork(cpts=cpts)


def _unused(name: str, taken: tuple[str, ...]) -> str:
    while name in taken:
        name += "_"
    return name
