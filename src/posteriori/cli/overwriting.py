"""What an output may overwrite: a model of the same kind and target, and with --force anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posteriori.cli.messages import UserError


def check_overwrite(path: Path, kind: str, target: str | None, force: bool) -> None:
    """Refuse to overwrite a file unless it holds a model like the one that is to be written.

    Parameters
    ----------
    path : Path
    kind : {"classifier", "clusters", "network"}
        What is to be written.
    target : str or None
        The target of the classifier.
    force : bool
        Whether anything may be overwritten.
    """
    # A device or a pipe holds nothing that could be lost, and reading it may never end.
    if force or not (path.is_file() or path.is_dir()):
        return
    there = f"there is a file {str(path)!r} already"
    instead = "name another file with --output, or add --force to overwrite it"
    try:
        found = _model_in(path)
    except (ValueError, TypeError, OSError):
        raise UserError(f"{there}, and it is not a posteriori model that this version can read; {instead}") from None
    held, of = _described(found)
    if held != kind:
        raise UserError(f"{there}, and it holds {_named(held, of)}; {instead}")
    if kind == "classifier" and of != target:
        raise UserError(f"{there}, and it holds {_named(held, of)}, not {target!r}; {instead}")


def _model_in(path: Path) -> Any:
    if path.suffix == ".posteriori":
        from posteriori.persistence import load

        return load(path)
    from posteriori.networks import read_network
    from posteriori.persistence import load

    try:
        return load(path)
    except ValueError:
        return read_network(path)


def _described(found: Any) -> tuple[str, str | None]:
    """Return what kind of model it is, and its target."""
    from posteriori.classifiers import ChowLiuTree, MixtureModel
    from posteriori.networks import BayesianNetwork

    if isinstance(found, BayesianNetwork):
        return "network", None
    if isinstance(found, MixtureModel):
        return "clusters", None
    return ("density", None) if isinstance(found, ChowLiuTree) else ("classifier", found.schema_.target)


def _named(kind: str, target: str | None) -> str:
    of_target = "a classifier" if target is None else f"the model of the target {target!r}"
    kinds = {"network": "a Bayesian network", "clusters": "a mixture of clusters", "density": "a tree without classes"}
    return kinds.get(kind, of_target)
