"""Save and load models as safetensors with a JSON header. Loading never executes anything from a file."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import inspect
import json
import math
import os
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from sklearn.utils._param_validation import make_constraint

from posteriori import classifiers, densities, model, networks, registry, statistics, tables
from posteriori.atomic_write import atomic_write
from posteriori.conformity import check_fields, conforms
from posteriori.learning import importance
from posteriori.typing import Array

FORMAT = 1

_UNWRITTEN = {repr(number): number for number in (math.inf, -math.inf, math.nan)}  # which JSON cannot write

_PLAIN = {str, bool, int, type(None)}  # which JSON writes as they are

# What a file may name: these dataclasses, those of registered densities, and the estimators of `classifiers`.
_DATACLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        importance.Importance,
        model.Block,
        model.FactorWeights,
        model.GenerativeModel,
        networks.CPT,
        statistics.ColumnRanges,
        statistics.Counts,
        statistics.GroupedStatistics,
        statistics.JointCounts,
        statistics.JointStatistics,
        statistics.Moments,
        statistics.PairMoments,
        statistics.Pairs,
        statistics.TailMoments,
        statistics.Scatter,
        tables.Column,
        tables.Schema,
        tables.TargetCuts,
    )
}
# Names of these dataclasses in files of version 0.1.
_FORMER_NAMES = {
    "Between": "Regularized",
    "InTurn": "Chain",
    "OuterBins": "TailMoments",
    "TowardsSphere": "ShrinkToIdentity",
    "TowardsUnits": "ShrinkToDiagonal",
}
# Names of parameters and of fitted attributes of estimators in files of version 0.1.
_FORMER_PARAMETERS = {"weights": "feature_weights", "components": "components_per_class"}
_FORMER_STATE = {"weights_": "member_weights_", "left_out_": "skipped_"}
# What it may say of a fitted estimator, and of which type that is.
_STATE: dict[str, Any] = {
    "model_": model.GenerativeModel,
    "target_": tables.Column,
    "statistics_": statistics.JointStatistics,
    "log_likelihood_trace_": Array,
    "label_confusion_": Array,
    "unlabelled_weight_": float,
    "converged_": bool,
    "_classes_closed": bool,
    "one_class_": classifiers.ChowLiuClassifier,
    "members_": dict[str, classifiers.GenerativeEstimator],
    "member_weights_": dict[str, float],
    "class_bias_": Array,
    "cv_results_": dict[str, list[str | float | None]],
    "skipped_": dict[str, str],
    "_importance": importance.Importance,
    "target_cuts_": tables.TargetCuts,
}


def save(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to a file atomically: an interrupted write leaves no partial file.

    Parameters
    ----------
    estimator : fitted estimator of posteriori or BayesianNetwork
    path : path
        Usually ending in ``.posteriori``.

    Raises
    ------
    TypeError
        The model or one of its densities has a type that posteriori cannot write.
    OSError
        The folder does not exist or is not writable, or the path is a folder.
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    """
    from posteriori import __version__

    arrays: dict[str, Array] = {}
    if isinstance(estimator, networks.BayesianNetwork):
        content = {"model": "BayesianNetwork", "parameters": _pack(estimator.to_parameters(), "parameters", arrays)}
    else:
        content = _content_of(estimator, "", arrays)

    text = json.dumps(content, allow_nan=False)
    metadata = {
        "posteriori": __version__,
        "format": str(FORMAT),
        "content": text,
        "sha256": _stand_in(text),
    }
    written = safetensors.numpy.save(arrays, metadata)
    write_file_atomically(Path(path), written.replace(_stand_in(text).encode(), _digest(written).encode(), 1))


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
        The path is a folder; or the file is not a posteriori model, is damaged, or was written by a newer version; or
        its numbers, shapes, indices or parameters are inconsistent, as in a crafted file.

    Notes
    -----
    The checksum detects damage; it does not prove who wrote the file. Nothing in a file is executed, and every array is
    checked against what it indexes, so an untrusted file can be loaded safely. Its predictions are not trustworthy.
    """
    metadata, arrays = _read(Path(path))
    try:
        content = json.loads(metadata["content"], object_pairs_hook=_distinct, parse_constant=_no_constant)
        if content["model"] == "BayesianNetwork":
            return networks.BayesianNetwork(**_unpack(content["parameters"], arrays))
        estimator = _estimator_of(content, arrays)
        estimator._check_fitted()
        return estimator
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        known = isinstance(error, ValueError) and str(error)
        reason = textwrap.shorten(str(error) if known else repr(error), 200, placeholder=" …")
        raise ValueError(f"{str(path)!r} does not hold a model that this version knows: {reason}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object; raise ValueError if a name occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name occurs twice in a JSON object")
    return members


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def _content_of(estimator: Any, path: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """Convert a fitted estimator to JSON; its arrays are stored in `arrays` under paths with this prefix."""
    from sklearn.utils.validation import check_is_fitted

    name = type(estimator).__name__
    if _estimators().get(name) is not type(estimator):
        kinds = ", ".join(["BayesianNetwork", *_estimators()])
        raise TypeError(f"a {name} cannot be saved; posteriori saves its own models ({kinds})")
    if not path:  # an estimator that is a parameter of another need not be fitted
        check_is_fitted(estimator)
    if "_held_out_rows" in vars(estimator):  # the file keeps the importance, not the rows that it is computed from
        _ = estimator.importance_
    state = {key: vars(estimator)[key] for key in _STATE if key in vars(estimator)}
    return {
        "model": name,
        "parameters": _pack(estimator.get_params(deep=False), f"{path}parameters", arrays),
        "state": {key: _pack(value, f"{path}{key}", arrays) for key, value in state.items()},
    }


def _estimator_of(content: dict[str, Any], arrays: dict[str, Array]) -> Any:
    """Inverse of `_content_of`."""
    kind: Any = _estimators()[content["model"]]
    parameters = _with_new_names(_unpack(content["parameters"], arrays), _FORMER_PARAMETERS)
    estimator = kind(**parameters)
    allowed = _constraints(kind)
    if not all(any(one.is_satisfied_by(value) for one in allowed[name]) for name, value in parameters.items()):
        estimator._validate_params()  # raises an error that names the parameter
    stored = _with_new_names(content["state"], _FORMER_STATE)
    state = {key: _unpack(value, arrays) for key, value in stored.items() if key in _STATE}
    for key, value in state.items():
        if not conforms(value, _STATE[key]):
            raise ValueError(f"{key} is a {type(value).__name__} of the wrong kind")
    if "model_" in state:
        estimator._set_model(state.pop("model_"), state.pop("target_"))
    for key, value in state.items():
        setattr(estimator, key, value)
    return estimator


def _with_new_names(members: dict[str, Any], former: dict[str, str]) -> dict[str, Any]:
    """Return the members with the names of this version; raise ValueError if one has both names."""
    return _distinct([(former.get(name, name), value) for name, value in members.items()])


@functools.cache
def _constraints(kind: Any) -> dict[str, list[Any]]:
    """Return the constraints of the parameters of an estimator; cached, because scikit-learn builds them slowly."""
    return {name: [make_constraint(one) for one in allowed] for name, allowed in kind._parameter_constraints.items()}


@functools.cache
def _estimators() -> dict[str, type[Any]]:
    kinds = [getattr(classifiers, name) for name in classifiers.__all__]
    kinds += [spec.estimator_class for spec in registry.MODELS.values() if spec.generative]
    return {kind.__name__: kind for kind in kinds if not inspect.isabstract(kind)}


def _read(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """Read the header and the arrays of a model file, and verify its checksum."""
    shown = repr(str(path))
    if not path.exists():
        raise FileNotFoundError(f"there is no file {shown}")
    if path.is_dir():
        raise ValueError(f"{shown} is a folder; name the file of a model in it")
    written = path.read_bytes()
    try:
        with safetensors.safe_open(path, framework="numpy") as opened:
            header = opened.metadata() or {}
            known = set(header) >= {"posteriori", "format", "content", "sha256"}
            arrays = {name: np.array(opened.get_tensor(name)) for name in opened.keys() if known}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, ValueError, TypeError) as error:
        raise ValueError(f"{shown} is not a posteriori model, or is cut short: {error}") from None
    if not known:
        raise ValueError(f"{shown} is a safetensors file, but not a posteriori model")
    if not header["format"].isdecimal() or int(header["format"]) > FORMAT:
        raise ValueError(
            f"{shown} was written by posteriori {header['posteriori']}, which is newer than this one; upgrade"
        )
    checksum, stand_in = header["sha256"], _stand_in(header["content"])
    if _digest(written.replace(checksum.encode(), stand_in.encode(), 1)) != checksum:
        raise ValueError(f"{shown} is damaged: its content does not match its checksum; save the model again")
    return header, arrays


def _stand_in(content: str) -> str:
    """Return the placeholder of the checksum while the file is hashed: same length, and unique in the file."""
    return _digest(content.encode())


def _digest(written: bytes) -> str:
    return hashlib.sha256(written).hexdigest()


def write_file_atomically(path: Path, content: bytes) -> None:
    """Write a file to a temporary name in the same folder, then rename it.

    Raises
    ------
    OSError
        The folder does not exist or is not writable, or the path is a folder.
    """
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)


def _pack(value: Any, path: str, arrays: dict[str, Array]) -> Any:
    """Convert a value to JSON; its arrays are stored in `arrays` under their path in the value."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays[path] = np.ascontiguousarray(value)
        return {"array": path}
    if isinstance(value, list | tuple | np.ndarray):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_pack(item, f"{path}.{i}", arrays) for i, item in enumerate(value)]}
    if isinstance(value, dict):
        pairs = enumerate(value.items())
        return {"dict": [[_pack(k, path, arrays), _pack(v, f"{path}.{i}", arrays)] for i, (k, v) in pairs]}
    name = type(value).__name__
    if getattr(classifiers, name, None) is type(value):
        return {"estimator": _content_of(value, f"{path}.", arrays)}
    if _dataclass(name) is not type(value):
        raise TypeError(f"{value!r} cannot be saved: a model file may not name kinds of its own, here a {name}")
    fields = {
        field.name: _pack(getattr(value, field.name), f"{path}.{field.name}", arrays)
        for field in dataclasses.fields(value)
    }
    return {"type": name, "fields": fields}


def _dataclass(name: str) -> type[Any] | None:
    return _DATACLASSES.get(name) or densities.find_stored_class(name)


def _unpack(value: Any, arrays: dict[str, Array]) -> Any:
    """Inverse of `_pack`; checks the fields of every dataclass."""
    if type(value) in _PLAIN:
        return value
    if type(value) is not dict:
        if type(value) is float and math.isfinite(value):
            return value
        raise ValueError(f"{value!r} stands where a value is expected")
    if "type" in value:
        name: str = value["type"]
        kind = _dataclass(_FORMER_NAMES.get(name, name))
        if kind is None:
            raise ValueError(f"it holds a {name!r}, which is not registered")
        fields = {name: _unpack(field, arrays) for name, field in value["fields"].items()}
        check_fields(kind, fields)
        unpacked = kind(**fields)
        if hasattr(unpacked, "check"):
            unpacked.check()
        return unpacked
    ((form, content),) = value.items()
    if form in ("tuple", "list") and type(content) is list:
        items = [item if type(item) in _PLAIN else _unpack(item, arrays) for item in content]
        return tuple(items) if form == "tuple" else items
    if form == "array":
        return arrays[content]
    if form == "estimator":
        return _estimator_of(content, arrays)
    if form == "float":
        return _UNWRITTEN[content]
    if form == "dict" and type(content) is list:
        return _distinct([(_unpack(k, arrays), _unpack(v, arrays)) for k, v in content])
    raise ValueError(f"a {form!r} of a {type(content).__name__} stands where a value is expected")
