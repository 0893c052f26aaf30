"""Bayesian networks against pyAgrum: `make bench` runs this and fills RESULTS.md.

Usage: python -m benchmarks.networks [--quick]   (--quick: a tenth of the rows, to see that it runs)

The networks are BIF files of the folder that POSTERIORI_DATA names, or of shared/data beside the project.
"""

from __future__ import annotations

import gzip
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import pyagrum

import posteriori as po
from benchmarks.timing import Row, faster, report
from experiments.real_tables import shared_folder

DATA = shared_folder() / "bif"
AT_LEAST = {
    **dict.fromkeys(("asia", "alarm", "hailfinder", "win95pts", "hepar2"), 100.0),
    **dict.fromkeys(("insurance", "child", "andes", "pigs"), 15.0),
    **dict.fromkeys(("water", "mildew", "diabetes"), 1.5),
}
N_ROWS, N_FINDINGS = 200, 5
PATIENCE = 20.0  # seconds: a peer's rows are timed one by one, and the rest of them left out after this long


def inference_rows(quick: bool) -> list[Row]:
    """Compute all posterior marginals of rows with a few random findings each."""
    return [inference_row(name, at_least, N_ROWS // 10 if quick else N_ROWS) for name, at_least in AT_LEAST.items()]


def inference_row(name: str, at_least: float, n_rows: int) -> Row:
    """Time the rows of one network; of the peer's two engines the faster counts."""
    ours = read(name)
    theirs = as_pyagrum(ours)
    findings = random_findings(ours, n_rows)
    columns = {v: [row.get(v) for row in findings] for v in ours.variables}
    table = pl.DataFrame([pl.Series(v, cells, dtype=pl.String) for v, cells in columns.items()])
    known = table.select([v for v in ours.variables if table[v].null_count() < n_rows])
    numbered = [{v: ours.states(v).index(state) for v, state in row.items()} for row in findings]
    beliefs = ours.marginals(known)
    seconds, repeats = [], 1 if sum(map(len, beliefs.values())) > 50_000 else 5
    for _ in range(repeats):
        start = time.perf_counter()
        ours.marginals(known)
        seconds.append((time.perf_counter() - start) / n_rows)
    engines = {}
    for engine in (pyagrum.LazyPropagation, pyagrum.ShaferShenoyInference):
        engines[engine.__name__], answer = timed_rows(engine(theirs), numbered)
        for v, belief in answer.items():
            np.testing.assert_allclose(beliefs[v][0], belief, atol=1e-10)
    best = min(engines, key=engines.__getitem__)
    work = f"all marginals given {N_FINDINGS} findings, a row, {name}"
    return faster(work, statistics.median(seconds), engines[best], at_least, f"pyAgrum {best}")


def read(name: str) -> po.BayesianNetwork:
    """Return a network of the folder, whose file may be packed."""
    packed = DATA / f"{name}.bif.gz"
    if not packed.exists():
        return po.read_network(DATA / f"{name}.bif")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.bif"
        path.write_bytes(gzip.decompress(packed.read_bytes()))
        return po.read_network(path)


def as_pyagrum(network: po.BayesianNetwork) -> pyagrum.BayesNet:
    """Return the same network as pyAgrum's: its reader rejects some names of states and rounds to single precision."""
    other = pyagrum.BayesNet()
    for cpt in network.cpts:
        other.add(pyagrum.LabelizedVariable(cpt.variable, cpt.variable, len(cpt.states)))
    for cpt in network.cpts:
        for parent in cpt.parents:
            other.addArc(parent, cpt.variable)
    for cpt in network.cpts:
        axes = dict(zip((*cpt.parents, cpt.variable), range(cpt.probabilities.ndim), strict=True))
        order = [axes[v] for v in reversed(other.cpt(cpt.variable).names)]
        other.cpt(cpt.variable)[:] = np.ascontiguousarray(cpt.probabilities.transpose(order))
    return other


def random_findings(network: po.BayesianNetwork, n_rows: int) -> list[dict[str, str]]:
    """Return the states of a few variables, others in every row, each row of one draw from the network."""
    rng = np.random.default_rng(0)
    drawn = network.sample(n_rows, random_state=0)
    return [
        {str(v): str(drawn[str(v)][i]) for v in rng.choice(network.variables, N_FINDINGS, replace=False)}
        for i in range(n_rows)
    ]


def timed_rows(engine: object, findings: list[dict[str, int]]) -> tuple[float, dict[str, np.ndarray]]:
    """Return the mean seconds per row of an engine that is ready, and its answer to the first."""
    variables = list(engine.BN().names())
    engine.makeInference()
    seconds: list[float] = []
    first: dict[str, np.ndarray] = {}
    for evidence in findings:
        start = time.perf_counter()
        engine.setEvidence(evidence)
        engine.makeInference()
        answer = {v: engine.posterior(v) for v in variables}
        seconds.append(time.perf_counter() - start)
        first = first or {v: belief.toarray() for v, belief in answer.items()}
        if sum(seconds) > PATIENCE:
            break
    return statistics.mean(seconds), first


if __name__ == "__main__":
    report("Bayesian networks", inference_rows)
