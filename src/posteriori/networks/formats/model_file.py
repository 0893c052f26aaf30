"""Networks in model files (.posteriori)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posteriori.model_files import Content, pack, parse, read_file, refuse_unknown, unpack, write_file
from posteriori.networks.network import BayesianNetwork
from posteriori.typing import Array

_KIND = "BayesianNetwork"


def write_model_file(network: BayesianNetwork, path: Path) -> None:
    """Write a network to a model file."""
    arrays: dict[str, Array] = {}
    write_file(path, {"model": _KIND, "parameters": pack(network.to_parameters(), "parameters", arrays)}, arrays)


def read_model_file(path: Path) -> BayesianNetwork:
    """Read a network from a model file; ValueError if it holds another model, or is damaged."""
    metadata, arrays = read_file(path)
    with refuse_unknown(path):
        content = parse(metadata["content"])
        kind = content["model"]
        if kind == _KIND:
            return network_of_content(content, arrays)
    raise ValueError(f"{str(path)!r} holds a {kind}, not a network; read it by posteriori.load")


def network_of_content(content: Content, arrays: dict[str, Array]) -> BayesianNetwork:
    """Return the network of the content of a model file and its arrays."""
    return BayesianNetwork(**unpack(content["parameters"], arrays, _no_estimator))


def _no_estimator(content: Content, arrays: dict[str, Array]) -> Any:
    raise ValueError("an estimator stands where a value of a network is expected")
