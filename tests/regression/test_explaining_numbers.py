"""Explanations, effects and importance of a pool of regressions: sums that are exact, and what they must be 0 for."""

import functools

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.model.predictive import PredictiveDensity
from posteriori.regression.explanation import orders_of, parts_of
from posteriori.regression.importance import importance_of, most_rows
from posteriori.tables.batch import joined


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    size, noise = rng.normal(size=(2, n))
    kind = rng.choice(["a", "b", "c"], n)
    y = 3 * size + 2 * (kind == "b") + 0.5 * size * (kind == "c") + 0.3 * rng.normal(size=n)
    columns = {"size": size, "kind": kind, "noise": noise, "same": np.ones(n), "y": y}
    return pl.DataFrame(columns)


@functools.cache
def fitted(members="auto"):
    return po.GenerativeRegressor(members=members if members == "auto" else [members]).fit(table(), "y")


def rows(model, X):
    return joined(list(model._source(X).stream(lambda batch: batch, "reading")))


@pytest.mark.filterwarnings("ignore:column 'same'")
@pytest.mark.parametrize("members", ["auto", "additive", "kernel", "forest"])
def test_parts_add_up_to_the_mean(members):
    model, X = fitted(members), table(40, seed=1)
    found = model.explain(X)
    assert len(found) == 40
    assert_allclose(found.base + found.parts.sum(axis=1), model.predict(X), rtol=1e-9)
    assert_allclose(found.mean, model.predict(X), rtol=1e-12)
    low, high = model.predict_interval(X).T
    assert_allclose(found.width, high - low)
    nothing = table(1).select(pl.lit(None, pl.Float64).alias("size"), pl.lit(None, pl.String).alias("kind"), "noise")
    nothing = nothing.with_columns(noise=pl.lit(None, pl.Float64), same=pl.lit(None, pl.Float64))
    assert_allclose(found.base, model.predict(nothing)[0], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:column 'same'")
def test_the_sums_of_a_row_share_one_prediction():
    model, X, sizes = fitted(), table(40, seed=1), []
    value = model.fitted_

    def predict(batch):
        sizes.append(len(batch))
        return value.answer(batch).density

    alone = parts_of(predict, rows(model, X[:1]))
    (n_sets,) = sizes
    assert n_sets > 1
    several = parts_of(predict, rows(model, X))
    assert sum(sizes[1:]) == 40 * n_sets
    for name in ("parts", "mean", "width", "width_changes"):
        assert_allclose(getattr(several, name)[:1], getattr(alone, name), rtol=1e-12, atol=1e-12)


def test_a_missing_cell_has_no_part_and_noise_hardly_any():
    model, X = fitted(), table(40, seed=1)
    place = {name: k for k, name in enumerate(model.explain(X).feature_names)}
    some = X.with_columns(kind=X["kind"].scatter(list(range(20)), None))
    found = model.explain(some)
    assert (found.parts[:20, place["kind"]] == 0).all()
    assert (found.width_changes[:20, place["kind"]] == 0).all()
    assert np.abs(found.parts[20:, place["kind"]]).min() > 0
    moved = np.abs(found.parts).mean(axis=0)
    assert moved[place["noise"]] < 0.05 * moved[place["size"]]
    assert moved[place["kind"]] > 3 * moved[place["noise"]]
    assert "same" not in place or moved[place["same"]] < 1e-9
    assert "1 column not known" in found.sum_table(0)


def test_parts_of_two_columns_are_the_shapley_values():
    X = table().select("size", "kind", "y")
    model = po.GenerativeRegressor(members=["forest"]).fit(X, "y")
    some = X.head(20)
    parts = model.explain(some).parts
    without = {
        name: model.predict(some.with_columns(pl.lit(None, X.schema[name]).alias(name))) for name in ("size", "kind")
    }
    whole, base = model.predict(some), model.explain(some).base
    assert_allclose(parts[:, 0], 0.5 * (without["kind"] - base + whole - without["size"]), atol=1e-12)
    assert_allclose(parts[:, 1], 0.5 * (without["size"] - base + whole - without["kind"]), atol=1e-12)


def test_units_of_y_scale_the_parts():
    X = table()
    plain = fitted("additive").explain(X.head(30))
    larger = po.GenerativeRegressor(members=["additive"]).fit(X.with_columns(y=1000 * X["y"]), "y").explain(X.head(30))
    assert_allclose(larger.parts, 1000 * plain.parts, atol=1000 * 0.02)
    assert_allclose(larger.width_changes, 1000 * plain.width_changes, atol=1000 * 0.2)


def test_three_columns_take_all_orders_whatever_their_own():
    model = po.GenerativeRegressor(members=["forest"]).fit(table().drop("same"), "y")
    schema = model.schema_
    assert len(orders_of(schema)) == 6
    assert all(sorted(order) == [0, 1, 2] for order in orders_of(schema))


def test_the_sums_as_a_table_and_as_html():
    found = fitted().explain(table(7, seed=2))
    lines = found.to_polars()
    assert lines.columns == ["row", "column", "value", "part", "width_change"]
    totals = lines.group_by("row", maintain_order=True).agg(pl.col("part").sum())["part"].to_numpy()
    assert_allclose(totals, found.mean)
    assert repr(found).startswith("<NumberExplanation: 7 rows, ")
    assert found._repr_html_().count("<table") == 5
    assert "… and 2 more rows" in found._repr_html_()


def test_a_hostile_name_is_text():
    X = table().rename({"kind": "<script>"})
    model = po.GenerativeRegressor(members=["additive"]).fit(X, "y")
    assert "<script>" not in model.explain(X.head(1))._repr_html_()


# Effects -------------------------------------------------------------------------------------------------------


def test_effects_are_differences_of_the_location():
    model = fitted("additive")
    members, effects = model.fitted_.members, model.effects()
    assert {*effects} == {"size", "kind", "noise"}
    X = table(1, seed=3)
    for name, effect in effects.items():
        changed = pl.concat([X] * len(effect.cells)).with_columns(pl.Series(name, effect.cells.tolist()))
        location = members.located(rows(model, changed))[0][:, 0]
        assert_allclose(np.diff(location), np.diff(effect.effect), atol=1e-9)


def test_effects_add_up_to_the_location():
    model, X = fitted("additive"), table(1, seed=4)
    members, effects = model.fitted_.members, model.effects()
    x = X.with_columns(size=effects["size"].cells[7], noise=effects["noise"].cells[11], kind=pl.lit("b"))
    at = {"size": 7, "noise": 11, "kind": effects["kind"].cells.tolist().index("b")}
    total = sum(effects[name].effect[k] for name, k in at.items()) + members.squares[0].target_mean[0]
    assert_allclose(members.located(rows(model, x))[0][0, 0], total, rtol=1e-9)


def test_a_pool_without_an_additive_member_has_no_effects():
    with pytest.raises(ValueError, match=r'the members are forest, .*name "additive" in members'):
        fitted("forest").effects()


# Importance ----------------------------------------------------------------------------------------------------


def test_importance_is_how_the_score_rises_without_the_column():
    model, X = fitted(), table(80, seed=5)
    value, y, weight = model.fitted_, X["y"].to_numpy(), np.arange(1.0, 81.0)

    def predict(batch):
        return PredictiveDensity(value.members.cells, value.probability(batch))

    found = importance_of(predict, rows(model, X), y, weight, n_trained=267.0)
    share = weight / weight.sum()
    without = model.predict_density(X.with_columns(size=pl.lit(None, pl.Float64))).crps(y)
    added = without - model.predict_density(X).crps(y)
    j = found.names.index("size")
    assert_allclose(found.increase[j], share @ added)
    assert_allclose(found.crps, share @ model.predict_density(X).crps(y))
    assert found.order[0] == j
    assert abs(found.increase[found.names.index("noise")]) < 0.1 * found.increase[j]
    assert found.standard_error[j] > 0
    assert repr(found).splitlines()[0].endswith("without each column (80 held-out rows)")
    found.check_against(len(found.names))


@pytest.mark.filterwarnings("ignore:column 'same'")
def test_columns_are_measured_together_as_one_by_one(monkeypatch):
    model = po.GenerativeRegressor().fit(table().with_columns(gaps=pl.Series([None, 1.0, 2.0] * 100)), "y")
    held_out = model.fitted_.held_out
    together = held_out.importance()
    monkeypatch.setattr("posteriori.regression.explanation._AT_ONCE", 1)
    one_by_one = held_out.importance()
    assert_allclose(together.increase, one_by_one.increase, rtol=1e-9, atol=1e-12)
    assert_allclose(together.standard_error, one_by_one.standard_error, rtol=1e-9, atol=1e-12)


def test_wide_tables_are_measured_on_few_rows():
    assert all(most_rows(n) * n <= 5000 for n in (5, 12, 41, 50))
    assert most_rows(3) == 1000


@pytest.mark.filterwarnings("ignore:column 'same'")
def test_importance_is_of_held_out_rows_and_saved(tmp_path, monkeypatch):
    model = po.GenerativeRegressor().fit(table(), "y")
    found = model.importance_
    assert found.held_out
    assert found.n_rows == 300
    assert [found.names[j] for j in found.order][:2] == ["size", "kind"]
    place = {name: j for j, name in enumerate(found.names)}
    assert abs(found.increase[place["noise"]]) < max(3 * found.standard_error[place["noise"]], 0.02)
    assert found.increase[place["same"]] == 0
    # By models that have learned from the rows, the score of all columns is better.
    assert found.crps == pytest.approx(model.cv_results_["crps"][-1], rel=0.05)
    assert model.importance_ is found
    assert_allclose(model.feature_importances_, found.increase)
    po.save(model, tmp_path / "y.posteriori")
    kept = po.load(tmp_path / "y.posteriori").importance_
    assert_array_equal(kept.increase, found.increase)
    assert_array_equal(kept.standard_error, found.standard_error)
    assert kept.n_rows == found.n_rows
    # Where the members without the folds would be large, it is measured at once, with the same result.
    monkeypatch.setattr("posteriori.regression.importance.MOST_KEPT", 0)
    at_once = po.GenerativeRegressor().fit(table(), "y")
    assert at_once.fitted_.held_out is None
    assert_array_equal(at_once.importance_.increase, found.increase)


def test_no_held_out_row_is_judged_by_a_model_that_saw_it():
    rng = np.random.default_rng(0)
    X = pl.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "y": rng.normal(size=200)})
    found = po.GenerativeRegressor().fit(X, "y").importance_
    assert (found.increase < 3 * found.standard_error + 0.02).all()


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("predict_proba", "predict_density"),
        ("predict_log_proba", "predict_density"),
        ("sample", r"predict_density\(X\)\.sample"),
        ("summary", "posteriori show"),
        ("impute", "po.learn_network"),
        ("save", "po.save"),
    ],
)
@pytest.mark.parametrize("kind", [po.GenerativeRegressor, po.AdditiveRegressor, po.KernelRegressor])
def test_methods_of_classifiers_say_where_it_is(kind, name, advice):
    with pytest.raises(AttributeError, match=rf"^{kind.__name__} has no method '{name}'; .*{advice}"):
        getattr(kind(), name)


def test_methods_of_sums_and_of_the_pool_name_their_models():
    for kind, where in ((po.GenerativeRegressor, "its additive_member"), (po.KernelRegressor, "AdditiveRegressor has")):
        with pytest.raises(AttributeError, match=where):
            _ = kind().to_sql
    for name in ("partial_fit", "unlearn"):
        with pytest.raises(AttributeError, match="AdditiveRegressor and KernelRegressor learn"):
            getattr(po.GenerativeRegressor(), name)
    with pytest.raises(AttributeError, match="GenerativeRegressor has log p"):
        _ = po.AdditiveRegressor().score_samples
