"""Files that take their name only once they are whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Give a place in the same folder to write to, which takes the final name only once all is written.

    After an error, or Ctrl-C, what had the name before has it still, and nothing else is left.

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
    try:
        handle, position = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except PermissionError:
        raise PermissionError(f"the folder {str(path.parent)!r} may not be written to; choose another") from None
    os.close(handle)
    try:
        yield Path(position)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(position, 0o666 & ~umask)  # mkstemp makes files that only their owner can read
        os.replace(position, path)
    except OSError as error:
        if error.errno is None or error.filename not in (None, position):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(position)
