"""One question to a Bayesian network, asked from Python: `make bench` runs this and fills RESULTS.md.

Usage: python -m benchmarks.network_questions [--quick]
"""

from __future__ import annotations

import warnings

import numpy as np
import pyagrum

from benchmarks.networks import as_pyagrum, read
from benchmarks.timing import Row, alternately, faster, report


def query_rows(quick: bool) -> list[Row]:
    """Ask one question of alarm from Python: p(LVFAILURE | five findings)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteBayesianNetwork

    ours = read("alarm")
    target, evidence = "LVFAILURE", {"HRBP": "HIGH", "CVP": "NORMAL", "BP": "LOW", "HISTORY": "FALSE", "EXPCO2": "LOW"}
    numbered = {v: ours.states(v).index(state) for v, state in evidence.items()}
    engine = pyagrum.LazyPropagation(as_pyagrum(ours))
    other = DiscreteBayesianNetwork(list(ours.edges))
    for cpt in ours.cpts:
        columns = cpt.probabilities.reshape(-1, len(cpt.states)).T
        sizes = [len(states) for states in cpt.parents.values()]
        other.add_cpds(TabularCPD(cpt.variable, len(cpt.states), columns, list(cpt.parents) or None, sizes or None))
    elimination = VariableElimination(other)

    def by_pyagrum() -> np.ndarray:
        engine.setEvidence(numbered)
        engine.makeInference()
        return engine.posterior(target).toarray()

    def by_pgmpy() -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return elimination.query([target], evidence=numbered, show_progress=False).values

    n = 20 if quick else 100
    answer = ours.query(target, evidence=evidence).probabilities
    np.testing.assert_allclose(answer, by_pyagrum(), atol=1e-10)
    np.testing.assert_allclose(answer, by_pgmpy(), atol=1e-10)
    rows = []
    for name, ask, at_least in (
        ("pyAgrum LazyPropagation", by_pyagrum, 3),
        ("pgmpy VariableElimination", by_pgmpy, 30),
    ):
        seconds = alternately(
            lambda: [ours.query(target, evidence=evidence) for _ in range(n)],
            lambda ask=ask: [ask() for _ in range(n)],
            11,
        )
        rows.append(faster("one query from Python, alarm", *(one / n for one in seconds), at_least, name))
    return rows


if __name__ == "__main__":
    report("One question to a network", query_rows)
