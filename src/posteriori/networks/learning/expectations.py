"""The E-step of a network: expected counts and moments of each family over rows with missing cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.inference.inference import Compiled, Inference
from posteriori.networks.learning.family_statistics import Families, FamilyMoments, FamilyStatistics
from posteriori.typing import Array

_BATCH_ROWS = 1 << 16  # incomplete rows at a time: the tree reads them as 8-byte codes


def expected_statistics(
    inference: Inference,
    tables: Sequence[Array],
    densities: Mapping[str, LinearGaussian],
    statistics: FamilyStatistics,
    n_jobs: int | None,
) -> tuple[list[Array], list[FamilyMoments], float]:
    """Return the expected counts and moments of the incomplete rows, and the log-likelihood of their known cells.

    Parameters
    ----------
    inference : Inference
        Of any tables and densities of the graph: only what is compiled of it matters.
    tables : sequence of ndarray
        Of the discrete variables, in their order.
    densities : mapping from str to LinearGaussian
    statistics : FamilyStatistics
    n_jobs : int, optional
    """
    families, incomplete = statistics.families, statistics.incomplete
    counts = [np.zeros(table.shape) for table in statistics.counts]
    moments = [
        FamilyMoments(np.zeros_like(one.weight), np.zeros_like(one.mean), np.zeros_like(one.scatter))
        for one in statistics.moments
    ]
    log_likelihood = 0.0
    # The positions among the discrete variables are those of the compiled network, which keeps their order.
    for structure, rows, values in inference.batches(incomplete.numbers, everything=True):
        compiled, tree = structure.refilled(tables, densities)
        positions = sorted(set(compiled.auxiliary) - {-1})
        # The statistics code a missing cell as 0 and states from 1; the tree uses −1 and states from 0.
        own_codes, own_weight = incomplete.codes[rows], incomplete.weight[rows]
        for start in range(0, len(own_weight), _BATCH_ROWS):
            part = slice(start, start + _BATCH_ROWS)
            weight, own_values = own_weight[part], {name: cells[part] for name, cells in values.items()}
            codes = compiled.padded(own_codes[part].astype(np.int64) - 1)
            soft, scale = compiled.likelihoods(own_values, len(weight))
            log_likelihood += float(weight @ scale)
            shares: dict[int, Array] = {}
            if tree is not None:
                found, log_evidence = tree.expected_counts(codes, weight, families.count_scopes, soft or None, n_jobs)
                log_likelihood += log_evidence
                for total, more in zip(counts, found, strict=True):
                    total += more
            if tree is not None and positions:
                arrays, _ = tree.marginals(codes, soft or None, n_jobs, variables=positions)
                shares = dict(zip(positions, arrays, strict=True))
            _add_moments(moments, families, compiled, weight, own_values, shares)
    return counts, moments, log_likelihood


def _add_moments(
    moments: list[FamilyMoments],
    families: Families,
    compiled: Compiled,
    weight: Array,
    values: dict[str, Array],
    tables: dict[int, Array],
) -> None:
    """Add the expected moments of some rows of one pattern, family by family."""
    names = [families.columns[v].name for v in families.continuous]
    discrete = [families.columns[v].name for v in families.discrete]
    family = {names[members[-1]]: k for k, (_, members) in enumerate(families.moment_scopes)}
    for component, position in zip(compiled.components, compiled.auxiliary, strict=True):
        share = np.ones((len(weight), 1)) if position < 0 else tables[position]
        share = np.where(np.isnan(share), 0.0, share) * weight[:, np.newaxis]
        hidden = component.hidden_mean(values) if component.hidden else None
        for density in component.densities:
            k = family[density.variable]
            scope, members = families.moment_scopes[k]
            z = np.empty((len(weight), component.size, len(members)))
            places = []
            for j, member in enumerate(members):
                name = names[member]
                if name in values:
                    z[:, :, j] = values[name][:, np.newaxis]
                    places.append(-1)
                else:
                    places.append(component.hidden.index(name))
                    z[:, :, j] = hidden[:, :, places[-1]]  # type: ignore[index]
            total = share.sum(axis=0)
            mean = np.einsum("nq,nqi->qi", share, z) / np.where(total > 0, total, 1.0)[:, np.newaxis]
            centred = z - mean
            scatter = np.einsum("nq,nqi,nqj->qij", share, centred, centred)
            unknown = [j for j, place in enumerate(places) if place >= 0]
            if unknown:
                at = [places[j] for j in unknown]
                spread = component.hidden_covariance[:, at][:, :, at]
                scatter[np.ix_(range(component.size), unknown, unknown)] += total[:, None, None] * spread
            m = len(members)
            shape = component.shape
            whole = FamilyMoments(total.reshape(shape), mean.reshape(*shape, m), scatter.reshape(*shape, m, m))
            moments[k] = moments[k] + _projected(whole, list(component.discrete), [discrete[v] for v in scope])


def _projected(moments: FamilyMoments, axes: list[str], kept: list[str]) -> FamilyMoments:
    """Return the moments per configuration of some of the discrete variables, in another order."""
    rest = [k for k, name in enumerate(axes) if name not in kept]
    order = [axes.index(name) for name in kept] + rest
    m, n = moments.mean.shape[-1], len(axes)
    shape = tuple(moments.weight.shape[axes.index(name)] for name in kept)
    weight = moments.weight.transpose(order).reshape(*shape, -1)
    mean = moments.mean.transpose([*order, n]).reshape(*shape, -1, m)
    scatter = moments.scatter.transpose([*order, n, n + 1]).reshape(*shape, -1, m, m)
    total = weight.sum(axis=-1)
    centre = (weight[..., None] * mean).sum(axis=-2) / np.where(total > 0, total, 1.0)[..., None]
    centred = mean - centre[..., None, :]
    between = (weight[..., None, None] * centred[..., :, None] * centred[..., None, :]).sum(axis=-3)
    return FamilyMoments(total, centre, scatter.sum(axis=-3) + between)
