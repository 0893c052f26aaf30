"""Read and write networks as UAI and JSON, and write graphs as DOT."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import numpy as np

from posteriori.networks.formats.reading import Format, Reading, numbers
from posteriori.networks.formats.tokens import Syntax, Tokens
from posteriori.networks.graph.cpt import CPT, check_states
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import first_repeated
from posteriori.networks.network import BayesianNetwork
from posteriori.support.typing import Array

_SYNTAX = Syntax(re.compile(r"\s*(?P<word>\S+)"), re.compile(r"#[^\n]*"), ("#",))  # pyAgrum writes comments
_SCOPE_OF_PYAGRUM = re.compile(r"^[0-9][0-9 ]*# \S", re.MULTILINE)
_MOST_VARIABLES = 1 << 20
_DEEPEST = 64  # lists and objects within each other


def read_uai(text: str, reading: Reading) -> BayesianNetwork:
    """Read a network of the UAI format, type BAYES: variables v0, v1 and so on, with states 0, 1 and so on.

    References
    ----------
    The UAI file format of the competitions of probabilistic inference, http://graphmod.ics.uci.edu/uai08/FileFormat and
    https://uaicompetition.github.io/uci-2022/file-formats/model-format: the last variable of a scope varies fastest,
    and is the child in a Bayesian network. pyAgrum lets its first parent vary faster than its last, and writes the name
    of the child behind each scope; a file of this look is read so.
    """
    tokens = Tokens(text, reading, _SYNTAX)
    kind = tokens.word("the type of the network")
    if kind != "BAYES":
        raise tokens.fail(f"the type is {kind!r}; only BAYES is read, because the factors of others are no tables")
    n = _whole(tokens, "the number of variables", _MOST_VARIABLES)
    cardinalities = [_whole(tokens, f"the number of states of v{v}", 1 << 16) for v in range(n)]
    n_factors = _whole(tokens, "the number of factors", _MOST_VARIABLES)
    if n_factors != n:
        raise tokens.fail(f"there are {n_factors} factors for {n} variables; a Bayesian network has one for each")
    if sum(cardinalities) > len(text):  # each state has a number in a table, so that this is no list of states
        raise tokens.fail(f"there are {sum(cardinalities):,} states, more than the file has characters")
    for v, k in enumerate(cardinalities):
        reading.declare(f"v{v}", tokens.line).states = tuple(map(str, range(k)))
    first_is_fastest = len(_SCOPE_OF_PYAGRUM.findall(text)) == n
    scopes = []
    for _ in range(n):
        size = _whole(tokens, "the size of a scope", n)
        scopes.append([_whole(tokens, "a variable", n - 1) for _ in range(size)])
    for scope in scopes:
        if not scope:
            raise tokens.fail("a scope is empty; the last variable of each scope is its own")
        *above, own = (f"v{v}" for v in scope)
        node = reading.nodes[own]
        if node.table is not None:
            raise tokens.fail(f"{own!r} has two tables; the last variable of each scope is its own")
        node.parents = above[::-1] if first_is_fastest else above
        size = math.prod(cardinalities[v] for v in scope)
        if _whole(tokens, "the size of a table", 2**62) != size:
            raise tokens.fail(f"the size of the table of {own!r} is not {size}")
        node.table_line = tokens.line
        n_words = min(size, len(text))  # one more is not there: the largest count of a pattern is finite
        found = re.compile(rf"(?:\s*+\S++){{{n_words}}}").match(tokens.text, tokens.position)
        if found is None:
            raise tokens.fail(f"expected {size:,} numbers of the table of {own!r}, found the end of the file")
        tokens.position = found.end()
        node.table = numbers(node, found[0].split())
    return reading.network()


def _whole(tokens: Tokens, what: str, most: int) -> int:
    word = tokens.word(what)
    if not re.fullmatch(r"[0-9]{1,19}", word) or int(word) > most:
        raise tokens.fail(f"expected {what}, a whole number up to {most:,}, found {word!r}")
    return int(word)


def write_uai(network: BayesianNetwork) -> str:
    """Write the tables of a network in the UAI format, which has no names: variables are numbered in their order."""
    position = {name: v for v, name in enumerate(network.variables)}
    lines = ["BAYES", str(len(position)), " ".join(str(len(network.states(name))) for name in position)]
    lines.append(str(len(position)))
    for cpt in network.cpts:
        scope = [position[name] for name in (*cpt.parents, cpt.variable)]
        lines.append(" ".join(map(str, [len(scope), *scope])))
    for cpt in network.cpts:
        lines += ["", str(cpt.probabilities.size), " ".join(map(repr, cpt.probabilities.ravel().tolist()))]
    return "\n".join(lines) + "\n"


def read_json(text: str, reading: Reading) -> BayesianNetwork:
    """Read a network that `write_json` wrote."""
    _require_shallow(text, reading)
    try:
        found = json.loads(text, parse_constant=_no_number, object_pairs_hook=_each_key_once)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise reading.fail(line, f"this is no JSON: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("variables"), list):
        raise reading.fail(1, "expected an object with a list 'variables', as write_network makes it")
    try:
        _require_keys(found, "the file", {"variables"}, {"format", "name", "properties"})
        for one in found["variables"]:
            _require_variable(one)
        states = {one["name"]: tuple(one["states"]) for one in found["variables"] if "states" in one}
        names = [one["name"] for one in found["variables"]]
        return BayesianNetwork(
            variables=names,
            cpts=[_table_of_json(one, names, states, reading) for one in found["variables"]],
            name=found.get("name", ""),
            properties=found.get("properties"),
            max_table_size=reading.max_table_size,
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise reading.fail(1, str(error)) from None


def _require_keys(found: dict[str, Any], what: str, needed: set[str], allowed: set[str]) -> None:
    """Raise ValueError unless an object has the needed keys, and no others than the allowed ones."""
    for key in sorted(needed - set(found)):
        raise ValueError(f"{what} lacks {key!r}")
    for key in sorted(set(found) - needed - allowed):
        raise ValueError(f"{what} has {key!r}, which is not read; it may have {', '.join(sorted(needed | allowed))}")


def _require_variable(one: Any) -> None:
    """Raise ValueError or TypeError unless an object of the list of variables has what its kind needs."""
    if not isinstance(one, dict):
        raise TypeError(f"a variable is {one!r:.40}; it must be an object with a name")
    name = one.get("name", "")
    if "states" in one or "probabilities" in one:
        _require_keys(one, f"the variable {name!r}", {"name", "states", "probabilities"}, {"parents"})
    else:
        needed = {"name", "continuous_parents", "intercept", "coefficients", "variance"}
        _require_keys(one, f"the variable {name!r}", needed, {"parents"})
    if not isinstance(name, str):
        raise TypeError(f"the name of a variable is {name!r}; it must be a string")
    for key in ("states", "parents", "continuous_parents"):
        if not isinstance(one.get(key, []), list):
            raise TypeError(f"the {key.replace('_', ' ')} of {name!r} are {one[key]!r:.40}; they must be a list")


def _table_of_json(
    one: dict[str, Any], names: list[str], states: dict[str, Any], reading: Reading
) -> CPT | LinearGaussian:
    name = one["name"]
    for parent in one.get("parents", ()):
        if not isinstance(parent, str) or parent not in states:
            raise ValueError(f"{name!r} has the parent {parent!r}, which is no variable with states")
    parents = {parent: states[parent] for parent in one.get("parents", ())}
    if len(parents) < len(one.get("parents", ())):
        raise ValueError(f"a parent of {name!r} occurs twice")
    if "states" not in one:
        for parent in one["continuous_parents"]:
            if parent not in names:
                raise ValueError(f"{name!r} has the parent {parent!r}, which is no variable")
        reading.table_shape(name, parents.values(), ("",))
        density = one["intercept"], one["coefficients"], one["variance"]
        return LinearGaussian(name, tuple(one["continuous_parents"]), parents, *density)
    shape = reading.table_shape(name, parents.values(), check_states(name, one["states"]))
    return reading.cpt(name, states[name], parents, _nested_numbers(name, one["probabilities"], shape))


def _nested_numbers(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    """Return nested lists as an array; ValueError unless they have the shape, and hold numbers."""
    flat: list[Any] = [values]
    for size in shape:
        if not all(isinstance(row, list) and len(row) == size for row in flat):
            raise ValueError(f"the probabilities of {name!r} are no nested lists of the lengths {shape}")
        flat = [cell for row in flat for cell in row]
    for cell in flat:
        if type(cell) not in (int, float):
            raise ValueError(f"the probabilities of {name!r} hold {cell!r:.40}, which is no number")
    return np.array(flat, np.float64).reshape(shape)


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"the key {first_repeated(key for key, _ in pairs)!r} occurs twice in one object")
    return found


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no number")


def _require_shallow(text: str, reading: Reading) -> None:
    """Raise ValueError if brackets are nested deeper than any table: the parser of JSON recurses."""
    depth = 0
    # An open string is matched up to the end of the text: else the search would start again at each quote within it.
    for match in re.finditer(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', text, re.DOTALL):
        if match[0][0] == '"':
            continue
        depth += 1 if match[0] in "[{" else -1
        if depth > _DEEPEST:
            raise reading.fail(text.count("\n", 0, match.start()) + 1, f"lists are nested more than {_DEEPEST} deep")


def write_json(network: BayesianNetwork) -> str:
    """Write a network as JSON, with its states in their types, continuous variables too."""
    variables: list[dict[str, Any]] = []
    for name in network.variables:
        table = network.cpt(name)
        one: dict[str, Any] = {"name": name, "parents": list(table.parents)}
        if isinstance(table, CPT):
            one |= {"states": list(table.states), "probabilities": table.probabilities.tolist()}
        else:
            one |= {
                "continuous_parents": list(table.continuous),
                "intercept": table.intercept.tolist(),
                "coefficients": table.coefficients.tolist(),
                "variance": table.variance.tolist(),
            }
        variables.append(one)
    found: dict[str, Any] = {"format": "posteriori network", "name": network.name, "variables": variables}
    if network.properties:
        found["properties"] = {name: list(words) for name, words in network.properties.items()}
    return json.dumps(found, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def write_dot(network: BayesianNetwork) -> str:
    """Write the graph of a network for Graphviz; it has no tables and cannot be read back."""

    def quoted(name: str) -> str:
        escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'

    continuous = {one.variable for one in network.gaussians}
    lines = [f"digraph {quoted(network.name or 'network')} {{", "  node [shape=ellipse];"]
    lines += [f"  {quoted(name)}{' [peripheries=2]' if name in continuous else ''};" for name in network.variables]
    lines += [f"  {quoted(parent)} -> {quoted(child)};" for parent, child in network.edges]
    return "\n".join([*lines, "}"]) + "\n"


UAI = Format((".uai",), write_uai, read_uai, begins=("BAYES", "MARKOV"))
JSON = Format((".json",), write_json, read_json, begins=("{",), continuous=True)
DOT = Format((".dot",), write_dot, None, continuous=True)
