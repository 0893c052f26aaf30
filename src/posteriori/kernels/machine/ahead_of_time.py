"""Compile all kernels before they are used.

The list of `signatures` is divided among as many processes as there are cores. What has machine code already is loaded,
which takes milliseconds. ``python -m posteriori.kernels.machine.ahead_of_time FOLDER`` fills the folder that comes with
a built package: it is called by the build.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path


def compile_kernels(
    n_processes: int | None = None,
    report: Callable[[int, int], None] = lambda done, of: None,
    lines: Sequence[str] | None = None,
) -> list[str]:
    """Compile every kernel of the list for its signatures, and keep the machine code.

    Parameters
    ----------
    n_processes : int, optional
        Default: one per core.
    report : callable
        Called with the number of lines that are compiled, and the number of all.
    lines : sequence of str, optional
        Lines of the list. Default: all.

    Returns
    -------
    list of str
        The lines that have machine code, which is kept.
    """
    from posteriori.kernels.machine import signatures

    lines = lines or signatures.listed()
    done = [line for line in lines if _content_of(line) is not None]
    report(len(done), len(lines))
    if len(done) == len(lines):
        return done
    of_kernel: dict[str, list[str]] = {}
    for line in lines:
        if line not in done:
            of_kernel.setdefault(line.partition("(")[0], []).append(line)
    # Processes are spawned: a fork would copy the threads of libraries in a state in which they cannot go on.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes or os.cpu_count(), mp_context=context) as processes:
        tasks = [processes.submit(_compile, lines) for lines in sorted(of_kernel.values(), key=_size, reverse=True)]
        for task in as_completed(tasks):
            done += task.result()
            report(len(done), len(lines))
    return done


def compile_for_package(
    folder: Path, report: Callable[[int, int], None] = lambda done, of: None, lines: Sequence[str] | None = None
) -> None:
    """Fill a folder with machine code for the baseline of this kind of machine (see `code_files`).

    Raises
    ------
    RuntimeError
        No baseline of this kind of machine is known, Numba was imported before, or a kernel has no machine code.
    """
    if "numba" in sys.modules:
        raise RuntimeError("Numba is in use already, with the settings of this machine; call this in a new process")
    from posteriori.kernels.machine.machine_code import baseline

    if (known := baseline()) is None:
        raise RuntimeError("no baseline is known of this kind of machine")
    os.environ |= {"NUMBA_CPU_NAME": known[0], "NUMBA_CPU_FEATURES": ""}  # here, and in the processes that are spawned
    from posteriori.kernels.machine import code_files, signatures

    lines = lines or signatures.listed()
    compile_kernels(report=report, lines=lines)
    for line in lines:
        if (found := _content_of(line)) is None:
            raise RuntimeError(f"the machine code of {line} could not be kept; set NUMBA_CACHE_DIR to a private folder")
        name, content = found
        (folder / name).write_bytes(content)
    (folder / code_files.MADE_WITH).write_text(json.dumps(code_files.made_with()), "utf-8")


def _compile(lines: list[str]) -> list[str]:
    from posteriori.kernels.machine.signatures import read_line

    for line in lines:
        kernel, kinds = read_line(line)
        kernel.compiled.compile(kinds)
    return [line for line in lines if _content_of(line) is not None]


def _content_of(line: str) -> tuple[str, bytes] | None:
    """Return the name and the content of the file with the machine code of a line, if there is one."""
    from posteriori.kernels.machine.signatures import read_line

    kernel, kinds = read_line(line)
    found: tuple[str, bytes] | None = kernel.compiled._cache.content_of(kinds)
    return found


def _size(lines: list[str]) -> int:
    """Return a number that grows with the time to compile a kernel: long ones begin first."""
    from posteriori.kernels.machine.signatures import read_line

    kernel, _ = read_line(lines[0])
    return len(kernel.__wrapped__.__code__.co_code) * len(lines)  # type: ignore[attr-defined]


def main(folder: str) -> None:
    """Fill the folder that comes with a built package, and say on standard error how far it is."""
    end = "\r" if sys.stderr.isatty() else "\n"
    compile_for_package(
        Path(folder), lambda done, of: print(f"compiled {done} of {of} kernels", end=end, file=sys.stderr)
    )


if __name__ == "__main__":
    main(sys.argv[1])
