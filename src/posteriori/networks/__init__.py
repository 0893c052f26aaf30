"""Bayesian networks: a joint distribution as a product of conditional probability tables along a graph."""

from posteriori.networks.adjustment import AdjustmentSets, adjustment_sets
from posteriori.networks.bootstrap import ArcStrength, bootstrap_structure
from posteriori.networks.classifier import NetworkClassifier
from posteriori.networks.cpt import CPT
from posteriori.networks.dag import DAG, Independence
from posteriori.networks.decision_support import InformationValues, Sensitivity
from posteriori.networks.distributions import ConditionalDistribution, Distribution, Marginals, MostProbable
from posteriori.networks.equivalence import PartialDAG, cpdag, structural_hamming_distance
from posteriori.networks.evidence import Measurement
from posteriori.networks.evidence_files import read_evidence, write_evidence
from posteriori.networks.exchange import (
    from_networkx,
    from_pgmpy,
    from_pyagrum,
    to_networkx,
    to_pgmpy,
    to_pyagrum,
)
from posteriori.networks.files import read_network, write_network
from posteriori.networks.gaussian_mixture import GaussianMixture, MixedDistribution
from posteriori.networks.hybrid_scores import BGe
from posteriori.networks.identification import Identification, identify
from posteriori.networks.linear_gaussian import LinearGaussian
from posteriori.networks.network import BayesianNetwork
from posteriori.networks.sampling import Estimate
from posteriori.networks.scores import AIC, BIC, K2, BDeu
from posteriori.networks.structure import learn_network, learn_structure, score_structure
from posteriori.networks.structure_search import LearnedStructure
from posteriori.networks.trails import DependenceExplanation, Trail, Triple, active_trails

__all__ = [
    "AIC",
    "BIC",
    "CPT",
    "DAG",
    "K2",
    "AdjustmentSets",
    "ArcStrength",
    "BDeu",
    "BGe",
    "BayesianNetwork",
    "ConditionalDistribution",
    "DependenceExplanation",
    "Distribution",
    "Estimate",
    "GaussianMixture",
    "Identification",
    "Independence",
    "InformationValues",
    "LearnedStructure",
    "LinearGaussian",
    "Marginals",
    "Measurement",
    "MixedDistribution",
    "MostProbable",
    "NetworkClassifier",
    "PartialDAG",
    "Sensitivity",
    "Trail",
    "Triple",
    "active_trails",
    "adjustment_sets",
    "bootstrap_structure",
    "cpdag",
    "from_networkx",
    "from_pgmpy",
    "from_pyagrum",
    "identify",
    "learn_network",
    "learn_structure",
    "read_evidence",
    "read_network",
    "score_structure",
    "structural_hamming_distance",
    "to_networkx",
    "to_pgmpy",
    "to_pyagrum",
    "write_evidence",
    "write_network",
]


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
