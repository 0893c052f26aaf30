"""The optional methods of densities: their laws, and `examples/extending/density.py` in every feature of a model."""

import contextlib
import dataclasses
import io
import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from examples.extending import density as recipe
from posteriori.checks import check_density
from posteriori.cli import main
from posteriori.densities import (
    REGISTRY,
    BackOff,
    BaseDensity,
    Binned,
    Categorical,
    CorrelatedDensity,
    Density,
    DescribedDensity,
    Gaussian,
    KDependence,
    LinearDensity,
    Missingness,
    MultivariateGaussian,
    NormalDensity,
    Poisson,
    ProgrammedDensity,
    Registration,
    SingleColumnDensity,
    TabularDensity,
    Tree,
    UnrestrictedDensity,
    VarianceDensity,
    column_label,
    registry,
)
from posteriori.densities.capabilities import __dict__ as capabilities
from posteriori.densities.covariances import Pooled
from posteriori.densities.refinement import finish
from posteriori.program.densities import PROGRAMS
from posteriori.statistics import Scatter
from posteriori.tables import Assignment, Codes, Column, Numbers

COUNTS = {"complement", "compound", "multinomial", "poisson_rate", "presence", "scaled"}
PROTOCOLS = {
    DescribedDensity: {"gaussian", "multivariate gaussian", "poisson", "tree", "grouped", *COUNTS},
    LinearDensity: {"gaussian", "multivariate gaussian", "poisson", "categorical", "missingness", "multinomial"},
    NormalDensity: {"gaussian", "multivariate gaussian", "tree"},
    TabularDensity: {"categorical", "grouped", "k-dependence", "tree"},
    CorrelatedDensity: {"multivariate gaussian"},
    SingleColumnDensity: {"multivariate gaussian"},
    VarianceDensity: {"gaussian", "multivariate gaussian", "tree", "grouped"},
    UnrestrictedDensity: {"gaussian", "poisson"},
    ProgrammedDensity: set(),  # those of the library stand in `posteriori.program.densities`
}


@pytest.fixture
def registered():
    """Add the entries of the recipe, as if they were in the library."""
    recipe.register()
    yield recipe.Exponential
    registry.REGISTRY = REGISTRY


def recipe_without(*methods, bases=(BaseDensity,)):
    """Return the density of the recipe without some methods, or without its base."""
    kept = {name: value for name, value in vars(recipe.Exponential).items() if not name.startswith("__")}
    fields = [(field.name, field.type, field.default) for field in dataclasses.fields(recipe.Exponential)]
    namespace = {name: value for name, value in kept.items() if name not in methods}
    return dataclasses.make_dataclass("Exponential", fields, bases=bases, namespace=namespace, frozen=True)


@pytest.fixture
def waits():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    wait = rng.exponential(np.array([1.0, 6.0])[y]).round(6)
    return pl.DataFrame(
        {"wait": wait, "size": (rng.normal(y, 1.0)).round(6), "kind": np.array(["a", "b"])[y]},
    ).with_columns(pl.when(pl.Series(rng.random(300) > 0.1)).then(pl.col("wait")).alias("wait"))


def command(*arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main([str(argument) for argument in arguments]) == 0
    return out.getvalue()


def fitted(waits, **parameters):
    distributions = parameters.pop("distributions", {"wait": "exponential"})
    return po.NaiveBayes(distributions=distributions, alpha=2.0, **parameters).fit(waits, "kind")


# The recipe in every feature -------------------------------------------------------------------------------------


def test_options_set_the_fields_of_a_registered_density(registered, waits):
    by_name = fitted(waits)
    by_value = fitted(waits, distributions={"wait": registered(2.0)})
    assert_array_equal(by_name.predict_proba(waits), by_value.predict_proba(waits))


def test_the_density_of_the_recipe_is_saved_and_loaded(registered, waits, tmp_path):
    model = fitted(waits)
    po.save(model, tmp_path / "m.posteriori")
    again = po.load(tmp_path / "m.posteriori")
    assert_array_equal(again.predict_proba(waits), model.predict_proba(waits))


def test_a_file_with_a_density_that_is_not_registered_is_refused(registered, waits, tmp_path, monkeypatch):
    model = fitted(waits)
    po.save(model, tmp_path / "m.posteriori")
    monkeypatch.setattr(registry, "REGISTRY", REGISTRY)
    with pytest.raises(ValueError, match=r"it holds a 'Exponential', which is not registered; .*registry\.REGISTRY"):
        po.load(tmp_path / "m.posteriori")
    with pytest.raises(TypeError, match=r"may not name kinds of its own, here a Exponential; .*registry\.REGISTRY"):
        po.save(model, tmp_path / "n.posteriori")


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("missing", [False, True])
def test_waits_of_zero_or_of_no_row_have_a_posterior(registered, tmp_path, smoothing, missing):
    X = np.column_stack([np.zeros(60), np.arange(60) / 6])
    y = np.arange(60) % 2
    X[y == 1, 1] = np.nan if missing else 0.0
    model = po.NaiveBayes(distributions=registered(smoothing)).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    po.save(model, tmp_path / "m.posteriori")
    assert_array_equal(po.load(tmp_path / "m.posteriori").predict_proba(X), model.predict_proba(X))
    if missing:
        parameters = model.model_.parameters[0]
        assert_allclose(parameters.mean[1, 1], np.nanmean(X[:, 1]))
        check_density(registered(smoothing), np.random.default_rng(0).exponential(4.0, (90, 2)))


def test_the_sql_of_the_recipe_gives_the_posterior(registered, waits):
    model = fitted(waits)
    connection = sqlite3.connect(":memory:")
    waits.to_pandas().to_sql("t", connection, index=False)
    found = pl.DataFrame(
        connection.execute(model.to_sql("t", dialect="sqlite", columns=[])).fetchall(),
        schema=["prediction", "p_a", "p_b", "log_a", "log_b"],
        orient="row",
    )
    assert_allclose(found["p_a", "p_b"].to_numpy(), model.predict_proba(waits), rtol=1e-9, atol=1e-12)


def test_the_command_show_prints_what_the_density_describes(registered, waits, tmp_path):
    model = fitted(waits)
    po.save(model, tmp_path / "m.posteriori")
    assert "exponential: mean given the class" in command("show", tmp_path / "m.posteriori")
    facts = json.loads(command("show", tmp_path / "m.posteriori", "--json"))
    column = next(column for column in facts["columns"] if column["name"] == "wait")
    parameters = next(p for b, p in zip(model.model_.blocks, model.model_.parameters, strict=True) if b.columns == (0,))
    assert column["mean"] == parameters.mean[:, 0].tolist()
    assert facts["n_parameters_full_joint"] is None


def test_the_linear_form_of_the_recipe_gives_the_posterior(registered, waits):
    complete = waits.drop_nulls().select("wait", "kind")
    model = fitted(complete)
    scores = po.explain.linear_form(model).scores(complete["wait"].to_numpy().reshape(-1, 1))
    posterior = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
    assert_allclose(posterior, model.predict_proba(complete), rtol=1e-9)


def test_rows_of_the_density_of_the_recipe_are_forgotten(registered, waits):
    model = fitted(waits).unlearn(waits[:100], "kind")
    rest = fitted(waits[100:])
    assert_allclose(model.predict_proba(waits), rest.predict_proba(waits), rtol=1e-9)


def test_the_label_names_the_column(registered):
    assert column_label("exponential", "number") == "waiting time"
    assert column_label("gaussian", "number") == "number"


def test_numbers_are_no_network(registered, waits):
    with pytest.raises(ValueError, match="column 'wait' holds numbers that are no normal density"):
        fitted(waits).to_network()


# A density that offers nothing beyond the protocol ---------------------------------------------------------------


@pytest.fixture
def bare(monkeypatch):
    """Return the density of the recipe without the optional methods, registered."""
    density = recipe_without("describe", "linear_terms", "program")
    assert not any(isinstance(density(), protocol) for protocol in PROTOCOLS)
    monkeypatch.setattr(registry, "REGISTRY", (*REGISTRY, Registration(density, (recipe.Totals,))))
    return density


def test_a_feature_names_what_a_density_lacks(bare, waits, tmp_path):
    model = fitted(waits, distributions={"wait": bare()})
    with pytest.raises(ValueError, match=r"'exponential' has no program, .*; write its method `program`"):
        model.to_sql("t")
    with pytest.raises(ValueError, match=r"'wait' has no linear log-odds .*'exponential' has no method `linear_terms`"):
        po.explain.linear_form(model)
    po.save(model, tmp_path / "m.posteriori")
    shown = command("show", tmp_path / "m.posteriori")
    assert "exponential: the density has no description of its parameters" in shown
    forgotten = model.unlearn(waits[:100], "kind")
    assert_allclose(
        forgotten.predict_proba(waits), fitted(waits[100:], distributions={"wait": bare()}).predict_proba(waits)
    )


def test_a_density_of_categories_without_tables_is_no_network():
    frame = pl.DataFrame({"u": list("abab") * 5, "v": list("aabb") * 5, "y": list("pqqp") * 5})
    model = po.AveragedOneDependence().fit(frame, "y")
    with pytest.raises(ValueError, match=r"no network with the class above every feature .*`conditional_tables`"):
        model.to_network()


# Laws ------------------------------------------------------------------------------------------------------------


def test_the_table_of_capabilities_is_complete():
    defined = [value for value in capabilities.values() if getattr(value, "__module__", "") == Density.__module__]
    protocols = {value for value in defined if getattr(value, "_is_protocol", False) and Density not in value.__mro__}
    assert protocols == set(PROTOCOLS)
    for protocol, names in PROTOCOLS.items():
        (method,) = (name for name in vars(protocol) if not name.startswith("_"))
        assert {entry.density.name for entry in REGISTRY if hasattr(entry.density, method)} == names


@pytest.mark.parametrize("entry", REGISTRY, ids=lambda entry: entry.density.name)
def test_every_density_that_depends_on_the_component_has_sql(entry):
    assert (entry.density in PROGRAMS) != entry.density.shared


@pytest.mark.parametrize("entry", REGISTRY, ids=lambda entry: entry.density.name)
def test_every_density_has_the_defaults(entry):
    assert issubclass(entry.density, BaseDensity)


def test_the_protocol_states_every_default():
    stated = {name for name in vars(BaseDensity) if not name.startswith("_")} - {"with_fixed_structure"}
    assert stated <= set(vars(Density))


def test_no_reader_guesses_an_attribute_of_a_density():
    source = Path(po.__file__).parent
    guesses = re.compile(r"(?:getattr|hasattr)\((?:\w+\.)*(?:density|coarse),[^,)]*[,)]")
    found = [path.name for path in source.rglob("*.py") if guesses.search(path.read_text(encoding="utf-8"))]
    assert set(found) <= {"candidates.py", "capabilities.py"}  # a density may be given by name; `check_base`


def test_a_density_without_the_defaults_is_refused(waits):
    own = recipe_without(bases=())
    refused = r"the density Exponential lacks exposure, .*; let it inherit posteriori.densities.BaseDensity, which has"
    with pytest.raises(TypeError, match=refused):
        fitted(waits, distributions={"wait": own()})
    with pytest.raises(TypeError, match=refused):
        check_density(own(), [[1.0], [2.0]])
    for name, value in vars(BaseDensity).items():
        if not name.startswith("_") and not hasattr(own, name):
            setattr(own, name, value)
    fitted(waits, distributions={"wait": own()})


def numbers(n=200, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return Numbers(rng.poisson(4, (n, d)).astype(float)), assignment(n, rng)


def assignment(n, rng, n_components=3):
    return Assignment(rng.integers(0, n_components, n).astype(np.int32), np.ones(n), n_components)


def estimated(density, tile, given):
    if hasattr(density, "refine"):
        factory = density.sufficient_statistics
        density, statistics = finish(density.refine(factory.of(tile, given)), lambda again: again.of(tile, given))
        return density, density.estimate(statistics)
    return density, density.estimate(density.sufficient_statistics.of(tile, given))


def number_columns(d=3):
    return [Column(f"x{j}", "continuous") for j in range(d)]


@pytest.mark.parametrize("density", [Gaussian(np.inf), MultivariateGaussian(Pooled()), Poisson()], ids=repr)
def test_linear_terms_of_numbers_are_the_log_odds(density):
    tile, given = numbers()
    _, parameters = estimated(density, tile, given)
    linear = density.linear_terms(parameters, number_columns())
    scores = linear.bias + sum(np.outer(tile.values[:, j], weight) for j, _, weight in linear.terms)
    log_density = density.log_density(parameters, tile)
    assert_allclose(scores - scores[:, :1], log_density - log_density[:, :1], atol=1e-8)


def test_linear_terms_of_categories_are_the_log_odds():
    rng = np.random.default_rng(0)
    tile, given = Codes(rng.integers(1, [3, 4], (100, 2)).astype(np.uint8), (2, 3)), assignment(100, rng)
    columns = [Column("u", "categorical", ("a", "b")), Column("v", "categorical", ("a", "b", "c"))]
    _, parameters = estimated(Categorical(), tile, given)
    linear = Categorical().linear_terms(parameters, columns)
    cells = np.array([[c.categories[k - 1] for c, k in zip(columns, row, strict=True)] for row in tile.values])
    scores = linear.bias + sum(np.outer(cells[:, j] == category, weight) for j, category, weight in linear.terms)
    assert_allclose(scores, Categorical().log_density(parameters, tile), atol=1e-12)


@pytest.mark.parametrize("density", [Gaussian(), MultivariateGaussian()], ids=repr)
def test_different_variances_have_no_linear_terms(density):
    tile, given = numbers()
    _, parameters = estimated(density, tile, given)
    with pytest.raises(ValueError, match="quadratic"):
        density.linear_terms(parameters, number_columns())


@pytest.mark.parametrize("density", [Categorical(0.5), Tree(BackOff()), KDependence(2, BackOff())], ids=repr)
def test_conditional_tables_sum_to_the_density_of_a_whole_row(density):
    rng = np.random.default_rng(0)
    codes = rng.integers(1, [3, 4, 3, 3], (80, 4)).astype(np.uint8)
    tile, given = Codes(codes, (2, 3, 2, 2)), assignment(80, rng)
    if isinstance(density, Tree):
        model = po.TreeAugmentedNaiveBayes().fit(codes.astype(str).astype(object), given.component)
        block, parameters = model.model_.blocks[0], model.model_.parameters[0]
        density, log_density = block.density, model.predict_joint_log_proba(codes.astype(str).astype(object))
        log_density = log_density - model.model_.log_prior
    else:
        density, parameters = estimated(density, tile, given)
        log_density = density.log_density(parameters, tile)
    total = np.zeros((80, 3))
    for j, (parents, table) in enumerate(density.conditional_tables(parameters)):
        index = tuple(codes[:, i].astype(int) - 1 for i in (*parents, j))
        total += table[(slice(None), *index)].T
        assert_allclose(np.exp(table).sum(axis=-1), 1.0)
    assert_allclose(total, log_density, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        po.NaiveBayes(),
        po.GaussianDiscriminant(),
        po.GaussianDiscriminant(pooling="pooled"),
        po.NaiveBayes(distributions="poisson"),
        po.TreeAugmentedNaiveBayes(bins=None),
        po.classifiers.ChowLiuClassifier(bins=None),
    ],
    ids=repr,
)
def test_a_described_mean_and_variance_are_those_of_samples(model):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    kind = rng.integers(0, 3, 400)
    first = rng.poisson(6 + 3 * kind + 2 * y)
    frame = pl.DataFrame({"n": first, "m": rng.poisson(3 + first), "k": rng.poisson(5 + y), "y": y})
    if isinstance(
        model, po.TreeAugmentedNaiveBayes | po.classifiers.ChowLiuClassifier
    ):  # roots and chains with a category above numbers
        frame = frame.with_columns(pl.Series("kind", np.array(list("abc"))[kind]), pl.Series("size", kind.astype(str)))
    model.fit(frame, "y")
    for block, parameters in zip(model.model_.blocks, model.model_.parameters, strict=True):
        if not isinstance(block.density, DescribedDensity):
            continue
        for z in range(2):
            drawn = block.density.sample(parameters, np.full(60_000, z), np.random.default_rng(1))
            for position, j in enumerate(block.columns):
                if model.schema_.columns[j].kind != "continuous":
                    assert block.density.describe(parameters, position) == {}
                    continue
                described = block.density.describe(parameters, position)
                sampled, sd = drawn[:, position], drawn[:, position].std()
                assert abs(described.get("mean", described.get("rate"))[z] - sampled.mean()) < 6 * sd / 60_000**0.5
                if "variance" in described:
                    assert_allclose(described["variance"][z], sd**2, rtol=0.05)


def test_covariances_are_those_of_the_described_variances():
    tile, given = numbers()
    for pooling in (Pooled(), MultivariateGaussian().pooling):
        density, parameters = estimated(MultivariateGaussian(pooling), tile, given)
        covariances = density.covariances(parameters)
        for position in range(3):
            assert_array_equal(
                np.broadcast_to(covariances[:, position, position], 3),
                density.describe(parameters, position)["variance"],
            )


@pytest.mark.parametrize("density", [Gaussian(), Poisson()], ids=repr)
def test_one_column_needs_no_independence(density):
    tile, given = numbers(d=1)
    _, parameters = estimated(density, tile, given)
    assert density.n_unrestricted(1) * 3 == density.n_parameters(parameters)


def test_moments_of_numbers_are_those_of_the_cells():
    tile, given = numbers()
    moments = Gaussian.sufficient_statistics.of(tile, given)
    for density, statistics in ((Gaussian(), moments), (MultivariateGaussian(), Scatter.of(tile, given))):
        positions, found = density.moments_of_numbers(statistics)
        assert positions == (0, 1, 2)
        assert_allclose(found.mean, moments.mean)
        assert_allclose(found.scatter, moments.scatter)


@pytest.mark.parametrize("pooling", ["pooled", "per_class"])
def test_the_density_of_one_column_treats_the_others_as_missing(pooling):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    X = rng.normal(size=(90, 4)) @ rng.normal(size=(4, 4)) + y[:, np.newaxis]
    model = po.GaussianDiscriminant(pooling=pooling).fit(X, y).model_
    density, parameters = model.blocks[0].density, model.parameters[0]
    rows = np.full((5, 4), np.nan)
    rows[:4, 2] = [-3.0, 0.0, 1.5, 1e3]
    found = density.log_density_of_column(parameters, 2, rows[:, 2])
    assert_allclose(found, density.log_density(parameters, Numbers(rows)), atol=1e-9)


def test_densities_that_need_no_capability_have_none():
    assert not any(isinstance(Binned(), protocol) for protocol in PROTOCOLS)
    assert isinstance(Missingness(), LinearDensity)
