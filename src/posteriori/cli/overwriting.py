"""Which files an output may overwrite: models of the same kind and target, and any file with --force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from posteriori.cli.messages import UserError


def check_overwrite(path: Path, kind: str, target: str | None, force: bool) -> None:
    """Check that an output overwrites no file, except a model of the same kind and target.

    Parameters
    ----------
    path : Path
    kind : {"classifier", "clusters", "network"}
        Kind of the model that is written.
    target : str or None
        Target of the classifier.
    force : bool
        Whether any file may be overwritten.

    Raises
    ------
    UserError
        The file holds something else; use another name or --force.
    """
    # A device or a pipe has no content to lose, and reading it may never end.
    if force or not (path.is_file() or path.is_dir()):
        return
    there = f"the file {str(path)!r} exists"
    instead = "name another file with --output, or add --force to overwrite it"
    try:
        found = _model_in(path)
    except (ValueError, TypeError, OSError):
        raise UserError(f"{there} and is not a posteriori model that this version can read; {instead}") from None
    held, of = _described(found)
    if held != kind:
        raise UserError(f"{there} and holds {_named(held, of)}; {instead}")
    if kind == "classifier" and of != target:
        raise UserError(f"{there} and holds {_named(held, of)}, not {target!r}; {instead}")


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
    """Return the kind of a model and its target."""
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
