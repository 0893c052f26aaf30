"""The log density of a multivariate Gaussian, missing cells integrated out, as expressions.

A complete row needs one linear form per component if the covariance is shared, and otherwise one sum of squares of
whitened cells. An incomplete row takes the columns in turn: each present column is swept out of the covariance of the
later columns (Little & Rubin, Statistical Analysis with Missing Data, 3rd ed., section 7.4),

    r_i ← r_i − S_ij·r_j / S_jj,    S_ik ← S_ik − S_ij·S_jk / S_jj    for i, k > j,

and a missing column is skipped, which integrates it out. Whatever the pattern of missing cells, S is the covariance of
the remaining columns given the present ones before them, r is their deviation from the conditional expectation, and
−½(r_j² / S_jj + log 2π·S_jj) is the log density of x_j given the columns before it. That takes d³/6 short expressions,
so wide blocks are refused (`posteriori.sql.translation`).

A t density is a function of the same distance and determinant, and of the number p of present columns, by which its
constant is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from sqlglot import exp

from posteriori.densities import MultivariateGaussianParameters
from posteriori.sql.dialects import (
    Node,
    any_of,
    cases,
    column,
    literal,
    minus,
    missing,
    over,
    plus,
    real,
    square,
    times,
    total,
    whole,
)
from posteriori.sql.factors import Factor, FactorContext, independent_normals, log_tail
from posteriori.sql.steps import CellReader, SelectSteps


def correlated_factors(
    context: FactorContext, columns: Sequence[int], parameters: MultivariateGaussianParameters
) -> Iterator[Factor]:
    """Yield log p(x_j | columns before j, z) + ½·log 2π per present cell, or their sum unless the factors have weights.

    Raises ValueError if factors of a t density have weights.
    """
    steps, cells, chained = context.steps, context.cells, context.weighted
    columns, parameters = [columns[j] for j in parameters.varying], parameters.of_varying
    if not columns:
        return
    d = len(columns)
    if parameters.degrees is not None:
        if chained:
            raise ValueError("t densities with feature_weights have no SELECT; fit with predictive=False")
        for z, node in enumerate(_Correlated(steps, cells, columns, parameters, chained).of_t()):
            yield z, columns[0], node
        return
    if not np.any(parameters.covariance * ~np.eye(d, dtype=bool)):
        variance = np.stack(
            [np.diagonal(parameters.covariance[parameters.groups[z]]) for z in range(len(parameters.mean))]
        )
        yield from independent_normals(cells, columns, parameters.mean, 1.0 / variance, -0.5 * np.log(variance))
        return
    gaussian = _Correlated(steps, cells, columns, parameters, chained)
    if chained:
        yield from ((z, columns[j], node) for z, j, node in gaussian.chain())
        return
    of_component: list[list[Node]] = [[] for _ in parameters.mean]
    for z, _, node in gaussian.chain():
        of_component[z].append(node)
    for z, whole_row in enumerate(gaussian.of_complete()):
        yield z, columns[0], cases((gaussian.complete(), whole_row), default=total(of_component[z]))


class _Correlated:
    """One block: its columns about a centre, and the deviations and covariances that remain after each sweep."""

    def __init__(
        self,
        steps: SelectSteps,
        cells: CellReader,
        columns: Sequence[int],
        parameters: MultivariateGaussianParameters,
        chained: bool,
    ) -> None:
        self._steps = steps
        self._parameters = parameters
        self._chained = chained
        self._label = f"b{columns[0]}"
        centred = [cells.centred(j, middle) for j, middle in zip(columns, parameters.middle.tolist(), strict=True)]
        self._names = [name for name, _ in centred]
        self._centre = np.array([centre for _, centre in centred])
        self._mean = parameters.mean - self._centre
        has_gap = any_of([missing(name) for name in self._names])
        self._gap = steps.define(f"{self._label}_gap", cases((has_gap, whole(1)), default=whole(0)))

    def complete(self) -> Node:
        """Return the condition that the row is complete."""
        return exp.EQ(this=column(self._gap), expression=whole(0))

    # Complete rows ----------------------------------------------------------------------------------------------

    def of_complete(self) -> list[Node]:
        """Return log p(x | z) of each component, up to a constant that all components share."""
        z_all = range(len(self._mean))
        if self._parameters.shared:
            return [self._linear(z) for z in z_all]
        return [self._quadratic(z) for z in z_all]

    def _linear(self, z: int) -> Node:
        """Return a·(x − middle) − ½·a·(mean − middle) with a = precision·(mean − middle).

        The quadratic form of x under the shared covariance is the same for all components, and is left out.
        """
        middle = self._parameters.middle - self._centre
        apart = self._parameters.mean[z] - self._parameters.middle
        slope = self._parameters.precision[0] @ apart
        constant = -float(slope @ middle) - 0.5 * float(slope @ apart)
        terms = [times(literal(a), column(name)) for a, name in zip(slope.tolist(), self._names, strict=True)]
        return plus(total(terms), literal(constant))

    def _quadratic(self, z: int) -> Node:
        log_volume = float(self._parameters.log_volume[self._parameters.groups[z]])
        return times(literal(-0.5), plus(self._distance(z), literal(log_volume)))

    def _distance(self, z: int) -> Node:
        """Return the squared Mahalanobis distance of a complete row."""
        whitener = self._parameters.whitener[self._parameters.groups[z]]
        squares = []
        for k in range(len(self._names)):
            weights = whitener[: k + 1, k]
            terms = [times(literal(w), column(name)) for w, name in zip(weights.tolist(), self._names, strict=False)]
            middle = float(weights @ self._mean[z, : k + 1])
            white = self._steps.define(f"{self._label}_u{z}_{k}", minus(total(terms), literal(middle)))
            squares.append(square(lambda white=white: column(white)))
        return total(squares)

    # t densities ------------------------------------------------------------------------------------------------

    def of_t(self) -> list[Node]:
        """Return log p(x | z) of each component."""
        parts: list[list[tuple[Node, Node]]] = [[] for _ in self._mean]
        for z, _, distance, log_variance in self._sweep():
            parts[z].append((distance, log_variance))
        seen = [cases((missing(name), literal(0.0)), default=literal(1.0)) for name in self._names]
        n_seen = column(self._steps.define(f"{self._label}_p", total(seen)))
        return [self._t(z, of_z, n_seen) for z, of_z in enumerate(parts)]

    def _t(self, z: int, parts: list[tuple[Node, Node]], n_seen: Node) -> Node:
        parameters, d = self._parameters, len(self._names)
        assert parameters.degrees is not None
        assert parameters.spread is not None
        nu = float(parameters.degrees[z])
        scale = 1.0 / (nu * float(parameters.spread[z]))
        peaks = parameters.log_peak[:, z].tolist()
        whole_row = minus(
            literal(peaks[d] - 0.5 * float(parameters.log_volume[parameters.groups[z]])),
            log_tail(times(literal(scale), self._distance(z)), nu, d),
        )
        peak = cases(
            *((exp.EQ(this=n_seen.copy(), expression=literal(float(p))), literal(peaks[p])) for p in range(d)),
            default=literal(peaks[d]),
        )
        distance, log_volume = total([one for one, _ in parts]), total([other for _, other in parts])
        reach = times(literal(0.5), plus(literal(nu), n_seen.copy()))
        tail = times(reach, exp.Ln(this=plus(literal(1.0), times(literal(scale), distance))))
        seen = minus(minus(peak, times(literal(0.5), log_volume)), tail)
        return cases((self.complete(), whole_row), default=seen)

    # Incomplete rows ----------------------------------------------------------------------------------------------

    def chain(self) -> Iterator[tuple[int, int, Node]]:
        """Yield the log density of each column given the columns before it, 0 where it is missing."""
        for z, j, distance, log_variance in self._sweep():
            yield z, j, times(literal(-0.5), plus(distance, log_variance))

    def _sweep(self) -> Iterator[tuple[int, int, Node, Node]]:
        """Yield the squared distance of each column given the columns before it, and the log of its variance."""
        left: list[list[list[Node]]] = [
            [[literal(s) for s in row] for row in matrix] for matrix in self._parameters.covariance.tolist()
        ]
        apart: list[list[Node]] = [
            [minus(column(name), literal(m)) for name, m in zip(self._names, mean, strict=True)]
            for mean in self._mean.tolist()
        ]
        for j, name in enumerate(self._names):
            for z, deviations in enumerate(apart):
                variance = left[self._parameters.groups[z]][j][j]
                distance = over(times(deviations[j].copy(), deviations[j].copy()), variance.copy())
                absent = (missing(name), literal(0.0))
                log_variance = exp.Ln(this=variance.copy())
                yield z, j, cases(absent, default=distance), cases((missing(name), literal(0.0)), default=log_variance)
            for z, deviations in enumerate(apart):
                self._sweep_deviations(j, z, deviations, left[self._parameters.groups[z]])
            for g, covariance in enumerate(left):
                self._sweep_covariance(j, g, covariance)

    def _sweep_deviations(self, j: int, z: int, apart: list[Node], left: list[list[Node]]) -> None:
        for i in range(j + 1, len(apart)):
            moved = minus(apart[i].copy(), over(times(left[i][j].copy(), apart[j].copy()), left[j][j].copy()))
            apart[i] = self._after(j, f"r{z}_{i}_{j}", apart[i], moved)

    def _sweep_covariance(self, j: int, g: int, left: list[list[Node]]) -> None:
        start = self._parameters.covariance[g]
        for i in range(j + 1, len(left)):
            for k in range(j + 1, i + 1):
                if j:
                    swept = over(times(left[i][j].copy(), left[k][j].copy()), left[j][j].copy())
                    less = minus(left[i][k].copy(), swept)
                else:
                    less = real(literal(start[i, k] - start[i, 0] * start[k, 0] / start[0, 0]))
                left[i][k] = left[k][i] = self._after(j, f"s{g}_{i}_{k}_{j}", left[i][k], less)

    def _after(self, j: int, name: str, unseen: Node, seen: Node) -> Node:
        """Define a value after the sweep of column j: `unseen` where x_j is missing, `seen` where it is present.

        It is NULL in complete rows, which take the shorter way unless the factors are chained.
        """
        branches = [(missing(self._names[j]), unseen.copy())]
        if not self._chained:
            branches.insert(0, (self.complete(), exp.Null()))
        return self._steps.value(f"{self._label}_{name}", cases(*branches, default=seen))
