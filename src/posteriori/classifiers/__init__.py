"""scikit-learn estimators: parameters and validation, nothing numeric."""

from posteriori.classifiers.base import GenerativeEstimator
from posteriori.classifiers.gaussian_discriminant import GaussianDiscriminant
from posteriori.classifiers.naive_bayes import NaiveBayes

__all__ = ["GaussianDiscriminant", "GenerativeEstimator", "NaiveBayes"]
