"""posteriori: class priors times class-conditional densities, learned by adding up sufficient statistics."""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from posteriori import comparison, drop_in, explain, networks, plotting
    from posteriori.classifiers import (
        AveragedOneDependence,
        ChowLiuClassifier,
        ChowLiuTree,
        FullJointClassifier,
        GaussianDiscriminant,
        GenerativeClassifier,
        GenerativeForest,
        KDependenceBayes,
        MixtureModel,
        NaiveBayes,
        TreeAugmentedNaiveBayes,
    )
    from posteriori.classifiers.merging import merge
    from posteriori.classifiers.prediction_files import predict_to
    from posteriori.comparison import Comparison, compare
    from posteriori.densities import (
        Binned,
        Categorical,
        Complement,
        Compound,
        Gaussian,
        Multinomial,
        Poisson,
        PoissonRate,
        Presence,
        ScaledMultinomial,
    )
    from posteriori.exploring import Explorer, explore
    from posteriori.javascript import javascript_evaluator, to_javascript
    from posteriori.model_selection import leave_one_out
    from posteriori.networks import BayesianNetwork, learn_network, read_network, write_network
    from posteriori.parameter_count import count_parameters
    from posteriori.persistence import load, save
    from posteriori.preprocessing import MDLPDiscretizer
    from posteriori.reporting import Report, report
    from posteriori.scoring.decisions import decide
    from posteriori.scoring.fitted import load_scorer
    from posteriori.tables import (
        Blocks,
        IgnoredColumnWarning,
        Query,
        Scan,
        TargetCuts,
        quantile_classes,
        scan,
        scan_sql,
    )

__version__ = "0.1.0"

# Loaded on first use, so that `import posteriori` compiles nothing and draws nothing in.
_HOMES = {
    "AveragedOneDependence": "classifiers",
    "BayesianNetwork": "networks",
    "Binned": "densities",
    "Blocks": "tables",
    "Categorical": "densities",
    "ChowLiuClassifier": "classifiers",
    "ChowLiuTree": "classifiers",
    "Comparison": "comparison",
    "Complement": "densities",
    "Compound": "densities",
    "FullJointClassifier": "classifiers",
    "Gaussian": "densities",
    "GaussianDiscriminant": "classifiers",
    "GenerativeClassifier": "classifiers",
    "GenerativeForest": "classifiers",
    "IgnoredColumnWarning": "tables",
    "KDependenceBayes": "classifiers",
    "MDLPDiscretizer": "preprocessing",
    "MixtureModel": "classifiers",
    "Multinomial": "densities",
    "NaiveBayes": "classifiers",
    "Poisson": "densities",
    "PoissonRate": "densities",
    "Presence": "densities",
    "Report": "reporting",
    "Query": "tables",
    "ScaledMultinomial": "densities",
    "Scan": "tables",
    "TargetCuts": "tables",
    "TreeAugmentedNaiveBayes": "classifiers",
    "compare": "comparison",
    "CrossValidation": "comparison",
    "cross_validate": "comparison",
    "count_parameters": "parameter_count",
    "decide": "scoring.decisions",
    "Explorer": "exploring",
    "explore": "exploring",
    "javascript_evaluator": "javascript",
    "learn_network": "networks",
    "leave_one_out": "model_selection",
    "load": "persistence",
    "load_scorer": "scoring.fitted",
    "merge": "classifiers.merging",
    "predict_to": "classifiers.prediction_files",
    "quantile_classes": "tables",
    "read_network": "networks",
    "report": "reporting",
    "save": "persistence",
    "scan": "tables",
    "scan_sql": "tables",
    "to_javascript": "javascript",
    "write_network": "networks",
}
_MODULES = ("comparison", "drop_in", "explain", "networks", "plotting")

__all__ = [
    "AveragedOneDependence",
    "BayesianNetwork",
    "Binned",
    "Blocks",
    "Categorical",
    "ChowLiuClassifier",
    "ChowLiuTree",
    "Comparison",
    "Complement",
    "Compound",
    "CrossValidation",
    "Explorer",
    "FullJointClassifier",
    "Gaussian",
    "GaussianDiscriminant",
    "GenerativeClassifier",
    "GenerativeForest",
    "IgnoredColumnWarning",
    "KDependenceBayes",
    "MDLPDiscretizer",
    "MixtureModel",
    "Multinomial",
    "NaiveBayes",
    "Poisson",
    "PoissonRate",
    "Presence",
    "Query",
    "Report",
    "ScaledMultinomial",
    "Scan",
    "TargetCuts",
    "TreeAugmentedNaiveBayes",
    "compare",
    "comparison",
    "count_parameters",
    "cross_validate",
    "decide",
    "drop_in",
    "explain",
    "explore",
    "javascript_evaluator",
    "learn_network",
    "leave_one_out",
    "load",
    "load_scorer",
    "merge",
    "networks",
    "plotting",
    "predict_to",
    "quantile_classes",
    "read_network",
    "report",
    "save",
    "scan",
    "scan_sql",
    "to_javascript",
    "write_network",
]


def __getattr__(name: str) -> _typing.Any:
    if name in _MODULES:
        return _importlib.import_module(f"posteriori.{name}")
    if name in _HOMES:
        return getattr(_importlib.import_module(f"posteriori.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'posteriori' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
