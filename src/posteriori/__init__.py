"""posteriori: class priors times class-conditional densities, learned by adding up sufficient statistics."""

import importlib as _importlib
import typing as _typing
from importlib.util import find_spec as _find_spec

from posteriori.version import __version__ as __version__

# The public names, by the module that holds them, which is loaded on first use: `import posteriori` compiles nothing.
# Results and what few need are in their modules alone, which are loaded on first use, too: `po.reading.Scan`.
_NAMES_OF = {
    "classifiers": "AdditiveRegressor AveragedOneDependence ChowLiuTree GaussianDiscriminant GenerativeClassifier "
    "GenerativeForest GenerativeImputer GenerativeRegressor JointModel KDependenceBayes KernelRegressor MixtureModel "
    "NaiveBayes TreeAugmentedNaiveBayes",
    "classifiers.merging": "merge",
    "classifiers.prediction_files": "predict_to",
    "fitting.parameter_groups": "Columns EM Labels",
    "comparison": "compare compare_tables cross_validate",
    "densities": "Binned Categorical Complement Compound Gaussian Multinomial Poisson PoissonRate Presence "
    "ScaledMultinomial",
    "exploring": "explore",
    "networks": "BayesianNetwork StructureSearch learn_network read_network write_network",
    "joint.counting": "Probability",
    "model.answer": "Answer",
    "joint.findings": "Not",
    "persistence": "load save",
    "reporting": "report",
    "scoring.polars_expressions": "to_polars",
    "sql.duckdb_macros": "to_duckdb",
    "scoring.decisions": "decide",
    "reading": "scan",
    "watching": "Monitor",
    "": "comparison drop_in explain networks plotting",
}
_HOMES = {name: f"posteriori.{home}".rstrip(".") for home, names in _NAMES_OF.items() for name in names.split()}

__all__ = sorted(_HOMES)

if _typing.TYPE_CHECKING:  # the same names for type checkers; a test compares them
    from posteriori import comparison as comparison
    from posteriori import drop_in as drop_in
    from posteriori import explain as explain
    from posteriori import networks as networks
    from posteriori import plotting as plotting
    from posteriori.classifiers import AdditiveRegressor as AdditiveRegressor
    from posteriori.classifiers import AveragedOneDependence as AveragedOneDependence
    from posteriori.classifiers import ChowLiuTree as ChowLiuTree
    from posteriori.classifiers import GaussianDiscriminant as GaussianDiscriminant
    from posteriori.classifiers import GenerativeClassifier as GenerativeClassifier
    from posteriori.classifiers import GenerativeForest as GenerativeForest
    from posteriori.classifiers import GenerativeImputer as GenerativeImputer
    from posteriori.classifiers import GenerativeRegressor as GenerativeRegressor
    from posteriori.classifiers import JointModel as JointModel
    from posteriori.classifiers import KDependenceBayes as KDependenceBayes
    from posteriori.classifiers import KernelRegressor as KernelRegressor
    from posteriori.classifiers import MixtureModel as MixtureModel
    from posteriori.classifiers import NaiveBayes as NaiveBayes
    from posteriori.classifiers import TreeAugmentedNaiveBayes as TreeAugmentedNaiveBayes
    from posteriori.classifiers.merging import merge as merge
    from posteriori.classifiers.prediction_files import predict_to as predict_to
    from posteriori.comparison import compare as compare
    from posteriori.comparison import compare_tables as compare_tables
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
    from posteriori.exploring import explore as explore
    from posteriori.fitting.parameter_groups import EM as EM
    from posteriori.fitting.parameter_groups import Columns as Columns
    from posteriori.fitting.parameter_groups import Labels as Labels
    from posteriori.joint.counting import Probability as Probability
    from posteriori.joint.findings import Not as Not
    from posteriori.model.answer import Answer as Answer
    from posteriori.networks import BayesianNetwork as BayesianNetwork
    from posteriori.networks import StructureSearch as StructureSearch
    from posteriori.networks import learn_network as learn_network
    from posteriori.networks import read_network as read_network
    from posteriori.networks import write_network as write_network
    from posteriori.persistence import load as load
    from posteriori.persistence import save as save
    from posteriori.reading import scan as scan
    from posteriori.reporting import report as report
    from posteriori.scoring.decisions import decide as decide
    from posteriori.scoring.polars_expressions import to_polars as to_polars
    from posteriori.sql.duckdb_macros import to_duckdb as to_duckdb
    from posteriori.watching import Monitor as Monitor


def __getattr__(name: str) -> _typing.Any:
    home = _HOMES.get(name, __name__)
    if home != __name__:
        return globals().setdefault(name, getattr(_importlib.import_module(home), name))
    if not name.startswith("_") and _find_spec(f"{__name__}.{name}"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'posteriori' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
