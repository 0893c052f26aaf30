"""Load whatever a file holds: a classifier, a mixture or a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from posteriori.cli.checks import load_model
from posteriori.cli.messages import UserError, as_user_errors

AnyModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model saved by fit or cluster, or a network: .posteriori, .bif, .net, … (also .gz).",
        show_default=False,
    ),
]


def load_any(path: Path) -> Any:
    """Return the estimator or the network in a file.

    Raises
    ------
    UserError
        There is no such file, or it holds no model.
    """
    if not path.exists():
        raise UserError(f"there is no file {str(path)!r}")
    from posteriori.model_files import parse, read_file
    from posteriori.networks import read_network

    if path.suffix.lower() != ".posteriori":
        with as_user_errors():
            return read_network(path)
    with as_user_errors():
        holds_network = parse(read_file(path)[0]["content"])["model"] == "BayesianNetwork"
        if holds_network:
            return read_network(path)
    return load_model(path, mixtures=True)
