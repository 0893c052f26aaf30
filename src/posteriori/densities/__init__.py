"""Class-conditional densities p(x_block | z), each for a block of columns of one kind.

A density is a frozen dataclass in one file: independent columns, joint Gaussians, columns along a tree or with some
parents. `capabilities.py` states what every density has and what it may offer; `registry.py` lists them.
"""

from __future__ import annotations

from posteriori.densities.capabilities import (
    ApproximatingDensity,
    AveragedDensity,
    BackingOffDensity,
    BaseDensity,
    CategorySummingDensity,
    ChainedDensity,
    ColumnDroppingDensity,
    ConditionalNormal,
    CorrelatedDensity,
    Density,
    DescribedDensity,
    ExpectingDensity,
    KnownLikelihoodDensity,
    LeaveOneOutDensity,
    LinearDensity,
    NormalDensity,
    ProgrammedDensity,
    ScoredDensity,
    SingleColumnDensity,
    TabularDensity,
    TwoPassDensity,
    UnrestrictedDensity,
    VarianceDensity,
    WordDensity,
    implements,
)
from posteriori.densities.categorical import Binned, BinnedParameters, Categorical, CategoricalParameters
from posteriori.densities.compound import Compound, CompoundParameters
from posteriori.densities.conditional import BackOff
from posteriori.densities.dependence import AveragedOneDependence, AveragedParameters, KDependence, SmoothedFamilies
from posteriori.densities.families import FamilyTables
from posteriori.densities.full_joint import FullJoint, FullJointParameters
from posteriori.densities.gaussian import Gaussian, GaussianParameters
from posteriori.densities.grouped import Grouped, GroupedParameters, coarse_parameters, ungrouped
from posteriori.densities.missingness import Missingness, MissingnessParameters
from posteriori.densities.multivariate import MultivariateGaussian
from posteriori.densities.multivariate_parameters import MultivariateGaussianParameters
from posteriori.densities.poisson import Poisson, PoissonParameters, PoissonRate, PoissonRateParameters
from posteriori.densities.presence import Presence, PresenceParameters
from posteriori.densities.random_trees import RandomTrees, RandomTreesParameters
from posteriori.densities.refinement import FurtherPass, Refined
from posteriori.densities.registry import (
    REGISTRY,
    Registration,
    column_label,
    find_stored_class,
    named_densities,
    named_density,
    stored_classes,
)
from posteriori.densities.summed_trees import SummedTrees, SummedTreesParameters
from posteriori.densities.tree import Tree
from posteriori.densities.tree_parameters import Forest, TreeParameters
from posteriori.densities.words import (
    Complement,
    ComplementParameters,
    Multinomial,
    MultinomialParameters,
    ScaledMultinomial,
)

__all__ = [
    "REGISTRY",
    "ApproximatingDensity",
    "AveragedDensity",
    "AveragedOneDependence",
    "AveragedParameters",
    "BackOff",
    "BackingOffDensity",
    "BaseDensity",
    "Binned",
    "BinnedParameters",
    "Categorical",
    "CategoricalParameters",
    "CategorySummingDensity",
    "ChainedDensity",
    "ColumnDroppingDensity",
    "Complement",
    "ComplementParameters",
    "Compound",
    "CompoundParameters",
    "ConditionalNormal",
    "CorrelatedDensity",
    "Density",
    "DescribedDensity",
    "ExpectingDensity",
    "FamilyTables",
    "Forest",
    "FullJoint",
    "FullJointParameters",
    "FurtherPass",
    "Gaussian",
    "GaussianParameters",
    "Grouped",
    "GroupedParameters",
    "KDependence",
    "KnownLikelihoodDensity",
    "LeaveOneOutDensity",
    "LinearDensity",
    "Missingness",
    "MissingnessParameters",
    "Multinomial",
    "MultinomialParameters",
    "MultivariateGaussian",
    "MultivariateGaussianParameters",
    "NormalDensity",
    "Poisson",
    "PoissonParameters",
    "PoissonRate",
    "PoissonRateParameters",
    "Presence",
    "PresenceParameters",
    "ProgrammedDensity",
    "RandomTrees",
    "RandomTreesParameters",
    "Refined",
    "Registration",
    "ScaledMultinomial",
    "ScoredDensity",
    "SingleColumnDensity",
    "SmoothedFamilies",
    "SummedTrees",
    "SummedTreesParameters",
    "TabularDensity",
    "Tree",
    "TreeParameters",
    "TwoPassDensity",
    "UnrestrictedDensity",
    "VarianceDensity",
    "WordDensity",
    "coarse_parameters",
    "column_label",
    "find_stored_class",
    "implements",
    "named_densities",
    "named_density",
    "stored_classes",
    "ungrouped",
]
