"""Compile kernels with Numba, and keep their machine code. Nothing else imports Numba, which takes half a second."""

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from posteriori.kernels.machine.code_files import CodeFiles, why_shipped_code_is_unused
from posteriori.kernels.machine.machine_code import choose_folder
from posteriori.kernels.machine.private_files import why_not_private
from posteriori.support import compilation
from posteriori.user_warnings import warn

_settings: Any = numba.config
_ours: set[Any] = set()  # the compiled kernels, which Numba's events name
_said: set[str] = set()  # what was warned of


def compiled(loop: Callable[..., Any], fastmath: bool | set[str], is_part: bool = False) -> Any:
    """Return the function that Numba compiles, with its machine code kept between runs."""
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
    # Wrappers that nobody calls take a seventh of the time to compile.
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": is_part}
    # Each kernel holds its parts. Otherwise it would run the machine code of whichever kernel was loaded first and has
    # the same part, which rounds in another way: results would depend on what was compiled or run before.
    options |= {"forceinline": is_part}
    dispatcher = numba.njit(loop, **options)
    if not _settings.DISABLE_JIT:
        assumed = sorted(fastmath) if isinstance(fastmath, set) else fastmath
        find_folder = functools.partial(_folder_for, _settings.CACHE_DIR)
        dispatcher._cache = CodeFiles(loop, repr(options | {"fastmath": assumed}), find_folder)
        _ours.add(dispatcher)
    return dispatcher


def _folder_for(stated: str) -> Path | None:
    """Return the folder for machine code, and say why it is not the one that the user states."""
    folder, passed_over = _choose(stated)
    if stated and folder is not None and passed_over:
        _warn_once(
            "stated",
            f"posteriori keeps no machine code in NUMBA_CACHE_DIR, because {passed_over[0]}; let no other user write "
            f"to it (chmod 700 {shlex.quote(stated)}), or name another folder",
        )
    return folder


@functools.cache
def _choose(stated: str) -> tuple[Path | None, tuple[str, ...]]:
    return choose_folder(Path(__file__).parent, stated)


def _warn_of_compiling() -> None:
    """Say why kernels are compiled although that is unusual: the first one that is says it."""
    folder, passed_over = _choose(_settings.CACHE_DIR)
    if why_not_kept := ", ".join(passed_over) if folder is None else why_not_private(folder):
        _warn_once(
            "compiling",
            "posteriori compiles its kernels in every process, which takes 2 to 60 seconds, because there is no folder "
            f"to keep machine code in: {why_not_kept}; set NUMBA_CACHE_DIR to a folder that you can write to and no "
            "other user can (chmod 700)",
        )
    elif reason := why_shipped_code_is_unused():
        _warn_once(
            "compiling",
            f"{reason}; kernels are compiled on first use instead, once per machine (posteriori warm-up compiles all)",
        )


def _warn_once(about: str, message: str) -> None:
    if about not in _said:
        _said.add(about)
        warn(message)


class _Notifier(event.Listener):
    """Reports the compilation of a kernel. Numba sends this event only after a miss in its cache."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in _ours:
            _warn_of_compiling()
            compilation.begin()

    def on_end(self, event: Any) -> None:
        if event.data["dispatcher"] in _ours:
            compilation.end()


_register: Any = event.register  # Numba does not annotate it
_register("numba:compile", _Notifier())
