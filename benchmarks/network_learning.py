"""Learning Bayesian networks against pyAgrum and pgmpy: `make bench` runs this and fills RESULTS.md.

Usage: python -m benchmarks.network_learning [--quick]   (--quick: a tenth of the rows, to see that it runs)

The network is alarm, of the folder that POSTERIORI_DATA names, or of shared/data beside the project. All read the same
pandas table of categories; reading it is part of the time of each.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
import polars as pl
import pyagrum

import posteriori as po
from benchmarks.timing import Row, alternately, faster, report, within
from experiments.real_tables import shared_folder
from posteriori.networks import DAG, StructureSearch, learn_structure, score_structure

DATA = shared_folder() / "bif"


def parameter_rows(net: po.BayesianNetwork, n: int) -> list[Row]:
    """Learn the tables of the network, smoothed by Laplace."""
    frame = net.sample(n, random_state=0)
    table = frame.to_pandas()
    template = pyagrum.loadBN(str(DATA / "alarm.bif"))
    ours, pgmpy = po.BayesianNetwork(net.edges, variables=net.variables), pgmpy_network(net)

    def by_pyagrum() -> pyagrum.BayesNet:
        learner = pyagrum.BNLearner(table, template)
        learner.useSmoothingPrior(1)
        return learner.learnParameters(template.dag())

    theirs = by_pyagrum()
    ours.fit(table)
    for name in net.variables:
        cpt = ours.cpt(name)
        order = [*cpt.parents, name]
        potential = theirs.cpt(name).reorganize(order[::-1])
        positions = [[theirs.variable(v).index(state) for state in ours.states(v)] for v in order]
        np.testing.assert_allclose(cpt.probabilities, potential.toarray()[np.ix_(*positions)], atol=1e-9)
    size = f"{n:.0e}".replace("e+0", "e")
    gaps = frame[: n // 50].with_columns(
        pl.when(pl.Series(np.random.default_rng(j).random(n // 50)) < 0.02)
        .then(None)
        .otherwise(pl.col(name))
        .alias(name)
        for j, name in enumerate(frame.columns)
    )
    seconds = once(lambda: ours.fit(gaps))
    steps = len(ours.log_likelihood_trace_)
    whole = once(lambda: ours.fit(frame))
    return [
        faster(f"tables of alarm, {size} rows", *alternately(lambda: ours.fit(table), by_pyagrum, 3), 10, "pyAgrum"),
        faster("the same", *alternately(lambda: ours.fit(table), lambda: pgmpy(table), 1), 30, "pgmpy"),
        within(
            f"EM, alarm, {n // 50:,} rows with 2 % missing cells, {steps} steps", seconds, whole, 20,
            f"counting {size} complete rows",
        ),
    ]  # fmt: skip


def structure_rows(net: po.BayesianNetwork, n: int) -> list[Row]:
    """Search for the graph by hill climbing under BIC; the scores are compared by our own BIC."""
    table = net.sample(n, random_state=0).to_pandas()

    def by_pyagrum() -> Iterable[tuple[str, str]]:
        learner = pyagrum.BNLearner(table, pyagrum.loadBN(str(DATA / "alarm.bif")))
        learner.useScoreBIC()
        learner.useNoPrior()
        learner.useGreedyHillClimbing()
        found, names = learner.learnDAG(), learner.names()
        return [(names[u], names[v]) for u, v in found.arcs()]

    ours = learn_structure(table)
    rows = []
    for name, search, at_least, repeats in (("pyAgrum", by_pyagrum, 2, 3), ("pgmpy", lambda: climb(table), 20, 1)):
        seconds = alternately(lambda: learn_structure(table), search, repeats)
        theirs = score_structure(DAG.of(search(), table.columns), table)
        scores = f"hill climbing, alarm, {n:.0e} rows, BIC {ours.score:,.0f} against {theirs:,.0f}".replace("e+0", "e")
        row = faster(scores, *seconds, at_least, name)
        rows.append(Row(row.work, row.ours, row.theirs, row.ratio, row.target, row.met and ours.score >= theirs))
    several = once(lambda: learn_structure(table, StructureSearch(restarts=10)))
    best = learn_structure(table, StructureSearch(restarts=10)).score
    true = score_structure(net, table)
    one = once(lambda: learn_structure(table))
    work = f"the same with 10 restarts, BIC {best:,.0f}; of the graph that drew the rows {true:,.0f}"
    return [*rows, within(work, several, one, 12, "no restart")]


def once(work: Callable[[], object]) -> float:
    """Return the seconds that a work takes after a warm-up."""
    work()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def pgmpy_network(net: po.BayesianNetwork) -> Callable[[pd.DataFrame], object]:
    """Return a function that learns the tables by pgmpy, with one pseudo-count per cell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.models import DiscreteBayesianNetwork
        from pgmpy.parameter_estimator import DiscreteBayesianEstimator

    def fit(table: pd.DataFrame) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = DiscreteBayesianNetwork(list(net.edges))
            return model.fit(table, estimator=DiscreteBayesianEstimator(prior_type="K2"))

    return fit


def climb(table: pd.DataFrame) -> Iterable[tuple[str, str]]:
    """Return the edges that pgmpy finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.estimators import HillClimbSearch

        return list(HillClimbSearch(table).estimate(scoring_method="bic-d", show_progress=False).edges())


def rows(quick: bool) -> list[Row]:
    net = po.read_network(DATA / "alarm.bif")
    share = 10 if quick else 1
    return parameter_rows(net, 1_000_000 // share) + structure_rows(net, 20_000 // share)


if __name__ == "__main__":
    report("Learning Bayesian networks", rows)
