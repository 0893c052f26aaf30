"""Files that no other user can have written, apart from root: what is opened is checked, never what a name leads to.

A name may lead elsewhere between a check and its use. So a folder is opened step by step from the root, each step
relative to the one before, a file relative to its folder, and each of them is checked as it is open. This is done for
every file, because a folder may be given away between two of them. Where files have no owner (Windows), each user has
folders of their own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HAS_OWNERS = hasattr(os, "geteuid")
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_MOST_LINKS = 40  # as Linux
if HAS_OWNERS:
    # Of a folder that may be passed through but not listed, only a place can be opened.
    _FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    _FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # not to wait for the writer of a named pipe


class NotPrivateError(OSError):
    """A folder or a file that another user can write to; its text is the end of a sentence: "because …"."""


def why_not_private(folder: Path) -> str:
    """Return why another user may have written what is in a folder, or why it cannot be opened; empty if none may."""
    try:
        with _opened(folder):
            return ""
    except NotPrivateError as error:
        return str(error)
    except OSError as error:
        return f"{str(folder)!r} cannot be opened ({error.strerror})"


def read_private(folder: Path, name: str) -> bytes | None:
    """Return the content of a file; None if there is no such file, or if another user may have written it."""
    try:
        with _opened(folder) as descriptor:
            return (folder / name).read_bytes() if descriptor is None else _read(name, descriptor, os.O_NOFOLLOW)
    except OSError:
        return None


def read_beside(sources: Path, folder: str, name: str) -> bytes | None:
    """Return the content of a file in a folder beside the sources that run; None if there is none to be trusted.

    Whoever can write to the folder of the sources can change what runs, so they are trusted here too, and nobody else.
    """
    try:
        if not HAS_OWNERS:
            return (sources / folder / name).read_bytes()
        with _opened_beside(sources, folder) as (descriptor, trusted):
            return _read(name, descriptor, 0, trusted)
    except OSError:
        return None


def why_not_trusted(sources: Path, folder: str) -> str:
    """Return why what is in a folder beside the sources is not trusted; empty if it is, or if there is none."""
    try:
        if HAS_OWNERS:
            with _opened_beside(sources, folder):
                pass
    except NotPrivateError as error:
        return str(error)
    except OSError:
        pass
    return ""


@contextmanager
def _opened_beside(sources: Path, folder: str) -> Iterator[tuple[int, os.stat_result]]:
    trusted = sources.stat()
    descriptor = os.open(sources / folder, _FOLDER & ~os.O_NOFOLLOW)  # installers make links to their stores
    try:
        _check(os.fstat(descriptor), sources / folder, trusted)
        yield descriptor, trusted
    finally:
        os.close(descriptor)


def write_private(folder: Path, name: str, content: bytes) -> None:
    """Write a file that is whole from the first moment on; raise OSError if another user could write to the folder."""
    part = f".{name[:100]}.{secrets.token_hex(4)}.part"
    with _opened(folder) as descriptor:
        at = {} if descriptor is None else {"dir_fd": descriptor}
        path = str(folder / part) if descriptor is None else part
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        try:
            # Others may read it, if the user's mask lets them: root may compile for all.
            with os.fdopen(os.open(path, flags, 0o644, **at), "wb") as file:
                file.write(content)
            if descriptor is None:
                os.replace(path, folder / name)
            else:
                os.replace(part, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(path, **at)
            raise


@contextmanager
def _opened(folder: Path) -> Iterator[int | None]:
    """Yield a descriptor of a folder that no other user can change or replace, as of each folder above it.

    A link on the way is followed if nobody else can change it; the folder itself may not be one. Raise NotPrivateError
    if another user could write to one of the folders, and OSError if one of them cannot be opened.
    """
    if not HAS_OWNERS:
        yield None
        return
    steps, at, n_links = _steps(os.path.abspath(folder)), Path("/"), 0
    descriptor = os.open("/", _FOLDER)
    try:
        while steps:
            _check(os.fstat(descriptor), at, holds_one=True)
            name, is_last = steps.pop(), not steps
            try:
                below = os.open(name, _FOLDER, dir_fd=descriptor)
            except OSError as error:
                target = _target(name, descriptor, at, is_last, error)
                if (n_links := n_links + 1) > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
                steps += _steps(target)
                below = os.open("/" if os.path.isabs(target) else ".", _FOLDER, dir_fd=descriptor)
                at = Path("/") if os.path.isabs(target) else at
            else:
                at /= name
            os.close(descriptor)
            descriptor = below
        _check(os.fstat(descriptor), at)
        yield descriptor
    finally:
        os.close(descriptor)


def _steps(path: str) -> list[str]:
    """Return the names of a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name]


def _target(name: str, descriptor: int, at: Path, is_last: bool, error: OSError) -> str:
    """Return where a link leads that nobody else can change; raise the error if it is no link."""
    status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
    if not stat.S_ISLNK(status.st_mode):
        raise error
    if is_last:
        raise NotPrivateError(f"{str(at / name)!r} is a link")
    _check_owner(status, at / name)
    return os.readlink(name, dir_fd=descriptor)


def _check(status: os.stat_result, at: Path, trusted: os.stat_result | None = None, *, holds_one: bool = False) -> None:
    """Raise NotPrivateError if another user than those who can write to trusted sources can write to it.

    In a sticky folder only the owner can replace a file, so that it can hold one which is private (`holds_one`).
    """
    _check_owner(status, at, trusted)
    if holds_one and status.st_mode & stat.S_ISVTX:
        return
    writers = status.st_mode & _OTHERS
    if trusted is not None:
        of_group = stat.S_IWGRP if status.st_gid == trusted.st_gid else 0
        writers &= ~(trusted.st_mode & (stat.S_IWOTH | of_group))
    if writers:
        who = "its group" if writers == stat.S_IWGRP else "other users"
        raise NotPrivateError(f"{who} can write to {str(at)!r}")


def _check_owner(status: os.stat_result, at: Path, trusted: os.stat_result | None = None) -> None:
    if status.st_uid not in {0, os.geteuid()} | ({trusted.st_uid} if trusted is not None else set()):
        raise NotPrivateError(f"{str(at)!r} belongs to another user")


def _read(name: str, folder: int, follow: int, trusted: os.stat_result | None = None) -> bytes:
    """Return the content of an ordinary file in an open folder; raise OSError if another user can write to it."""
    with os.fdopen(os.open(name, _FILE | follow, dir_fd=folder), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise NotPrivateError(f"{name!r} is no ordinary file")
        _check(status, Path(name), trusted)
        return file.read()
