"""Least squares from sums of products: the joint Gaussian of features and targets, also of rows known in part."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from posteriori.program.arrays import each_pattern, solver
from posteriori.support.arrays import Arrays
from posteriori.support.checks import check_numbers, require
from posteriori.support.factors import Cholesky
from posteriori.support.typing import Array

_ROUNDING = 1e-9  # relative, of sums
_FEWEST = 1.0  # degrees of freedom of the noise
# In magnitude, of what follows from a file, so that nothing overflows.
_MOST_MEAN, _MOST_COEFFICIENT = 1e9, 1e70


@dataclass(frozen=True)
class Products:
    """Sums over rows: of features φ, of targets t, and of their products. + adds up rows, − takes rows away.

    Features and targets have means near 0 and variances near 1, so that no digit is lost to their offsets.
    """

    weight: float  # Σ w
    features: Array  # (p,): Σ w φ
    targets: Array  # (k,): Σ w t
    squares: Array  # (p, p): Σ w φ φᵀ
    mixed: Array  # (p, k): Σ w φ tᵀ
    target_squares: Array  # (k,): Σ w t²
    rows: float  # the sum of the weights that the rows were given; less weight is theirs if cells are unknown
    independent: float  # the number of rows that tell as much, if they are independent: fewer where rows are copies

    @classmethod
    def of(
        cls,
        features: Array,
        targets: Array,
        weight: Array,
        rows: float | None = None,
        independent: float | None = None,
    ) -> Products:
        """Return the sums of some rows: features (n, p), targets (n, k), weight (n,).

        `rows` and `independent` are the sum of the weights unless they are given.
        """
        rows = float(weight.sum()) if rows is None else rows
        weighted = features * weight[:, np.newaxis]
        return cls(
            float(weight.sum()),
            weighted.sum(axis=0),
            weight @ targets,
            weighted.T @ features,
            weighted.T @ targets,
            weight @ targets**2,
            rows,
            rows if independent is None else independent,
        )

    def __add__(self, other: Self) -> Products:
        return Products(*(a + b for a, b in self._pairs(other)))

    def __sub__(self, other: Self) -> Products:
        return Products(*(a - b for a, b in self._pairs(other)))

    def _pairs(self, other: Self) -> list[tuple[Any, Any]]:
        return [(getattr(self, one.name), getattr(other, one.name)) for one in fields(self)]

    def check(self) -> None:
        """Raise ValueError unless these may be sums of rows."""
        p, k = self.mixed.shape if self.mixed.ndim == 2 else (0, 0)
        check_numbers("the weight of rows", np.array([self.weight]), (1,), np.finfo(np.float64).tiny)
        shapes = {"features": (p,), "targets": (k,), "squares": (p, p), "mixed": (p, k), "target_squares": (k,)}
        for name, shape in shapes.items():
            check_numbers(f"the sums of {name.replace('_', ' ')}", getattr(self, name), shape)
        check_numbers("the weight of rows", np.array([self.rows]), (1,), self.weight * (1.0 - _ROUNDING))
        check_numbers("the number of rows", np.array([self.independent]), (1,), np.finfo(np.float64).tiny)

    @property
    def of_independent_rows(self) -> Products:
        """The sums of as many independent rows."""
        return self.times(self.independent / self.rows)

    def times(self, factor: float) -> Products:
        """Return the sums with the weights of rows times a factor: they do not become more independent rows."""
        if factor == 1.0:
            return self
        scaled = {one.name: getattr(self, one.name) * factor for one in fields(self)}
        return Products(**(scaled | {"independent": self.independent}))

    def mapped(self, matrix: Array) -> Products:
        """Return the sums of other features, which a matrix (p', p) makes of these."""
        return replace(
            self,
            features=matrix @ self.features,
            squares=matrix @ self.squares @ matrix.T,
            mixed=matrix @ self.mixed,
        )

    def first(self, n_features: int) -> Products:
        """Return the sums of the first features."""
        p = n_features
        return Products(
            self.weight,
            self.features[:p],
            self.targets,
            self.squares[:p, :p],
            self.mixed[:p],
            self.target_squares,
            self.rows,
            self.independent,
        )


@dataclass(frozen=True)
class LeastSquares:
    r"""The coefficients that are most probable if each is normal with mean 0, and so is the noise.

    .. math:: \beta = (S + \Lambda)^{-1} \sum_i w_i (\phi_i - \bar\phi) (t_i - \bar t), \qquad
              S = \sum_i w_i (\phi_i - \bar\phi) (\phi_i - \bar\phi)^T

    Λ is diagonal: the variance of the noise over the variance of each coefficient. The same sums are those of the joint
    Gaussian of φ and t, with the covariance (S + Λ)/Σw of the features. So unknown features u are integrated out, given
    the known ones o: with P = (S + Λ)⁻¹,

    .. math:: \mathrm{E}(\phi_u \mid \phi_o) = \bar\phi_u - P_{uu}^{-1} P_{uo} (\phi_o - \bar\phi_o), \qquad
              \mathrm{Var}(\beta^T \phi \mid \phi_o) = \beta_u^T P_{uu}^{-1} \beta_u / \sum_i w_i,

    and the mean of t is that of the least squares of t on the known features alone.

    References
    ----------
    Hoerl & Kennard, Ridge regression, Technometrics 12 (1970). Bishop, Pattern Recognition and Machine Learning (2006),
    section 2.3 (conditional Gaussians and the inverse of a part).
    """

    products: Products
    penalty: Array  # (p,): the diagonal of Λ, > 0

    def check(self) -> None:
        """Raise ValueError unless there is a positive penalty for each feature, and coefficients follow."""
        n_features = len(self.products.features)
        check_numbers("the penalties", self.penalty, (n_features,), np.finfo(np.float64).tiny)
        require(len(self.products.targets) > 0, "there are no sums of targets")
        with np.errstate(all="ignore"):
            means = np.concatenate([self.mean, self.target_mean])
            check_numbers("the means of features and targets", means, means.shape, -_MOST_MEAN, _MOST_MEAN)
            try:
                coefficients = self.coefficients
            except np.linalg.LinAlgError:
                raise ValueError("the sums of squares are not positive definite, as those of rows are") from None
        check_numbers("the coefficients", coefficients, coefficients.shape, -_MOST_COEFFICIENT, _MOST_COEFFICIENT)

    @cached_property
    def mean(self) -> Array:
        """The mean of the features, (p,)."""
        return np.asarray(self.products.features / self.products.weight)

    @cached_property
    def target_mean(self) -> Array:
        """The mean of the targets, (k,)."""
        return np.asarray(self.products.targets / self.products.weight)

    @property
    def matrix(self) -> Array:
        """S + Λ, (p, p)."""
        products = self.products
        matrix = products.squares - products.weight * np.outer(self.mean, self.mean)
        matrix[np.diag_indices_from(matrix)] += self.penalty
        return np.asarray(matrix)

    @cached_property
    def _factor(self) -> Cholesky:
        return Cholesky.of(self.matrix)

    @cached_property
    def coefficients(self) -> Array:
        """β, (p, k)."""
        products = self.products
        mixed = products.mixed - products.weight * np.outer(self.mean, self.target_mean)
        return self._factor.solve(mixed)

    @cached_property
    def inverse(self) -> Array:
        """(S + Λ)⁻¹, (p, p)."""
        return self._factor.solve(np.eye(len(self.penalty)))

    @cached_property
    def used(self) -> float:
        """The degrees of freedom of the coefficients, tr S (S + Λ)⁻¹ = p − tr Λ (S + Λ)⁻¹, by the factor's inverse."""
        return float(len(self.penalty) - self.penalty @ (self._factor.inverse**2).sum(axis=0))

    @property
    def degrees(self) -> float:
        """The degrees of freedom of the noise, n − 2 − tr S (S + Λ)⁻¹, at least 1.

        The mean takes one, and the penalties, which were learned from the same rows, another.
        """
        return float(max(self.products.rows - 2.0 - self.used, _FEWEST))

    @cached_property
    def noise(self) -> float:
        """σ² = RSS / (n − 2 − tr S (S + Λ)⁻¹) of the first target, with n rows.

        A row with unknown cells deviates more, and has as much less weight: its expected square counts σ², too.
        """
        products, beta = self.products, self.coefficients[:, 0]
        mixed = products.mixed[:, 0] - products.weight * self.mean * self.target_mean[0]
        total = products.target_squares[0] - products.weight * self.target_mean[0] ** 2
        left = total - beta @ mixed - self.penalty @ beta**2
        least = np.finfo(np.float64).eps * max(total, 1.0)
        return float(max(left, least) / self.degrees)

    def predict(self, features: Arrays) -> Arrays:
        """Return the mean of the targets of rows, (n, k)."""
        xp = features.__array_namespace__()
        return (features - self.mean) @ xp.asarray(self.coefficients) + self.target_mean

    def leverages(self, features: Arrays, weight: Array | float = 1.0) -> Arrays:
        """Return by how much the prediction of each training row changes with its own target, (n,), in [0, 1)."""
        half = self._factor.half_solve((features - self.mean).T)
        return weight * (features.__array_namespace__().sum(half**2, axis=0) + 1.0 / self.products.weight)

    def leave_one_out(self, features: Array, targets: Array, weight: Array) -> Array:
        r"""Return the prediction of each training row by the least squares of all others, (n, k).

        .. math:: t_i - \hat t_{-i} = \frac{t_i - \hat t_i}{1 - h_i}, \quad
                  h_i = w_i \Bigl((\phi_i - \bar\phi)^T (S + \Lambda)^{-1} (\phi_i - \bar\phi)
                  + \frac{1}{\sum_j w_j}\Bigr)

        It is exact, also with more features than rows: as Λ is positive, h < 1 (Golub, Heath & Wahba 1979).
        """
        residual = targets - self.predict(features)
        return np.asarray(targets - residual / (1.0 - self.leverages(features, weight))[:, np.newaxis])

    def filled(self, features: Arrays, unknown: Arrays, of: LeastSquares | None = None) -> tuple[Arrays, Arrays]:
        """Return features with the expectations of the unknown ones, and the variance of each target by them, (n, k).

        Parameters
        ----------
        features : ndarray (n, p)
        unknown : ndarray (n, p)
            Which features are unknown. Rows in which the same ones are share their factor of the inverse.
        of : LeastSquares, optional
            Whose targets, if they are others: of the same features.
        """
        xp, p = features.__array_namespace__(), len(self.mean)
        coefficients = (self if of is None else of).coefficients
        mean, inverse, beta = (xp.asarray(array) for array in (self.mean, self.inverse, coefficients))

        def of_rows(rows: Arrays, pattern: Arrays) -> Arrays:
            u, o = xp.nonzero(pattern)[0], xp.nonzero(~pattern)[0]
            lines, known, beta_u = xp.take(inverse, u, axis=1), xp.take(rows, o, axis=1), xp.take(beta, u, axis=0)
            solve = solver(xp.take(lines, u, axis=0))
            deviation = (known - xp.take(mean, o, axis=0)) @ xp.take(lines, o, axis=0)
            expected = xp.take(mean, u, axis=0) - solve(deviation.T).T
            spread = xp.sum(beta_u * solve(beta_u), axis=0) / self.products.weight
            whole = xp.take(xp.concat([known, expected], axis=1), xp.argsort(xp.concat([o, u], axis=0)), axis=1)
            return xp.concat([whole, xp.zeros_like(rows[:, :1]) + spread], axis=1)

        none = xp.zeros_like(features[:, :1]) + np.zeros(coefficients.shape[1])
        filled = each_pattern(of_rows, features, unknown, xp.concat([features, none], axis=1))
        return filled[:, :p], filled[:, p:]


def positive(matrix: Array) -> Array:
    """Return the positive semidefinite matrix that is nearest to a symmetric one, with its trace."""
    value, vector = np.linalg.eigh(matrix)
    if value[0] >= 0:
        return matrix
    kept = np.maximum(value, 0.0)
    return np.asarray((vector * (kept * (value.sum() / kept.sum()))) @ vector.T)
