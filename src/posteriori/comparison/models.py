"""The models of a comparison, by name or as they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.pipeline import Pipeline

from posteriori.classifiers import (
    AveragedOneDependence,
    ChowLiuClassifier,
    GaussianDiscriminant,
    GenerativeClassifier,
    KDependenceBayes,
    NaiveBayes,
    TreeAugmentedNaiveBayes,
)
from posteriori.comparison.discriminative import DiscriminativeClassifier
from posteriori.networks.classifier import NetworkClassifier

# What a name stands for: how it is called in tables and pictures, and the model.
NAMED: dict[str, tuple[str, Callable[[], Any]]] = {
    "pool": ("pool", GenerativeClassifier),
    "nb": ("naive Bayes", NaiveBayes),
    "lda": ("LDA", GaussianDiscriminant),
    "qda": ("QDA", lambda: GaussianDiscriminant(pooling="per_class")),
    "tan": ("TAN", TreeAugmentedNaiveBayes),
    "chow-liu": ("Chow-Liu", ChowLiuClassifier),
    "kdb": ("kDB 2", lambda: KDependenceBayes(k=2)),
    "aode": ("AODE", AveragedOneDependence),
    "logistic": ("logistic regression", lambda: DiscriminativeClassifier("logistic")),
    "boosting": ("gradient boosting", lambda: DiscriminativeClassifier("boosting")),
    "forest": ("random forest", lambda: DiscriminativeClassifier("forest")),
}
DEFAULT = ("pool", "nb", "lda", "tan", "logistic", "boosting")


def chosen_models(models: Any) -> dict[str, Any]:
    """Return models by what they are called.

    Parameters
    ----------
    models : None, sequence of names and classifiers, or mapping of a title to a name or classifier

    Raises
    ------
    ValueError
        A name is not known, two models are called the same, or there is none.
    TypeError
        A model cannot say how probable the classes are.
    """
    wanted = DEFAULT if models is None else models
    if isinstance(wanted, str) or not isinstance(wanted, Mapping | Sequence):
        raise TypeError(f"models is {wanted!r}; list names and classifiers, or map what each is called to it")
    if isinstance(wanted, Mapping):
        pairs = [(str(title), _named(one)[1]) for title, one in wanted.items()]
    else:
        pairs = [_named(one) for one in wanted]
    if not pairs:
        raise ValueError(f"models is empty; name some of {_known()}")
    titles = [title for title, _ in pairs]
    twice = [title for position, title in enumerate(titles) if title in titles[:position]]
    if twice:
        raise ValueError(f"two models are called {twice[0]!r}; give a mapping of what each is called to the model")
    for title, model in pairs:
        if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "predict_proba")):
            raise TypeError(f"{title!r} is no classifier with predict_proba: {model!r}; give a probabilistic one")
    return dict(pairs)


def _named(model: Any) -> tuple[str, Any]:
    if not isinstance(model, str):
        return _title(model), model
    if model not in NAMED:
        raise ValueError(f"there is no model {model!r}; name some of {_known()}")
    title, make = NAMED[model]
    return title, make()


def _title(model: Any) -> str:
    inner = _last(model)
    if isinstance(inner, DiscriminativeClassifier):
        named = NAMED.get(inner.classifier) if isinstance(inner.classifier, str) else None
        return named[0] if named else type(inner.classifier).__name__
    return type(inner).__name__


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def _known() -> str:
    return ", ".join(map(repr, NAMED))


def is_generative(model: Any) -> bool:
    """Whether a classifier has p(x, y), rather than p(y | x) alone."""
    inner = _last(model)
    discriminants = (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, NetworkClassifier)
    joint = hasattr(inner, "predict_joint_log_proba") or isinstance(inner, GenerativeClassifier)
    return joint or isinstance(inner, discriminants)
