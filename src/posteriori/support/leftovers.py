"""Files and folders that exist only while something is done, so that a process that ends in a hurry can remove them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LEFTOVERS: set[Path] = set()


def add_leftover(path: Path) -> None:
    """Note a path that must not outlive the process."""
    _LEFTOVERS.add(path)


def temporary_folder() -> Path:
    """Make a folder for this user alone among the temporary files; it is noted before, whenever a signal comes."""
    path = Path(tempfile.gettempdir(), f"posteriori-{os.urandom(8).hex()}")
    add_leftover(path)
    path.mkdir(mode=0o700)
    return path


def remove_leftover(path: Path) -> None:
    """Remove a file or a folder that was noted, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)
    _LEFTOVERS.discard(path)


@contextmanager
def leftover(path: Path) -> Iterator[None]:
    """Note a path during the block, and remove it at its end."""
    add_leftover(path)
    try:
        yield
    finally:
        remove_leftover(path)


def remove_leftovers() -> None:
    """Remove all that was noted."""
    for path in tuple(_LEFTOVERS):
        remove_leftover(path)
