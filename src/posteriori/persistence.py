"""Save and load models as safetensors with compressed JSON. Loading never executes anything from a file.

It makes estimators of the content that `model_files` reads and checks. A file names classes, of which only those that
are registered are made.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from posteriori import classifiers, registry
from posteriori.classifiers.estimator import Estimator, estimator_of
from posteriori.fitting.fitted import Fitted, FittedValue, kept_of_rows
from posteriori.fitting.recipe import Recipe, parameter_names
from posteriori.joint.imputation import FittedImputer
from posteriori.joint.value import FittedJoint
from posteriori.model_files import (
    check_is_fitted_content,
    digest,
    pack,
    parse,
    read_file,
    refuse_unknown,
    unpack,
    write_file,
)
from posteriori.pool.value import FittedPool
from posteriori.registry import Subject
from posteriori.regression.gaussian import FittedGaussian
from posteriori.regression.value import FittedRegression
from posteriori.support.checks import require, within
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from posteriori.networks import BayesianNetwork

Kind = TypeVar("Kind", bound=classifiers.GenerativeEstimator)
_VALUES: dict[type[Any], type[Any]] = {
    classifiers.GenerativeClassifier: FittedPool,
    classifiers.GenerativeRegressor: FittedRegression,
    classifiers.AdditiveRegressor: FittedGaussian,
    classifiers.KernelRegressor: FittedGaussian,
    classifiers.JointModel: FittedJoint,
    classifiers.GenerativeImputer: FittedImputer,
}
_registered: dict[str, type[Any]] = {}


def save(estimator: Estimator | BayesianNetwork, path: str | os.PathLike[str], *, without_rows: bool = False) -> None:
    """Write a model to a file atomically: an interrupted write leaves no partial file.

    Parameters
    ----------
    estimator : fitted estimator of posteriori or BayesianNetwork
    path : path
        Usually ending in ``.posteriori``.
    without_rows : bool, default False
        Whether the file holds sums and what follows from them alone, and nothing of single rows (SECURITY.md lists
        what else a file holds of them). A pool that is loaded from it has no held-out predictions, by which
        `predict_set` and `decide` know how sure it is.

    Raises
    ------
    TypeError
        The model or one of its densities has a type that posteriori cannot write.
    ValueError
        `without_rows` is set, and the model predicts from training rows, as a `KernelRegressor` does.
    OSError
        The folder does not exist or is not writable, or the path is a folder.
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    ValueError
        `load` would refuse the file: the message says which part of the model is inconsistent, which is a defect. What
        the path held before is left.

    Examples
    --------
    >>> import os, tempfile, posteriori as po
    >>> model = po.NaiveBayes().fit([["u"], ["v"], ["u"]], ["a", "b", "a"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.posteriori")
    >>> po.save(model, path)
    >>> po.load(path).predict([["v"]])
    array(['b'], dtype='<U1')
    """
    if getattr(estimator, "subject", None) is Subject.VARIABLES:
        from posteriori.networks import write_network  # imported here, as below: a classifier needs no networks

        write_network(cast("BayesianNetwork", estimator), path)
        return
    save_made_by(cast(Estimator, estimator), path, "", without_rows=without_rows)


def save_made_by(
    estimator: Estimator, path: str | os.PathLike[str], origin: str, *, without_rows: bool = False
) -> None:
    """Write an estimator as `save` does, with a digest of what a command made it of.

    `load` and `save` do not keep the digest, so that a model which was changed in between has none.
    """
    arrays: dict[str, Array] = {}
    content = _content_of(estimator, arrays, without_rows)
    write_file(Path(path), content, arrays, _estimator_of_content, origin)


def digest_of(estimator: Estimator) -> str:
    """Return the SHA-256 of what a file of a fitted estimator holds; equal for a model and its saved copy."""
    arrays: dict[str, Array] = {}
    content = json.dumps(_content_of(estimator, arrays), sort_keys=True)
    return digest(
        b"".join([content.encode("utf-8", "surrogatepass"), *(arrays[key].tobytes() for key in sorted(arrays))])
    )


def load(path: str | os.PathLike[str]) -> Any:
    """Read a model written by `save`. Its predictions are bit for bit those of the saved model.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator or BayesianNetwork
        An object of the class that was saved.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    ValueError
        The path is a folder; or the file is not a posteriori model, is damaged, or was written by another version; or
        its numbers, shapes, indices or parameters are inconsistent, as in a crafted file.

    Notes
    -----
    The checksum detects damage; it does not prove who wrote the file. Nothing in a file is executed, and every array is
    checked against what it indexes, so an untrusted file can be loaded safely. Its predictions are not trustworthy.

    Examples
    --------
    >>> import os, tempfile, posteriori as po
    >>> model = po.NaiveBayes().fit([["u"], ["v"], ["u"]], ["a", "b", "a"])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.posteriori")
    >>> po.save(model, path)
    >>> po.load(path)
    NaiveBayes()
    """
    metadata, arrays = read_file(Path(path))
    with refuse_unknown(Path(path)), one_blas_thread():  # checks solve equations, and keep what a fit rounds so
        content = parse(metadata["content"])
        if content["model"] == "BayesianNetwork":
            from posteriori.networks.formats.files import network_of_content

            return network_of_content(content, arrays)
        return _estimator_of_content(content, arrays)


def _estimator_of_content(content: dict[str, Any], arrays: dict[str, Array]) -> Any:
    """Return the fitted estimator of the content of a file and its arrays; ValueError if these are inconsistent."""
    check_is_fitted_content(content)
    fitted = unpack(content["fitted"], arrays, _recipe_of_content)
    require(isinstance(fitted, FittedValue) and fitted.recipe.name == content["model"], "it is no fit of its model")
    wanted = _VALUES.get(fitted.recipe.family, Fitted)
    require(type(fitted) is wanted, f"a {type(fitted).__name__} is no fit of a {content['model']}")
    estimator = estimator_of(fitted.for_file())  # without what a crafted file may hold beyond it
    with within("fitted"):
        estimator._check_fitted()
    return estimator


def _content_of(estimator: Estimator, arrays: dict[str, Array], without_rows: bool = False) -> dict[str, Any]:
    """Convert a fitted estimator to JSON: what it learned, with its parameters; its arrays are stored in `arrays`."""
    from sklearn.utils.validation import check_is_fitted

    name = _name_in_files(type(estimator))
    check_is_fitted(estimator)
    fitted = replace(estimator.fitted_, recipe=estimator.recipe).for_file()
    if without_rows:
        fitted = fitted.without_kept_rows()
        kept = kept_of_rows(fitted)
        if kept:
            raise ValueError(
                f"without_rows is set, and a {name} predicts from training rows: it holds {'; '.join(kept)}; "
                f"{_without_kept(fitted)}, or leave out without_rows"
            )
    return {"model": name, "fitted": pack(fitted, "fitted", arrays, _content_of_recipe)}


def _without_kept(fitted: FittedValue) -> str:
    """Return the advice in place of a model that predicts from training rows."""
    return "save an AdditiveRegressor" if fitted.target.kind == "continuous" else 'set method="joint"'


def _name_in_files(family: type[Any]) -> str:
    """Return the name by which a file knows a class of estimators; TypeError if it knows none."""
    name = family.__name__
    if _estimators().get(name) is not family:
        kinds = ", ".join(["BayesianNetwork", *_estimators()])
        raise TypeError(
            f"a {name} cannot be saved; posteriori saves its own models ({kinds}), and those that "
            "posteriori.persistence.register_estimator has registered"
        )
    return name


def _content_of_recipe(value: Any, path: str, arrays: dict[str, Array]) -> dict[str, Any] | None:
    """Convert a recipe, or an estimator that is a parameter, to JSON; None for any other value."""
    if isinstance(value, Recipe):
        name = _name_in_files(value.family)
        parameters = pack(dict(value.parameters), f"{path}parameters", arrays, _content_of_recipe)
        return {"recipe": name, "parameters": parameters}
    if _estimators().get(type(value).__name__) is not type(value):
        return None
    content = _content_of_recipe(value.recipe, path, arrays)
    return content and {"model": content["recipe"], "parameters": content["parameters"]}


def _recipe_of_content(content: dict[str, Any], arrays: dict[str, Array]) -> Any:
    """Inverse of `_content_of_recipe`."""
    name = content["recipe"] if "recipe" in content else content["model"]
    family: Any = _estimators().get(name)
    require(family is not None, f"no class {name!r} is registered")
    stated = unpack(content["parameters"], arrays, _recipe_of_content)
    require(isinstance(stated, dict), f"the parameters of {name} are no mapping")
    unknown = ", ".join(sorted(map(repr, stated.keys() - set(parameter_names(family)))))
    require(not unknown, f"{name} has no parameter {unknown}")
    estimator = Recipe(family, stated).estimator()
    recipe = Recipe.of(estimator)  # with the parameters that the file lacks
    allowed = _constraints(family)
    held = ((allowed[name], value) for name, value in recipe.parameters.items() if name in allowed)
    if not all(any(one.is_satisfied_by(value) for one in constraints) for constraints, value in held):
        recipe.check()  # raises an error that names the parameter
    return recipe if "recipe" in content else estimator


@functools.cache
def _constraints(kind: Any) -> dict[str, list[Any]]:
    """Return the constraints of the parameters of an estimator; cached, because scikit-learn builds them slowly."""
    from sklearn.utils._param_validation import make_constraint

    return {name: [make_constraint(one) for one in allowed] for name, allowed in kind._parameter_constraints.items()}


def register_estimator(kind: type[Kind]) -> type[Kind]:
    """Let `save` and `load` take an estimator of your own; a decorator of its class.

    A file names the class, and holds its parameters and what it learned. `load` finds the class only where your program
    has registered it: nothing is imported for a file.

    Parameters
    ----------
    kind : class
        A subclass of `posteriori.classifiers.GenerativeEstimator`.

    Raises
    ------
    TypeError
        It is no such class, or another one has its name.

    Examples
    --------
    >>> from posteriori.classifiers import GenerativeEstimator
    >>> from posteriori.persistence import register_estimator
    >>> @register_estimator
    ... class ClassPrior(GenerativeEstimator):
    ...     _parameter_constraints = {"priors": [None]}
    ...
    ...     def __init__(self, *, priors=None):
    ...         self.priors = priors
    ...
    ...     def _blocks(self, schema):
    ...         return ()
    """
    if not (isinstance(kind, type) and issubclass(kind, classifiers.GenerativeEstimator)):
        raise TypeError(f"{kind!r} is no subclass of posteriori.classifiers.GenerativeEstimator")
    if kind.__name__ in _own_estimators():
        raise TypeError(f"posteriori has a {kind.__name__} of its own; give the class another name")
    _registered[kind.__name__] = kind
    return kind


def _estimators() -> dict[str, type[Any]]:
    return {**_own_estimators(), **_registered}


@functools.cache
def _own_estimators() -> dict[str, type[Any]]:
    kinds = [getattr(classifiers, name) for name in classifiers.__all__]
    kinds += [spec.estimator_class for spec in registry.MODELS.values() if spec.generative]
    return {kind.__name__: kind for kind in kinds if not inspect.isabstract(kind)}
