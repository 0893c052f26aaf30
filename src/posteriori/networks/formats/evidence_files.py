"""Evidence in the files of the UAI inference competitions."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from posteriori.networks.graph.naming import require_variable, state_code
from posteriori.networks.network import BayesianNetwork
from posteriori.support.atomic_write import atomic_write
from posteriori.tables import Cell

_MOST_BYTES = 1 << 24


def read_evidence(path: str | os.PathLike[str], network: BayesianNetwork) -> dict[str, Cell]:
    """Read evidence from a file of the UAI inference competitions: the number of findings, and each by two numbers.

    Parameters
    ----------
    path : path
        A text such as ``2 0 1 5 0``: two findings, the variable 0 in its state 1, and the variable 5 in its state 0.
        The number of cases, 1, may stand before it.
    network : BayesianNetwork
        The numbers of variables and states are their places in it.

    Returns
    -------
    dict from str to state
        As `BayesianNetwork.query` takes it.

    Raises
    ------
    ValueError
        The file holds several cases, or a number is out of range; the message has the line.

    Examples
    --------
    >>> import posteriori as po, pathlib, tempfile
    >>> from posteriori.networks import read_evidence
    >>> net = po.BayesianNetwork(variables=["coin"])
    >>> net.add_cpt("coin", {"heads": 0.5, "tails": 0.5})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "coin.uai.evid"
    ...     _ = path.write_text("1 0 1")
    ...     read_evidence(path, net)
    {'coin': 'tails'}
    """
    file = Path(path)
    shown = repr(str(file))
    if file.is_file() and file.stat().st_size > _MOST_BYTES:
        raise ValueError(f"{shown} holds more than {_MOST_BYTES:,} bytes; evidence is a few numbers")
    content = file.read_bytes()
    words = [(match[0], content.count(b"\n", 0, match.start()) + 1) for match in re.finditer(rb"\S+", content)]
    for word, line in words:
        if not re.fullmatch(rb"[0-9]{1,9}", word):
            raise ValueError(f"{shown}, line {line}: expected a whole number, found {word.decode(errors='replace')!r}")
    numbers = [int(word) for word, _ in words]
    if numbers and len(numbers) % 2 == 0:  # findings are pairs after their number; one more number is that of cases
        if numbers[0] != 1:
            raise ValueError(f"{shown}, line 1: it holds {numbers[0]} cases; one is read, so leave out the others")
        del numbers[0], words[0]
    if not numbers or len(numbers) != 1 + 2 * numbers[0]:
        declared = f"it declares {numbers[0]} findings" if numbers else "it is empty"
        raise ValueError(f"{shown}, line 1: {declared}, and has {max(len(numbers) - 1, 0)} numbers of findings")
    found: dict[str, Cell] = {}
    for k in range(1, len(numbers), 2):
        where, (variable, state) = f"{shown}, line {words[k][1]}", numbers[k : k + 2]
        if variable >= len(network.variables):
            raise ValueError(f"{where}: there is no variable {variable}; the network has {len(network.variables)}")
        name = network.variables[variable]
        if name in found:
            raise ValueError(f"{where}: {name!r} has two findings; leave one out")
        if state >= len(network.states(name)):
            raise ValueError(f"{where}: {name!r} has no state {state}; it has {len(network.states(name))}")
        found[name] = network.states(name)[state]
    return found


def write_evidence(evidence: Mapping[str, Any], path: str | os.PathLike[str], network: BayesianNetwork) -> None:
    """Write evidence to a file of the UAI inference competitions.

    Parameters
    ----------
    evidence : mapping from str to state
        One state for each variable; the format holds no sets of states and no likelihoods.
    path : path
    network : BayesianNetwork
        The numbers of variables and states are their places in it.

    Raises
    ------
    ValueError
        The network has no such variable or state.
    """
    pairs = []
    for name, state in evidence.items():
        require_variable(name, network.variables)
        if isinstance(state, Mapping | set | frozenset | list | tuple):
            raise ValueError(f"the evidence about {name!r} is no single state; UAI holds nothing else")
        pairs.append(f"{network.variables.index(name)} {state_code(name, state, network.states(name))}")
    with atomic_write(Path(path)) as part:
        part.write_text(" ".join([str(len(pairs)), *pairs]) + "\n")
