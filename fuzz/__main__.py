"""The command: ``python -m fuzz COUNT [--target NAME] [--seed FIRST]``."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from fuzz.harness import run_here, run_in_child
from fuzz.targets import TARGETS

_PART = 500  # inputs a process


def main() -> int:
    """Try inputs, print what became of them, and return 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Try mutated inputs; every finding is a defect.")
    parser.add_argument("count", type=int, help="inputs per target")
    parser.add_argument("--target", choices=sorted(TARGETS), help="one target only")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first input")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    targets = [TARGETS[options.target]] if options.target else list(TARGETS.values())
    seeds = range(options.seed, options.seed + options.count)
    if options.here:
        run_here(targets[0], seeds)
        return 0
    parts = [(target, first) for target in targets for first in seeds[::_PART]]
    findings = total = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        begun = [pool.submit(run_in_child, target, first, min(_PART, seeds.stop - first)) for target, first in parts]
        for done in begun:
            report = done.result()
            total += report.tried
            findings += len(report.findings)
            outcomes = ", ".join(f"{n} {outcome}" for outcome, n in sorted(report.outcomes.items()))
            print(f"{report.target}: {report.tried} inputs, {outcomes}, {len(report.findings)} unexpected", flush=True)
            for seed, what in report.findings:
                print(f"--- {report.target}, seed {seed}\n{what}", flush=True)
    print(f"{total} inputs, {findings} unexpected")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
