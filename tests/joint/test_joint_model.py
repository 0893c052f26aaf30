"""A joint model: answers that agree with each other, with enumeration, and with drawn rows."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.joint import answers
from posteriori.joint.answers import log_probability

PENGUINS = load_penguins()


@pytest.fixture(scope="module")
def model():
    return po.JointModel().fit(PENGUINS)


def test_conditionals_times_marginals_are_joints(model):
    both = of_law(model, {"species": "Gentoo", "sex": "male", "body_mass_g": (4000, 5000)}, {})
    one = of_law(model, {"species": "Gentoo"}, {})
    other = of_law(model, {"sex": "male", "body_mass_g": (4000, 5000)}, {"species": "Gentoo"})
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
    law = model._value.law
    wanted = [np.exp(log_probability(law, {"species": one})) for one in model.categories("species")]
    assert_allclose(found, wanted, rtol=1e-9)
    counted = [model.probability({"species": one}) for one in model.categories("species")]
    assert_allclose(found, counted, atol=0.02)
    assert model.predict_density(nothing, "body_mass_g", "joint").mean == pytest.approx(
        PENGUINS["body_mass_g"].mean(), rel=0.02
    )


def of_law(model, event, given):
    """Return p(event | given) of the law alone, from which rows are drawn: no training rows count."""
    return answers.probability(replace(model._value.law, counted=None), event, given)


def test_drawn_rows_meet_what_is_given_and_keep_types(model):
    drawn = model.sample(400, {"species": po.Not("Adelie"), "body_mass_g": (4000, 4500), "sex": "female"}, 0)
    assert drawn.schema == PENGUINS.schema
    assert set(drawn["species"]) == {"Chinstrap", "Gentoo"}
    assert set(drawn["sex"]) == {"female"}
    assert drawn["body_mass_g"].is_between(4000, 4500).all()
    assert (drawn["body_mass_g"] % 25 == 0).all()
    given = {"body_mass_g": (4000, 4500), "sex": "female"}
    gentoo, others = (of_law(model, {"species": one}, given) for one in ("Gentoo", {"Gentoo", "Chinstrap"}))
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
    with pytest.raises(ValueError, match="holds a joint model"):
        po.scoring.load_scorer(tmp_path / "joint.posteriori")


def test_rows_are_added_and_subtracted():
    rows = PENGUINS.sample(fraction=1.0, shuffle=True, seed=0)
    first, more = rows.head(200), rows.tail(144)
    alone = po.JointModel(members=["tree"]).fit(first)
    updated = po.JointModel(members=["tree"]).fit(first).partial_fit(more)
    assert not np.allclose(updated.score_samples(more), alone.score_samples(more))
    assert_allclose(updated.unlearn(more).score_samples(more), alone.score_samples(more), rtol=1e-7)


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


def _small_table(step):
    """Return a table with whole numbers, or with decimals of which 0 is frequent."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["x", "y", "z"], 300, p=[0.5, 0.3, 0.2])
    size = np.where(kind == "x", rng.integers(0, 5, 300), rng.integers(3, 9, 300))
    if not step:
        size = np.where(size == 3, 0.0, size + rng.normal(size=300))
    return pl.DataFrame({"kind": kind, "size": size})


@pytest.fixture(scope="module")
def small():
    return {step: po.JointModel(members=["tree"], bins=5).fit(_small_table(step)) for step in (0, 1)}


FINDINGS = [
    {3.0, 7.0},
    po.Not((3, 5)),
    po.Not(4),
    po.Not({2, 5}),
    po.Not((None, 2)),
    po.Not(po.Not((2, 3))),
    {1, (3, 4)},
    (2.3, 5.6),
]


@pytest.mark.parametrize("finding", FINDINGS, ids=str)
@pytest.mark.parametrize("step", [0, 1])
def test_drawn_numbers_meet_findings_that_cut_bins(small, step, finding):
    def holds(numbers, one):
        if isinstance(one, po.Not):
            return ~holds(numbers, one.finding)
        if isinstance(one, set):
            return np.logical_or.reduce([holds(numbers, each) for each in one])
        low, high = one if isinstance(one, tuple) else (one, one)
        return (numbers >= (-np.inf if low is None else low)) & (numbers <= (np.inf if high is None else high))

    drawn = small[step].sample(4000, {"size": finding}, random_state=0)
    assert holds(drawn["size"].to_numpy(), finding).all()
    for kind in "xyz":
        wanted = of_law(small[step], {"kind": kind}, {"size": finding})
        assert abs((drawn["kind"] == kind).mean() - wanted) < 0.04


@pytest.mark.parametrize("step", [0, 1])
def test_a_finding_and_its_complement_sum_to_one(small, step):
    points = [2, 0.0] if step else [0.0]
    for finding in [*points, (2.3, 5.6), (None, 3.4), {0.0, (3, 4)}]:
        both = small[step].probability({"size": finding}) + small[step].probability({"size": po.Not(finding)})
        assert_allclose(both, 1.0, rtol=1e-12)


@pytest.mark.parametrize("end", [-1, 0, 3.0, 3.4, 3.5, 3.7])
@pytest.mark.parametrize("step", [0, 1])
def test_strict_inequalities_leave_out_the_end_alone(small, step, end):
    less, more, at_most, at_least = (small[step].query(f"P(size {s} {end})") for s in ("<", ">", "<=", ">="))
    assert_allclose([less + at_least, at_most + more], 1.0, rtol=1e-12)
    has_point = end == 0 or (step and end == 3)
    assert_allclose(at_most - less, small[step].query(f"P(size = {end})") if has_point else 0.0, atol=1e-12)


def test_one_number_of_many_tells_nothing_when_it_is_left_out(small):
    alone, given = (small[0].query(f"P(kind{known})") for known in ("", " | size != 2.5"))
    assert_allclose(list(given.values()), list(alone.values()), rtol=1e-12)
    assert_allclose(small[0].probability({"size": po.Not(2.5)}), 1.0, rtol=1e-12)
    with pytest.raises(ValueError, match="no single number of 'size' has a probability"):
        small[0].probability({"size": {2.5, 3.25}})


@pytest.mark.parametrize("step", [0, 1])
def test_numbers_beyond_all_cells_are_as_rare_as_the_rarest(small, step):
    rows = pl.DataFrame({"kind": ["x"] * 4, "size": [0.0, 3.0, -1e5, 1e5]})
    scores = small[step].score_samples(rows)
    assert np.isfinite(scores).all()
    assert scores[2:].max() < scores[:2].min() - 1


@pytest.mark.parametrize("seed", range(5))
def test_the_density_is_finite_at_cut_points(seed):
    table = pl.DataFrame({"x": np.random.default_rng(seed).normal(size=60)})
    model = po.JointModel(members=["tree"]).fit(table)
    assert np.isfinite(model.score_samples(pl.DataFrame({"x": model.schema_.columns[0].cuts}))).all()


def test_rows_of_no_weight_count_as_absent():
    table = _small_table(0).with_columns(size=pl.col("size").round(1) + pl.int_range(300) % 2 * 0.05)
    weighted = po.JointModel(members=["tree"]).fit(table, sample_weight=np.arange(300) % 2 == 0)
    assert_allclose(
        weighted.score_samples(table), po.JointModel(members=["tree"]).fit(table[::2]).score_samples(table), rtol=1e-9
    )


def test_all_other_columns_of_a_full_row_are_none(small):
    with pytest.raises(ValueError, match="states every column"):
        small[1].query("P(* | kind = x, size = 3)")


@pytest.mark.parametrize("step", [0, 1])
def test_the_impossible_has_probability_0_and_is_no_evidence(small, step):
    for event in ({"size": (1e6, None)}, {"kind": po.Not({"x", "y", "z"})}):
        assert small[step].probability(event, {"kind": "x"} if "size" in event else None) == 0.0
    with pytest.raises(ValueError, match="no cell of 'size' can be above 1000000"):
        small[step].query("P(kind | size > 1e6)")


@pytest.mark.filterwarnings("ignore:column 'none' has no cell with a value")
@pytest.mark.parametrize("empty", [pl.String, pl.Float64, pl.Boolean])
def test_a_column_without_values_leaves_the_others_as_they_are(empty):
    table = _small_table(1)
    alone, model = (
        po.JointModel(members=["tree"]).fit(one) for one in (table, table.with_columns(none=pl.lit(None, empty)))
    )
    assert_allclose(*(one.query("P(kind = x | size > 3)") for one in (model, alone)), rtol=1e-9)
    assert np.isfinite(model.score_samples(table.with_columns(none=pl.lit(None, empty)))).all()
    drawn = model.sample(5, {"size": {3, 4}}, random_state=0)
    assert drawn["none"].null_count() == 5


@pytest.mark.parametrize(("value", "decimals"), [(3, 0), (1000, 0), (2.5, 1)])
def test_a_constant_column_keeps_its_decimals(value, decimals):
    model = po.JointModel().fit(pl.DataFrame({"kind": ["a", "b"] * 30, "same": [value] * 60}))
    drawn = model.sample(500, random_state=0)["same"].to_numpy()
    assert_allclose(drawn, drawn.round(decimals), rtol=1e-12)
    assert np.mean(drawn == value) > 0.8
    assert model.predict({"kind": "a"}, "same", method="joint").round(decimals).tolist() == [value]


def test_weights_of_members_are_learned_of_heavy_rows():
    heavy = np.full(len(PENGUINS), 1000.0)  # tables of so many rows hold zeros, and held-out rows contradict them
    with np.errstate(invalid="raise"):
        weights = po.JointModel().fit(PENGUINS, sample_weight=heavy).member_weights_
    assert weights["trees"] != 0.5


def test_a_column_of_numbers_can_lose_its_last_value(tmp_path):
    without = pl.DataFrame({"a": ["p", "q"] * 10, "z": pl.Series([None] * 20, dtype=pl.Float64)})
    gone = pl.DataFrame({"a": ["p", "q"] * 3, "z": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]})
    model = po.JointModel().fit(pl.concat([without, gone]))
    with pytest.warns(UserWarning, match="'z' has no cell with a value"):
        model = model.unlearn(gone)
    assert_allclose(model.query("P(a = p)"), 0.5, atol=1e-6)
    po.save(model, tmp_path / "m.posteriori")
    assert model.partial_fit(gone).query("P(z < 3.5)") > 0.3


def test_categories_that_look_like_numbers_are_asked_in_sets():
    model = po.JointModel().fit(pl.DataFrame({"zip": ["007", "1e3", "10115"] * 20}))
    assert_allclose(model.query("P(zip in (007, 1e3))"), 2 / 3, atol=1e-3)
