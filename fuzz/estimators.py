"""Every estimator of the registry with valid parameters, on a valid table, with at most one thing changed.

The values of parameters come from the constraints that the estimators declare, and the arguments of methods from the
names in their signatures, so that a new parameter or method is tried without being listed here.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Hashable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import polars.selectors as cs
from sklearn.utils._param_validation import Interval, Options, make_constraint

import posteriori as po
from fuzz.tables import EDGE_NUMBERS, Rng, mutate_table, pick, valid_table
from fuzz.target import UNDEFINED, Target, check_posteriors, check_sentence, is_on_purpose
from posteriori.fitting.parameter_groups import ParameterGroup
from posteriori.registry import MODELS

_CLASSES: dict[str, Any] = {
    **{name: spec.estimator_class for name, spec in MODELS.items() if spec.generative},
    **{one.__name__: one for one in (po.ChowLiuTree, po.MixtureModel, po.classifiers.FullJointClassifier)},
    **{f"drop_in.{name}": getattr(po.drop_in, name) for name in po.drop_in.__all__},
}
_CHEAP = [name for name in _CLASSES if name != "pool" and not name.startswith("forest")]
ODD_VALUES = (
    -1, 0, 1, 2, 7, 10**30, 0.5, -0.5, 1e308, 5e-324, float("nan"), float("inf"), None, True, "", "x", "learn", [], {},
    [1], {"a": 1}, {"a": None}, ["nothing"], np.array(2), np.float32(0.5), b"x", object, (), {1: 2}, [None], "é\n",
)  # fmt: skip
_DENSITIES = ("binned", "categorical", "gaussian", "poisson")
_LARGEST = {"n_trees": 3, "n_init": 2, "max_iter": 20, "folds": 3, "bins": 6, "n_components": 3, "n_jobs": 2}
# Of parameters whose constraint does not say what is valid, given a table and the column of classes.
_VALUES: dict[str, Callable[[Rng, pl.DataFrame, list[Any]], Any]] = {
    "distributions": lambda rng, X, y: pick(rng, (None, "binned", {pick(rng, X.columns): pick(rng, _DENSITIES)})),
    "priors": lambda rng, X, y: pick(rng, (None, 1.0, _uniform(y))),
    "prior": lambda rng, X, y: pick(rng, (None, list(_uniform(y).values()))),
    "class_prior": lambda rng, X, y: pick(rng, (None, list(_uniform(y).values()))),
    "categorical_features": lambda rng, X, y: pick(rng, (None, [pick(rng, X.columns)], X.columns)),
    "keep": lambda rng, X, y: pick(rng, (None, "all", [pick(rng, X.columns)])),
    "dates": lambda rng, X, y: pick(rng, ("parts", "ignore", ["month"], ["days", "year"])),
    "text": lambda rng, X, y: pick(rng, (None, [pick(rng, X.columns)])),
    "components_per_class": lambda rng, X, y: pick(rng, (2, dict.fromkeys([*_uniform(y)][:1], 2) or 2)),
    "label_noise": lambda rng, X, y: pick(
        rng, (None, 0.1, "learn", {one: {one: 1.0} for one in [*_uniform(y)][:1]} or 0.1)
    ),
    "unlabelled": lambda rng, X, y: "learn",
    "members": lambda rng, X, y: pick(rng, (["nb", "tan"], ["lda", "nb"], {"nb": "nb", "own": po.NaiveBayes()})),
    "time_budget": lambda rng, X, y: 0.2,
    "backoff": lambda rng, X, y: pick(rng, (None, 1.0, 30.0)),
    "verbose": lambda rng, X, y: False,
    "min_categories": lambda rng, X, y: None,
}  # fmt: skip


def _uniform(y: list[Any]) -> dict[Any, float]:
    """Return a uniform prior of the labels, without those that no dictionary holds."""
    classes = dict.fromkeys(one for one in y if isinstance(one, Hashable))
    return {one: 1 / len(classes) for one in classes}


def _parameter(rng: Rng, name: str, constraints: Any, X: pl.DataFrame, y: list[Any]) -> Any:
    """Return a valid value of a parameter, by the constraint that the estimator declares."""
    if name in _VALUES:
        return _VALUES[name](rng, X, y)
    group = next((one for one in constraints if isinstance(one, type) and issubclass(one, ParameterGroup)), None)
    if group is not None:
        inner = group._parameter_constraints
        chosen = rng.permutation(sorted(inner))[: int(rng.integers(0, 3))].tolist()
        return group(**{one: _parameter(rng, one, inner[one], X, y) for one in chosen})
    constraint = pick(rng, [make_constraint(one) for one in constraints])
    if isinstance(constraint, Interval):
        below = 0.0 if constraint.right is None else float(constraint.right) - 3.0
        low = below if constraint.left is None else float(constraint.left)
        high = low + 3.0 if constraint.right is None else float(constraint.right)
        high = min(high, float(_LARGEST.get(name, high)))
        if constraint.type is Integral:
            return int(rng.integers(int(low), int(high) + 1))
        return pick(rng, (low + 0.5 * (high - low), rng.uniform(low, high)))
    if isinstance(constraint, Options):
        return pick(rng, sorted(constraint.options, key=str))
    return {"random_state": 0, "n_jobs": 1, "bins": 4, "alpha": [0.5] * X.width}.get(
        name, pick(rng, (True, False)) if constraints == ["boolean"] else None
    )


def _converted(rng: Rng, frame: pl.DataFrame) -> Any:
    """Return a table as another kind of container, if that holds its cells."""
    kind = int(rng.integers(8))
    refused = (pl.Object, pl.Int128, pl.UInt128, pl.Time, pl.Duration)
    is_plain = not any(one in refused for one in frame.dtypes) and "\0" not in "".join(frame.columns)
    if kind == 0 and is_plain:
        return frame.to_arrow()
    if kind == 1 and is_plain:
        return frame.to_pandas(use_pyarrow_extension_array=bool(rng.integers(2)))
    if kind == 2 and frame.width:
        return np.array([one.to_list() for one in frame.iter_columns()], dtype=object).T
    return frame


def _loaded(model: Any, given: Mapping[str, Any]) -> None:
    po.save(model, given["path"])
    again = po.load(given["path"])
    _checked(again, next(one for one in ("predict_proba", "predict", "score_samples") if hasattr(again, one)), given)


def _left_out(model: Any, given: Mapping[str, Any]) -> None:
    found = po.model_selection.leave_one_out(model, given["X"], given["y"]).posterior
    check_posteriors(found[~np.isnan(found).all(axis=1)])  # as its documentation says


# What is done to a model by a function rather than by a method.
FUNCTIONS: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {
    "merge": lambda model, given: po.merge([model, model]),
    "save and load": lambda model, given: _loaded(model, given),
    "to_javascript": lambda model, given: po.javascript.to_javascript(model),
    "report": lambda model, given: po.report(model, given["X"], given["y"]).html,
    "explore": lambda model, given: po.explore(model).html,
    "load_scorer": lambda model, given: (po.save(model, given["path"]), po.scoring.load_scorer(given["path"])),
    "leave_one_out": lambda model, given: _left_out(model, given),
}  # fmt: skip
_SKIPPED = ("get_metadata_routing", "from_parameters")


@functools.cache
def _methods(kind: Any) -> tuple[str, ...]:
    """Return the public methods of a class that can be called with what an input has."""
    known = {"X", "y", "sample_weight", "n_samples", "n", "random_state", "table", "dialect", "classes"}
    found = []
    for name in dir(kind):
        method = getattr(kind, name, None)
        if name.startswith(("_", "set_")) or name in _SKIPPED or not callable(method):
            continue
        required = [
            one.name
            for one in list(inspect.signature(method).parameters.values())[1:]
            if one.default is one.empty and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        ]
        if set(required) <= known:
            found.append(name)
    return tuple(found)


def _checked(model: Any, name: str, given: Mapping[str, Any]) -> Any:
    """Call a method with the arguments of an input that it takes, and check the probabilities that it returns."""
    method = getattr(model, name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", f".*{UNDEFINED}", UserWarning)
        answer = method(**{key: given[key] for key in inspect.signature(method).parameters if key in given})
    # p(x) = 0 is announced, except by the drop-in estimators, and needs a reason.
    announced = bool(caught) or type(model).__module__.startswith("posteriori.drop_in")
    constant = bool((np.asarray(getattr(model, "var_", 1.0)) == 0).any())  # as in scikit-learn
    may_be_undefined = announced and (constant or bool(given.get("may be undefined")))
    if name == "predict_proba":
        check_posteriors(answer, may_be_undefined)
    if name.startswith("predict") and isinstance(answer, np.ndarray) and answer.dtype.kind == "f" and "X" in given:
        if len(answer) != len(given["X"]):
            raise AssertionError(f"{name} has {len(answer)} rows for {len(given['X'])}")
        if name in ("predict", "predict_quantiles", "predict_interval") and not np.isfinite(answer).all():
            raise AssertionError(f"{name} holds numbers that are not finite")
    logs = () if constant and announced else ("predict_joint_log_proba",)
    if not may_be_undefined:
        logs += ("predict_log_proba",)
    if name in logs and np.isnan(answer).any():
        raise AssertionError(f"{name} holds NaN")
    return answer


def do_step(model: Any, step: str, given: Mapping[str, Any]) -> None:
    """Call a function of `FUNCTIONS` or a method."""
    FUNCTIONS[step](model, given) if step in FUNCTIONS else _checked(model, step, given)


def is_refused(do: Callable[[], Any], kind: Any) -> bool:
    """Return whether a step is refused; raise all errors that no line raises on purpose."""
    is_drop_in = kind.__module__.startswith("posteriori.drop_in")
    try:
        do()
    except (
        ValueError,
        TypeError,
        AttributeError,
        NotImplementedError,
        IndexError,
        FileNotFoundError,  # a text in place of a table names a file
        pl.exceptions.InvalidOperationError,
    ) as error:  # NotFittedError is a ValueError
        if is_drop_in and not isinstance(error, AttributeError | IndexError):
            return True  # with the words of scikit-learn, which it checks rows with
        foreseen = (ValueError, TypeError, AttributeError, FileNotFoundError, *((IndexError,) if is_drop_in else ()))
        if not isinstance(error, foreseen) or not is_on_purpose(error):
            raise
        check_sentence(str(error))
        return True
    return False


def _mutate(rng: Rng, what: str, parameters: dict[str, Any], given: dict[str, Any], kind: Any) -> None:
    """Change one thing of an input that is no cell: a parameter, an argument, the labels or the weights."""
    n = len(given["y"])
    if what == "parameter" and (
        known := sorted(kind._parameter_constraints.keys() & inspect.signature(kind).parameters)
    ):
        name = pick(rng, known)
        value = parameters.get(name)
        if isinstance(value, ParameterGroup):
            value.set_params(**{pick(rng, sorted(value._parameter_constraints)): pick(rng, ODD_VALUES)})
        else:
            parameters[name] = pick(rng, ODD_VALUES)
    elif what == "argument":
        given[pick(rng, sorted(given.keys() - {"path", "X"}))] = pick(rng, (*ODD_VALUES, "a" * n, [None] * n))
    else:
        weights = np.ones(n)
        weights[int(rng.integers(n))] = pick(rng, EDGE_NUMBERS)
        given["sample_weight"] = pick(rng, (weights, weights[:-1], np.zeros(n), weights[:, np.newaxis], ["1"] * n))


def run(rng: Rng, folder: Path) -> bool:
    """Learn from a table and call a few methods."""
    frame, target = valid_table(rng)
    name = pick(rng, list(_CLASSES)) if rng.random() < 0.1 else pick(rng, _CHEAP)
    kind = _CLASSES[name]
    what = pick(rng, ("nothing", "nothing", "table", "table", "later", "parameter", "argument", "weights"))
    if name.startswith("drop_in."):  # columns of counts, as numbers
        frame = frame.select(pl.Series(f"x{j}", rng.integers(0, 4, frame.height)) for j in range(3)).with_columns(
            frame[target]
        )
    learned = mutate_table(rng, frame, target) if what == "table" else frame
    y = learned[target].to_list() if target in learned.columns else [None] * learned.height
    features = learned.drop(target, strict=False)
    spec = MODELS.get(name)
    parameters = dict(spec.parameters) if spec else {}
    known = inspect.signature(kind).parameters
    constraints = {key: one for key, one in getattr(kind, "_parameter_constraints", {}).items() if key in known}
    for one in rng.permutation(sorted(constraints))[: int(rng.integers(0, 3))].tolist():
        parameters[one] = _parameter(rng, one, constraints[one], frame.drop(target), y)
    given: dict[str, Any] = {"X": _converted(rng, features), "y": y, "path": folder / "model.posteriori"}
    given |= {"n_samples": 3, "n": 3, "random_state": 0, "table": "rows", "dialect": "duckdb"}
    if rng.random() < 0.2:
        given["sample_weight"] = rng.random(len(y)) * 2
    if what in ("parameter", "argument", "weights") and y:
        _mutate(rng, what, parameters, given, kind)
    nested = {
        one: value for one, value in parameters.items() if "__" in one and one.partition("__")[0] not in parameters
    }
    model = kind(**{one: value for one, value in parameters.items() if "__" not in one}).set_params(**nested)
    if is_refused(lambda: _checked(model, "fit", given), kind):
        return False
    if what == "later":
        learned = mutate_table(rng, frame, target).drop(target, strict=False)
        given["X"] = _converted(rng, learned)
        given["y"] = [*given["y"], *given["y"]][: len(given["X"])] if given["X"] is not None else []
    extremes = learned.select(cs.float().abs().max()).rows()
    is_far = any(number is not None and not number < 1e150 for row in extremes for number in row)  # exp(-x²/2) is 0
    given["may be undefined"] = is_far or any(type(one) in (int, float) and one == 0 for one in parameters.values())
    return _use(rng, model, given)


def _use(rng: Rng, model: Any, given: dict[str, Any]) -> bool:
    """Call a few methods and functions; return whether one of them was answered."""
    kind = type(model)
    methods = _methods(kind)
    steps = ["predict_proba"] if "predict_proba" in methods else []
    steps += [pick(rng, (*methods, *FUNCTIONS)) for _ in range(int(rng.integers(1, 4)))]
    refused = []
    for step in steps:
        try:
            refused.append(is_refused(functools.partial(do_step, model, step, given), kind))
        except Exception as error:
            error.add_note(f"{step} of {model!r}")
            raise
    return not all(refused)


TARGET = Target("estimators", run)
