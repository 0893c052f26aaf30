"""Learning networks: counts by hand, expectations by enumeration, scores by their formulas."""

import itertools
import re
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import posteriori as po
from posteriori.networks import CPT, DAG, score_structure

DAYS = {
    "rain": ["yes", "yes", "no", "no", "no", "no"],
    "wet": ["yes", "yes", "yes", "no", "no", "no"],
}


def random_dag(rng, names, p=0.5):
    order = [names[k] for k in rng.permutation(len(names))]
    return DAG(tuple(names), tuple(pair for pair in itertools.combinations(order, 2) if rng.random() < p))


def random_cases(rng, n, cardinalities, missing=0.0):
    """Return a frame of dependent columns of strings."""
    codes = rng.integers(0, 12, (n, 1)) + rng.integers(0, 4, (n, len(cardinalities)))
    columns = {}
    for j, k in enumerate(cardinalities):
        cells = [f"s{code % k}" for code in codes[:, j]]
        columns[f"v{j}"] = [None if rng.random() < missing else cell for cell in cells]
    kinds = [pl.Enum([f"s{i}" for i in range(k)]) for k in cardinalities]
    return pl.DataFrame(columns, schema=dict(zip(columns, kinds, strict=True)))


def random_tables(rng, dag, states):
    """Return the network of a graph with tables drawn at random, none of them nearly flat."""
    cpts = []
    for name in dag.nodes:
        parents = {parent: states[parent] for parent in dag.parents[name]}
        shape = (*map(len, parents.values()), len(states[name]))
        table = rng.dirichlet(np.full(shape[-1], 0.5), shape[:-1])
        cpts.append(CPT(name, states[name], parents, table))
    return po.BayesianNetwork(cpts=cpts)


def counted(frame, names, states):
    """Return the counts of some columns' configurations, row after row; rows with a missing cell count nowhere."""
    table = np.zeros([len(states[name]) for name in names])
    for row in frame.select(names).iter_rows():
        if None not in row:
            table[tuple(states[name].index(cell) for name, cell in zip(names, row, strict=True))] += 1
    return table


# Tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("smoothing", "wet", "rain"),
    [
        ({"alpha": 0}, [[3 / 4, 1 / 4], [0, 1]], [4 / 6, 2 / 6]),
        ({}, [[4 / 6, 2 / 6], [1 / 4, 3 / 4]], [5 / 8, 3 / 8]),
        ({"alpha": 0.5}, [[3.5 / 5, 1.5 / 5], [0.5 / 3, 2.5 / 3]], [4.5 / 7, 2.5 / 7]),
        ({"alpha": {"wet": [[0, 1], [2, 0]]}}, [[3 / 5, 2 / 5], [2 / 4, 2 / 4]], [5 / 8, 3 / 8]),
        ({"equivalent_sample_size": 8}, [[5 / 8, 3 / 8], [2 / 6, 4 / 6]], [8 / 14, 6 / 14]),
    ],
)
def test_tables_are_the_counts_of_paper(smoothing, wet, rain):
    net = po.BayesianNetwork([("rain", "wet")]).fit(pl.DataFrame(DAYS), **smoothing)
    assert net.states("wet") == ("no", "yes")
    assert_allclose(net.cpt("wet").probabilities, wet)
    assert_allclose(net.cpt("rain").probabilities, rain)
    assert net.log_likelihood_trace_ == ()


def test_every_kind_of_table_gives_the_same_network(constructor):
    columns = {"sky": ["clear", "fog", "fog", "clear"], "windy": [True, False, True, True], "floors": [3, 1, 3, 2]}
    net = po.BayesianNetwork([("sky", "windy"), ("sky", "floors")])
    if "numpy" in constructor.__name__:
        table = constructor({name: columns[name] for name in net.variables})
    else:
        table = constructor({name: columns[name] for name in reversed(net.variables)})
    net.fit(table)
    assert [net.states(name) for name in net.variables] == [("clear", "fog"), (False, True), (1, 2, 3)]
    assert_allclose(net.cpt("floors").probabilities, [[1 / 5, 2 / 5, 2 / 5], [2 / 5, 1 / 5, 2 / 5]])


def test_stated_states_stay_and_learned_ones_are_forgotten():
    net = po.BayesianNetwork([("rain", "wet")], states={"rain": ["yes", "maybe", "no"]}).fit(pl.DataFrame(DAYS))
    assert net.states("rain") == ("yes", "maybe", "no")
    assert_allclose(net.cpt("wet").probabilities, [[1 / 4, 3 / 4], [1 / 2, 1 / 2], [4 / 6, 2 / 6]])
    net.fit(pl.DataFrame({"rain": ["no", "yes"], "wet": ["little", "much"]}))
    assert net.states("wet") == ("little", "much")
    assert net.states("rain") == ("yes", "maybe", "no")


def test_an_unseen_configuration_is_uniform_with_one_warning():
    net = po.BayesianNetwork([("rain", "wet")], states={"rain": ["no", "maybe", "yes"]})
    with pytest.warns(UserWarning, match=r"left uniform: 'wet' where rain = 'maybe'; set alpha") as caught:
        net.fit(pl.DataFrame(DAYS), alpha=0)
    assert len(caught) == 1
    assert_allclose(net.cpt("wet").probabilities[1], [0.5, 0.5])


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3]))
def test_weights_are_repetitions_and_parts_are_the_whole(seed, missing):
    rng = np.random.default_rng(seed)
    frame = random_cases(rng, 30, (2, 3, 2), missing)
    dag = random_dag(rng, frame.columns)
    weight = rng.integers(0, 3, len(frame))
    weight[0] = 1
    repeated = frame[np.repeat(np.arange(len(frame)), weight)]
    one = po.BayesianNetwork(dag.edges, variables=dag.nodes).fit(frame, sample_weight=weight, tol=1e-9, max_iter=2000)
    two = po.BayesianNetwork(dag.edges, variables=dag.nodes).fit(repeated, tol=1e-9, max_iter=2000)
    parts = po.BayesianNetwork(dag.edges, variables=dag.nodes).fit(frame[:11], tol=1e-9, max_iter=2000)
    parts.partial_fit(frame[11:])
    whole = po.BayesianNetwork(dag.edges, variables=dag.nodes).fit(frame, tol=1e-9, max_iter=2000)
    for name in dag.nodes:
        assert_allclose(one.cpt(name).probabilities, two.cpt(name).probabilities, atol=1e-12)
        assert_allclose(parts.cpt(name).probabilities, whole.cpt(name).probabilities, atol=1e-12)


def test_a_new_state_in_a_later_part_extends_the_tables():
    first, second = pl.DataFrame(DAYS), pl.DataFrame({"rain": ["hail", None], "wet": ["yes", "dew"]})
    parts = po.BayesianNetwork([("rain", "wet")]).fit(first).partial_fit(second)
    assert parts == po.BayesianNetwork([("rain", "wet")]).fit(pl.concat([first, second]))
    assert parts.states("rain") == ("hail", "no", "yes")


def test_stated_tables_have_no_counts_to_add_to():
    net = po.BayesianNetwork([("rain", "wet")]).partial_fit(pl.DataFrame(DAYS))
    net.add_cpt("rain", {"no": 0.5, "yes": 0.5})
    with pytest.raises(ValueError, match="there are no counts to add to; use fit"):
        net.partial_fit(pl.DataFrame(DAYS))


# Missing cells --------------------------------------------------------------------------------------------------


def expected_by_enumeration(net, frame, scope):
    """Return Σ_i p(scope | known cells of row i), by summing the joint."""
    joint = net.joint(*net.variables).probabilities
    total = np.zeros([len(net.states(name)) for name in scope])
    axes = [net.variables.index(name) for name in scope]
    for row in frame.select(net.variables).iter_rows():
        position = tuple(
            slice(None) if cell is None else slice(k := net.states(name).index(cell), k + 1)
            for name, cell in zip(net.variables, row, strict=True)
        )
        kept = np.zeros_like(joint)
        kept[position] = joint[position]
        summed = kept.sum(axis=tuple(axis for axis in range(joint.ndim) if axis not in axes))
        total += summed.transpose(np.argsort(np.argsort(axes))) / kept.sum()
    return total


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.7]))
def test_em_ends_at_a_fixed_point_and_never_falls(seed, alpha):
    rng = np.random.default_rng(seed)
    frame = random_cases(rng, 25, (2, 3, 2), 0.25)
    dag = random_dag(rng, frame.columns)
    states = {name: frame[name].drop_nulls().unique().sort().to_list() for name in frame.columns}
    net = po.BayesianNetwork(dag.edges, variables=dag.nodes, states=states)
    net.fit(frame, alpha=alpha + 1e-3, tol=1e-14, max_iter=20_000)
    for cpt in net.cpts:
        counts = expected_by_enumeration(net, frame, (*cpt.parents, cpt.variable)) + alpha + 1e-3
        assert_allclose(cpt.probabilities, counts / counts.sum(axis=-1, keepdims=True), atol=1e-4)
    if alpha == 0.0:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a configuration that no row shows
            net.fit(frame, alpha=0, tol=1e-7, max_iter=5000)
        trace = np.array(net.log_likelihood_trace_)
        assert (np.diff(trace) >= -1e-9).all()
        assert_allclose(trace[-1], net.log_likelihood(frame).sum(), atol=1e-4)


def test_em_where_whole_rows_are_missing_is_the_closed_form():
    frame = random_cases(np.random.default_rng(0), 200, (2, 3))
    nothing = pl.concat([frame, frame.clear(5)])
    closed = po.BayesianNetwork([("v0", "v1")]).fit(frame, alpha=0)
    net = po.BayesianNetwork([("v0", "v1")]).fit(nothing, alpha=0, tol=1e-12, max_iter=1000)
    assert len(net.log_likelihood_trace_) > 1
    for cpt in closed.cpts:
        assert_allclose(net.cpt(cpt.variable).probabilities, cpt.probabilities, atol=1e-6)
    assert_allclose(net.log_likelihood_trace_[-1], closed.log_likelihood(frame).sum(), atol=1e-6)


def test_missing_at_random_is_not_dropped():
    """The second column is asked for only where the first is "s1": complete rows alone would mislead."""
    rng = np.random.default_rng(1)
    a = rng.random(20_000) < 0.5
    b = np.where(rng.random(20_000) < 0.9, a, ~a)
    frame = pl.DataFrame({"a": a, "b": b}).with_columns(
        pl.when(pl.col("b") & (pl.Series(rng.random(20_000)) < 0.8)).then(None).otherwise(pl.col("a")).alias("a")
    )
    net = po.BayesianNetwork([("a", "b")]).fit(frame, tol=1e-9, max_iter=2000)
    assert_allclose(net.cpt("a").probabilities, [0.5, 0.5], atol=0.02)
    assert frame.drop_nulls()["a"].mean() < 0.25


def test_a_variable_that_is_never_seen_is_learned_as_a_class():
    rng = np.random.default_rng(0)
    truth = po.BayesianNetwork([("kind", f"x{j}") for j in range(4)])
    truth.add_cpt("kind", {"a": 0.3, "b": 0.7})
    for j in range(4):
        truth.add_cpt(f"x{j}", {"a": {"no": 0.9, "yes": 0.1}, "b": {"no": 0.15, "yes": 0.85}})
    rows = truth.sample(5000, random_state=rng)
    net = po.BayesianNetwork(truth.edges, states={"kind": ["one", "other"]})
    net.fit(rows.drop("kind"), tol=1e-9, max_iter=2000)
    assert_allclose(np.sort(net.cpt("kind").probabilities), [0.3, 0.7], atol=0.03)
    assert net.log_likelihood(rows.drop("kind")).sum() > truth.log_likelihood(rows.drop("kind")).sum() - 5


def test_em_that_runs_out_of_steps_says_so():
    frame = random_cases(np.random.default_rng(0), 50, (2, 3), 0.3)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 2 steps with a last gain of .* nats"):
        po.BayesianNetwork([("v0", "v1")]).fit(frame, max_iter=2, tol=0.0)


# Bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "more", "message"),
    [
        ({"rain": ["no"]}, {}, "the table has no column 'wet'; add it or, for a hidden variable, declare its states"),
        ({**DAYS, "wett": DAYS["wet"]}, {}, "column 'wett' is no variable of the network; did you mean 'wet'?"),
        ({**DAYS, "rain": [0.5, 1.5, 2.0, 1, 1, 1]}, {}, "column 'rain' holds measurements and its child 'wet' states"),
        ({"wet": ["no"] * 50, "rain": list(range(50))}, {}, "column 'rain' holds measurements"),
        ({**DAYS, "rain": ["yes", "noo"] * 3}, {"states": {"rain": ["yes", "no"]}}, "holds 'noo', which is no state"),
        ({**DAYS, "rain": [1, 2] * 3}, {"states": {"rain": ["yes", "no"]}}, "column 'rain' holds 1, which is no state"),
        ({**DAYS, "wet": [None] * 6}, {}, "no cell of column 'wet' has a value"),
    ],
)
def test_tables_that_cannot_be_learned_from_are_refused(table, more, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        po.BayesianNetwork([("rain", "wet")], **more).fit(pl.DataFrame(table))


def test_a_declared_state_unknown_to_the_network_is_refused():
    kind = pl.Enum(["yes", "no", "maybe"])
    net = po.BayesianNetwork([("rain", "wet")], states={"rain": ["yes", "no"]})
    frame = pl.DataFrame(DAYS, schema_overrides={"rain": kind})
    assert net.fit(frame).states("rain") == ("yes", "no")
    with pytest.raises(ValueError, match="column 'rain' holds 'maybe', which is no state"):
        net.fit(pl.concat([frame, pl.DataFrame({"rain": ["maybe"], "wet": ["no"]}, schema=frame.schema)]))


@pytest.mark.parametrize(
    ("smoothing", "message"),
    [
        ({"alpha": -1}, "alpha of 'rain' is -1; pseudo-counts are finite and at least 0"),
        ({"alpha": {"wett": 1}}, "no variable 'wett'; did you mean 'wet'?"),
        ({"alpha": {"wet": [1, 2, 3]}}, "alpha of 'wet' has shape (3,); give one number, or one for each cell"),
        ({"alpha": 1, "equivalent_sample_size": 1}, "two ways to smooth"),
        ({"equivalent_sample_size": 0}, "must be a number of rows above 0"),
        ({"max_iter": 0}, "max_iter is 0; it must be a whole number of at least 1"),
        ({"tol": -1.0}, "tol is -1.0; it must be at least 0 nats per row"),
    ],
)
def test_settings_that_make_no_sense_are_refused(smoothing, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        po.BayesianNetwork([("rain", "wet")]).fit(pl.DataFrame(DAYS), **smoothing)


def test_sampling_and_learning_is_a_round_trip(shared_data):
    truth = po.read_network(shared_data / "bif" / "asia.bif")
    rows = truth.sample(200_000, random_state=0)
    net = po.BayesianNetwork(truth.edges, variables=truth.variables).fit(rows)
    for cpt in truth.cpts:
        parents = truth.joint(*cpt.parents).probabilities if cpt.parents else np.ones(())
        error = np.abs(net.cpt(cpt.variable).probabilities - cpt.probabilities)
        bound = 5 * np.sqrt(cpt.probabilities * (1 - cpt.probabilities) / (200_000 * parents[..., None] + 1e-300))
        assert (error <= bound + 2 / (200_000 * parents[..., None] + 2)).all()
    found = po.learn_network(rows, po.StructureSearch(restarts=3))
    assert score_structure(found, rows) >= score_structure(truth, rows) - 1e-6


def test_sparse_rows_are_refused_with_their_size():
    with pytest.raises(
        TypeError, match=r"X is sparse, and a Bayesian network reads dense columns; X.toarray\(\) would take"
    ):
        po.learn_network(csr_array(np.eye(4)))


@pytest.fixture(scope="module")
def rows_in_engines(tmp_path_factory):
    """Return the same rows in memory, in a file, in DuckDB and in Dask."""
    net = po.BayesianNetwork([("a", "b"), ("b", "c")])
    net.add_cpt("a", {"x": 0.4, "y": 0.6})
    net.add_cpt("b", {"x": {"u": 0.9, "v": 0.1}, "y": {"u": 0.2, "v": 0.8}})
    net.add_cpt("c", {"u": {"s": 0.7, "t": 0.3}, "v": {"s": 0.1, "t": 0.9}})
    frame = net.sample(600, random_state=0).with_columns(pl.all().cast(pl.String))
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    frame.write_parquet(path)
    engines = {"file": po.scan(path)}
    try:
        import duckdb

        connection = duckdb.connect()
        engines["duckdb"] = po.reading.scan_sql(connection, f"SELECT * FROM '{path}'")
    except ImportError:
        pass
    try:
        import dask.dataframe

        engines["dask"] = dask.dataframe.from_pandas(frame.to_pandas(), npartitions=3)
    except ImportError:
        pass
    return frame, engines


@pytest.mark.parametrize("engine", ["file", "duckdb", "dask"])
def test_rows_beyond_memory_give_the_same_network(rows_in_engines, engine):
    frame, engines = rows_in_engines
    if engine not in engines:
        pytest.skip(f"{engine} is not installed")
    learned, expected = po.learn_network(engines[engine]), po.learn_network(frame)
    assert set(learned.edges) == set(expected.edges)
    weight = np.arange(len(frame)) % 3 + 0.5
    fitted = [po.BayesianNetwork(expected.edges).fit(table, sample_weight=weight) for table in (engines[engine], frame)]
    for name in frame.columns:
        assert_allclose(fitted[0].cpt(name).probabilities, fitted[1].cpt(name).probabilities, rtol=1e-12)
    with pytest.raises(ValueError, match="which is no state of 'a'"):
        po.BayesianNetwork(expected.edges, states={"a": ["x", "z"]}).fit(engines[engine])


def test_narrow_numbers_are_compared_without_overflow():
    x = np.random.default_rng(0).normal(size=40)
    wide = pl.DataFrame({"a": x, "b": 2.0 * x + 1.0})
    narrow, expected = (po.learn_network(frame) for frame in (wide.cast(pl.Float32), wide))
    assert narrow.edges == expected.edges == (("a", "b"),)


def test_an_integer_beyond_floats_is_a_state():
    cells = pl.Series("k", [10**400, 1] * 4, dtype=pl.Object)
    net = po.BayesianNetwork([("k", "b")]).fit(pl.DataFrame([cells, pl.Series("b", ["u", "v"] * 4)]))
    assert net.query("k", evidence={"b": "v"}).to_dict()[1] > 0.8


def test_a_sentence_shows_a_name_of_several_lines_as_one():
    two = ["u", "v"]
    with pytest.raises(ValueError, match=r"where 'a\\nb' = 'v'; each row must sum to 1"):
        CPT("c", two, {"a\nb": two}, [[0.5, 0.5], [0.1, 0.1]])
