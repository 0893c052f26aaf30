"""Compile kernels with Numba, and keep their machine code. Nothing else imports Numba, which takes half a second."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from posteriori.kernels.code_files import CodeFiles, why_shipped_code_is_unused
from posteriori.kernels.machine_code import writable_folder
from posteriori.support import compilation
from posteriori.user_warnings import warn

_settings: Any = numba.config
_folder_for = functools.cache(writable_folder)
_ours: set[Any] = set()  # the compiled kernels, which Numba's events name


def compiled(loop: Callable[..., Any], fastmath: bool | set[str], is_part: bool = False) -> Any:
    """Return the function that Numba compiles, with its machine code kept between runs."""
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
    # Wrappers that nobody calls take a seventh of the time to compile.
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": is_part}
    dispatcher = numba.njit(loop, **options)
    if not _settings.DISABLE_JIT:
        assumed = sorted(fastmath) if isinstance(fastmath, set) else fastmath
        folder = _folder_for(Path(__file__).parent, _settings.CACHE_DIR)
        dispatcher._cache = CodeFiles(loop, repr(options | {"fastmath": assumed}), folder)
        _ours.add(dispatcher)
    return dispatcher


@functools.cache
def _warn_of_compiling(is_kept: bool) -> None:
    """Say why kernels are compiled although that is unusual: the first one that is says it."""
    if not is_kept:
        warn(
            "posteriori compiles its kernels in every process, which takes 2 to 60 seconds, because there is no folder "
            "to keep machine code in; set NUMBA_CACHE_DIR to a folder that you can write to"
        )
    elif reason := why_shipped_code_is_unused():
        warn(f"{reason}; kernels are compiled on first use instead, once per machine (posteriori warm-up compiles all)")


class _Notifier(event.Listener):
    """Reports the compilation of a kernel. Numba sends this event only after a miss in its cache."""

    def on_start(self, event: Any) -> None:
        if (kernel := event.data["dispatcher"]) in _ours:
            _warn_of_compiling(kernel.stats.cache_path is not None)
            compilation.begin()

    def on_end(self, event: Any) -> None:
        if event.data["dispatcher"] in _ours:
            compilation.end()


_register: Any = event.register  # Numba does not annotate it
_register("numba:compile", _Notifier())
