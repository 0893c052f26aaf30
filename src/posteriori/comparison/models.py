"""The models of a comparison, by name or as they are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.pipeline import Pipeline

from posteriori.classifiers import GenerativeClassifier
from posteriori.comparison.discriminative import DiscriminativeClassifier
from posteriori.networks.classifier import NetworkClassifier
from posteriori.registry import COMPARED, MODELS, find_model


def chosen_models(models: Any) -> dict[str, Any]:
    """Return models by title.

    Parameters
    ----------
    models : None, sequence of names and classifiers, or mapping of a title to a name or classifier
        Names are those of `posteriori.registry.MODELS`; None for `posteriori.registry.COMPARED`.

    Raises
    ------
    ValueError
        A name is not known, two models are called the same, or there is none.
    TypeError
        A model cannot say how probable the classes are.
    """
    wanted = COMPARED if models is None else models
    if isinstance(wanted, str) or not isinstance(wanted, Mapping | Sequence):
        raise TypeError(f"models is {wanted!r}; list names and classifiers, or map what each is called to it")
    if isinstance(wanted, Mapping):
        pairs = [(str(title), _named(one)[1]) for title, one in wanted.items()]
    else:
        pairs = [_named(one) for one in wanted]
    if not pairs:
        raise ValueError("models is empty; name at least one")
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
    spec = find_model(model)
    return spec.title, spec.make()


def _title(model: Any) -> str:
    inner = _last(model)
    if isinstance(inner, DiscriminativeClassifier):
        spec = MODELS.get(inner.classifier) if isinstance(inner.classifier, str) else None
        return spec.title if spec else type(inner.classifier).__name__
    return type(inner).__name__


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def is_generative(model: Any) -> bool:
    """Whether a classifier has p(x, y), rather than p(y | x) alone."""
    inner = _last(model)
    discriminants = (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, NetworkClassifier)
    joint = hasattr(inner, "predict_joint_log_proba") or isinstance(inner, GenerativeClassifier)
    return joint or isinstance(inner, discriminants)
