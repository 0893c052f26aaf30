"""The folder for the machine code of kernels between processes, and the processor that packages are compiled for.

Files of machine code are unpickled and run. So a folder is used only if no other user can write to it.
"""

from __future__ import annotations

import os
import platform
import stat
import sys
import tempfile
from pathlib import Path

_NAME = "posteriori"

# The processor that code is compiled for in a package, and what a machine needs to run it.
_BASELINES = {
    "x86_64": ("x86-64-v3", frozenset(["avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"])),
    "aarch64": ("generic", frozenset()),
}
_SAME = {"amd64": "x86_64", "arm64": "aarch64"}  # the names of other systems


def writable_folder(sources: Path, stated: str = "") -> Path | None:
    """Return the folder for the machine code of a folder of sources, or None if no folder can be written to.

    The first of these that can be written to: a folder in the one that the user states; ``__pycache__`` in the folder
    of the sources; a folder in the user's cache folder; a folder of the user's own in the folder for temporary files.
    The last two are created with mode 0700, and are passed over if they belong to another user or others can write to
    them.
    """
    if stated and _can_write(Path(stated)) and _can_write(Path(stated) / _NAME):
        return Path(stated) / _NAME
    beside_sources = sources / "__pycache__"
    if _can_write(beside_sources):
        return beside_sources
    return next((folder for folder in (user_folder(), temporary_folder()) if folder and _is_private(folder)), None)


def user_folder() -> Path | None:
    """Return our folder in the user's cache folder, by the conventions of the platform; None without a home."""
    stated = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    if os.path.isabs(stated):
        return Path(stated) / _NAME
    try:
        home = Path.home()
    except RuntimeError:  # a user id without an entry in the database of users, and no HOME
        return None
    positions = {"darwin": ("Library", "Caches"), "win32": ("AppData", "Local")}
    return home.joinpath(*positions.get(sys.platform, (".cache",)), _NAME)


def temporary_folder() -> Path | None:
    """Return the user's own folder among the temporary files; None if there is no folder for such files."""
    try:
        return Path(tempfile.gettempdir()) / f"{_NAME}-{_user_id()}"
    except FileNotFoundError:
        return None


def _user_id() -> int:
    return os.geteuid() if hasattr(os, "geteuid") else 0  # on Windows each user has temporary files of their own


def _is_private(folder: Path) -> bool:
    """Create the folder if need be, and return whether this user can write to it and no other user can."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if hasattr(os, "geteuid"):
            status = folder.lstat()  # not stat: a link of another user may lead anywhere
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
                return False
            if any(_can_be_swapped(parent.stat()) for parent in folder.resolve().parents):
                return False
    except OSError:
        return False
    return _can_write(folder)


def _can_be_swapped(parent: os.stat_result) -> bool:
    """Return whether another user can replace what is in a folder; in a sticky one only the owner of a file can."""
    others = parent.st_uid not in (0, os.geteuid()) or parent.st_mode & stat.S_IWOTH
    return bool(others) and not parent.st_mode & stat.S_ISVTX


def _can_write(folder: Path) -> bool:
    """Return whether a file can be created in the folder, which is created if need be."""
    try:
        folder.mkdir(exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def baseline() -> tuple[str, frozenset[str]] | None:
    """Return the processor that packages are compiled for on this kind of machine and what it needs, or None."""
    machine = platform.machine().lower()
    return _BASELINES.get(_SAME.get(machine, machine))
