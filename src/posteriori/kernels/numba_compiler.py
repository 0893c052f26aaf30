"""Compile kernels with Numba, and cache their machine code. Nothing else imports Numba, which takes half a second."""

import functools
import hashlib
import inspect
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from posteriori.kernels.machine_code import writable_folder
from posteriori.support import compilation

_settings: Any = numba.config
_folder_for = functools.cache(writable_folder)
_kept: set[Any] = set()  # the kernels that are compiled once per machine, not once per process


def compiled(loop: Callable[..., Any], fastmath: bool | set[str]) -> Any:
    """Return the function that Numba compiles, with its machine code kept between runs."""
    dispatcher = numba.njit(loop, nogil=True, fastmath=fastmath, error_model="numpy")
    source = Path(inspect.getfile(loop))
    if not _settings.DISABLE_JIT and _keeps_machine_code(dispatcher, source.parent):
        # Numba compares the date and size of the file of a kernel. Its machine code also holds the kernels it calls.
        dispatcher._cache._cache_file._source_stamp = _stamp(source)
        _kept.add(dispatcher)
    return dispatcher


@functools.cache
def _stamp(source: Path) -> str:
    """Return a hash of a file of kernels and of those that it imports."""
    text = source.read_text("utf-8")
    used = sorted(set(re.findall(r"^from posteriori\.kernels\.(\w+) import", text, re.MULTILINE)))
    stamps = (_stamp(Path(__file__).with_name(f"{name}.py")) for name in used)
    return hashlib.sha256("\n".join([text, *stamps]).encode()).hexdigest()


def _keeps_machine_code(kernel: Any, sources: Path) -> bool:
    """Enable Numba's cache in the folder of its settings, or else in `writable_folder`; return whether it is enabled.

    Without this, Numba raises RuntimeError if it cannot write to the folder of the source or to the user's home.
    """
    if _settings.CACHE_DIR or getattr(_settings, "CACHE_LOCATOR_CLASSES", ""):
        try:
            kernel.enable_caching()
            return True
        except RuntimeError:  # that folder cannot be written to either
            pass
    folder = _folder_for(sources)
    if folder is None:
        _warn_of_no_folder()
        return False
    stated = _settings.CACHE_DIR
    # Numba reads the setting only while it enables caching, so other users of Numba in this process are not affected.
    _settings.CACHE_DIR = "" if folder == sources / "__pycache__" else str(folder)
    try:
        kernel.enable_caching()
    except RuntimeError:  # the source is not a file, as in a zip archive
        _warn_of_no_folder()
        return False
    finally:
        _settings.CACHE_DIR = stated
    return True


@functools.cache
def _warn_of_no_folder() -> None:
    warnings.warn(
        "posteriori compiles its kernels in every process, which takes 2 to 60 seconds, because there is no folder to "
        "keep machine code in; set NUMBA_CACHE_DIR to a folder that you can write to",
        UserWarning,
        stacklevel=2,
    )


class _Notifier(event.Listener):
    """Reports the compilation of a kernel. Numba sends this event only after a miss in its cache."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in _kept:
            compilation.begin()

    def on_end(self, event: Any) -> None:
        if event.data["dispatcher"] in _kept:
            compilation.end()


_register: Any = event.register  # Numba does not annotate it
_register("numba:compile", _Notifier())
