"""Base of the drop-in classifiers of discrete features: pseudo-counts and the class prior."""

from __future__ import annotations

import warnings
from abc import ABC
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval

from posteriori.drop_in.base import NaiveBayesClassifier, class_prior
from posteriori.typing import Array

_SMALLEST_ALPHA = 1e-10  # scikit-learn's
_LARGEST_ALPHA = 1e30


class DiscreteClassifier(NaiveBayesClassifier, ABC):
    """Naive Bayes of discrete features, with Dirichlet smoothing."""

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any
    class_log_prior_: Array

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
        "force_alpha": ["boolean"],
        "fit_prior": ["boolean"],
        "class_prior": ["array-like", None],
    }

    def _check_alpha(self) -> Array:
        """Return the pseudo-counts, one for all features or one per feature, ≥ 1e-10 unless `force_alpha`."""
        alpha = np.asarray(self.alpha, dtype=np.float64)
        if alpha.ndim and alpha.shape != (self.n_features_in_,):
            raise ValueError(
                "When alpha is an array, it should contains `n_features`: "
                f"give {self.n_features_in_} elements instead of {alpha.size}."
            )
        if (alpha < 0).any():
            raise ValueError(f"All values in alpha must be greater than 0: one is {alpha.min():g}.")
        if not (alpha <= _LARGEST_ALPHA).all():
            raise ValueError(f"alpha holds {alpha.max():g}; it must be at most {_LARGEST_ALPHA:g}, or sums overflow")
        if self.force_alpha or (alpha >= _SMALLEST_ALPHA).all():
            return alpha
        warnings.warn(
            f"alpha too small will result in numeric errors, setting alpha = {_SMALLEST_ALPHA:.1e}; "
            "to have it as it is, use `force_alpha=True`",
            UserWarning,
            stacklevel=6,
        )
        return np.maximum(alpha, _SMALLEST_ALPHA)

    def _class_log_prior(self) -> Array:
        """Return log p(y) in nats, (C,): as given, uniform, or from the weight of each class if `fit_prior`."""
        weight = self.statistics_.weight
        counted = weight if self.fit_prior else np.ones(len(weight))
        with np.errstate(divide="ignore"):  # of a class without rows
            return np.log(class_prior(self.class_prior, counted, "class_prior").astype(np.float64))

    def _log_prior(self) -> Array:
        return self.class_log_prior_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags
