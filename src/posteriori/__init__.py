"""posteriori: class priors times class-conditional densities, learned by adding up sufficient statistics."""

import importlib as _importlib
import typing as _typing

from posteriori.version import __version__ as __version__

# Every public name, by the module that holds it, which is loaded on first use: `import posteriori` compiles nothing.
_NAMES_OF = {
    "classifiers": "AveragedOneDependence ChowLiuClassifier ChowLiuTree FullJointClassifier GaussianDiscriminant "
    "GenerativeClassifier GenerativeForest KDependenceBayes MixtureModel NaiveBayes TreeAugmentedNaiveBayes",
    "classifiers.merging": "merge",
    "classifiers.prediction_files": "predict_to",
    "classifiers.parameter_groups": "Columns EM Labels",
    "comparison": "Comparison CrossValidation compare cross_validate",
    "densities": "Binned Categorical Complement Compound Gaussian Multinomial Poisson PoissonRate Presence "
    "ScaledMultinomial",
    "exploring": "Explorer explore",
    "javascript": "javascript_evaluator to_javascript",
    "model_selection": "leave_one_out",
    "networks": "BayesianNetwork learn_network read_network write_network",
    "parameter_count": "count_parameters",
    "persistence": "load save",
    "preprocessing": "MDLPDiscretizer",
    "reporting": "Report report",
    "scoring.decisions": "decide",
    "scoring.fitted": "load_scorer",
    "tables": "Blocks IgnoredColumnWarning Query Scan TargetCuts quantile_classes scan scan_sql",
}
_MODULES = ("comparison", "drop_in", "explain", "networks", "plotting")
_HOMES = {name: home for home, names in _NAMES_OF.items() for name in names.split()}

__all__ = sorted([*_HOMES, *_MODULES])

if _typing.TYPE_CHECKING:  # the same names for type checkers; a test compares them
    from posteriori import comparison as comparison
    from posteriori import drop_in as drop_in
    from posteriori import explain as explain
    from posteriori import networks as networks
    from posteriori import plotting as plotting
    from posteriori.classifiers import AveragedOneDependence as AveragedOneDependence
    from posteriori.classifiers import ChowLiuClassifier as ChowLiuClassifier
    from posteriori.classifiers import ChowLiuTree as ChowLiuTree
    from posteriori.classifiers import FullJointClassifier as FullJointClassifier
    from posteriori.classifiers import GaussianDiscriminant as GaussianDiscriminant
    from posteriori.classifiers import GenerativeClassifier as GenerativeClassifier
    from posteriori.classifiers import GenerativeForest as GenerativeForest
    from posteriori.classifiers import KDependenceBayes as KDependenceBayes
    from posteriori.classifiers import MixtureModel as MixtureModel
    from posteriori.classifiers import NaiveBayes as NaiveBayes
    from posteriori.classifiers import TreeAugmentedNaiveBayes as TreeAugmentedNaiveBayes
    from posteriori.classifiers.merging import merge as merge
    from posteriori.classifiers.parameter_groups import EM as EM
    from posteriori.classifiers.parameter_groups import Columns as Columns
    from posteriori.classifiers.parameter_groups import Labels as Labels
    from posteriori.classifiers.prediction_files import predict_to as predict_to
    from posteriori.comparison import Comparison as Comparison
    from posteriori.comparison import CrossValidation as CrossValidation
    from posteriori.comparison import compare as compare
    from posteriori.comparison import cross_validate as cross_validate
    from posteriori.densities import Binned as Binned
    from posteriori.densities import Categorical as Categorical
    from posteriori.densities import Complement as Complement
    from posteriori.densities import Compound as Compound
    from posteriori.densities import Gaussian as Gaussian
    from posteriori.densities import Multinomial as Multinomial
    from posteriori.densities import Poisson as Poisson
    from posteriori.densities import PoissonRate as PoissonRate
    from posteriori.densities import Presence as Presence
    from posteriori.densities import ScaledMultinomial as ScaledMultinomial
    from posteriori.exploring import Explorer as Explorer
    from posteriori.exploring import explore as explore
    from posteriori.javascript import javascript_evaluator as javascript_evaluator
    from posteriori.javascript import to_javascript as to_javascript
    from posteriori.model_selection import leave_one_out as leave_one_out
    from posteriori.networks import BayesianNetwork as BayesianNetwork
    from posteriori.networks import learn_network as learn_network
    from posteriori.networks import read_network as read_network
    from posteriori.networks import write_network as write_network
    from posteriori.parameter_count import count_parameters as count_parameters
    from posteriori.persistence import load as load
    from posteriori.persistence import save as save
    from posteriori.preprocessing import MDLPDiscretizer as MDLPDiscretizer
    from posteriori.reporting import Report as Report
    from posteriori.reporting import report as report
    from posteriori.scoring.decisions import decide as decide
    from posteriori.scoring.fitted import load_scorer as load_scorer
    from posteriori.tables import Blocks as Blocks
    from posteriori.tables import IgnoredColumnWarning as IgnoredColumnWarning
    from posteriori.tables import Query as Query
    from posteriori.tables import Scan as Scan
    from posteriori.tables import TargetCuts as TargetCuts
    from posteriori.tables import quantile_classes as quantile_classes
    from posteriori.tables import scan as scan
    from posteriori.tables import scan_sql as scan_sql


def __getattr__(name: str) -> _typing.Any:
    if name in _MODULES:
        return _importlib.import_module(f"posteriori.{name}")
    if name in _HOMES:
        return globals().setdefault(name, getattr(_importlib.import_module(f"posteriori.{_HOMES[name]}"), name))
    raise AttributeError(f"module 'posteriori' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
