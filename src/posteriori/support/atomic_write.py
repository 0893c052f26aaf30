"""Write files so that they are either whole or as they were."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from posteriori.support.leftovers import leftover, temporary_folder


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path to write to; after the block, its content is renamed to the final path in one step.

    After an error or Ctrl-C, the final path holds what it held before, and nothing else is left. A link is followed.
    A device or a named pipe is never replaced: it gets the content once the content is whole.

    Raises
    ------
    OSError
        The folder does not exist or is not writable, the path is a folder, or writing fails: the error names the path.
    ValueError
        The path holds a NUL character.
    """
    if "\0" in str(path):
        raise ValueError(f"the path {str(path)!r} holds a NUL character, which no name of a file may; leave it out")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {str(path.parent)!r} to write {path.name!r} in")
    if path.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        folder = temporary_folder()
        part = folder / "content"
        with leftover(folder), _errors_that_name(path, part):
            yield part
            with part.open("rb") as whole, path.open("wb") as device:
                shutil.copyfileobj(whole, device)
        return
    final = path.resolve()
    import secrets  # imported here, because it loads the hashes of OpenSSL, which the command line does not need

    # The name is chosen before the file is made, so that an interrupt at any point leaves nothing behind.
    part = final.with_name(f".{final.name[:100]}.{secrets.token_hex(4)}.part")
    with leftover(part), _errors_that_name(path, part):
        _create(part, path.parent)
        yield part
        part.replace(final)


def _create(part: Path, folder: Path) -> None:
    try:
        part.open("xb").close()
    except PermissionError:
        raise PermissionError(f"the folder {str(folder)!r} may not be written to; choose another") from None


@contextmanager
def _errors_that_name(path: Path, part: Path) -> Iterator[None]:
    """Let errors of the operating system about the part, or about no file, name the final path."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(part)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as `atomic_write` does, with the same errors."""
    with atomic_write(path) as temporary:
        temporary.write_bytes(content)
