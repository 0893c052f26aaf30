"""Networks with continuous variables: every answer is that of enumerating the discrete configurations."""

import itertools
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import logsumexp

import posteriori as po
from posteriori.networks import (
    CPT,
    LinearGaussian,
    Measurement,
)
from posteriori.networks.learning.cases import open_cases
from posteriori.networks.learning.completion import complete_rows
from posteriori.networks.learning.family_statistics import CaseRows

STATES = ("a", "b", "c")


def random_hybrid(seed, n_discrete=3, n_continuous=4):
    rng = np.random.default_rng(seed)
    discrete = [f"d{k}" for k in range(n_discrete)]
    states = {name: STATES[: rng.integers(2, 4)] for name in discrete}
    tables = []
    for k, name in enumerate(discrete):
        parents = {one: states[one] for one in discrete[:k] if rng.random() < 0.5}
        table = rng.dirichlet(np.ones(len(states[name])), size=tuple(map(len, parents.values())))
        tables.append(CPT(name, states[name], parents, table))
    for k in range(n_continuous):
        parents = {one: states[one] for one in discrete if rng.random() < 0.4}
        above = tuple(f"x{j}" for j in range(k) if rng.random() < 0.5)
        shape = tuple(map(len, parents.values()))
        tables.append(
            LinearGaussian(
                f"x{k}",
                above,
                parents,
                rng.normal(size=shape) * 2,
                rng.normal(size=(*shape, len(above))),
                rng.uniform(0.2, 2.0, size=shape),
            )
        )
    return po.BayesianNetwork(cpts=[tables[k] for k in rng.permutation(len(tables))])


def enumerated(net):
    """Yield every discrete configuration with its probability, and the mean and covariance of all continuous ones."""
    discrete = [cpt.variable for cpt in net.cpts]
    continuous = [name for name in net.dag.topological_order if name not in discrete]
    for codes in itertools.product(*(range(len(net.states(name))) for name in discrete)):
        at = dict(zip(discrete, codes, strict=True))
        p = 1.0
        for cpt in net.cpts:
            p *= cpt.probabilities[tuple(at[name] for name in (*cpt.parents, cpt.variable))]
        size = len(continuous)
        weights, intercept, variance = np.zeros((size, size)), np.zeros(size), np.zeros(size)
        for k, name in enumerate(continuous):
            one = net.cpt(name)
            place = tuple(at[parent] for parent in one.parents)
            intercept[k], variance[k] = one.intercept[place], one.variance[place]
            for parent, b in zip(one.continuous, one.coefficients[place], strict=True):
                weights[k, continuous.index(parent)] = b
        inverse = np.linalg.inv(np.eye(size) - weights)
        yield at, p, inverse @ intercept, inverse @ np.diag(variance) @ inverse.T, continuous


def conditioned(net, evidence, measured):
    """Return, per configuration, log p(configuration, evidence), and mean and covariance given all evidence."""
    found = []
    for at, p, mean, covariance, names in enumerated(net):
        if any(net.states(name).index(state) != at[name] for name, state in evidence.items() if name in at):
            continue
        rows = [np.eye(len(names))[names.index(name)] for name in evidence if name in names]
        rows += [np.eye(len(names))[names.index(name)] for name in measured]
        values = [evidence[name] for name in evidence if name in names] + [one.value for one in measured.values()]
        noise = [0.0] * (len(rows) - len(measured)) + [one.standard_deviation**2 for one in measured.values()]
        log_p = np.log(p) if p else -np.inf
        if rows:
            design = np.array(rows)
            s = design @ covariance @ design.T + np.diag(noise)
            log_p += stats.multivariate_normal(design @ mean, s).logpdf(values)
            gain = covariance @ design.T @ np.linalg.inv(s)
            mean, covariance = mean + gain @ (values - design @ mean), covariance - gain @ design @ covariance
        found.append((at, log_p, mean, covariance, names))
    return found


def random_case(net, seed):
    rng = np.random.default_rng(seed + 1)
    row = net.sample(1, random_state=seed).row(0, named=True)
    names = rng.permutation(net.variables).tolist()
    evidence = {name: row[name] for name in names[:3]}
    left = [name for name in names[3:] if name not in [cpt.variable for cpt in net.cpts]]
    measured = {left[0]: Measurement(row[left[0]] + 0.3, 0.7)} if left and rng.random() < 0.5 else {}
    return evidence, measured


@given(st.integers(0, 10_000))
def test_answers_are_those_of_enumeration(seed):
    net = random_hybrid(seed)
    evidence, measured = random_case(net, seed)
    found = conditioned(net, evidence, measured)
    log_evidence = logsumexp([log_p for _, log_p, *_ in found])
    given_ = evidence | measured
    answers = net.query(evidence=given_)
    for name, answer in answers.items():
        if name in [cpt.variable for cpt in net.cpts]:
            wanted = np.zeros(len(net.states(name)))
            for at, log_p, *_ in found:
                wanted[at[name]] += np.exp(log_p - log_evidence)
            assert_allclose(answer.probabilities, wanted, atol=1e-10)
        else:
            k = found[0][4].index(name)
            weights = np.exp([log_p - log_evidence for _, log_p, *_ in found])
            means = np.array([mean[k] for _, _, mean, _, _ in found])
            variances = np.array([covariance[k, k] for _, _, _, covariance, _ in found])
            assert_allclose(answer.mean, weights @ means, atol=1e-9)
            assert_allclose(answer.variance, weights @ (variances + means**2) - (weights @ means) ** 2, atol=1e-8)
            at = float(answer.quantile(0.3))
            assert_allclose(weights @ stats.norm.cdf(at, means, np.sqrt(variances)), 0.3, atol=1e-9)
            assert_allclose(answer.pdf([at]), [weights @ stats.norm.pdf(at, means, np.sqrt(variances))], rtol=1e-8)
    if not measured:
        row = pl.DataFrame({name: [value] for name, value in evidence.items()})
        assert_allclose(net.log_likelihood(row), [log_evidence], rtol=1e-9)
        marginals = net.marginals(row)
        for name, answer in answers.items():
            if name in [cpt.variable for cpt in net.cpts]:
                assert_allclose(marginals[name][0], answer.probabilities, atol=1e-10)
            else:
                assert_allclose(marginals[name][0], [answer.mean, answer.variance], atol=1e-8)


@given(st.integers(0, 10_000))
def test_joint_answers_and_the_most_probable_configuration(seed):
    net = random_hybrid(seed)
    evidence, measured = random_case(net, seed)
    found = conditioned(net, evidence, measured)
    log_evidence = logsumexp([log_p for _, log_p, *_ in found])
    names = found[0][4]
    hidden = [name for name in names if name not in evidence]
    places = [names.index(name) for name in hidden]
    free = [cpt.variable for cpt in net.cpts if cpt.variable not in evidence]
    weights = np.exp([log_p - log_evidence for _, log_p, *_ in found])
    if len(hidden) > 1:
        answer = net.query(*hidden, evidence=evidence | measured)
        means = np.array([mean[places] for _, _, mean, _, _ in found])
        covariances = np.array([covariance[np.ix_(places, places)] for _, _, _, covariance, _ in found])
        assert_allclose(answer.mean, weights @ means, atol=1e-9)
        second = np.einsum("m,mij->ij", weights, covariances + np.einsum("mi,mj->mij", means, means))
        assert_allclose(answer.covariance, second - np.outer(answer.mean, answer.mean), atol=1e-7)
    if free and hidden:
        answer = net.query(free[0], hidden[0], evidence=evidence | measured)
        for k, state in enumerate(net.states(free[0])):
            share = np.array([w if at[free[0]] == k else 0.0 for w, (at, *_) in zip(weights, found, strict=True)])
            assert_allclose(answer.discrete.probabilities[k], share.sum(), atol=1e-10)
            if share.sum() > 1e-9:
                mean = share @ np.array([mean[places[0]] for _, _, mean, _, _ in found]) / share.sum()
                assert_allclose(answer[state].mean, mean, atol=1e-7)
    best = net.most_probable(evidence | measured)
    peaks = []
    for _, log_p, _, covariance, _ in found:
        part = covariance[np.ix_(places, places)]
        peak = stats.multivariate_normal(np.zeros(len(places)), part).logpdf(np.zeros(len(places))) if places else 0.0
        peaks.append(log_p + peak)
    assert_allclose(best.log_probability, max(peaks), atol=1e-8)
    assert_allclose(best.log_evidence, log_evidence, atol=1e-8)
    at, _, mean, _, _ = found[int(np.argmax(peaks))]
    for name in hidden:
        assert_allclose(best[name], mean[names.index(name)], atol=1e-7)
    assert all(best[name] == net.states(name)[at[name]] for name in at)


def test_samples_have_the_moments_of_the_answers():
    net = random_hybrid(5)
    evidence = {"x3": 1.0}
    rows = net.sample(20_000, evidence=evidence, random_state=0)
    assert rows["x3"].n_unique() == 1
    for name, answer in net.query(evidence=evidence).items():
        if rows[name].dtype == pl.Float64:
            error = answer.standard_deviation / np.sqrt(len(rows))
            assert abs(rows[name].mean() - answer.mean) < 5 * error
            assert_allclose(rows[name].std(), answer.standard_deviation, rtol=0.05)
        else:
            shares = [(rows[name] == state).mean() for state in net.states(name)]
            assert_allclose(shares, answer.probabilities, atol=0.02)
    free = net.sample(20_000, random_state=1)
    for name, answer in net.query().items():
        if free[name].dtype == pl.Float64:
            assert abs(free[name].mean() - answer.mean) < 5 * answer.standard_deviation / np.sqrt(len(free))


def test_many_rows_with_gaps_are_answered_as_one_by_one():
    net = random_hybrid(11)
    rng = np.random.default_rng(0)
    rows = net.sample(60, random_state=0)
    rows = rows.with_columns(
        pl.when(pl.Series(rng.random(60) < 0.4)).then(None).otherwise(pl.col(name)).alias(name) for name in rows.columns
    )
    marginals, log_likelihood = net.marginals(rows), net.log_likelihood(rows)
    for i, row in enumerate(rows.iter_rows(named=True)):
        known = {name: value for name, value in row.items() if value is not None}
        found = conditioned(net, known, {})
        assert_allclose(log_likelihood[i], logsumexp([log_p for _, log_p, *_ in found]), atol=1e-8)
        for name, answer in net.query(evidence=known).items():
            wanted = [answer.mean, answer.variance] if hasattr(answer, "means") else answer.probabilities
            assert_allclose(marginals[name][i], wanted, atol=1e-7)
    target = net.cpts[0].variable
    assert_allclose(net.predict_proba(rows, target), net.marginals(rows.drop(target), target)[target], atol=1e-12)


def test_intervals_interventions_and_errors(tmp_path):
    net = po.BayesianNetwork([("d", "x"), ("x", "y")])
    net.add_cpt("d", {"a": 0.3, "b": 0.7})
    net.add_gaussian("x", {"a": 0.0, "b": 2.0}, variance=1.0)
    net.add_gaussian("y", 1.0, {"x": 0.5}, 0.25)
    wanted = 0.3 * stats.norm.cdf(1.0) + 0.7 * stats.norm.cdf(-1.0)
    assert_allclose(net.probability({"x": (None, 1.0)}), wanted, rtol=1e-12)
    assert_allclose(net.probability({"d": "a", "x": (0, 1)}), 0.3 * (stats.norm.cdf(1) - 0.5), rtol=1e-12)
    set_ = net.do({"x": 4.0})
    assert_allclose(set_.query("y").mean, 3.0)
    assert_allclose(set_.query("d").probabilities, [0.3, 0.7])
    po.save(net, tmp_path / "net.posteriori")
    assert po.load(tmp_path / "net.posteriori") == net
    assert po.read_network(tmp_path / "net.posteriori").gaussians == net.gaussians
    for call, message in (
        (lambda: net.query("x", evidence={"x": 1.0}), "asked for and is evidence"),
        (lambda: net.query(evidence={"x": "a"}), "it is continuous; give a number"),
        (lambda: net.query(evidence={"x": np.inf}), "finite number"),
        (lambda: net.states("x"), "is continuous, so that it has no states"),
        (lambda: net.predict_proba(pl.DataFrame({"y": [1.0]}), "x"), "without states"),
        (lambda: net.log_likelihood(pl.DataFrame({"x": ["a"]})), "holds no numbers"),
        (lambda: po.write_network(net, tmp_path / "net.bif"), "continuous"),
        (lambda: net.add_gaussian("x", {"a": 0.0}), "is missing where d = 'b'"),
        (lambda: net.add_gaussian("x", 0.0, variance=-1.0), "is negative"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    child = po.BayesianNetwork([("x", "d")])
    child.add_gaussian("x", 0.0)
    with pytest.raises(ValueError, match="no exact inference: reverse the edge"):
        child.add_cpt("d", {"a": {"u": 0.5, "v": 0.5}})
    exact = po.BayesianNetwork([("x", "y")])
    exact.add_gaussian("x", 0.0)
    exact.add_gaussian("y", 0.0, {"x": 2.0}, 0.0)
    assert_allclose(exact.query("x", evidence={"y": 3.0}).mean, 1.5)
    with pytest.raises(ValueError, match="unbounded density"):
        exact.most_probable()


# Rows with gaps, and other ways to answer -----------------------------------------------------------------------


def with_gaps(rows, share, seed):
    rng = np.random.default_rng(seed)
    return rows.with_columns(
        pl.when(pl.Series(rng.random(len(rows)) < share)).then(None).otherwise(pl.col(name)).alias(name)
        for name in rows.columns
    )


@given(st.integers(0, 60))
def test_conditioning_answers_as_the_junction_tree_does(seed):
    net = random_hybrid(seed)
    evidence = {"x0": 0.7, "d1": net.states("d1")[0]}
    for names in (("d0",), ("d2", "d0"), ("x2",), ("x3", "x1"), ("d0", "x2")):
        exact, found = (net.query(*names, evidence=evidence, method=method) for method in ("exact", "conditioning"))
        assert repr(found) == repr(exact)
    event = {"d0": net.states("d0")[0], "x1": (-1.0, None)}
    p = net.probability(event, evidence, method="conditioning")
    assert_allclose(p, net.probability(event, evidence), rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_samples_estimate_what_exact_inference_gives(seed):
    net = random_hybrid(seed)
    likelihood = {state: 0.5 + k for k, state in enumerate(net.states("d1"))}
    evidence = {"x0": 0.3, "x2": Measurement(0.5, 2.0), "d1": likelihood}
    options = {"method": "sampling", "n_samples": 20_000, "random_state": seed}
    assert repr(net.query("x1", evidence=evidence, **options)) == repr(net.query("x1", evidence=evidence, **options))
    exact, found = (net.query("d0", "d2", evidence=evidence, **more) for more in ({}, options))
    assert (np.abs(found.probabilities - exact.probabilities) < 5 * found.standard_errors + 1e-3).all()
    exact, found = (net.query("x1", "x3", evidence=evidence, **more) for more in ({}, options))
    spread = np.sqrt(np.diag(exact.covariance))
    assert_allclose(found.mean, exact.mean, atol=0.05 * spread.max())
    assert_allclose(found.covariance, exact.covariance, atol=0.1 * spread.max() ** 2)
    exact, found = (net.query("d0", "x1", evidence=evidence, **more) for more in ({}, options))
    for state, p in exact.discrete.to_dict().items():
        if p > 0.05:
            assert_allclose(found[state].mean, exact[state].mean, atol=0.05 * spread.max())
    event = {"d0": net.states("d0")[0], "x1": (None, 0.5)}
    p = net.probability(event, evidence, **options)
    assert abs(p - net.probability(event, evidence)) < 5 * p.standard_error


def test_more_configurations_than_can_be_listed_are_sampled():
    n = 16
    edges = [(f"d{k}", f"x{k}") for k in range(n)] + [(f"x{k}", f"x{k + 1}") for k in range(n - 1)]
    net = po.BayesianNetwork(edges)
    for k in range(n):
        net.add_cpt(f"d{k}", [0.5, 0.5], states=["a", "b"])
        above = {f"x{k - 1}": 1.0} if k else None
        net.add_gaussian(f"x{k}", {"a": 0.0, "b": 1.0}, above, 0.1)
    with pytest.raises(ValueError, match="query with method='sampling'"):
        net.query("d3", evidence={f"x{n - 1}": 5.0})
    found = net.query("d3", evidence={f"x{n - 1}": 5.0}, method="sampling", random_state=0)
    # all switches bear alike on their sum: E[number of b | sum = 5] = 16·p
    share = stats.binom.pmf(np.arange(n + 1), n, 0.5) * stats.norm.pdf(5.0, np.arange(n + 1), np.sqrt(0.1 * n))
    p = share @ np.arange(n + 1) / share.sum() / n
    assert abs(found["b"] - p) < 5 * found.standard_errors[1]


@pytest.mark.parametrize("seed", range(20))
def test_what_the_evidence_determines_is_certain(seed):
    """x → y → z without noise: given z, x is a point, whose variance rounds to either sign of 0."""
    rng = np.random.default_rng(seed)
    slopes, offsets, means, variances = rng.normal(size=2) * 3, rng.normal(size=2), rng.normal(size=2), rng.random(2)
    net = po.BayesianNetwork([("d", "x"), ("x", "y"), ("y", "z")])
    net.add_cpt("d", {"u": 0.3, "v": 0.7})
    net.add_gaussian("x", dict(zip("uv", means, strict=True)), variance=dict(zip("uv", variances + 0.1, strict=True)))
    net.add_gaussian("y", offsets[0], {"x": slopes[0]}, 0.0)
    net.add_gaussian("z", offsets[1], {"y": slopes[1]}, 0.0)
    z = float(rng.normal())
    x = (((z - offsets[1]) / slopes[1]) - offsets[0]) / slopes[0]
    found = net.query("x", evidence={"z": z})
    assert_allclose(found.mean, x, rtol=1e-9)
    assert np.all(found.covariances == 0)
    for low, high, inside in (
        (x - 1, x + 1, 1),
        (None, x + 1, 1),
        (x - 1, None, 1),
        (x + 1, x + 2, 0),
        (None, x - 1, 0),
    ):
        assert_allclose(net.probability({"x": (low, high)}, given={"z": z}), inside, atol=1e-12)


def test_the_ends_of_an_interval_belong_to_it():
    net = po.BayesianNetwork([("d", "x")])
    net.add_cpt("d", {"u": 0.25, "v": 0.75})
    net.add_gaussian("x", {"u": 1.0, "v": 2.0}, variance=0.0)
    for interval, p in (
        ((1, 2), 1),
        ((1, 1), 0.25),
        ((2, None), 0.75),
        ((None, 1), 0.25),
        ((1.5, 3), 0.75),
        ((0, 0.5), 0),
    ):
        assert_allclose(net.probability({"x": interval}), p, rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_completed_rows_have_the_expected_moments(seed):
    net = random_hybrid(seed)
    frame = with_gaps(net.sample(60, random_state=seed), 0.35, seed)
    states = {cpt.variable: cpt.states for cpt in net.cpts}
    continuous = tuple(name for name in net.variables if name not in states)
    cases = open_cases(frame, net.variables, states, continuous=continuous)
    rows = complete_rows(cases.reduce(CaseRows), net._inference, np.random.default_rng(0)).rows
    assert not rows.has_gaps
    assert_allclose(rows.weight.sum(), 60)
    wanted = net.marginals(frame)
    for k, name in enumerate(states):
        counts = np.bincount(rows.codes[:, k].astype(int) - 1, rows.weight, len(states[name]))
        assert_allclose(counts, wanted[name].sum(axis=0), atol=1e-8)
    second = np.einsum("n,ni,nj->ij", rows.weight, rows.numbers, rows.numbers)
    expected = np.zeros_like(second)
    for row in frame.iter_rows(named=True):
        known = {name: cell for name, cell in row.items() if cell is not None}
        missing = [name for name in continuous if name not in known]
        mean, covariance = np.zeros(len(continuous)), np.zeros_like(second)
        at = [continuous.index(name) for name in missing]
        for name in set(continuous) - set(missing):
            mean[continuous.index(name)] = known[name]
        if missing:
            found = net.query(*missing, evidence=known)
            mean[at], covariance[np.ix_(at, at)] = found.mean, found.covariance
        expected += covariance + np.outer(mean, mean)
    assert_allclose(second, expected, rtol=1e-8, atol=1e-8)


def test_a_file_whose_density_has_an_unknown_parent_is_refused(tmp_path):
    gaussian = {"parents": [], "intercept": 0.0, "variance": 1.0}
    variables = [
        {"name": "x", "continuous_parents": [], "coefficients": [], **gaussian},
        {"name": "y", "continuous_parents": ["z"], "coefficients": [1.0], **gaussian},
    ]
    (tmp_path / "net.json").write_text(json.dumps({"format": "posteriori network", "variables": variables}))
    with pytest.raises(ValueError, match="'y' has the parent 'z', which is no variable"):
        po.read_network(tmp_path / "net.json")
