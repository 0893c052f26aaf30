"""Joint models in JavaScript: every marginal, density and probability is that of Python."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.javascript import joint as written
from posteriori.javascript import to_javascript
from posteriori.joint import answers as of_law
from posteriori.joint.counting import Probability
from posteriori.joint.findings import likelihoods_of
from posteriori.joint.trees import PARTS
from tests.javascript.engines import in_node

SCRIPT = """
const result = given.map(({ file, cases }) => {
  const model = load(file);
  return cases.map((known) => {
    const { logEvidence, marginals } = model.query(known);
    const of = (one) => [one.mean, one.sd, ...one.interval(0.8)];
    const found = Object.entries(model.marginals(known));
    const shown = found.map(([name, one]) => [name, model.byName.get(name).cells ? of(one) : Array.from(one)]);
    const rows = model.columns.map(({ name }) => [name, model.rowsGiven(known, [name])]);
    return {
      logEvidence,
      marginals: marginals.map((p) => Array.from(p)),
      answers: Object.fromEntries(shown),
      rows: Object.fromEntries(rows),
    };
  });
});
"""


def odd_table(n=600):
    """Return columns of every kind of grid: atoms, gaps, steps, large offsets; and odd categories and names."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    return pl.DataFrame(
        {
            "<script>alert(1)</script>": np.array(["<b>", 'say "hi"', "R&D"])[group],
            "amount": np.where(rng.random(n) < 0.3, 0.0, rng.lognormal(group, 1.0)),
            "whole": rng.poisson(3 * group + 1),
            "tenths": np.round(rng.normal(group, 1.0), 1),
            "far": 1e9 + rng.normal(5 * group),
            "flag": rng.random(n) < 0.2 + 0.3 * group,
            "many": [f"c{k}" for k in rng.integers(0, 25, n)],
            "constant": ["x"] * n,
            "constant number": np.full(n, 2.5),
        }
    )


def table_with_gaps(n=1200):
    """Return columns with more gaps than are filled in, which depend on other columns."""
    rng = np.random.default_rng(1)
    table = odd_table(n).select("amount", "whole", "flag", "many")
    lacks = [rng.random(n) < 0.2 + 0.5 * table["flag"].to_numpy() for _ in range(3)]
    gaps = zip(("amount", "whole", "many"), lacks, strict=True)
    return table.with_columns(pl.when(~pl.Series(one)).then(name).alias(name) for name, one in gaps)


ODD = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def models():
    odd, penguins = odd_table(), load_penguins()
    number = float(odd["far"][3])
    return [
        (
            po.JointModel().fit(penguins),
            [
                {},
                {"species": ["Adelie", "Gentoo"]},
                {"island": ["Biscoe"], "bill_length_mm": [40, 47.3], "sex": ["male"]},
                {"body_mass_g": [None, 4000], "flipper_length_mm": [200, None], "species": ["Chinstrap"]},
                {"body_mass_g": 3800, "bill_depth_mm": 18.1},
            ],
        ),
        (
            po.JointModel(bins=12).fit(odd),
            [
                {ODD: ["<b>", "R&D"], "amount": [0, 0]},
                {"amount": [0.5, 3], "whole": [2, 5], "flag": [True]},
                {"amount": 1.25, "far": number},
                {"far": [1e9 + 2, None], "tenths": [-0.35, 0.75], "many": [f"c{k}" for k in range(7)]},
                {"tenths": 0.3, "whole": 4, "constant": ["x"], "constant number": [2, 3]},
            ],
        ),
        (po.JointModel(members=["tree"]).fit(odd.select("amount")), [{}, {"amount": [1, 2]}]),
        (po.JointModel().fit(odd.select(ODD)), [{}, {ODD: ["R&D"]}]),
        (
            po.JointModel().fit(table_with_gaps()),
            [{}, {"flag": [True]}, {"whole": [2, 7], "flag": [False]}, {"amount": [0, 0], "whole": 4}],
        ),
    ]


def of_python(case, law):
    """Return findings as Python takes them."""
    return {
        name: (tuple(one) if law.place(name) in law.grids else set(one)) if isinstance(one, list) else one
        for name, one in case.items()
    }


def distribution_of(model, given, name):
    """Return the distribution of a column as a query has it, by the counted rows and the law."""
    law = model._value.law
    marginal = law.believe(likelihoods_of(law, given)).marginals()[law.place(name)]
    return of_law._distribution(law, law.place(name), marginal, given)


def within(model, given, name):
    """Return the shares of the categories of a column, given itself and others."""
    others = {one: finding for one, finding in given.items() if one != name}
    each = distribution_of(model, others, name)
    known = {one: p if one in given[name] else 0.0 for one, p in each.items()}
    return [p / sum(known.values()) for p in known.values()]


@pytest.fixture(scope="module")
def answers(models, tmp_path_factory):
    given = [{"file": to_javascript(model), "cases": cases} for model, cases in models]
    return in_node(SCRIPT, given, tmp_path_factory.mktemp("node"))


def test_every_marginal_and_the_evidence_are_those_of_python(models, answers):
    for (model, cases), found in zip(models, answers, strict=True):
        law = model._value.law
        for case, result in zip(cases, found, strict=True):
            beliefs = law.believe(likelihoods_of(law, of_python(case, law)))
            assert_allclose(result["logEvidence"], beliefs.log_evidence[0], rtol=0, atol=1e-9)
            marginals = beliefs.marginals()
            for j, given in zip(law.columns, result["marginals"], strict=True):
                assert_allclose(given, marginals[j][0], rtol=0, atol=1e-9)


def test_every_answer_by_counted_rows_is_that_of_python(models, answers):
    for (model, cases), found in zip(models, answers, strict=True):
        law = model._value.law
        for case, result in zip(cases, found, strict=True):
            given = of_python(case, law)
            for j, name in zip(law.columns, law.names, strict=True):
                assert result["rows"][name] == pytest.approx(law.counts(given, {j: None}).rows, abs=1e-9)
                if j not in law.grids:
                    wanted = (
                        within(model, given, name) if name in case else distribution_of(model, given, name).values()
                    )
                    assert_allclose(result["answers"][name], list(wanted), rtol=0, atol=1e-9)
                elif name not in case:
                    density = distribution_of(model, given, name)
                    wanted = [density.mean[0], density.std[0], *density.interval(0.8)[0]]
                    width = float(density.cells.high[-1] - density.cells.low[0]) or 1.0
                    assert_allclose(result["answers"][name], wanted, rtol=0, atol=1e-9 * width)


def without_rows(model):
    found = po.JointModel()
    found.fitted_ = model._value.without_kept_rows()
    return found


def test_a_model_without_rows_answers_by_its_law(models, tmp_path):
    model = without_rows(models[0][0])
    law, event, given = model._value.law, {"sex": ["male"]}, {"body_mass_g": [4200, None]}
    script = """
const model = load(given.file);
const answers = [model.marginals(given.given).species, [model.probability(given.event, given.given)]];
const result = [...answers.map((one) => Array.from(one)), model.rowsGiven(given.given)];
"""
    case = {"file": to_javascript(model), "event": event, "given": given}
    species, probability, rows = in_node(script, case, tmp_path)
    known = of_python(given, law)
    marginal = law.believe(likelihoods_of(law, known)).marginals()[law.place("species")][0]
    assert_allclose(species, marginal, rtol=0, atol=1e-9)
    assert_allclose(probability, [model.probability(of_python(event, law), known)], rtol=0, atol=1e-9)
    assert rows is None
    assert models[0][0].probability(of_python(event, law), known) != pytest.approx(probability[0], abs=1e-4)


def test_equal_complete_rows_are_written_once(models):
    rows = json.loads(to_javascript(models[3][0]))["rows"]  # of one column of three categories
    assert len(rows["cells"][0]) == 3
    assert sum(rows["weight"]["values"]) == 600
    weighted = po.JointModel().fit(odd_table(), sample_weight=np.full(600, 0.25))
    assert sum(json.loads(to_javascript(weighted))["rows"]["weight"]["values"]) == pytest.approx(150)


def test_more_rows_lack_a_column_than_are_filled_in(models):
    law = models[4][0]._value.law
    counts = law.counts({"flag": True}, {law.place("amount"): None})
    assert len(counts.lacking) < (~counts.knows & (counts.part > 0)).sum()


def test_tables_are_whole_parts_and_older_ones_decimals(models, tmp_path):
    model = models[3][0]
    tables = json.loads(to_javascript(model))["members"][0]["tables"]
    assert all(isinstance(one, int) for table in tables for one in table["values"])
    assert {table["divisor"] for table in tables} == {PARTS}
    before = model._value
    thirds = {
        name: replace(one, tables=(np.full((1, 3), 1 / 3),), log_prior=np.zeros(1))
        for name, one in before.members.items()
    }
    older = po.JointModel()
    older.fitted_ = replace(before, members=thirds, counted=None)
    script = "const result = Array.from(Object.values(load(given).marginals())[0]);"
    assert_allclose(in_node(script, to_javascript(older), tmp_path), np.full(3, 1 / 3), rtol=0, atol=1e-12)


def test_probabilities_are_those_of_python(models, tmp_path):
    events = [
        ({"species": ["Gentoo"]}, {"body_mass_g": [4800, None]}),
        ({"body_mass_g": [3000, 4000], "sex": ["male"]}, {"island": ["Dream", "Biscoe"]}),
    ]
    of_gaps = [
        ({"amount": [0, 1], "many": ["c3", "c4"]}, {"flag": [True]}),
        ({"whole": [0, 3]}, {}),
        ({"flag": [True], "amount": [1, None]}, {"whole": [1, 6]}),
    ]
    for model, asked in ((models[0][0], events), (models[4][0], of_gaps)):
        assert_probabilities(model, asked, tmp_path)


def assert_probabilities(model, events, folder):
    law = model._value.law
    script = """
const { standardError } = await import("./posteriori.mjs");
const model = load(given.file);
const result = given.events.map(([event, known]) => {
  const [p, rows] = [model.probability(event, known), model.rowsGiven(known, Object.keys(event))];
  return [p, rows, standardError(p, rows)];
});
"""
    found = in_node(script, {"file": to_javascript(model), "events": events}, folder)
    answers = [model.probability(of_python(a, law), of_python(b, law)) for a, b in events]
    assert all(isinstance(one, Probability) and one.rows > 0 for one in answers)
    assert_allclose(found, [[float(one), one.rows, one.standard_error] for one in answers], rtol=0, atol=1e-9)


def test_events_without_a_probability_are_refused(models, tmp_path):
    events = [({"amount": 1.25}, {}), ({"whole": [1, 2]}, {"whole": [0, 3]}), ({"none": ["a"]}, {})]
    script = """
const model = load(given.file);
const result = given.events.map(([event, known]) => {
  try { return model.probability(event, known); } catch (e) { return e.message; }
});
"""
    found = in_node(script, {"file": to_javascript(models[1][0]), "events": events}, tmp_path)
    words = ["no single number", "state it once", "no column"]
    assert all(word in str(one) for word, one in zip(words, found, strict=True)), found


@pytest.mark.parametrize(
    ("column", "low", "high"),
    [("amount", 0, 2.5), ("amount", 0.3, 0.9), ("whole", 2, 6), ("tenths", -0.5, 1.2), ("body_mass_g", 2830, 5660)],
)
def test_the_density_of_a_known_range_stays_within_it(models, tmp_path, column, low, high):
    model, given = (models[0][0], {"sex": "male"}) if column == "body_mass_g" else (models[1][0], {"flag": True})
    inside = [low + (high - low) * share for share in (0.0, 0.02, 0.21, 0.5, 0.98)]
    script = """
const density = load(given.file).marginals({ ...given.given, [given.column]: given.range })[given.column];
const result = given.inside.map((y) => density.probability(-Infinity, y));
"""
    case = {"file": to_javascript(model), "column": column, "range": [low, high], "given": given, "inside": inside}
    found = in_node(script, case, tmp_path)
    whole = model.probability({column: (low, high)}, given)
    below = [model.probability({column: (None, y)}, given) for y in inside]
    below_low = model.probability({column: po.Not((low, None))}, given)
    assert_allclose(found, (np.array(below) - below_low) / whole, rtol=0, atol=1e-9)


def test_the_nearest_cell_is_that_of_python(models, tmp_path):
    law = models[1][0]._value.law
    numbers = {}
    for j, grid in law.grids.items():
        cells = grid.cells
        ends = np.concatenate([cells.low, cells.high, [cells.low[0] - 9, cells.high[-1] + 9]])
        numbers[law.schema.names[j]] = np.concatenate([ends, ends + 0.3 * np.diff(np.sort(ends)).max()]).tolist()
    script = """
const { byName } = load(given.file);
const of = ([name, ys]) => [name, ys.map((y) => byName.get(name).cells.nearest(y))];
const result = Object.fromEntries(Object.entries(given.numbers).map(of));
"""
    found = in_node(script, {"file": to_javascript(models[1][0]), "numbers": numbers}, tmp_path)
    for name, places in found.items():
        assert places == law.grids[law.place(name)].cells.nearest(numbers[name]).tolist()


def test_what_cannot_be_is_refused_by_a_sentence(models, tmp_path):
    cases = [
        {"body_mass_g": [100_000, None]},
        {"flipper_length_mm": [200.2, 200.8]},
        {"body_mass_g": [5, 3]},
        {"body_mass_g": "heavy"},
        {"species": ["Emperor"]},
        {"species": []},
        {"none": [1, 2]},
    ]
    script = """
const model = load(given.file);
const result = given.cases.map((known) => { try { model.query(known); return ""; } catch (e) { return e.message; } });
"""
    found = in_node(script, {"file": to_javascript(models[0][0]), "cases": cases}, tmp_path)
    words = ["can be 100000 or more", "from 200.2 to 200.8", "exchange", "holds numbers", "never", "none", "no column"]
    assert all(word in one for word, one in zip(words, found, strict=True)), found


def test_a_model_of_too_many_numbers_is_refused(models, monkeypatch):
    monkeypatch.setattr(written, "MOST_NUMBERS", 10)
    with pytest.raises(ValueError, match="posteriori query") as refused:
        to_javascript(models[0][0])
    assert "language" not in str(refused.value)
    monkeypatch.undo()
    assert json.loads(to_javascript(models[3][0]))["kind"] == "joint"
