"""Network files and questions: texts of every format with parts dropped, swapped and replaced, and odd expressions."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import posteriori as po
from fuzz.target import ACCEPTED, REFUSED, Target, refuses
from posteriori.networks import CPT

_SMALL = 1 << 16  # cells: what is larger is refused rather than waited for
_NUMBERS = ["nan", "inf", "-inf", "-1", "1", "0", "1e400", "1e-400", "0.2_5", "1_0", "٣", "½", "0x1p3", "1e", "1e5"]
_NUMBERS += [".5", "5.", "0.3333333", "0.333333", "0.33", "-0", "+1"]
_NUMBERS += ["9" * 30, "9" * 5000, "0." + "3" * 400]
_WORDS = [
    *"{}()[];,|\"'=<>&/%\\",
    "//",
    "/*",
    "*/",
    "<!--",
    "]]>",
    "&amp;",
    "&#0;",
    "&#13;",
    "&lol;",
    "\0",
    "\r",
    "\x85",
]
_WORDS += ["\ufeff", "\u2028", "é", "a b", "default", "table", "property", "variable", "probability", "network"]
_WORDS += ["<TABLE>", "</TABLE>", "<PROPERTY></PROPERTY>", "<NAME/>", "<OUTCOME></OUTCOME>", "<GIVEN>c</GIVEN>"]
_WORDS += ['<!DOCTYPE BIF [<!ENTITY e "x">]>', '<?xml version="1.0" encoding="UTF-99"?>', "<X>" * 50, "((((" * 50]
_LETTERS = [
    *"aé1 =|,.-/*",
    "&lt;",
    "&amp;",
    "&#13;",
    "&#10;",
    "\r",
    "\n",
    "\t",
    "\x85",
    "\u2028",
    "\ufeff",
    "\0",
    "\x1c",
]
_ENCODINGS = ["utf-8-sig", "utf-16", "latin-1", "utf-32", "cp1252", "shift_jis"]


def _require(holds: bool, found: str) -> None:
    if not holds:
        raise AssertionError(found)


def _networks() -> list[po.BayesianNetwork]:
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


def _texts() -> list[bytes]:
    from posteriori.networks.files import _WRITERS

    writers = dict.fromkeys(write for suffix, write in _WRITERS.items() if suffix != ".dot")
    return [write(network).encode() for network in _networks() for write in writers]


_TEXTS: list[bytes] = []


def _mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a text some tokens of which were dropped, repeated, swapped or replaced, or its bytes changed."""
    import re

    tokens = re.findall(r"\w+(?:\.\w+)?|\s+|.", content.decode(), re.DOTALL)
    numbers = [k for k, token in enumerate(tokens) if token[0].isdecimal()]
    words = [k for k, token in enumerate(tokens) if not token.isspace()]
    if rng.random() < 0.4:
        return "".join(_renamed(tokens, rng)).encode("utf-8", "replace")
    for _ in range(int(rng.integers(1, 4))):
        k, other = (int(words[i]) for i in rng.integers(0, len(words), 2))
        match int(rng.integers(0, 8)):
            case 0:
                tokens[k] = ""
            case 1:
                tokens[k] *= int(rng.choice([2, 2, 3, 200]))
            case 2:
                tokens[k], tokens[other] = tokens[other], tokens[k]
            case 3:
                tokens[k] = str(rng.choice(_WORDS))
            case 4:
                tokens[k] = tokens[other]
            case 5:
                first, stop = sorted((k, other))
                tokens[first:stop] = tokens[first:stop] * int(rng.integers(0, 3))
                return "".join(tokens).encode("utf-8", "replace")
            case _:
                tokens[int(rng.choice(numbers))] = str(rng.choice(_NUMBERS))
    changed = "".join(tokens).encode("utf-8", "replace")
    match int(rng.integers(0, 12)):
        case 0:
            return changed[: int(rng.integers(0, len(changed)))]
        case 1:
            flipped = bytearray(changed)
            flipped[int(rng.integers(0, len(flipped)))] ^= int(rng.integers(1, 256))
            return bytes(flipped)
        case 2:
            return changed.decode("utf-8", "replace").encode(str(rng.choice(_ENCODINGS)), "replace")
    return changed


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
    for suffix in (".bif", ".xmlbif", ".net", ".dne", ".xdsl", ".json", ".posteriori"):
        path = folder / f"again{suffix}"
        try:
            po.write_network(network, path)
        except ValueError as error:
            _require("cannot write" in str(error) or "cannot be written" in str(error), str(error))
            continue
        again = po.read_network(path)
        assert {cpt.variable: cpt for cpt in again.cpts} == {cpt.variable: cpt for cpt in network.cpts}, suffix
        assert again.properties == network.properties, suffix


def _run_file(rng: np.random.Generator, folder: Path) -> str:
    _TEXTS.extend(() if _TEXTS else _texts())
    path = folder / "net.bif"
    path.write_bytes(_mutated(_TEXTS[int(rng.integers(0, len(_TEXTS)))], rng))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "(?s).*being rounded", UserWarning)
        try:
            network = po.read_network(path, max_table_size=_SMALL)
        except ValueError as error:
            _require(str(path) in str(error), str(error))
            return refuses(str(error))
        _checked(network, rng, folder)
    return ACCEPTED


def _expression(rng: np.random.Generator) -> str:
    parts = [
        "P(",
        "a",
        "b",
        "c",
        "bad cough",
        '"bad cough"',
        "x",
        "=",
        "yes",
        "no",
        "low",
        "|",
        ",",
        ")",
        " ",
        "'",
        '"',
    ]
    parts += ["=yes", "a=yes", "b=low", "|c=no", "p(", "YES", "𝟙", "\n", "(", "1_0", "\0", "b=Asy/Patch", "x=s", "a =u"]
    if rng.random() < 0.5:
        base = list(
            str(rng.choice(["P(a | b=low)", "P(a=yes, c=no | b=high)", "P(b)", "a=yes,b=low", 'P("a" | c = no)']))
        )
        for _ in range(int(rng.integers(0, 4))):
            base[int(rng.integers(0, len(base)))] = str(rng.choice([*parts, ""]))
        return "".join(base)
    return "".join(rng.choice(parts, int(rng.integers(1, 12))))


def _run_question(rng: np.random.Generator, folder: Path) -> str:
    """Ask through the command line, whose exit code and sentence are what a user sees."""
    import contextlib
    import io

    from posteriori.cli import main

    path = folder / "net.posteriori"
    networks = _networks()
    po.write_network(networks[int(rng.integers(1, len(networks)))], path)
    expression = _expression(rng)
    evidence = expression.removeprefix("P(").removesuffix(")")
    commands: list[list[Any]] = [
        ["query", str(path), expression, "--json"],
        ["query", str(path), expression],
        ["query", str(path), expression, "--method", "sampling", "--samples", "20", "--seed", "1"],
        ["network", "sample", str(path), "-n", "2", "--evidence", evidence, "--seed", "1"],
    ]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(commands[int(rng.integers(0, len(commands)))])
    if code == 0:
        return ACCEPTED
    sentence = err.getvalue()
    assert code == 2, f"exit code {code}: {expression!r}: {sentence}"
    assert sentence.count("\n") == 1, sentence
    return refuses(sentence) if sentence.startswith("error: ") else REFUSED


NETWORKS = Target("networks", _run_file)
QUERIES = Target("queries", _run_question)
