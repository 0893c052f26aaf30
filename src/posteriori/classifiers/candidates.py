"""What a pool tries: every generative model that is worth its cost on a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from posteriori.classifiers.base import GenerativeEstimator
from posteriori.classifiers.dependence import AveragedOneDependence, KDependenceBayes
from posteriori.classifiers.gaussian_discriminant import GaussianDiscriminant
from posteriori.classifiers.naive_bayes import NaiveBayes
from posteriori.classifiers.trees import ChowLiuClassifier, TreeAugmentedNaiveBayes
from posteriori.tables import Schema

_MOST_TIMES = 60  # the lookups of naive Bayes, a row: beyond it a model is out of proportion
_MOST_CELLS = 40_000_000  # of the tables of pairs, over all classes
_MOST_COVARIANCE = 20_000_000  # numbers in the covariances of all classes
_EM_STEPS = 20  # of a candidate, each of which is a pass


@dataclass(frozen=True)
class Candidate:
    """A model that a pool may try.

    Attributes
    ----------
    make : callable
        Returns the estimator, given parameters that all have.
    kind : {"independent", "pairs", "averaged", "gaussian"}
        What it costs: a lookup a column, tables of pairs of columns, lookups of all pairs, or covariances.
    binned : bool
        Whether numbers are cut, by quantiles or by the classes; without numbers the latter is what the former is.
    numbers : bool
        Whether it is worth trying only where there are numbers.
    """

    make: Callable[..., GenerativeEstimator]
    kind: str
    numbers: bool = False


_naive = partial(NaiveBayes, distributions="binned")
_discriminant = partial(GaussianDiscriminant, shrinkage=0.02, tol=1e-3, max_iter=_EM_STEPS)
_weighed: dict[str, Any] = {"weights": "conditional"}

# Each is quick, and errs in its own way: with bells or bins, with few parameters or many, with all factors trusted
# alike or weighed. Of bins, 8 say more where rows are few, and those that the classes choose where they are many.
CANDIDATES: dict[str, Candidate] = {
    "gaussian": Candidate(NaiveBayes, "independent", numbers=True),
    "lda": Candidate(_discriminant, "gaussian", numbers=True),
    "rda": Candidate(partial(_discriminant, pooling=0.5), "gaussian", numbers=True),
    "qda": Candidate(partial(_discriminant, pooling=0.2), "gaussian", numbers=True),
    "binned weighted": Candidate(partial(_naive, **_weighed), "independent"),
    "tan": Candidate(partial(TreeAugmentedNaiveBayes, backoff=5.0), "pairs"),
    "tan smooth": Candidate(partial(TreeAugmentedNaiveBayes, backoff=30.0), "pairs"),
    "kdb weighted": Candidate(partial(KDependenceBayes, backoff=5.0, **_weighed), "pairs"),
    "aode": Candidate(partial(AveragedOneDependence, backoff=5.0), "averaged"),
    "aode 8": Candidate(partial(AveragedOneDependence, bins=8, backoff=5.0), "averaged", numbers=True),
}

# What `members=[…]` may name beside them: a model as its class makes it.
NAMED: dict[str, Callable[..., GenerativeEstimator]] = {
    "nb": NaiveBayes,
    "lda": GaussianDiscriminant,
    "qda": partial(GaussianDiscriminant, pooling="per_class"),
    "rda": partial(GaussianDiscriminant, pooling=0.5),
    "tan": TreeAugmentedNaiveBayes,
    "chow-liu": ChowLiuClassifier,
    "kdb": KDependenceBayes,
    "aode": AveragedOneDependence,
}


def named_estimator(name: str, **parameters: Any) -> GenerativeEstimator:
    """Return the estimator that a short name stands for, as ``posteriori fit --model`` knows it.

    Raises
    ------
    ValueError
        It stands for none.
    """
    if name not in NAMED:
        raise ValueError(f"{name!r} is no model; choose among {', '.join(NAMED)}, or give an estimator")
    return NAMED[name](**parameters)


def affordable_candidates(
    schema: Schema, n_classes: int, numbers_missing: int, common: Mapping[str, Any]
) -> tuple[dict[str, GenerativeEstimator], dict[str, str]]:
    """Return the candidates that a table is worth, by name, and why others are left out.

    Parameters
    ----------
    schema : Schema
    n_classes : int
        C.
    numbers_missing : int
        How many rows lack a number.
    common : mapping
        Parameters of every estimator.

    Notes
    -----
    Left out are models of pairs of columns whose tables would hold more than 40 million numbers, models that look up
    more than 60 times as many numbers a row as naive Bayes, covariances of more than 20 million numbers, and those that
    take more than 10¹⁰ multiplications to be learned from incomplete rows.
    """
    d, n_numbers = len(schema.columns), len(schema.of_kind("continuous"))
    sizes = [column.cardinality + 1 if column.kind == "categorical" else 9 for column in schema.columns]
    cells = n_classes * (sum(sizes) ** 2 - sum(size**2 for size in sizes)) // 2
    reasons: dict[str, str] = {}
    if cells > _MOST_CELLS:
        reasons["pairs"] = reasons["averaged"] = f"its tables of pairs of columns would hold {cells:,} numbers"
    elif d > _MOST_TIMES:
        reasons["averaged"] = (
            f"it looks up {d} times as many numbers a row as naive Bayes, of which 60 times is the limit"
        )
        if d > 2 * _MOST_TIMES:
            reasons["pairs"] = (
                f"it counts {d // 2} times as many cells a row as naive Bayes, of which 60 times is the limit"
            )
    if n_classes * n_numbers**2 > _MOST_COVARIANCE:
        reasons["gaussian"] = f"its covariances would hold {n_classes * n_numbers**2:,} numbers"
    elif _EM_STEPS * numbers_missing * n_classes * n_numbers**2 > 10**10:
        work = _EM_STEPS * numbers_missing * n_classes * n_numbers**2
        reasons["gaussian"] = f"{numbers_missing:,} rows lack a number, which would take it {work:,} multiplications"
    chosen, left_out = {}, {}
    for name, one in CANDIDATES.items():
        if one.numbers and not n_numbers:
            continue
        if one.kind in reasons:
            left_out[name] = reasons[one.kind]
        else:
            chosen[name] = one.make(**common)
    return chosen, left_out
