"""The files that commands write: all of them pass `output_at`, so that no file is lost by mistake.

A command never writes over a file that it reads. What exists otherwise is replaced with --force only, except a model
that the same command made of the same inputs by the same options.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posteriori.cli.files import STDIN, asked_dialect, files_of, names_table, writer_of
from posteriori.cli.messages import UserError, note

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers.estimator import Estimator

MODEL = ".posteriori"
_NETWORKS = (".bif", ".xmlbif", ".bifxml", ".xml", ".net", ".dne", ".xdsl", ".uai")
# Of files that other commands write: such a name would be taken for one of these files.
_OTHERS = {
    (*_NETWORKS, ".json", ".dot"): "a network, which posteriori network writes",
    (".js", ".mjs", ".cjs", ".sql"): "code, which posteriori export writes of a model",
    (".html", ".htm"): "a page, which posteriori report and explore write of a model",
    (".svg", ".png", ".pdf", ".jpg", ".jpeg"): "a picture",
}


@dataclass(frozen=True)
class Origin:
    """Inputs of a command that makes a model: its options, and the content of the files that it reads."""

    command: str
    options: Mapping[str, Any]
    inputs: Sequence[str | Path]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the command, its options and its inputs, which the model file records."""
        contents = []
        for path in _paths(self.inputs):
            with path.open("rb") as file:
                contents.append(hashlib.file_digest(file, "sha256").hexdigest())
        stated = [self.command, dict(self.options), repr(asked_dialect()), contents]
        return hashlib.sha256(json.dumps(stated, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class Output:
    """A file that a command may write, and what it held before; empty if there was none."""

    path: Path
    held: str = ""
    origin: Origin | None = None
    without_rows: bool = False  # of a model: whether it holds nothing of single rows

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Yield the path to write to, and print afterwards what was replaced."""
        yield self.path
        if self.held:
            note(f"replaced {str(self.path)!r}, which held {self.held}")

    def save(self, model: Estimator) -> None:
        """Save a model with the record of what it was made of."""
        from posteriori.persistence import save_made_by

        with self.writing() as path:
            origin = "" if self.origin is None else self.origin.digest
            save_made_by(model, path, origin, without_rows=self.without_rows)


def output_at(
    path: Path,
    inputs: Sequence[str | Path],
    force: bool,
    *,
    others: Sequence[Path | None] = (),
    origin: Origin | None = None,
) -> Output:
    """Return a file that a command may write.

    Parameters
    ----------
    path : Path
    inputs : sequence of path
        The files, folders and globs that the command reads.
    force : bool
        Whether a file that exists may be replaced.
    others : sequence of Path or None
        The other files that the command writes.
    origin : Origin, optional
        What a model is made of. A model of this origin may be replaced without `force`.

    Raises
    ------
    UserError
        The folder does not exist, the path is a folder or a file that the command reads or writes, or it exists.
    """
    check_place(path, inputs, others)
    # A device or a pipe has no content to lose, and reading it may never end.
    if not path.is_file():
        return Output(path, "", origin)
    if origin is not None and _made_by(path) == origin.digest:
        return Output(path, "the same model, made by the same command of the same input", origin)
    held = _content_of(path)
    if not force:
        raise UserError(f"the file {str(path)!r} exists and {held}; name another file, or add --force to replace it")
    return Output(path, held.removeprefix("holds "), origin)


def check_model_name(path: Path) -> None:
    """Raise UserError if the suffix of a path names a format other than that of models."""
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() not in (".gz", ".zst")]
    found = next((what for endings, what in _OTHERS.items() if suffixes[-1:] and suffixes[-1] in endings), None)
    if names_table(path):
        found = "a table"
    if found is not None:
        raise UserError(f"{str(path)!r} has the suffix of {found}; name the model NAME{MODEL}")


def table_at(
    path: Path | None, inputs: Sequence[str | Path], force: bool, *, others: Sequence[Path | None] = ()
) -> Callable[..., Any]:
    """Return a function that writes a frame to a file in the format of its suffix, or to stdout as CSV.

    It takes the frame, and optionally the names that stand in the header of a text file.
    """
    from posteriori.cli.files import csv_text_of, write_out
    from posteriori.support.atomic_write import atomic_write

    if path is None:
        return lambda frame, names=None: write_out(csv_text_of(frame, names=names))
    write_file = writer_of(path)
    output = output_at(path, inputs, force, others=others)

    def write(frame: pl.DataFrame, names: Sequence[str] | None = None) -> None:
        with output.writing() as final, atomic_write(final) as position:
            write_file(frame, position, names)

    return write


def check_place(path: Path, inputs: Sequence[str | Path], others: Sequence[Path | None] = ()) -> None:
    """Raise UserError if a path is no place for a file, or that of a file that the command reads or writes."""
    read = _paths([one for one in inputs if str(one) != STDIN])
    if any(path.exists() and path.samefile(one) for one in read):
        raise UserError(f"the output would overwrite {str(path)!r}, which the command reads; name another file")
    if any(one is not None and path.resolve() == one.resolve() for one in others):
        raise UserError(f"the command would write {str(path)!r} twice; name two different files")
    if not path.parent.is_dir():
        raise UserError(f"there is no folder {str(path.parent)!r} to write {path.name!r} in")
    if path.is_dir():
        raise UserError(f"{str(path)!r} is a folder; name a file")


def _paths(inputs: Sequence[str | Path]) -> list[Path]:
    """Return the files that exist of files, folders, globs and tables that the library ships; stdin as its copy."""
    from posteriori.reading.scanning import paths_of

    found: list[Path] = []
    for name in map(str, inputs):
        if name == STDIN or not Path(name).is_file():
            with suppress(ValueError, OSError):  # the command refuses it with its own error
                found += paths_of(files_of([name]))
        else:
            found.append(Path(name))
    return found


def _made_by(path: Path) -> str | None:
    from posteriori.model_files import made_by

    return made_by(path) if path.suffix == MODEL else None


def _content_of(path: Path) -> str:
    """Return the content of a file, as the end of a sentence about it."""
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    if suffixes and suffixes[-1].lower() in (MODEL, *_NETWORKS):
        try:
            return f"holds {_named(_model_in(path))}"
        except (ValueError, TypeError, OSError):
            return "is not a posteriori model that this version can read"
    size = path.stat().st_size
    return f"holds {size:,} byte{'' if size == 1 else 's'}"


def _model_in(path: Path) -> Any:
    from posteriori.networks import read_network
    from posteriori.persistence import load

    return load(path) if path.suffix == MODEL else read_network(path)


def _named(model: Any) -> str:
    """Return the kind of a model, and the target of a classifier."""
    from posteriori.registry import Subject

    name = type(model).__name__
    kinds = {
        Subject.VARIABLES: "a Bayesian network",
        Subject.COMPONENT: "a mixture of clusters",
        Subject.COLUMNS: "a joint model of all columns",
    }
    kind = kinds.get(getattr(model, "subject", Subject.CLASS))  # an imputer has none
    if name == "ChowLiuTree":
        kind = "a tree"
    if kind is not None:
        return kind
    target = model.schema_.target
    return f"a classifier ({name})" if target is None else f"the model of the target {target!r} ({name})"
