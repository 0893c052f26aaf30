"""Network files: texts of every format of which one token, name, number or byte is changed."""

from __future__ import annotations

import functools
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np

import posteriori as po
from fuzz.target import Target, check_sentence, not_counted
from posteriori.networks import CPT

SUFFIXES = (".bif", ".xmlbif", ".net", ".dne", ".xdsl", ".uai", ".json", ".posteriori")
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


@functools.cache
def _texts() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"net{k}{suffix}" for k in range(len(networks())) for suffix in SUFFIXES]
        for k, path in enumerate(paths):
            po.write_network(networks()[k // len(SUFFIXES)], path)
        return [path.read_bytes() for path in paths if path.suffix != ".posteriori"]


def one_changed(rng: np.random.Generator, tokens: list[str], odd: list[str]) -> list[str]:
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


def _mutated(content: bytes, rng: np.random.Generator) -> bytes:
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


def _renamed(tokens: list[str], rng: np.random.Generator) -> list[str]:
    """Return tokens in which one name is another wherever it occurs, so that the text most often stays valid."""
    names = sorted({token for token in tokens if token.isalpha() and token.islower()})
    if not names:  # as in UAI
        return tokens
    old, new = str(rng.choice(names)), "".join(rng.choice(_LETTERS, int(rng.integers(0, 5))))
    if rng.random() < 0.5:
        new = f'"{new}"'
    return [new if token == old else token for token in tokens]


def _checked(network: po.BayesianNetwork, rng: np.random.Generator, folder: Path) -> None:
    """Ask a network that was accepted, and write and read it; AssertionError where an answer is none."""
    for table in network.cpts:
        assert (table.probabilities >= 0).all()
        assert np.allclose(table.probabilities.sum(axis=-1), 1, atol=1e-9)
    row = network.sample(1, random_state=0).row(0, named=True)
    known = {name: row[name] for name in network.variables if rng.random() < 0.4}
    for _, found in network.query(evidence=known).items():
        assert abs(found.probabilities.sum() - 1) < 1e-9
    for suffix in (one for one in SUFFIXES if one != ".uai"):  # UAI holds no names
        path = folder / f"again{suffix}"
        try:
            po.write_network(network, path)
        except ValueError as error:
            _require("cannot write" in str(error) or "cannot be written" in str(error), str(error))
            continue
        again = po.read_network(path)
        assert {cpt.variable: cpt for cpt in again.cpts} == {cpt.variable: cpt for cpt in network.cpts}, suffix
        assert again.properties == network.properties, suffix


def run(rng: np.random.Generator, folder: Path) -> bool:
    """Read a network file of which one thing is changed; ask and write the network."""
    with not_counted():
        texts = _texts()
    path = folder / "net.bif"
    path.write_bytes(_mutated(texts[int(rng.integers(0, len(texts)))], rng))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "(?s).*being rounded", UserWarning)
        try:
            network = po.read_network(path, max_table_size=_SMALL)
        except ValueError as error:
            _require(str(path) in str(error), str(error))
            check_sentence(str(error))
            return False
        _checked(network, rng, folder)
    return True


TARGET = Target("networks", run)
