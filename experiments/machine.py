"""What a measurement costs, how many threads it may use, and whether other processes ran beside it."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import joblib

THREADS = "OMP_NUM_THREADS"
# Each library reads one of these when it is loaded; joblib and posteriori read the last.
LIMITS = (THREADS, "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "LOKY_MAX_CPU_COUNT")
IDLE = 0.1  # of one core: what the system itself and the programs that wait for input use at most
_STAT = Path("/proc/stat")


@dataclass(frozen=True)
class Moment:
    """Seconds so far: of the clock, of CPU of this process and those that it waited for, and of CPU of the machine.

    `machine` is None where there is no /proc/stat. It includes the time that a virtual machine waited for its host.
    """

    wall: float
    cpu: float
    machine: float | None

    @classmethod
    def now(cls) -> Moment:
        """Read the clocks."""
        machine = _machine_seconds()
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        cpu = sum(one.ru_utime + one.ru_stime for one in used)
        return cls(time.perf_counter(), cpu, machine)

    def spent(self) -> tuple[float, float]:
        """Return the seconds since then, of the clock and of CPU."""
        now = Moment.now()
        return now.wall - self.wall, now.cpu - self.cpu

    def others(self) -> float | None:
        """Return how many cores other processes used since then, on average; None if the machine does not tell."""
        now = Moment.now()
        if self.machine is None or now.machine is None:
            return None
        return max((now.machine - self.machine) - (now.cpu - self.cpu), 0.0) / (now.wall - self.wall)


def _machine_seconds() -> float | None:
    if not _STAT.exists():
        return None
    user, nice, system, _, _, irq, softirq, steal = map(int, _STAT.read_text().split(maxsplit=9)[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def others_now(seconds: float = 1.0) -> float | None:
    """Return how many cores other processes use at present, watched for some seconds."""
    start = Moment.now()
    time.sleep(seconds)
    return start.others()


def free_threads(others: float | None) -> int:
    """Return the number of cores that other processes leave free, at least 1: more threads wait for each other."""
    return max(joblib.cpu_count() - round(others or 0.0), 1)


def limits(threads: int) -> dict[str, str]:
    """Return the environment in which every library uses at most so many threads."""
    return dict.fromkeys(LIMITS, str(threads))


def threads() -> int:
    """Return the number of threads that the environment allows a library, as `limits` sets it; else one per core."""
    return int(os.environ.get(THREADS) or joblib.cpu_count())


def on_threads(name: str) -> str:
    """Return the name of a model with the number of threads that it may use, for a table."""
    return f"{name} on {threads()} thread{'' if threads() == 1 else 's'}"


def load_note(*others: float | None) -> str:
    """Return the cores that other processes used at some times, and whether the machine was idle."""
    if any(one is None for one in others):
        return f"load average {os.getloadavg()[0]:.2f}"
    known = [one for one in others if one is not None]
    note = f"other processes used {', '.join(f'{one:.2f}' for one in known)} cores"
    return note if max(known) <= IDLE else f"**the machine was not idle**: {note}"
