"""Read and write model files: safetensors with compressed JSON. Nothing is executed, and no estimator is made.

`posteriori.persistence` makes estimators of what is read here, and `posteriori.scoring` makes posteriors.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import math
import sys
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from posteriori import densities, statistics
from posteriori.statistics.sums import Sums
from posteriori.support.atomic_write import write_whole
from posteriori.support.checks import check_fields, require, within
from posteriori.support.typing import Array
from posteriori.version import __version__

FORMAT = 4
_FEWEST_ALONE = 1 << 12  # bytes: smaller arrays are compressed together
_LEVEL = 7  # of compression: 9 takes seven times as long for 3% fewer bytes
_CONTENT, _TOGETHER, _PADDING = "content", "together", "padding"  # the names of streams of bytes

# A file may take so many times its size in memory, or so many bytes. Ours take less than 400 times their size. A model
# of zeros alone would take more, and is padded.
_MOST_TIMES, _FREE = 1000, 1 << 26
# What a character of JSON takes at most, as objects of Python: {"":0} takes 192 bytes. Ours takes 9.
_OF_CHARACTER = 32
_COPIES = 3  # of an array, as it is unpacked, checked, and as what follows from it

_TENSORS = {
    "F64",
    "F32",
    "F16",
    "I64",
    "I32",
    "I16",
    "I8",
    "U64",
    "U32",
    "U16",
    "U8",
    "BOOL",
}  # the types that we write

_UNWRITTEN = {repr(number): number for number in (math.inf, -math.inf, math.nan)}  # which JSON cannot write

_PLAIN = {str, bool, int, type(None)}  # which JSON writes as they are

# What a file may name, with the modules that hold it: these dataclasses, the sums of `posteriori.statistics`, and what
# registered densities hold.
_DATACLASSES = {
    "Columns": "posteriori.fitting.parameter_groups",
    "EM": "posteriori.fitting.parameter_groups",
    "Labels": "posteriori.fitting.parameter_groups",
    "Fitted": "posteriori.fitting.fitted",
    "FittedPool": "posteriori.pool.value",
    "FittedImputer": "posteriori.joint.imputation",
    "FittedJoint": "posteriori.joint.value",
    "CodedRows": "posteriori.statistics.forests",
    "Tables": "posteriori.model.beliefs",
    "NumberGrid": "posteriori.joint.grids",
    "FittedGaussian": "posteriori.regression.gaussian",
    "Locations": "posteriori.regression.locations",
    "FittedRegression": "posteriori.regression.value",
    "CategoryFeatures": "posteriori.regression.features",
    "Design": "posteriori.regression.locations",
    "Features": "posteriori.regression.features",
    "Gap": "posteriori.regression.features",
    "Landmarks": "posteriori.regression.landmarks",
    "LeastSquares": "posteriori.regression.least_squares",
    "Location": "posteriori.regression.locations",
    "Members": "posteriori.regression.members",
    "Neighbours": "posteriori.regression.neighbours",
    "NumberFeatures": "posteriori.regression.features",
    "Placed": "posteriori.regression.neighbours",
    "Products": "posteriori.regression.least_squares",
    "Scale": "posteriori.regression.scales",
    "Smoothing": "posteriori.regression.members",
    "Spread": "posteriori.regression.spread",
    "NumberCells": "posteriori.model",
    "PartialRows": "posteriori.model",
    "Pool": "posteriori.model",
    "TrainingRecord": "posteriori.fitting.fitted",
    "HeldOutFigures": "posteriori.fitting.held_out_figures",
    "GroupImportance": "posteriori.learning.importance",
    "Importance": "posteriori.learning.importance",
    "Block": "posteriori.model",
    "Extrapolation": "posteriori.model",
    "FactorWeights": "posteriori.model",
    "GenerativeModel": "posteriori.model",
    "KnownCells": "posteriori.model",
    "CPT": "posteriori.networks",
    "LinearGaussian": "posteriori.networks",
    "ColumnRanges": "posteriori.statistics",
    "JointStatistics": "posteriori.statistics",
    "RowFingerprints": "posteriori.statistics",
    "RowPosteriors": "posteriori.statistics",
    "Column": "posteriori.tables",
    "DatePart": "posteriori.tables.times",
    "TimeType": "posteriori.tables.times",
    "Schema": "posteriori.tables",
    "Tokenizer": "posteriori.tables.tokenizer",
    "TargetCuts": "posteriori.reading",
    "BatchFacts": "posteriori.watching.state",
    "Martingale": "posteriori.watching.evidence",
    "State": "posteriori.watching.state",
    "Stream": "posteriori.watching.streams",
}

Content = dict[str, Any]
ToEstimator = Callable[[Content, dict[str, Array]], Any]
OfEstimator = Callable[[Any, str, dict[str, Array]], Content | None]


def refuse_unknown(path: Path) -> AbstractContextManager[None]:
    """Convert the errors of a file whose content is inconsistent to a ValueError that names the file."""
    # Its checksum is right, so that nothing happened to it on its way.
    return within(
        f"{str(path)!r} does not hold a model that this version knows",
        "; another program changed it, or a version that is another one or has a fault wrote it: fit the model again",
    )


def parse(content: str) -> Content:
    """Return the JSON of a header; raise ValueError for a name that occurs twice, or for NaN."""
    parsed: Content = json.loads(content, object_pairs_hook=distinct, parse_constant=_no_constant)
    return parsed


def check_is_fitted_content(content: Content) -> None:
    """Raise ValueError if a file holds no fitted value, as those of early states, with loose attributes."""
    if "fitted" not in content:
        raise ValueError("it holds no fitted value, as a file of an early state of this version; fit the model again")


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of a JSON object; raise ValueError if a name occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name occurs twice in a JSON object")
    return members


def _no_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


def read_file(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    """Read the header and the arrays of a model file, and verify its checksum."""
    shown = repr(str(path))
    if not path.exists():
        raise FileNotFoundError(f"there is no file {shown}")
    if path.is_dir():
        raise ValueError(f"{shown} is a folder; name the file of a model in it")
    written = path.read_bytes()  # once, because another process may put a new file in its place
    try:
        tensors = _header_of(written)
        header = tensors.pop("__metadata__", {})
        known = set(header) >= {"posteriori", "format", "sha256"}
        for name, stated in tensors.items():
            if known and stated["dtype"] not in _TENSORS:
                raise ValueError(f"the array {name!r} has the type {stated['dtype']!r}, which no model has")
        stored = dict(safetensors.numpy.load(written)) if known else {}
    except (
        safetensors.SafetensorError,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise ValueError(f"{shown} is not a posteriori model, or is cut short: {error}") from None
    if not known:
        raise ValueError(f"{shown} is a safetensors file, but not a posteriori model")
    if not header["format"].isdecimal() or int(header["format"]) > FORMAT:
        raise ValueError(
            f"{shown} was written by posteriori {header['posteriori']}, which is newer than this one; upgrade"
        )
    if int(header["format"]) < FORMAT:
        raise ValueError(
            f"{shown} was written by an earlier version, posteriori {header['posteriori']}; fit the model again"
        )
    free = _most_bytes(len(written))
    try:
        text = _inflated(stored.pop(_CONTENT), int(header["size"]), free // _OF_CHARACTER).decode()
        content, _, packed = text.partition("\n")
    except (LookupError, ValueError) as error:
        raise ValueError(f"{shown} is not a posteriori model, or is damaged: {error}") from None
    checksum, placeholder = header["sha256"], stand_in(text)
    if digest(written.replace(checksum.encode(), placeholder.encode(), 1)) != checksum:
        raise ValueError(f"{shown} is damaged: its content does not match its checksum; save the model again")
    with refuse_unknown(path):
        free -= _OF_CHARACTER * len(text)
        return header | {"content": content, "packed": packed}, _unpacked_arrays(stored, packed, free)


def is_model_file(path: Path) -> bool:
    """Return whether a file begins as a model file does, whatever its name."""
    with path.open("rb") as file:
        head = file.read(9)
    return head[8:] == b"{" and int.from_bytes(head[:8], "little") < path.stat().st_size


def made_by(path: Path) -> str | None:
    """Return the digest of the command, the options and the inputs that a model file was made of; None without one."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(length, path.stat().st_size)))
        found = header["__metadata__"]["made_by"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None


def write_file(path: Path, content: Content, arrays: dict[str, Array], read: ToEstimator, made_by: str = "") -> None:
    """Write a model file atomically: its content, made by `pack`, the arrays of it, and a digest of its origin.

    `read` is what will be done to the content and the arrays as the file is read. If it refuses them, nothing is
    written.
    """
    text = json.dumps(content, allow_nan=False)
    with within("the model cannot be saved, because its file could not be loaded", "; please report this defect"):
        read(parse(text), arrays)
    stored, packed = packed_arrays(arrays)
    whole = file_of(text, packed, stored, made_by)
    needed = _OF_CHARACTER * (len(text) + len(packed) + 1) + _COPIES * sum(array.nbytes for array in arrays.values())
    if needed > _most_bytes(len(whole)):
        stored[_PADDING] = np.zeros(needed // _MOST_TIMES + 1, np.uint8)
        whole = file_of(text, packed, stored, made_by)
    write_whole(path, whole)


def file_of(content: str, packed: str, stored: dict[str, Array], made_by: str = "", **metadata: str) -> bytes:
    """Return the bytes of a file, of its content in JSON, and the arrays as `packed_arrays` returns them.

    `metadata` replaces what the header says otherwise.
    """
    text = f"{content}\n{packed}"
    written = text.encode("utf-8", "surrogatepass")
    header = {"posteriori": __version__, "format": str(FORMAT), "size": str(len(written)), "sha256": stand_in(text)}
    header |= {"made_by": made_by} if made_by else {}
    whole = _in_order(safetensors.numpy.save(stored | {_CONTENT: _deflated(written)}, header | metadata))
    return whole.replace(stand_in(text).encode(), digest(whole).encode(), 1)


def _header_of(written: bytes) -> Content:
    """Return the header of a file: the first 8 bytes are its length, in the format of safetensors."""
    return parse(written[8 : 8 + int.from_bytes(written[:8], "little")].decode())


def _in_order(written: bytes) -> bytes:
    """Return a file with the members of its header in order, so that files of equal fits are equal."""
    header = _header_of(written)
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + written[8 + int.from_bytes(written[:8], "little") :]


def _most_bytes(size: int) -> int:
    """Return how much memory a file of some size may take."""
    return max(_MOST_TIMES * size, _FREE)


def packed_arrays(arrays: dict[str, Array]) -> tuple[dict[str, Array], str]:
    """Compress arrays without loss, because tables of counts hold many zeros.

    Whole numbers are stored as the smallest unsigned integers. The bytes of a large array are stored as they are, or by
    planes: the first byte of each number, then the second one of each, and so on. Planes of numbers of one size are
    alike. Small arrays are compressed together.

    Returns
    -------
    stored : dict of str to ndarray
        A compressed array is a stream of bytes. Large arrays that cannot be compressed are as they were.
    packed : str
        JSON of how the arrays were stored, which `_unpacked_arrays` takes.
    """
    stored: dict[str, Array] = {}
    packed: dict[str, dict[str, Any]] = {}
    together = b""
    for name, array in arrays.items():
        smallest = _as_smallest(array)
        stated: dict[str, Any] = {"dtype": array.dtype.str, "shape": array.shape}
        if smallest.dtype != array.dtype:
            stated["stored"] = smallest.dtype.str
        plain = smallest.tobytes()
        if array.nbytes < _FEWEST_ALONE:
            together += plain
            packed[name] = stated | {"together": True}
            continue
        planes = np.frombuffer(plain, np.uint8).reshape(-1, smallest.itemsize).T.tobytes()
        stream, by_planes = _deflated(plain), _deflated(planes)
        if len(by_planes) < len(stream):
            stream, stated["planes"] = by_planes, True
        if len(stream) < 0.9 * array.nbytes:
            stored[name], packed[name] = stream, stated
        else:
            stored[name] = array
    if together:
        stored[_TOGETHER] = _deflated(together)
    return stored, json.dumps(packed)


def _as_smallest(array: Array) -> Array:
    """Return an array of whole numbers as the smallest unsigned integers, and another one as it is."""
    if array.dtype.kind not in "iuf" or not array.size:
        return array
    low, high = float(array.min()), float(array.max())
    if not (low >= 0 and high < 1 << 32):  # NaN too
        return array
    smallest = array.astype(np.min_scalar_type(int(high)))
    # Of a zero with a sign, equal numbers have different bytes.
    return smallest if smallest.astype(array.dtype).tobytes() == array.tobytes() else array


def _deflated(content: bytes) -> Array:
    return np.frombuffer(zlib.compress(content, _LEVEL), np.uint8)


def _inflated(stored: Array, size: int, most: int = sys.maxsize) -> bytes:
    """Return the bytes of a compressed stream; raise ValueError unless they are of the stated size and not too many."""
    if not 0 <= size < sys.maxsize:  # a negative limit would be none
        raise ValueError(f"a stream of bytes cannot have the size {size}")
    stream = zlib.decompressobj()
    try:
        # Not more than stated, and one byte at least, because 0 would mean no limit.
        content = stream.decompress(stored.tobytes(), min(size, max(most, 0)) + 1)
    except zlib.error as error:
        raise ValueError(f"a stream of bytes cannot be unpacked: {error}") from None
    _check_memory(most - len(content))
    if len(content) != size or not stream.eof:
        raise ValueError("a stream of bytes does not have its stated size")
    return content


def _check_memory(free: int) -> None:
    require(free >= 0, f"it would take more than {_MOST_TIMES:,} times its size in memory, which no model does")


def _unpacked_arrays(stored: dict[str, Array], packed: str, free: int) -> dict[str, Array]:
    """Return the arrays that `packed_arrays` compressed; raise ValueError if a stream is not of the stated size.

    They may take so many bytes as are `free`, whether or not anything reads them.
    """
    arrays = {name: np.array(one) for name, one in stored.items() if name not in (_TOGETHER, _PADDING)}
    together: list[tuple[str, Any, int, int]] = []
    for name, stated in parse(packed).items():
        shape = tuple(stated["shape"])
        dtype, kept = np.dtype(stated["dtype"]), np.dtype(stated.get("stored", stated["dtype"]))
        is_known = {dtype.kind, kept.kind} <= set("biuf") and max(dtype.itemsize, kept.itemsize) <= 8
        if not is_known or not all(type(width) is int and width >= 0 for width in shape):
            raise ValueError(f"the array {name!r} has the type {stated['dtype']!r} and the shape {stated['shape']!r}")
        size = kept.itemsize * math.prod(shape)
        taken = _COPIES * max(size, dtype.itemsize * math.prod(shape))
        if stated.get("together") is True:
            together.append((name, (dtype, kept, shape), size, taken))
            continue
        content = _inflated(stored[name], size, free // _COPIES)
        _check_memory(free := free - taken)
        if stated.get("planes") is True:
            content = np.frombuffer(content, np.uint8).reshape(kept.itemsize, -1).T.tobytes()
        arrays[name] = _array_of(content, dtype, kept, shape)
    if together:
        _check_memory(free - sum(taken for *_, taken in together))
        content, start = _inflated(stored[_TOGETHER], sum(size for _, _, size, _ in together)), 0
        for name, form, size, _ in together:
            arrays[name] = _array_of(content[start : start + size], *form)
            start += size
    return arrays


def _array_of(content: bytes, dtype: np.dtype[Any], kept: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """Return an array that can be written to."""
    return np.frombuffer(content, kept).reshape(shape).astype(dtype)


_HOW = (
    "if it belongs to a density of yours, add a `posteriori.densities.Registration` of it to "
    "`posteriori.densities.registry.REGISTRY` in this process, as examples/extending/density.py does"
)


def stand_in(content: str) -> str:
    """Return the placeholder of the checksum while the file is hashed: same length, and unique in the file."""
    return digest(content.encode("utf-8", "surrogatepass"))


def digest(written: bytes) -> str:
    """Return the SHA-256 checksum in hexadecimal digits."""
    return hashlib.sha256(written).hexdigest()


def stored_dataclass(name: str) -> type[Any] | None:
    """Return the dataclass that a file may name; None if it is not registered."""
    if name in _DATACLASSES:
        found: type[Any] = getattr(importlib.import_module(_DATACLASSES[name]), name)
        return found
    sums = getattr(statistics, name, None)
    return sums if isinstance(sums, type) and issubclass(sums, Sums) else densities.find_stored_class(name)


def pack(value: Any, path: str, arrays: dict[str, Array], of_estimator: OfEstimator | None = None) -> Any:
    """Convert a value to JSON; its arrays are stored in `arrays` under their path in the value.

    `of_estimator` returns the content of an estimator, whose arrays have paths with the given beginning, and None for
    another object.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        contiguous = np.ascontiguousarray(value)
        # An array that two objects share is stored once.
        name = next((name for name, stored in arrays.items() if stored is contiguous), path)
        arrays[name] = contiguous
        return {"array": name}
    if isinstance(value, list | tuple | np.ndarray):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [pack(item, f"{path}.{i}", arrays, of_estimator) for i, item in enumerate(value)]}
    if isinstance(value, dict):
        pairs = enumerate(value.items())
        packed = [
            [pack(k, path, arrays, of_estimator), pack(v, f"{path}.{i}", arrays, of_estimator)] for i, (k, v) in pairs
        ]
        return {"dict": packed}
    content = of_estimator(value, f"{path}.", arrays) if of_estimator is not None else None
    if content is not None:
        return {"estimator": content}
    name = type(value).__name__
    if stored_dataclass(name) is not type(value):
        raise TypeError(f"{value!r} cannot be saved: a model file may not name kinds of its own, here a {name}; {_HOW}")
    fields = {
        field.name: pack(getattr(value, field.name), f"{path}.{field.name}", arrays, of_estimator)
        for field in dataclasses.fields(value)
    }
    return {"type": name, "fields": fields}


def no_estimator(content: Content, arrays: dict[str, Array]) -> Any:
    """Refuse an estimator within a value: what reads the file expects none."""
    raise ValueError(f"it holds a {content.get('model')!r} where no estimator is expected")


def unpack(
    value: Any, arrays: dict[str, Array], to_estimator: ToEstimator = no_estimator, place: str = "fitted"
) -> Any:
    """Return the value that a file holds as JSON and arrays; check the fields of every dataclass.

    `to_estimator` makes an estimator of its name, its parameters and its fitted attributes. Errors begin with the place
    of what is wrong.
    """
    if type(value) in _PLAIN:
        return value
    if type(value) is not dict:
        if type(value) is float and math.isfinite(value):
            return value
        raise ValueError(f"{value!r} stands where a value is expected")
    if "type" in value:
        name: str = value["type"]
        kind = stored_dataclass(name)
        if kind is None:
            raise ValueError(f"it holds a {name!r}, which is not registered; {_HOW}")
        fields = {key: unpack(one, arrays, to_estimator, f"{place}.{key}") for key, one in value["fields"].items()}
        with within(place):
            check_fields(kind, fields)
            unpacked = kind(**fields)
            if hasattr(unpacked, "check"):
                unpacked.check()
        return unpacked
    ((form, content),) = value.items()
    if form in ("tuple", "list") and type(content) is list:
        items = [
            item if type(item) in _PLAIN else unpack(item, arrays, to_estimator, f"{place}.{i}")
            for i, item in enumerate(content)
        ]
        return tuple(items) if form == "tuple" else items
    if form == "array":
        return arrays[content]
    if form == "estimator":
        return to_estimator(content, arrays)
    if form == "float":
        return _UNWRITTEN[content]
    if form == "dict" and type(content) is list:
        return distinct(
            [(unpack(k, arrays, to_estimator), unpack(v, arrays, to_estimator, f"{place}.{k}")) for k, v in content]
        )
    raise ValueError(f"a {form!r} of a {type(content).__name__} stands where a value is expected")
