"""scikit-learn estimators: their parameters, their fits and their predictions.

They are façades over fitted values: an estimator holds its parameters and one value, which its attributes read. A model
is one file with its parameters and its densities; fits, sums and searches are in the folders below.
"""

import posteriori.support.scikit_learn  # noqa: F401  (before any module imports scikit-learn)
from posteriori.classifiers.dependence import AveragedOneDependence, FullJointClassifier, KDependenceBayes
from posteriori.classifiers.gaussian_discriminant import GaussianDiscriminant
from posteriori.classifiers.generative_classifier import GenerativeClassifier
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.generative_forest import GenerativeForest
from posteriori.classifiers.generative_regressor import GenerativeRegressor
from posteriori.classifiers.imputer import GenerativeImputer
from posteriori.classifiers.joint_model import JointModel
from posteriori.classifiers.mixture import MixtureModel
from posteriori.classifiers.naive_bayes import NaiveBayes
from posteriori.classifiers.sum_regressors import AdditiveRegressor, KernelRegressor
from posteriori.classifiers.trees import ChowLiuClassifier, ChowLiuTree, TreeAugmentedNaiveBayes

__all__ = [
    "AdditiveRegressor",
    "AveragedOneDependence",
    "ChowLiuClassifier",
    "ChowLiuTree",
    "FullJointClassifier",
    "GaussianDiscriminant",
    "GenerativeClassifier",
    "GenerativeEstimator",
    "GenerativeForest",
    "GenerativeImputer",
    "GenerativeRegressor",
    "JointModel",
    "KDependenceBayes",
    "KernelRegressor",
    "MixtureModel",
    "NaiveBayes",
    "TreeAugmentedNaiveBayes",
]
