"""Resolve the models of a comparison: names of the registry, or classifiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.pipeline import Pipeline

from posteriori.classifiers import GenerativeClassifier
from posteriori.classifiers.parameter_groups import columns_of
from posteriori.comparison.discriminative import DiscriminativeClassifier
from posteriori.comparison.rows import Rows
from posteriori.networks.classifier import NetworkClassifier
from posteriori.registry import COMPARED, MODELS, find_model


class ProbabilisticClassifier(Protocol):
    """A classifier with class probabilities, in the interface of scikit-learn."""

    classes_: Any

    def fit(self, X: Any, y: Any) -> Any:
        """Learn from labelled rows."""

    def predict_proba(self, X: Any) -> Any:
        """Return p(y | x), (n, C), in the order of `classes_`."""


def chosen_models(models: Any) -> dict[str, Any]:
    """Return models by title.

    Parameters
    ----------
    models : None, sequence of names and classifiers, or mapping of a title to a name or classifier
        Names are those of `posteriori.registry.MODELS`; None for `posteriori.registry.COMPARED`.

    Raises
    ------
    ValueError
        A name is unknown, two models have the same title, or there is no model.
    TypeError
        A model has no `predict_proba`.
    """
    if models is None:
        models = COMPARED
    if isinstance(models, str) or not isinstance(models, Mapping | Sequence):
        raise TypeError(
            f"models is {models!r}; give a list of names and classifiers, or a mapping from titles to these"
        )
    if isinstance(models, Mapping):
        pairs = [(str(title), _titled_model(model)[1]) for title, model in models.items()]
    else:
        pairs = [_titled_model(model) for model in models]
    if not pairs:
        raise ValueError("models is empty; name at least one")
    titles = [title for title, _ in pairs]
    repeated = [title for position, title in enumerate(titles) if title in titles[:position]]
    if repeated:
        raise ValueError(
            f"two models have the title {repeated[0]!r}; give a mapping from distinct titles to the models"
        )
    for title, model in pairs:
        if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "predict_proba")):
            raise TypeError(f"{title!r} has no predict_proba: {model!r}; give a probabilistic classifier")
    return dict(pairs)


def reads_text(model: Any) -> bool:
    """Whether a classifier reads columns of text as words."""
    return bool(getattr(model, "reads_text", getattr(model, "reads_counts", False)))


def rows_for(title: str, model: Any, rows: Rows, text: Any) -> Rows:
    """Return the rows that a model can read: without columns of text if it reads none.

    A model that recognises text itself receives the names of the columns, because a part of the rows may not show them.
    """
    if not reads_text(model):
        return rows.without_text(title)
    name, given = ("text", model.text) if hasattr(model, "text") else ("columns__text", columns_of(model).text)
    if rows.texts and isinstance(given, str):
        model.set_params(**{name: text if isinstance(text, Mapping) else list(rows.texts)})
    return rows


def with_parameters(model: Any, parameters: Mapping[str, Any]) -> Any:
    """Set those of the parameters that the model has, itself or in its `columns`; return the model."""
    known = model.get_params(deep=False)
    own = {name: value for name, value in parameters.items() if name in known}
    if "columns" in known:
        of_columns = [name for name in parameters if name != "text" or reads_text(model)]
        own |= {f"columns__{name}": parameters[name] for name in of_columns}
    return model.set_params(**own)


def _titled_model(model: Any) -> tuple[str, Any]:
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
    """Whether a classifier models p(x, y), and not only p(y | x)."""
    inner = _last(model)
    discriminants = (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, NetworkClassifier)
    joint = hasattr(inner, "predict_joint_log_proba") or isinstance(inner, GenerativeClassifier)
    return joint or isinstance(inner, discriminants)
