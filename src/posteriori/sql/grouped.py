"""Log factors of columns with groups of categories, as expressions of the codes of the groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from posteriori.densities import REGISTRY, GroupedParameters, Registration
from posteriori.sql.factors import Factor, FactorContext, writer_of


def grouped_factors(context: FactorContext, columns: Sequence[int], parameters: GroupedParameters) -> Iterator[Factor]:
    """Yield the log factors of the groups; p(x_j | g_j) is the same for all components."""
    registration = _registration_of(parameters.coarse)
    write = writer_of(registration, registration.density.name, context.model)
    codes = {
        columns[position]: parameters.groups.code_of_group(j, parameters.cardinalities[j])
        for j, position in enumerate(parameters.coded)
        if parameters.groups.of_categories[j]
    }
    cells = context.cells.with_groups(codes)
    yield from write(replace(context, cells=cells), columns, parameters.coarse)


def _registration_of(parameters: object) -> Registration:
    return next(entry for entry in REGISTRY if entry.density.fitted is type(parameters))
