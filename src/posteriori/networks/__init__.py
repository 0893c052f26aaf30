"""Bayesian networks: a joint distribution as a product of conditional probability tables along a graph.

They have no label. `graph/` is the structure and its tables, `inference/` the engines and their answers, `learning/`
finds tables and graphs from cases, `causal/` effects of interventions, and `formats/` reads and writes files.
`network.py` has the one class, and `classifier.py` makes any variable a label.
"""

import posteriori.support.scikit_learn  # noqa: F401  (before any module imports scikit-learn)
from posteriori.networks.causal.adjustment import AdjustmentSets, adjustment_sets
from posteriori.networks.causal.identification import Identification, identify
from posteriori.networks.classifier import NetworkClassifier
from posteriori.networks.formats.evidence_files import read_evidence, write_evidence
from posteriori.networks.formats.exchange import (
    from_networkx,
    from_pgmpy,
    from_pyagrum,
    to_networkx,
    to_pgmpy,
    to_pyagrum,
)
from posteriori.networks.formats.files import read_network, write_network
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.dag import DAG, DependenceExplanation, Independence, Trail, Triple, active_trails
from posteriori.networks.graph.equivalence import PartialDAG, cpdag, structural_hamming_distance
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.inference.decision_support import InformationValues, Sensitivity
from posteriori.networks.inference.distributions import (
    ConditionalDistribution,
    Distribution,
    GaussianMixture,
    Marginals,
    MixedDistribution,
    MostProbable,
)
from posteriori.networks.inference.evidence import Measurement
from posteriori.networks.inference.sampling import Estimate
from posteriori.networks.learning.bootstrap import ArcStrength, bootstrap_structure
from posteriori.networks.learning.family_scores import AIC, BIC, K2, BDeu, BGe
from posteriori.networks.learning.structure import learn_network, learn_structure, score_structure
from posteriori.networks.learning.structure_search import LearnedStructure, StructureSearch
from posteriori.networks.network import BayesianNetwork

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
    "StructureSearch",
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
