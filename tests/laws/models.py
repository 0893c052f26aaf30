"""Every model whose laws are tested. A new entry of a registry is one of them without a line here.

`CASES` holds the models of `posteriori.registry.MODELS`, naive Bayes with each distribution of
`posteriori.densities.registry.REGISTRY`, and settings that have a code path of their own. `EXCLUDED` holds the entries
of the registry that have no p(x, y), with the reason.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import pytest

import posteriori as po
from posteriori.densities.covariances import PseudoRows
from posteriori.densities.registry import REGISTRY
from posteriori.registry import MODELS

_QUICK = {"n_jobs": 1}


@dataclass(frozen=True)
class Case:
    """A model under test.

    Attributes
    ----------
    name : str
        Unique.
    make : callable
        Returns a new estimator.
    takes : {"mixed", "counts", "categories"}
        The kind of its tables (`tests.laws.tables.tables`).
    takes_missing : bool
        Whether it can be fitted if cells are missing.
    has_labels : bool
        Whether it takes y; a mixture model does not.
    is_costly : bool
        Whether a fit takes a second; such a case runs on fewer tables.
    make_quick : callable or None
        Returns a cheaper estimator with the same path, which stands for it in the laws on two tables.
    is_variant : bool
        Whether another case has the same path through the code, with other numbers; such a case has no law on two
        tables, only that on 20.
    """

    name: str
    make: Callable[[], Any]
    takes: str = "mixed"
    takes_missing: bool = True
    has_labels: bool = True
    is_costly: bool = False
    make_quick: Callable[[], Any] | None = None
    is_variant: bool = False

    def on_few_tables(self):
        """Return the case with its cheaper estimator."""
        return replace(self, make=self.make_quick or self.make)

    def fit(self, table, y=None):
        """Return the estimator fitted to a table of `tests.laws.tables`, or to a part of one."""
        frame = table.frame()
        return self.make().fit(frame, table.y if y is None else y) if self.has_labels else self.make().fit(frame)


EXCLUDED = {
    spec.name: "discriminative: it has no p(x, y), and scikit-learn fits it"
    for spec in MODELS.values()
    if not spec.generative
}


def _of_registry():
    """Yield the generative models of the registry, in its order."""
    for spec in MODELS.values():
        if spec.name not in EXCLUDED:
            few = {"folds": 2, "random_state": 0} if spec.name == "pool" else {}
            few |= {"n_trees": 12} if spec.name.startswith("forest") else {}
            make = lambda spec=spec, few=few: spec.make(**_QUICK, **few)  # noqa: E731
            takes = "counts" if spec.of_counts else "mixed"
            yield Case(spec.name, make, takes, takes_missing=not spec.of_counts, is_costly=spec.name == "pool")


def _distributions():
    """Yield naive Bayes with each distribution that `distributions` takes by name."""
    for entry in REGISTRY:
        if entry.options is not None:
            name = entry.density.name
            make = lambda name=name: po.NaiveBayes(distributions=name, **_QUICK)  # noqa: E731
            if entry.label is not None:  # the densities of counts say so
                yield Case(f"nb of {name}", make, "counts", takes_missing=name == "poisson")
            else:
                yield Case(f"nb of {name}", make, "categories" if entry.density.kind == "categorical" else "mixed")


def _settings():
    """Yield settings with a code path of their own."""
    gda, nb, tan = po.GaussianDiscriminant, po.NaiveBayes, po.TreeAugmentedNaiveBayes
    for shrinkage in (None, "diagonal", "spherical"):
        for pooling in ("pooled", "per_class"):
            for predictive in (False, True):
                yield (
                    f"gda {shrinkage or 'full'} {pooling}{' predictive' * predictive}",
                    lambda s=shrinkage, p=pooling, t=predictive: gda(shrinkage=s, pooling=p, predictive=t, **_QUICK),
                )
    yield "gda oas", lambda: gda(shrinkage="oas", **_QUICK)
    yield "gda ledoit-wolf", lambda: gda(shrinkage="ledoit_wolf", **_QUICK)
    yield "gda shrinkage", lambda: gda(pooling=0.5, shrinkage=0.3, predictive=True, **_QUICK)
    yield "gda pseudo-rows", lambda: gda(pooling=PseudoRows(3.0), **_QUICK)
    yield "nb informative", lambda: nb(missing="informative", **_QUICK)
    yield "nb weighted", lambda: nb(feature_weights="conditional", **_QUICK)
    yield "nb components", lambda: nb(em=po.EM(components_per_class=2, n_init=1, max_iter=5), random_state=0, **_QUICK)
    yield "tan of numbers", lambda: tan(bins=None, **_QUICK)
    yield "tan learned", lambda: tan(backoff="learned", **_QUICK)
    yield "tan 4 bins", lambda: tan(bins=4, **_QUICK)
    yield "kdb 1 learned", lambda: po.KDependenceBayes(1, backoff="learned", **_QUICK)
    yield "kdb learned", lambda: po.KDependenceBayes(2, backoff="learned", **_QUICK)
    yield "kdb 4 bins", lambda: po.KDependenceBayes(2, bins=4, **_QUICK)
    yield "aode learned", lambda: po.AveragedOneDependence(backoff="learned", **_QUICK)
    yield "aode without backoff", lambda: po.AveragedOneDependence(backoff=None, **_QUICK)


# Cases that are another one of the list with other numbers, or under another name.
_VARIANTS = (
    *("tan 5", "tan 30", "aode 5", "aode 8 bins", "scaled 0.1", "complement 0.1", "kdb 1 learned", "kdb 4 bins"),
    *("nb of gaussian", "nb of complement", "nb of compound", "nb of presence", "nb of scaled", "rda predictive"),
    *("gda full pooled", "gda full per_class", "gda full pooled predictive", "gda full per_class predictive"),
    *("gda diagonal per_class", "gda diagonal pooled predictive"),
    *("gda spherical pooled", "gda spherical per_class predictive"),
)

CASES = {case.name: case for case in (*_of_registry(), *_distributions())}
CASES |= {name: Case(name, make) for name, make in _settings()}
CASES["gda weighted"] = Case(
    "gda weighted",
    lambda: po.GaussianDiscriminant(feature_weights="conditional", **_QUICK),
    takes_missing=False,  # leave-one-out has no closed form after EM, and `fit` says so
)
CASES["full joint"] = Case("full joint", lambda: po.classifiers.FullJointClassifier(bins=2, **_QUICK))
CASES["mixture"] = Case(
    "mixture",
    lambda: po.MixtureModel(2, n_init=2, random_state=0, em=po.EM(max_iter=20, tol=0.0), n_jobs=1),
    has_labels=False,
)
_FEW_MEMBERS = ["nb predictive", "qda predictive", "tan 5", "aode 8 bins", "cells"]
CASES["pool"] = replace(
    CASES["pool"], make_quick=lambda: po.GenerativeClassifier(_FEW_MEMBERS, folds=2, random_state=0, **_QUICK)
)
CASES |= {name: replace(CASES[name], is_variant=True) for name in _VARIANTS}


def parameters(names=CASES, failing=MappingProxyType({})):
    """Return names of cases for `pytest.mark.parametrize`.

    `failing` has the reason why a law does not hold for a case, which is a strict xfail.
    """
    return [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason=failing[name])) if name in failing else name
        for name in names
    ]
