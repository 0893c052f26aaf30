"""Compile all kernels before they are used: ``python -m posteriori.kernels.ahead_of_time``.

The list of `signatures` is divided among as many processes as there are cores. What is in the cache already is loaded,
which takes milliseconds.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed


def compile_kernels(n_processes: int | None = None, report: Callable[[int, int], None] = lambda done, of: None) -> None:
    """Compile every kernel of the list for its signatures, and keep the machine code.

    Parameters
    ----------
    n_processes : int, optional
        Default: one per core.
    report : callable
        Called with the number of kernels that are compiled, and the number of all.
    """
    from posteriori.kernels import signatures

    of_kernel: dict[str, list[str]] = {}
    for line in signatures.listed():
        of_kernel.setdefault(line.partition("(")[0], []).append(line)
    # Processes are spawned: a fork would copy the threads of libraries in a state in which they cannot go on.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes or os.cpu_count(), mp_context=context) as processes:
        tasks = [processes.submit(_compile, lines) for lines in sorted(of_kernel.values(), key=_size, reverse=True)]
        for done, task in enumerate(as_completed(tasks), start=1):
            task.result()
            report(done, len(tasks))


def _compile(lines: list[str]) -> None:
    from posteriori.kernels.signatures import read_line

    for line in lines:
        kernel, kinds = read_line(line)
        kernel.compiled.compile(kinds)  # or loaded: either way it is in the cache afterwards


def _size(lines: list[str]) -> int:
    """Return a number that grows with the time to compile a kernel: long ones begin first."""
    from posteriori.kernels.signatures import read_line

    kernel, _ = read_line(lines[0])
    return len(kernel.__wrapped__.__code__.co_code) * len(lines)  # type: ignore[attr-defined]


if __name__ == "__main__":
    is_terminal = sys.stderr.isatty()
    compile_kernels(
        report=lambda done, of: print(
            f"{done} of {of} kernels", end="\r" if is_terminal and done < of else "\n", file=sys.stderr
        )
    )
