"""How a hot loop is compiled, and where its machine code is kept."""

import functools
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from posteriori import compilation
from posteriori.kernels.machine_code import writable_folder

# Sums may be reordered (which lets them vectorise), but NaN and infinity keep their meaning.
REORDERED = {"reassoc", "contract", "nsz"}

_settings: Any = numba.config
_folder_for = functools.cache(writable_folder)
_kept: set[Any] = set()  # the kernels that are compiled once per machine, not once per process


def kernel(function: Callable[..., Any] | None = None, *, fastmath: bool | set[str] = False) -> Any:
    """Compile a serial loop that releases the GIL, keeping its machine code between runs."""

    def compile_lazily(function: Callable[..., Any]) -> Any:
        compiled = numba.njit(function, nogil=True, fastmath=fastmath, error_model="numpy")
        if not _settings.DISABLE_JIT and _keeps_machine_code(compiled, Path(inspect.getfile(function)).parent):
            _kept.add(compiled)
        return compiled

    return compile_lazily if function is None else compile_lazily(function)


def _keeps_machine_code(kernel: Any, sources: Path) -> bool:
    """Let Numba keep machine code where its settings say, or else in `writable_folder`; return whether it can.

    Numba by itself raises RuntimeError where neither the folder of the source nor the home of the user can be written
    to.
    """
    if _settings.CACHE_DIR or getattr(_settings, "CACHE_LOCATOR_CLASSES", ""):
        try:
            kernel.enable_caching()
            return True
        except RuntimeError:  # nor can that folder be written to
            pass
    folder = _folder_for(sources)
    if folder is None:
        _warn_of_no_folder()
        return False
    stated = _settings.CACHE_DIR
    # Read when caching is enabled, and by nobody later: other users of Numba in this process keep their own folder.
    _settings.CACHE_DIR = "" if folder == sources / "__pycache__" else str(folder)
    try:
        kernel.enable_caching()
    except RuntimeError:  # a source that is no file, as in a zip archive
        _warn_of_no_folder()
        return False
    finally:
        _settings.CACHE_DIR = stated
    return True


@functools.cache
def _warn_of_no_folder() -> None:
    warnings.warn(
        "posteriori compiles its kernels in every process, which takes 2 to 15 seconds, because there is no folder to "
        "keep machine code in; set NUMBA_CACHE_DIR to a folder that you can write to",
        UserWarning,
        stacklevel=2,
    )


class _Notifier(event.Listener):
    """Passes on when a kernel of ours is compiled; Numba has looked in its cache before."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in _kept:
            compilation.notify()

    def on_end(self, event: Any) -> None:
        pass


_register: Any = event.register  # which Numba does not annotate
_register("numba:compile", _Notifier())
