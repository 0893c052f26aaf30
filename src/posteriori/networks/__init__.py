"""Bayesian networks: a joint distribution as a product of conditional probability tables along a graph."""

from posteriori.deprecation import renamed_module_attributes as _renamed_module_attributes
from posteriori.networks.adjustment import AdjustmentSets, adjustment_sets
from posteriori.networks.classifier import NetworkClassifier
from posteriori.networks.cpt import CPT
from posteriori.networks.dag import DAG, Independence
from posteriori.networks.distributions import ConditionalDistribution, Distribution, Marginals, MostProbable
from posteriori.networks.files import read_network, write_network
from posteriori.networks.identification import Identification, identify
from posteriori.networks.network import BayesianNetwork
from posteriori.networks.sampling import Estimate
from posteriori.networks.scores import AIC, BIC, BDeu
from posteriori.networks.structure import LearnedStructure, learn_network, learn_structure, score_structure
from posteriori.networks.trails import DependenceExplanation, Trail, Triple, active_trails

__all__ = [
    "AIC",
    "BIC",
    "CPT",
    "DAG",
    "AdjustmentSets",
    "BDeu",
    "BayesianNetwork",
    "ConditionalDistribution",
    "DependenceExplanation",
    "Distribution",
    "Estimate",
    "Identification",
    "Independence",
    "LearnedStructure",
    "Marginals",
    "MostProbable",
    "NetworkClassifier",
    "Trail",
    "Triple",
    "active_trails",
    "adjustment_sets",
    "identify",
    "learn_network",
    "learn_structure",
    "read_network",
    "score_structure",
    "write_network",
]

__getattr__ = _renamed_module_attributes(
    __name__,
    {"Why": "posteriori.networks.DependenceExplanation", "why": "posteriori.networks.active_trails"},
)


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
