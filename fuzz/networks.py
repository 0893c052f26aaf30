"""Network files: texts of every format of which one token, name, number or byte is changed."""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from pathlib import Path
from typing import Any, get_args

import numpy as np

import posteriori as po
from fuzz.estimators import ODD_VALUES as ODD_ARGUMENTS
from fuzz.estimators import is_refused
from fuzz.tables import NAMES, ODD_NAMES, Rng, mutate_table, pick, valid_table
from fuzz.target import Target, check_sentence, not_counted
from posteriori.networks import CPT, Distribution, LinearGaussian
from posteriori.networks.learning.structure_search import Method

SUFFIXES = (".bif", ".xmlbif", ".net", ".dne", ".xdsl", ".uai", ".json", ".posteriori")
_TEXTS = tuple(suffix for suffix in SUFFIXES if suffix != ".posteriori")
_GIVEN = {
    "x",
    "y",
    "n",
    "target",
    "outcome",
    "treatment",
    "variable",
    "variables",
    "event",
    "evidence",
    "given",
    "table",
}
_GIVEN |= {"settings"}
_SMALL = 1 << 16  # cells: what is larger is refused rather than waited for
_NUMBERS = ["nan", "inf", "-inf", "-1", "1", "0", "1e400", "1e-400", "0.2_5", "1_0", "٣", "½", "0x1p3", "1e", "1e5"]
_NUMBERS += [".5", "5.", "0.3333333", "0.333333", "0.33", "-0", "+1"]
_NUMBERS += ["9" * 30, "9" * 5000, "0." + "3" * 400]
_WORDS = [
    *"{}()[];,|\"'=<>&/%\\", "//", "/*", "*/", "<!--", "]]>", "&amp;", "&#0;", "&#13;", "&lol;", "\0", "\r", "\x85",
    "\ufeff", "\u2028", "é", "a b", "default", "table", "property", "variable", "probability", "network", "<TABLE>",
    "</TABLE>", "<PROPERTY></PROPERTY>", "<NAME/>", "<OUTCOME></OUTCOME>", "<GIVEN>c</GIVEN>",
    '<!DOCTYPE BIF [<!ENTITY e "x">]>', '<?xml version="1.0" encoding="UTF-99"?>', "<X>" * 50, "((((" * 50,
]  # fmt: skip
_LETTERS = [*"aé1 =|,.-/*\r\n\t\x85\u2028\ufeff\0\x1c", "&lt;", "&amp;", "&#13;", "&#10;"]
_ENCODINGS = ["utf-8-sig", "utf-16", "latin-1", "utf-32", "cp1252", "shift_jis"]


def _require(holds: bool, found: str) -> None:
    if not holds:
        raise AssertionError(found)


@functools.cache
def networks() -> list[po.BayesianNetwork]:
    """Return small networks with odd names, a deterministic table and a variable of one state."""
    rng = np.random.default_rng(0)

    def table(*shape: int) -> np.ndarray:
        rows = rng.random(shape).round(3) + 0.001
        return rows / rows.sum(axis=-1, keepdims=True)

    two, three, odd = ["yes", "no"], ["low", "high", "Asy/Patch"], ["1", "a,b", " c d "[1:-1], "<1cm"]
    deterministic = CPT("c", two, {"a": two, "b": three}, np.eye(2)[rng.integers(0, 2, (2, 3))])
    return [
        po.BayesianNetwork(cpts=[CPT("a", two, {}, [0.25, 0.75])]),
        po.BayesianNetwork(
            cpts=[CPT("a", two, {}, table(2)), CPT("b", three, {"a": two}, table(2, 3)), deterministic],
            name="net",
            properties={"": ["drawn by hand"], "a": ["position = (1, 2)", ""]},
        ),
        po.BayesianNetwork(
            cpts=[CPT("bad cough", odd, {}, table(4)), CPT("x", ["s"], {"bad cough": odd}, np.ones((4, 1)))]
        ),
    ]


def one_changed(rng: Rng, tokens: list[str], odd: list[str]) -> list[str]:
    """Return tokens one of which was dropped, repeated, swapped or replaced."""
    if not tokens:
        return [str(rng.choice(odd))]
    k, other = (int(i) for i in rng.integers(0, len(tokens), 2))
    tokens = list(tokens)
    match int(rng.integers(0, 6)):
        case 0:
            tokens[k] = ""
        case 1:
            tokens[k] *= int(rng.choice([2, 2, 3, 200]))
        case 2:
            tokens[k], tokens[other] = tokens[other], tokens[k]
        case 3:
            tokens[k] = tokens[other]
        case 4:
            first, stop = sorted((k, other))
            tokens[first:stop] = tokens[first:stop] * int(rng.integers(0, 3))
        case _:
            tokens[k] = str(rng.choice(odd))
    return tokens


def _mutated(content: bytes, rng: Rng) -> bytes:
    """Return a text of which one thing is changed: a token, a number, a name, a byte or the encoding."""
    tokens = re.findall(r"\w+(?:\.\w+)?|\s+|.", content.decode(), re.DOTALL)
    numbers = [k for k, token in enumerate(tokens) if token[0].isdecimal()]
    match int(rng.integers(0, 10)):
        case 0:
            return content[: int(rng.integers(0, len(content)))]
        case 1:
            flipped = bytearray(content)
            flipped[int(rng.integers(0, len(flipped)))] ^= int(rng.integers(1, 256))
            return bytes(flipped)
        case 2:
            return content.decode().encode(str(rng.choice(_ENCODINGS)), "replace")
        case 3 | 4:
            tokens[int(rng.choice(numbers))] = str(rng.choice(_NUMBERS))
        case 5 | 6 | 7:
            tokens = _renamed(tokens, rng)
        case _:
            tokens = one_changed(rng, tokens, _WORDS)
    return "".join(tokens).encode("utf-8", "replace")


def _renamed(tokens: list[str], rng: Rng) -> list[str]:
    """Return tokens in which one name is another wherever it occurs, so that the text most often stays valid."""
    names = sorted({token for token in tokens if token.isalpha() and token.islower()})
    if not names:  # as in UAI
        return tokens
    old, new = str(rng.choice(names)), "".join(rng.choice(_LETTERS, int(rng.integers(0, 5))))
    if rng.random() < 0.5:
        new = f'"{new}"'
    return [new if token == old else token for token in tokens]


def _random_network(rng: Rng) -> po.BayesianNetwork:
    """Return a network of few variables: states or measurements, some names odd, some tables deterministic."""
    pool = (*NAMES, *(ODD_NAMES if rng.random() < 0.3 else ()))
    names = [name for name in dict.fromkeys(pick(rng, pool) for _ in range(int(rng.integers(1, 6)))) if name]
    tables: list[CPT] = []
    gaussians: list[LinearGaussian] = []
    for name in names or ["a"]:
        parents = {one.variable: one.states for one in tables if rng.random() < 0.4}
        shape = tuple(map(len, parents.values()))
        if rng.random() < 0.2:
            numbers = [one.variable for one in gaussians if rng.random() < 0.5]
            slopes, variance = rng.normal(size=(*shape, len(numbers))), rng.random(shape)
            gaussians.append(LinearGaussian(name, numbers, parents, rng.normal(size=shape), slopes, variance))
            continue
        states = list(dict.fromkeys(pick(rng, pool) for _ in range(int(rng.integers(1, 5)))))
        cells = rng.dirichlet(np.ones(len(states)), shape)
        tables.append(CPT(name, states, parents, np.round(cells) if len(states) == 2 and rng.random() < 0.2 else cells))
    return po.BayesianNetwork(cpts=[*tables, *gaussians], name=names[0] if names else "")


def _written(network: po.BayesianNetwork, rng: Rng, path: Path) -> bytes:
    """Return the text of a network in some format that can hold it."""
    for suffix in (pick(rng, _TEXTS), ".json"):
        if not is_refused(functools.partial(po.write_network, network, path.with_suffix(suffix)), type(network)):
            return path.with_suffix(suffix).read_bytes()
    raise AssertionError("a network cannot be written as JSON")


def _learned(rng: Rng) -> po.BayesianNetwork | None:
    """Learn a network from a table in which at most one thing is odd; None if it is refused."""
    frame, target = valid_table(rng)
    if rng.random() < 0.5:
        frame = mutate_table(rng, frame, target)
    names = frame.columns
    search = po.StructureSearch(pick(rng, get_args(Method)), max_parents=pick(rng, (None, 1, 2)))
    found: list[po.BayesianNetwork] = []
    if rng.random() < 0.5:
        edges = [(one, other) for k, one in enumerate(names) for other in names[:k] if rng.random() < 0.4]
        make = lambda: found.append(po.BayesianNetwork(edges, variables=names).fit(frame))  # noqa: E731
    else:
        make = lambda: found.append(po.learn_network(frame, search))  # noqa: E731
    return None if is_refused(make, po.BayesianNetwork) else found[0]


@functools.cache
def _methods() -> dict[str, list[inspect.Parameter]]:
    """Return the parameters of each public method that can be called with what an input has."""
    found = {}
    for name, method in inspect.getmembers(po.BayesianNetwork, inspect.isfunction):
        parameters = list(inspect.signature(method).parameters.values())[1:]
        required = {one.name for one in parameters if one.default is one.empty}
        if not name.startswith(("_", "add_")) and required <= _GIVEN:
            found[name] = [one for one in parameters if one.name in _GIVEN]
    return found


def _ask(network: po.BayesianNetwork, rng: Rng) -> None:
    """Call a few methods with names and states of the network."""
    rows = network.sample(4, random_state=1)
    names = list(network.variables)
    for _ in range(2 if names else 0):
        x, y, z = (pick(rng, names) for _ in range(3))
        row = rows.row(int(rng.integers(rows.height)), named=True)
        given = {"x": x, "target": x, "outcome": x, "variable": x, "variables": [x], "event": {x: row[x]}}
        given |= {"y": y, "treatment": y, "settings": {y: row[y]}, "evidence": {z: row[z]}, "n": 2, "table": rows}
        name = pick(rng, sorted(_methods()))
        arguments: list[object] = []
        named: dict[str, object] = {}
        for one in _methods()[name]:
            value = given.get(one.name, {z: row[z]} if "Evidence" in str(one.annotation) else [z])
            if one.kind is one.VAR_POSITIONAL:
                arguments += [x]
            elif one.default is one.empty or rng.random() < 0.5:
                named[one.name] = value
        if arguments and name != "query":
            named = {}
        if named and rng.random() < 0.3:
            named[pick(rng, sorted(named))] = pick(rng, ODD_ARGUMENTS)
        try:
            is_refused(functools.partial(getattr(network, name), *arguments, **named), po.BayesianNetwork)
        except Exception as error:
            error.add_note(f"{name}(*{arguments!r}, **{named!r}) of {network.edges}")
            raise


def _checked(network: po.BayesianNetwork, rng: Rng, folder: Path) -> None:
    """Ask a network that was accepted, and write and read it; AssertionError where an answer is none."""
    for table in network.cpts:
        assert (table.probabilities >= 0).all()
        assert np.allclose(table.probabilities.sum(axis=-1), 1, atol=1e-9)
    row = network.sample(1, random_state=0).row(0, named=True)
    known = {name: row[name] for name in network.variables if rng.random() < 0.4}
    exact = any((one.variance == 0).any() for one in network.gaussians)  # functions of others have no density
    found: list[Any] = []
    ask = functools.partial(network.query, evidence=known)
    if is_refused(lambda: found.extend(ask().values()), type(network)):  # many states hide exact answers, no others
        assert exact or not is_refused(functools.partial(ask, method="sampling"), type(network))
    for one in found:
        assert not isinstance(one, Distribution) or abs(one.probabilities.sum() - 1) < 1e-9
    spelled = all(isinstance(state, str) for cpt in network.cpts for state in cpt.states)  # others are read as text
    for suffix in (one for one in SUFFIXES if one != ".uai"):  # UAI holds no names
        path = folder / f"again{suffix}"
        if is_refused(functools.partial(po.write_network, network, path), type(network)):
            continue
        again = po.read_network(path)
        if not spelled:
            continue
        assert {cpt.variable: cpt for cpt in again.cpts} == {cpt.variable: cpt for cpt in network.cpts}, suffix
        assert again.properties == network.properties, suffix


def run(rng: Rng, folder: Path) -> bool:
    """Read a network file of which at most one thing is changed, or learn a network; ask and write it."""
    path = folder / "net.bif"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # of rounded numbers, and of tables with few rows
        if rng.random() < 0.3:
            network = _learned(rng)
            if network is None:
                return False
        else:
            with not_counted():
                network = pick(rng, networks()) if rng.random() < 0.2 else _random_network(rng)
            content = _written(network, rng, folder / "first.bif")
            path.write_bytes(_mutated(content, rng) if rng.random() < 0.6 else content)
            try:
                network = po.read_network(path, max_table_size=_SMALL)
            except ValueError as error:
                _require(str(path) in str(error), str(error))
                check_sentence(str(error))
                return False
        _checked(network, rng, folder)
        _ask(network, rng)
    return True


TARGET = Target("networks", run)
