"""Read and write networks in the text format of Netica (.dne)."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence

from posteriori.networks.formats.block_formats import (
    SYNTAX,
    Words,
    declared_in,
    field_lines,
    fields_of,
    kept_properties,
    quoted,
    skip_block,
    value,
)
from posteriori.networks.formats.reading import (
    DeclaredVariable,
    Format,
    Reading,
    choices,
    identifiers,
    lines_of,
    numbers,
    properties_of,
    require_names,
    rows_as_text,
    states_as_text,
)
from posteriori.networks.formats.tokens import Tokens
from posteriori.networks.network import BayesianNetwork
from posteriori.tables import Cell

_TITLES_ARE_NAMES = "posteriori: titles are names"  # the first line of the comment of a network


def read_dne(text: str, reading: Reading) -> BayesianNetwork:
    """Read a network of the text format of Netica.

    Nature nodes are read that have states, or levels that cut their numbers into intervals; and constants, whose value
    has the probability 1. Nested blocks, which say how a node is drawn, are left out.

    References
    ----------
    Norsys, Netica's DNET file format.
    """
    tokens = Tokens(text, reading, SYNTAX)
    head = tokens.word("'bnet'")
    if head != "bnet":
        raise tokens.fail(f"expected 'bnet', found {head!r}")
    name = tokens.word("the name of the network")
    tokens.expect("{")
    texts: dict[str, str] = {}
    comments: dict[str, Words] = {}
    while not tokens.is_next("}"):
        key = tokens.word("'node' or '}'")
        if key == "node":
            node = declared_in(tokens)
            comments[node.name] = _read_node(tokens, node)
        elif tokens.is_next("="):
            texts[key] = " ".join(value(tokens).texts)
        else:
            skip_block(tokens)
    marker, *comment = texts.get("comment", "").split("\n", 1)
    if marker == _TITLES_ARE_NAMES:
        for node in reading.nodes.values():
            node.properties = kept_properties(comments[node.name])
        return reading.network(texts.get("title", ""), properties_of(comment[0]) if comment else [])
    for node in reading.nodes.values():
        # Titles of Netica itself are labels of the drawing, and need not differ: they become properties.
        if node.title not in (None, "", node.name):
            node.properties.append(f"title = {node.title}")
        if any(node.state_titles):
            node.properties.append(f"statetitles = {', '.join(map(str, node.state_titles))}")
        if comments[node.name].first:
            node.properties.append(f"comment = {comments[node.name].first}")
        node.title, node.state_titles = None, []
    return reading.network(name, [f"{key} = {texts[key]}" for key in ("title", "comment") if texts.get(key)])


def _read_node(tokens: Tokens, node: DeclaredVariable) -> Words:
    """Read the fields of a node; return its comment."""
    fields = fields_of(tokens)
    tokens.is_next(";")
    kind, constant = fields["kind"].first, fields["kind"].first == "CONSTANT"
    if kind not in ("NATURE", "CONSTANT", ""):
        problem = f"{node.name!r} is a {kind.lower()} node; only nature nodes and constants are read"
        raise tokens.fail(problem, fields["kind"].start)
    levels = _levels(tokens, node, fields["levels"])
    is_cut = fields["discrete"].first == "FALSE"
    key = next((one for one in ("probs", "functable") if one in fields), "value" if constant else "")
    node.states = _states(fields, is_cut, len(fields[key].texts) if key else 0)
    if constant and not node.states:
        node.states = fields["value"].texts
    if constant and not fields[key].texts:
        raise tokens.fail(f"{node.name!r} is a constant without a value; set it in Netica", fields["kind"].start)
    if is_cut and not node.states:
        problem = f"{node.name!r} is continuous and has no levels; cut it into intervals in Netica"
        raise tokens.fail(problem, fields["discrete"].start)
    if "equation" in fields and not key:
        problem = f"{node.name!r} has an equation and no table; convert the equation to a table in Netica"
        raise tokens.fail(problem, fields["equation"].start)
    n_levels = len(node.states) + is_cut
    if levels and len(levels) != n_levels:
        problem = f"{node.name!r} has {len(levels)} levels and {len(node.states)} states; it needs {n_levels} levels"
        raise tokens.fail(problem, fields["levels"].start)
    if key == "probs":
        node.table = numbers(node, fields[key].texts, fields[key].line_of)
    elif key:
        named = [_state_of(word, node.states, levels, is_cut) for word in fields[key].texts]
        node.table = choices(node, named, fields[key].line_of)
    node.parents = fields["parents"].texts
    node.title = fields["title"].first if fields["title"].texts else None
    node.state_titles = fields["statetitles"].texts if fields["states"].texts else []
    if levels and fields["states"].texts:
        node.properties.append(f"levels = {', '.join(fields['levels'].texts)}")
    return fields["comment"]


def _levels(tokens: Tokens, node: DeclaredVariable, words: Words) -> list[float]:
    """Return the cut points of a continuous node, or the numbers of the states of a discrete one."""
    found = []
    for word in words.texts:
        try:
            found.append(float(word))
        except ValueError:
            raise tokens.fail(f"the levels of {node.name!r} hold {word!r}, which is no number", words.start) from None
    steps = [later > earlier for earlier, later in itertools.pairwise(found)]
    if any(map(math.isnan, found)) or len(set(found)) < len(found) or len(set(steps)) > 1:
        raise tokens.fail(f"the levels of {node.name!r} are in no order; sort them", words.start)
    return found


def _states(fields: Mapping[str, Words], is_cut: bool, n: int) -> Sequence[str]:
    """Return the names of the states: as they are, their titles, intervals or numbers, or their places.

    n is the number of words of the table. Each state needs at least one, so that a small file cannot have many states.
    """
    named = fields["states"].texts or fields["statetitles"].texts
    if named:
        return named
    if fields["levels"].texts:
        return _intervals(fields["levels"].texts) if is_cut else fields["levels"].texts
    n_states = fields["numstates"].first
    given = re.fullmatch("[0-9]{1,6}", n_states) and int(n_states) <= n
    return [f"state{k}" for k in range(int(n_states))] if given else []


def _intervals(texts: Sequence[str]) -> list[str]:
    """Return the names of the intervals between levels: the lower end is within, and the upper one in the last."""
    found = []
    highest = max(map(float, texts))
    for ends in itertools.pairwise(texts):
        low, high = sorted(ends, key=float)
        if math.isinf(float(low)):
            found.append("any number" if math.isinf(float(high)) else f"< {high}")
        elif math.isinf(float(high)):
            found.append(f"≥ {low}")
        else:
            found.append(f"[{low}, {high}{']' if float(high) == highest else ')'}")
    return found


def _state_of(word: str, states: Sequence[Cell], levels: Sequence[float], is_cut: bool) -> Cell:
    """Return the state that a word of a table of states means: its name, "#" and its place, or a number of it.

    A word that means none is returned as it is.
    """
    if word in states:
        return word
    if re.fullmatch("#[0-9]{1,9}", word):
        return states[int(word[1:])] if int(word[1:]) < len(states) else word
    try:
        number = float(word)
    except ValueError:
        return word
    if not is_cut:
        return states[levels.index(number)] if number in levels else word
    ends = [sorted(pair) for pair in itertools.pairwise(levels)]
    within = [low <= number < high or number == high == max(levels) for low, high in ends]
    return states[within.index(True)] if any(within) else word


def write_dne(network: BayesianNetwork) -> str:
    """Write a network in the text format of Netica, with every digit of its numbers.

    Names that are no identifiers are kept as titles, and the first line of the comment of the network says so. Comments
    hold the properties.
    """
    require_names(network.variables, ".dne")
    names = identifiers(network.variables)
    net_name = network.name or "network"
    comment = [_TITLES_ARE_NAMES, *([lines_of(network.properties[""])] if network.properties.get("") else [])]
    lines = ["// ~->[DNET-1]->~", "", f"bnet {identifiers([net_name])[net_name]} {{"]
    lines += [f"    title = {quoted(network.name)};"] if network.name else []
    lines.append(f"    comment = {quoted(chr(10).join(comment))};")
    for cpt in network.cpts:
        texts = states_as_text(cpt.variable, cpt.states)
        states = identifiers(texts)
        lines += [
            f"node {names[cpt.variable]} {{",
            "    kind = NATURE;",
            "    discrete = TRUE;",
            "    chance = CHANCE;",
            f"    states = ({', '.join(states[text] for text in texts)});",
            f"    parents = ({', '.join(names[parent] for parent in cpt.parents)});",
            "    probs = (",
            ",\n".join(f"        {row}" for row in rows_as_text(cpt, ", ")),
            "    );",
        ]
        if any(states[text] != text for text in texts):
            lines.append(f"    statetitles = ({', '.join(map(quoted, texts))});")
        if names[cpt.variable] != cpt.variable:
            lines.append(f"    title = {quoted(cpt.variable)};")
        lines += [*field_lines("comment", network.properties.get(cpt.variable)), "    };"]
    return "\n".join([*lines, "};"]) + "\n"


DNE = Format((".dne",), write_dne, read_dne, begins=("bnet",))
