"""The folder for the machine code of kernels between processes, and the processor that packages are compiled for.

Files of machine code are unpickled and run. So a folder is used only if no other user can write to it
(`private_files`).
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from pathlib import Path

from posteriori.kernels.machine.private_files import why_not_private

_NAME = "posteriori"

# The processor that code is compiled for in a package, and what a machine needs to run it.
_BASELINES = {
    "x86_64": ("x86-64-v3", frozenset(["avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"])),
    "aarch64": ("generic", frozenset()),
}
_SAME = {"amd64": "x86_64", "arm64": "aarch64"}  # the names of other systems


def choose_folder(sources: Path, stated: str = "") -> tuple[Path | None, tuple[str, ...]]:
    """Return the folder for the machine code of a folder of sources, and why those that come before it are not used.

    It is the first of these that this user can write to, and no other user except root (see `private_files`): a folder
    in the one that the user states; ``__pycache__`` in the folder of the sources; a folder in the user's cache folder;
    a folder of the user's own in the folder for temporary files. They are created if need be.
    """
    # Absolute, so that it stays the same folder when the process changes its own.
    candidates = [Path(os.path.abspath(stated)) / _NAME] if stated else []
    candidates += filter(None, (sources / "__pycache__", user_folder(), temporary_folder()))
    reasons: list[str] = []
    for folder in candidates:
        if not (reason := why_unused(folder)):
            return folder, tuple(reasons)
        reasons.append(reason)
    return None, tuple(reasons)


def why_unused(folder: Path) -> str:
    """Create a folder if need be, and return why no machine code may be kept in it; empty if it may.

    The reason is the end of a sentence: "because …".
    """
    try:
        for above in reversed(folder.parents):  # mkdir(parents=True) would let all users write, by a mask of 000
            above.mkdir(mode=0o700, exist_ok=True)
        # Whoever runs the sources may read what was compiled beside them.
        folder.mkdir(mode=0o755 if folder.name == "__pycache__" else 0o700, exist_ok=True)
    except OSError as error:
        return f"{str(folder)!r} cannot be created ({error.strerror})"
    if reason := why_not_private(folder):
        return reason
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        return f"{str(folder)!r} cannot be written to ({error.strerror})"
    return ""


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


def baseline() -> tuple[str, frozenset[str]] | None:
    """Return the processor that packages are compiled for on this kind of machine and what it needs, or None."""
    machine = platform.machine().lower()
    return _BASELINES.get(_SAME.get(machine, machine))
