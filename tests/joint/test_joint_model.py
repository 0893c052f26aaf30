"""A joint model: answers that agree with each other, with enumeration, and with drawn rows."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.datasets import load_penguins

PENGUINS = load_penguins()


@pytest.fixture(scope="module")
def model():
    return po.JointModel().fit(PENGUINS)


def test_conditionals_times_marginals_are_joints(model):
    both = model.probability({"species": "Gentoo", "sex": "male", "body_mass_g": (4000, 5000)})
    one = model.probability({"species": "Gentoo"})
    other = model.probability({"sex": "male", "body_mass_g": (4000, 5000)}, {"species": "Gentoo"})
    assert_allclose(both, one * other, rtol=1e-9)


def test_probabilities_of_all_categories_and_ranges_sum_to_one(model):
    given = {"island": {"Biscoe", "Dream"}, "flipper_length_mm": (None, 200)}
    assert_allclose(sum(model.probability({"species": s}, given) for s in model.categories("species")), 1.0, rtol=1e-9)
    low, high = (model.query(f"P(body_mass_g {sign} 4100 | sex = male)") for sign in ("<", ">="))
    assert_allclose(low + high, 1.0, rtol=1e-9)
    assert_allclose(
        model.probability({"species": po.Not("Gentoo")}, given), 1 - model.probability({"species": "Gentoo"}, given)
    )


def test_the_same_question_has_the_same_answer_in_every_notation(model):
    wanted = model.probability({"species": "Gentoo"}, {"bill_length_mm": (40, 45), "island": {"Biscoe", "Dream"}})
    for known in (
        "bill_length_mm in [40, 45], island in (Biscoe, Dream)",
        "island != Torgersen, bill_length_mm = 40..45",
        "'bill_length_mm' in [40, 45], island not in {Torgersen}",
    ):
        assert_allclose(model.query(f"P(species = Gentoo | {known})"), wanted, rtol=1e-9)
        assert_allclose(model.query(f"P(species | {known})")["Gentoo"], wanted, rtol=1e-9)


def test_a_density_agrees_with_probabilities_of_ranges(model):
    density = model.query("P(body_mass_g | species = Adelie)")
    wanted = model.probability({"body_mass_g": (3500, 4200)}, {"species": "Adelie"})
    assert_allclose(density.probability_between(3500, 4200), [wanted], rtol=1e-9)


def test_predictions_of_the_joint_model_do_not_read_the_target(model):
    swapped = PENGUINS.with_columns(species=pl.col("species").reverse())
    for rows in (swapped, PENGUINS.drop("species")):
        assert_array_equal(
            model.predict_proba(rows, "species", "joint"), model.predict_proba(PENGUINS, "species", "joint")
        )


def test_a_row_of_which_nothing_is_known_has_the_marginal(model):
    nothing = pl.DataFrame({name: pl.Series([None], dtype=kind) for name, kind in PENGUINS.schema.items()})
    found = model.predict_proba(nothing, "species", "joint")[0]
    wanted = [model.probability({"species": one}) for one in model.categories("species")]
    assert_allclose(found, wanted, rtol=1e-9)
    assert model.predict_density(nothing, "body_mass_g", "joint").mean == pytest.approx(
        PENGUINS["body_mass_g"].mean(), rel=0.02
    )


def test_drawn_rows_meet_what_is_given_and_keep_types(model):
    drawn = model.sample(400, {"species": po.Not("Adelie"), "body_mass_g": (4000, 4500), "sex": "female"}, 0)
    assert drawn.schema == PENGUINS.schema
    assert set(drawn["species"]) == {"Chinstrap", "Gentoo"}
    assert set(drawn["sex"]) == {"female"}
    assert drawn["body_mass_g"].is_between(4000, 4500).all()
    assert (drawn["body_mass_g"] % 25 == 0).all()
    given = {"body_mass_g": (4000, 4500), "sex": "female"}
    gentoo, others = (model.probability({"species": one}, given) for one in ("Gentoo", {"Gentoo", "Chinstrap"}))
    assert (drawn["species"] == "Gentoo").mean() == pytest.approx(gentoo / others, abs=0.1)


def test_a_cell_that_does_not_fit_is_the_strangest(model):
    rows = (
        PENGUINS.drop_nulls()
        .head(40)
        .with_columns(species=pl.when(pl.int_range(40) == 7).then(pl.lit("Gentoo")).otherwise(pl.col("species")))
    )
    scores = model.score_cells(rows)
    assert np.unravel_index(np.nanargmax(scores), scores.shape) == (7, rows.columns.index("species"))


def test_pools_answer_for_one_column_and_are_kept_in_files(model, tmp_path):
    rows = PENGUINS.head(60)
    species, mass = model.predict(rows, "species"), model.predict_density(rows, "body_mass_g")
    assert (species == rows["species"].to_numpy()).mean() > 0.95
    po.save(model, tmp_path / "joint.posteriori")
    loaded = po.load(tmp_path / "joint.posteriori")
    assert_array_equal(loaded.predict(rows, "species"), species)
    assert_array_equal(loaded.predict_density(rows, "body_mass_g").probability, mass.probability)
    assert_array_equal(loaded.score_samples(rows), model.score_samples(rows))
    with pytest.raises(ValueError, match="keeps no rows to fit a pool of 'sex'"):
        loaded.predict(rows, "sex")


def test_rows_are_added_and_subtracted():
    rows = PENGUINS.sample(fraction=1.0, shuffle=True, seed=0)
    first, more = rows.head(200), rows.tail(144)
    alone = po.JointModel(members=["tree"]).fit(first)
    updated = po.JointModel(members=["tree"]).fit(first).partial_fit(more)
    assert not np.allclose(updated.score_samples(more), alone.score_samples(more))
    assert_allclose(updated.unlearn(more).score_samples(more), alone.score_samples(more), rtol=1e-7)


def test_the_density_is_that_of_a_tree_of_one_class():
    learned = po.JointModel(members=["tree"]).fit(PENGUINS).fitted_.first.recipe.parameters["backoff"]
    tree = po.TreeAugmentedNaiveBayes(bins=8, penalty="aic", backoff=learned).fit(PENGUINS, np.zeros(len(PENGUINS)))
    joint = po.JointModel(members=["tree"]).fit(PENGUINS)
    within = sum(
        grid.log_within(PENGUINS[name].cast(pl.Float64).fill_null(np.nan).to_numpy())
        for name, grid in joint.fitted_.grids.items()
    )

    def of_bins(batch):
        block, parameters = tree.model_.blocks[1], tree.model_.parameters[1]
        return tree.model_.log_evidence(batch) - block.density.log_density(parameters, block.tile(batch))[:, 0]

    assert_allclose(joint.score_samples(PENGUINS) - within, tree._source(PENGUINS).map(of_bins), rtol=1e-5)


def test_the_density_of_numbers_integrates_to_one():
    rng = np.random.default_rng(0)
    values = np.where(rng.random(500) < 0.3, 0.0, rng.exponential(size=500))
    for column in (values, np.round(values * 20.0)):
        model = po.JointModel(members=["tree"]).fit(pl.DataFrame({"x": column, "y": rng.choice(["a", "b"], 500)}))
        density = model.query("P(x)")
        cells = density.cells
        alone = pl.DataFrame(
            {"x": cells.centre if not cells.step else cells.low, "y": pl.Series([None] * len(cells), dtype=pl.String)}
        )
        total = np.exp(model.score_samples(alone) + cells.log_size).sum()
        assert total == pytest.approx(1.0, rel=1e-9)
        assert_allclose(density.probability.sum(), 1.0, rtol=1e-9)
        assert model.probability({"x": (0, 0)}) == pytest.approx((column == 0).mean(), abs=0.03)
        drawn = model.sample(2000, random_state=0)["x"]
        assert (drawn == 0).mean() == pytest.approx((column == 0).mean(), abs=0.05)


def test_importance_is_mutual_information():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 3, 6000)
    b = np.where(rng.random(6000) < 0.8, a, rng.integers(0, 3, 6000))
    rows = pl.DataFrame({"a": a, "b": b, "c": rng.integers(0, 2, 6000)}).select(pl.all().cast(pl.String))
    found = po.JointModel().fit(rows).importance_
    share = np.histogram2d(a, b, bins=3)[0] / 6000
    one, other = share.sum(axis=1), share.sum(axis=0)
    wanted = (share * np.log(share / np.outer(one, other))).sum() / -(other * np.log(other)).sum()
    assert found.filter(pl.col("known") == "a")["b"][0] == pytest.approx(wanted, abs=0.01)
    assert found.filter(pl.col("known") == "a")["a"][0] == pytest.approx(1.0)
    assert found.filter(pl.col("known") == "c")["a"][0] == pytest.approx(0.0, abs=0.01)


def test_cells_that_contradict_each_other_have_answers():
    a = np.tile(["u", "v"], 200)
    rows = pl.DataFrame({"a": a, "b": a, "c": a, "d": np.random.default_rng(0).choice(["x", "y"], 400)})
    model = po.JointModel().fit(rows)
    odd = pl.DataFrame({"a": ["u"], "b": ["v"], "c": ["u"], "d": ["x"]})
    for name in rows.columns:
        assert_allclose(model.predict_proba(odd, name, "joint").sum(), 1.0)
    assert np.isfinite(model.score_samples(odd)).all()
    assert model.score_cells(odd)[0].argmax() in (0, 1, 2)
    assert model.query("P(a = u | b = u)") > 0.99


def test_columns_of_one_value_are_predicted_without_a_pool():
    rows = PENGUINS.head(60).with_columns(k=pl.lit(9.0), s=pl.lit("x"))
    model = po.JointModel().fit(rows)
    assert_array_equal(model.predict(rows, "k"), np.full(60, 9.0))
    assert_array_equal(model.predict(rows, "s"), np.full(60, "x"))
    assert model.impute(rows.with_columns(k=pl.lit(None, pl.Float64)), "pool")["k"].to_list() == [9.0] * 60


def test_pools_can_be_fitted_at_once_without_keeping_rows():
    model = po.JointModel(targets=["sex"], keep_rows=False, random_state=1).fit(PENGUINS)
    assert set(model.predict(PENGUINS.head(3), "sex")) <= {"female", "male"}
    with pytest.raises(ValueError, match="keeps no rows"):
        model.predict(PENGUINS.head(3), "island")
    with pytest.raises(ValueError, match="no column 'age'"):
        po.JointModel(targets=["age"]).fit(PENGUINS)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("species", "begin with P"),
        ("P(spezies)", "no column 'spezies'; did you mean 'species'"),
        ("P(species = Emperor)", "'species' is never 'Emperor'"),
        ("P(species | species = Gentoo)", "both asked for and given"),
        ("P(species, sex = male)", "state each of them, or none"),
        ("P(body_mass_g > heavy)", "'heavy' is no number"),
        ("P(species > 3)", "has no order"),
        ("P(sex | body_mass_g in [5000, 4000])", "exchange its ends"),
        ("P(sex | body_mass_g < 0)", "no cell of 'body_mass_g'"),
        ("P(sex | body_mass_g =)", "give a value"),
        ("P(sex | island", r"state the value of 'island'"),
        ("P(sex) x", "nothing may follow"),
    ],
)
def test_questions_that_cannot_be_read(model, question, message):
    with pytest.raises(ValueError, match=message):
        model.query(question)


def test_wrong_kinds_and_members_are_named(model):
    with pytest.raises(ValueError, match="predict_density"):
        model.predict_proba(PENGUINS, "body_mass_g")
    with pytest.raises(ValueError, match="predict_proba"):
        model.predict_density(PENGUINS, "species")
    with pytest.raises(ValueError, match="'forest' is no member"):
        po.JointModel(members=["forest"]).fit(PENGUINS)
