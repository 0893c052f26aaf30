"""Names in formats that allow identifiers only: an identifier is written where one is needed, the name beside it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence

from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.naming import States, first_repeated

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST = 30  # letters of a name in Netica
_SPOKEN = {"<": "lt_", ">": "gt_", "<=": "le_", ">=": "ge_", "+": "plus_"}
_RESERVED = frozenset({"net", "bnet", "class", "node", "potential", "decision", "utility", "function", "instance"})
_RESERVED |= {"discrete", "continuous", "visual", "states", "probs"}


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return a different identifier for each name, of at most 30 letters: the name itself if it is one."""
    listed = list(names)
    found = {name: name for name in listed if _is_identifier(name)}
    taken = set(found)
    last: dict[str, int] = {}
    for name in listed:
        if name in found:
            continue
        base = _spelled(name)[: _LONGEST - 8]
        candidate, k = base, last.get(base, 1)
        while candidate in taken or not _is_identifier(candidate):
            k += 1
            candidate = f"{base}_{k}"
        last[base] = k
        taken.add(candidate)
        found[name] = candidate
    return found


def _is_identifier(name: str) -> bool:
    return len(name) <= _LONGEST and _IDENTIFIER.fullmatch(name) is not None and name.lower() not in _RESERVED


def _spelled(name: str) -> str:
    spoken = re.sub(r"[<>]=?|\+", lambda match: _SPOKEN[match[0]], name)
    letters = unicodedata.normalize("NFKD", spoken).encode("ascii", "ignore").decode()
    word = re.sub(r"[^A-Za-z0-9]+", "_", letters).strip("_")
    return word if word[:1].isalpha() else f"n{word}"


def renamed(cpts: Sequence[CPT], names: Mapping[str, str], states: Mapping[str, States]) -> Iterator[CPT]:
    """Yield tables with other names; a table is checked when it is asked for.

    Parameters
    ----------
    cpts : sequence of CPT
    names : mapping from str to str
        The new name of each variable.
    states : mapping from str to tuple of states
        The new states of each variable, by its old name.
    """
    for cpt in cpts:
        parents = {names[parent]: states[parent] for parent in cpt.parents}
        yield CPT(names[cpt.variable], states[cpt.variable], parents, cpt.probabilities)


def lines_of(properties: Sequence[str]) -> str:
    """Return properties as one text, a line for each."""
    return "\n".join(text.replace("\\", "\\\\").replace("\n", "\\n") for text in properties)


def properties_of(text: str) -> list[str]:
    """Return the properties that `lines_of` was given."""
    return [re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], line) for line in text.split("\n")]


def rows_as_text(cpt: CPT, between: str = " ") -> list[str]:
    """Return the rows of a table with every digit of their numbers, the last parent varying fastest."""
    return [between.join(map(repr, row)) for row in cpt.probabilities.reshape(-1, len(cpt.states)).tolist()]


def require_names(variables: Sequence[str], suffix: str) -> None:
    """Raise ValueError if a variable has no name: its properties would be those of the network."""
    if "" in variables:
        raise ValueError(f"a variable without a name cannot be written in {suffix}; name it")


def states_as_text(variable: str, states: States) -> list[str]:
    """Return the states of a variable as text; ValueError if two have the same."""
    texts = [str(state) for state in states]
    if len(set(texts)) < len(texts):
        raise ValueError(f"two states of {variable!r} would both be written {first_repeated(texts)!r}; rename one")
    return texts
