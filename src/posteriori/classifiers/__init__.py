"""scikit-learn estimators: parameters and validation, nothing numeric."""

from posteriori.classifiers.base import GenerativeEstimator
from posteriori.classifiers.naive_bayes import NaiveBayes

__all__ = ["GenerativeEstimator", "NaiveBayes"]
