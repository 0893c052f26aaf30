"""Files that take their name only once they are whole."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give a place in the same folder to write to, which takes the final name only once all is written.

    After an error, or Ctrl-C, what had the name before has it still, and nothing else is left. A symbolic link stays
    one: the file it names is replaced. A device or a pipe (`/dev/null`, `/dev/stdout`) stays one too: what was written
    is copied into it, since a rename would put a file in its place.

    Raises
    ------
    OSError
        The folder does not exist or may not be written to, the path is that of a folder, or writing fails: then the
        error names the path.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} in")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it")
    place = None
    try:
        with (_copied_into if path.exists() and not path.is_file() else _renamed_to)(path) as place:
            yield place
    except OSError as error:
        if error.errno is None or error.filename not in (None, path, None if place is None else str(place)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


@contextmanager
def _renamed_to(path: Path) -> Iterator[Path]:
    """Give a new file in the folder of a path, which takes its place at the end."""
    target = Path(os.path.realpath(path))
    try:
        handle, place = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
    except PermissionError:
        raise PermissionError(f"the folder {str(target.parent)!r} may not be written to; choose another") from None
    os.close(handle)
    try:
        yield Path(place)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(place, 0o666 & ~umask)  # mkstemp makes files that only their owner can read
        os.replace(place, target)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(place)


@contextmanager
def _copied_into(path: Path) -> Iterator[Path]:
    """Give a temporary file, whose content is written to a device or a pipe at the end."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / path.name
        yield place
        with place.open("rb") as written, path.open("wb") as device:
            shutil.copyfileobj(written, device)
