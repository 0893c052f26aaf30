"""Any column of a classifier given the others, against Schur complements, enumeration, quadrature and networks."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.joint.of_classifier import AskedModel

PENGUINS = load_penguins()
WHOLE = PENGUINS.drop_nulls()
NUMBERS = WHOLE.select("bill_length_mm", "bill_depth_mm", "flipper_length_mm", "species")


def _mixture_given(model, known, y=None):
    """Return shares, means and variances of the last column of numbers, by the classes of Gaussians."""
    given = np.array(known, float)
    shares, means, variances = [], [], []
    for z, prior in enumerate(np.exp(model.model_.log_prior)):
        parameters = model.model_.parameters[0]
        mean = parameters.mean[z]
        covariance = parameters.covariance[min(z, len(parameters.covariance) - 1)]
        gain = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
        means.append(mean[-1] + gain @ (given - mean[:-1]))
        variances.append(covariance[-1, -1] - gain @ covariance[:-1, -1])
        shares.append(prior * multivariate_normal(mean[:-1], covariance[:-1, :-1]).pdf(given))
    shares = np.array(shares) * (1.0 if y is None else np.arange(len(shares)) == y)
    return shares / shares.sum(), np.array(means), np.array(variances)


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("pooling", ["pooled", "per_class"])
def test_numbers_of_gaussians_are_mixtures_of_schur_complements(pooling, offset):
    rows = NUMBERS.with_columns(pl.col("bill_length_mm") + offset)
    model = po.GaussianDiscriminant(pooling=pooling, predictive=False).fit(rows, "species")
    for i in (0, 200, 300):
        known = rows.row(i)[:2]
        for y in (None, 1):
            shares, means, variances = _mixture_given(model, known, y)
            label = None if y is None else [model.classes_[y]]
            found = model.answer(rows[i : i + 1], "flipper_length_mm", label).density
            assert_allclose(found.mean[0], shares @ means, rtol=1e-4)
            for cut in found.cells.high[40:-40:40]:
                wanted = shares @ norm.cdf(cut + 0.5, means, np.sqrt(variances))  # of whole numbers
                assert_allclose(found.cdf(cut)[0], wanted, atol=2e-6 if offset else 1e-9)


@pytest.mark.parametrize(
    ("model", "tolerance"),
    [
        (po.GaussianDiscriminant(predictive=True), 2e-3),
        (po.NaiveBayes(), 1e-3),
        (po.NaiveBayes(em=po.EM(components_per_class=2), random_state=0), 1e-3),
        (po.GaussianDiscriminant(em=po.EM(components_per_class=2), random_state=0), 1e-3),
    ],
)
def test_numbers_agree_with_quadrature_of_the_joint_density(model, tolerance):
    model.fit(NUMBERS, "species")
    row = NUMBERS[100:101].drop("species")

    def density(value, power=0):
        full = row.with_columns(flipper_length_mm=pl.lit(float(value)))
        return value**power * float(np.exp(model.score_samples(full)[0]))

    mass, mean = (quad(density, 150, 260, args=(power,), limit=60, epsrel=1e-5)[0] for power in (0, 1))
    below = quad(density, 150, 195.5, limit=60, epsrel=1e-5)[0]
    found = model.answer(row, "flipper_length_mm").density
    assert_allclose(found.mean[0], mean / mass, rtol=tolerance)
    assert_allclose(found.cdf(195)[0], below / mass, atol=5 * tolerance)


def test_categories_of_several_parents_are_those_of_the_network():
    rows = WHOLE.select("island", "sex", "year", "species").with_columns(pl.col("year").cast(pl.String))
    model = po.KDependenceBayes(k=2).fit(rows, "species")
    net = model.to_network()
    found = model.answer(rows[:1], "sex").probability[0]
    known = {"island": rows["island"][0], "year": rows["year"][0]}
    for place, sex in enumerate(("female", "male")):
        assert_allclose(found[place], net.probability({"sex": sex}, known), rtol=1e-9)
        wanted = net.probability({"sex": sex}, {**known, "species": "Gentoo"})
        question = f"P(sex = {sex} | island = {known['island']}, year = {known['year']}, species = Gentoo)"
        assert_allclose(model.query(question), wanted, rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [po.NaiveBayes(), po.GaussianDiscriminant(), po.KDependenceBayes(), po.TreeAugmentedNaiveBayes(bins=5)],
)
def test_conditionals_times_marginals_are_the_same_joint(model):
    model.fit(PENGUINS, "species")
    for one, other in [
        ("species = Gentoo", "body_mass_g > 4500"),
        ("sex = male", "island = Dream"),
        ("sex = female", "body_mass_g in [3000, 4000]"),
    ]:
        forward = model.query(f"P({one} | {other})") * model.query(f"P({other})")
        backward = model.query(f"P({other} | {one})") * model.query(f"P({one})")
        assert_allclose(forward, backward, rtol=1e-9)
        assert_allclose(model.query(f"P({one}, {other})"), forward, rtol=1e-9)


def test_both_ways_to_ask_a_model_of_tables_agree():
    model = po.TreeAugmentedNaiveBayes(bins=5).fit(PENGUINS, "species")
    asked = AskedModel(model.fitted_)
    for question in (
        "P(sex = male | species = Gentoo, island = Biscoe)",
        "P(body_mass_g > 4000 | species = Adelie, flipper_length_mm = 190)",
        "P(species = Adelie | body_mass_g > 4000)",
    ):
        assert_allclose(asked.answer(question), model.query(question), rtol=1e-9)


def test_missing_cells_are_summed_out_and_the_target_is_not_read():
    model = po.GaussianDiscriminant().fit(PENGUINS, "species")
    rows = PENGUINS.head(5)
    changed = rows.with_columns(sex=pl.lit("male"))
    assert_allclose(model.answer(rows, "sex").probability, model.answer(changed, "sex").probability, rtol=1e-12)
    prior = model.answer(PENGUINS.clear(1), "sex").probability
    assert_allclose(prior[0], [model.query("P(sex = female)"), model.query("P(sex = male)")], rtol=1e-9)
    assert_allclose(prior.sum(axis=1), 1.0)


def test_a_mixture_answers_too():
    model = po.MixtureModel(3, random_state=0).fit(WHOLE.drop("species"))
    row = WHOLE.drop("species").clear(1).with_columns(flipper_length_mm=pl.Series([230]))
    shares = np.array(list(model.query("P(component | flipper_length_mm = 230)").values()))
    assert_allclose(shares, model.predict_proba(row)[0], rtol=1e-9)
    of_component = [model.query(f"P(sex = male | component = {z})") for z in range(3)]
    assert_allclose(model.query("P(sex = male | flipper_length_mm = 230)"), shares @ of_component, rtol=1e-9)
    assert_allclose(model.answer(row, "sex").probability[0, 1], shares @ of_component, rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "question", "said"),
    [
        (po.GaussianDiscriminant(), "P(sex | bill_depth_mm > 15, body_mass_g > 4000)", "a single value of it"),
        (po.GaussianDiscriminant(), "P(body_mass_g | bill_depth_mm > 15)", "a single value of it"),
        (po.NaiveBayes(), "P(bill_depth_mm = 18)", "no single number of 'bill_depth_mm' has a probability"),
        (po.NaiveBayes(), "P(weight)", "there is no column 'weight'"),
        (po.NaiveBayes(feature_weights="conditional"), "P(sex)", "which is no joint distribution; fit a JointModel"),
        (po.NaiveBayes(alpha=0), "P(sex | species = Gentoo, island = Dream)", "what is known is impossible"),
    ],
)
def test_what_cannot_be_answered_is_said(model, question, said):
    with pytest.raises(ValueError, match=said):
        model.fit(WHOLE.drop("year"), "species").query(question)


def test_conditional_names_what_it_does_not_know():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    assert_array_equal(model.answer(PENGUINS, "species").probability, model.predict_proba(PENGUINS))
    with pytest.raises(ValueError, match="name the feature to be answered about"):
        model.answer(PENGUINS, y=["Adelie"])
    with pytest.raises(ValueError, match="there is no column 'beak'"):
        model.answer(PENGUINS, "beak")
    with pytest.raises(ValueError, match="y holds 1 labels, and X 344 rows"):
        model.answer(PENGUINS, "sex", ["Adelie"])


def test_a_column_that_is_not_named_is_unknown_and_not_missing():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    x = np.where(rng.random(300) < np.where(y == 1, 0.6, 0.1), np.nan, rng.normal(size=300))
    rows = pl.DataFrame({"x": x, "g": np.array(["u", "v"])[rng.integers(0, 2, 300)], "y": np.array(["a", "b"])[y]})
    model = po.NaiveBayes(missing="informative").fit(rows.with_columns(pl.col("x").fill_nan(None)), "y")
    prior = model.query("P(y)")
    assert_allclose(list(prior.values()), model.class_prior_, rtol=1e-9)
    by_law = sum(model.query(f"P(g = u | y = {label})") * share for label, share in prior.items())
    assert_allclose(model.query("P(g = u)"), by_law, rtol=1e-9)


@pytest.mark.parametrize("offset", [0.0, 1e9])
@pytest.mark.parametrize("bins", [2, 6])
def test_numbers_in_bins_have_the_models_density_within_them(bins, offset):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 400)
    rows = pl.DataFrame({"x": offset + rng.gamma(2.0, size=400) + y, "z": y + rng.normal(size=400), "y": y})
    model = po.TreeAugmentedNaiveBayes(bins=bins).fit(rows, "y")
    low, high = rows["x"].min(), rows["x"].max()
    grid = np.linspace(low, high, 8001)
    density = np.exp(model.score_samples(pl.DataFrame({"x": grid, "z": np.full(8001, 0.5)})))
    density /= density.sum()
    found = model.answer([{"z": 0.5}], "x").density
    spread = np.sqrt(density @ (grid - density @ grid) ** 2)
    assert abs(found.mean[0] - density @ grid) < 0.05 * spread
    for cut in np.quantile(rows["x"], [0.05, 0.3, 0.7, 0.95]):
        assert_allclose(found.cdf(cut)[0], density[grid <= cut].sum(), atol=0.03)


@pytest.mark.parametrize("bins", [(2.2, 2.8), (-5.0, 3.0), (3.0, 50.0)])
def test_bins_without_training_rows_have_numbers_too(bins):
    rows = pl.DataFrame({"k": [0, 1, 2, 3, 4, 5] * 10, "y": ["a", "b", "b"] * 20})
    model = po.NaiveBayes(distributions={"k": po.Binned(bins)}).fit(rows, "y")
    assert_allclose(model.query("P(k < 2.5)") + model.query("P(k >= 2.5)"), 1.0, rtol=1e-9)
    cells = model.query("P(k | y = a)")
    assert_allclose(cells.probability.sum(), 1.0, rtol=1e-9)


def test_numeric_classes_and_categories_are_named_as_written():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"x": rng.normal(size=60), "b": rng.random(60) > 0.5})
    model = po.NaiveBayes().fit(table, np.where(table["x"].to_numpy() > 0, 1.0, 0.0))
    name = model.query("P(y = 1 | x > 0.5)")
    assert name == model.query("P(y = 1.0 | x > 0.5)") > 0.9
    assert model.query("P(b = true)") == model.query("P(b = True)")


def test_a_model_that_was_made_of_parameters_answers_by_them():
    model = po.NaiveBayes.from_parameters(
        priors={"a": 0.25, "b": 0.75},
        gaussian={"x": {"mean": [0.1, 2], "sd": [1, 1 / 3]}},
        categorical={"s": {"u": [0.5, 1], "v": [0.5, 0]}},
    )
    assert_allclose(model.query("P(s = u | y = a)"), 0.5)
    assert_allclose(model.query("P(s = u)"), 0.25 * 0.5 + 0.75)
    assert_allclose(model.query("P(x > 1)"), 0.25 * norm.sf(0.9) + 0.75 * norm.sf(-3), atol=2e-3)
    assert_allclose(model.query("P(x | s = v)").mean, [0.1], atol=0.02)
