"""Bayesian networks: a joint distribution as a product of conditional probability tables along a graph."""

from posteriori.networks.cpt import CPT
from posteriori.networks.dag import DAG, Independence
from posteriori.networks.distributions import ConditionalDistribution, Distribution, Marginals, MostProbable
from posteriori.networks.files import read_network, write_network
from posteriori.networks.network import BayesianNetwork
from posteriori.networks.sampling import Estimate
from posteriori.networks.trails import Trail, Triple, Why, why

__all__ = [
    "CPT",
    "DAG",
    "BayesianNetwork",
    "ConditionalDistribution",
    "Distribution",
    "Estimate",
    "Independence",
    "Marginals",
    "MostProbable",
    "Trail",
    "Triple",
    "Why",
    "read_network",
    "why",
    "write_network",
]
