"""Ctrl-C and SIGTERM end a command soon, whatever it does, and leave no file, no copy and no child process.

Python raises an interrupt in the main thread, between two of its own instructions. A pass of polars, a loop of a
kernel, or a compilation may take long before that. So a thread of its own waits for the signal too: if the command has
not ended some time after it, this thread cleans up and ends the process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Any, NoReturn

_PATIENCE = 1.0  # seconds in which a command may end by itself
_WORDS = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "the terminal was closed"}
_CLEARED = "\r\x1b[J\x1b[?25h"  # in a terminal: without a bar, and with the cursor that a bar has hidden
_raised = threading.Lock()  # held from the first signal on
_ending = threading.Lock()
_sent: list[int] = []  # the signal that was raised


class Ended(KeyboardInterrupt):
    """The process was sent a signal that ends it."""

    def __init__(self, number: int) -> None:
        self.number = number


def watch_signals() -> None:
    """Let Ctrl-C, SIGTERM and SIGHUP end this process soon. A signal that the shell has it ignore stays ignored.

    Python lets only the main thread handle signals: from another one, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    numbers = [number for name in _WORDS if (number := getattr(signal, name, None)) is not None]
    watched = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    for number in watched:
        signal.signal(number, _raise)
    sys.unraisablehook = _end_or_report
    if os.name == "nt":  # a pipe cannot be woken there: the main thread alone ends the command
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    threading.Thread(target=_end_later, args=(reading, frozenset(watched)), daemon=True, name="signals").start()


def _raise(number: int, frame: Any) -> None:
    """Raise the first signal: a second one must not interrupt the clean-up. Windows has no thread for a lost one."""
    del frame
    if not _ending.locked() and (_raised.acquire(blocking=False) or os.name == "nt"):
        _sent.append(number)
        raise Ended(number)


def end_if_sent() -> None:
    """End the process if a signal was raised, though another exception came of it: polars makes its own of ours."""
    if _sent:
        end_now(_sent[0])


def _end_or_report(unraisable: Any) -> None:
    """End the process after a signal that Python could not raise, for example while it closed a generator."""
    if isinstance(unraisable.exc_value, Ended):
        end_now(unraisable.exc_value.number)
    sys.__unraisablehook__(unraisable)


def _end_later(reading: int, watched: frozenset[int]) -> None:
    """Wait for a signal, then for the command to end by itself, and end it."""
    while (number := os.read(reading, 1)[0]) not in watched:
        pass
    threading.Event().wait(_PATIENCE)
    end_now(number)


def end_now(number: int) -> NoReturn:
    """Remove what must not outlive the process, say why it ends, and end it. The first thread that comes does that."""
    from posteriori.cli.terminal import unwrapped
    from posteriori.support.leftovers import remove_leftovers

    _ending.acquire()
    try:
        _end_children()
        remove_leftovers()
        with suppress(RuntimeError):  # Python starts no thread while it ends
            impatient = threading.Timer(_PATIENCE, os._exit, [128 + number])  # nobody may read a full pipe
            impatient.daemon = True
            impatient.start()
        for stream in filter(None, (unwrapped(sys.stderr), sys.__stderr__)):  # the first may just have been closed
            with suppress(OSError, ValueError):
                cleared = _CLEARED if stream.isatty() else ""
                stream.write(f"{cleared}error: {_WORDS[signal.Signals(number).name]}\n")
                stream.flush()
                break
    finally:
        os._exit(128 + number)


def _end_children() -> None:
    if "multiprocessing" in sys.modules:
        from multiprocessing import active_children

        children = active_children()
        for child in children:
            child.terminate()
        for child in children:
            child.join(_PATIENCE / 2)
