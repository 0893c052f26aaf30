"""From the command line: a joint model of all columns, its answers about any of them, and filled cells."""

import csv
import io
import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.facts.joint import joint_answer
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine(replaces=True, details=False)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """Return the facts that fit printed of the penguins, and the joint model it saved."""
    path = tmp_path_factory.mktemp("joint") / "birds.posteriori"
    return json.loads(succeeds("fit", "penguins.csv", "--output", path, "--json")), path


@pytest.fixture
def model(fitted):
    return fitted[1]


def frame_of(text):
    return pl.read_csv(io.StringIO(text))


# fit ------------------------------------------------------------------------------------------------------------


def test_fit_without_a_target_saves_the_joint_model(fitted):
    facts, path = fitted
    expected = po.JointModel().fit(load_penguins())
    loaded = po.load(path)
    assert (facts["model"], facts["target"], facts["rows"]) == ("joint", None, 344)
    assert loaded.member_weights_ == expected.member_weights_
    assert {one["member"]: one["weight"] for one in facts["members"]} == expected.member_weights_
    assert_allclose(loaded.score_samples(load_penguins()), expected.score_samples(load_penguins()))


def test_fit_lists_links_by_information_and_their_explanation(fitted):
    facts, _ = fitted
    nats = [one["nats"] for one in facts["links"]]
    assert nats == sorted(nats, reverse=True)
    assert nats[0] > 0.3
    by_column = {one["column"]: one for one in facts["explained"]}
    assert set(by_column) == set(load_penguins().columns)
    assert by_column["species"]["share"] > 0.8
    assert by_column["year"]["share"] < 0.1  # the year of a visit follows from nothing
    assert by_column["species"]["accuracy"] > by_column["species"]["most_frequent"] + 0.3
    assert "accuracy" not in by_column["body_mass_g"]


def test_noise_is_not_explained():
    rng = np.random.default_rng(0)
    noise = pl.DataFrame({"a": rng.integers(0, 30, 400).astype(str), "b": rng.normal(size=400)})
    noise.with_columns(pl.Series("c", rng.choice(["u", "v"], 400))).write_csv("noise.csv")
    facts = json.loads(succeeds("fit", "noise.csv", "--json"))
    assert max(one["share"] for one in facts["explained"]) < 0.05
    assert facts["links"] == []


def test_the_first_page_names_the_target_and_commands_that_run():
    page = succeeds("fit", "penguins.csv")
    words = " ".join(page.split())
    assert words.startswith("penguins.csv: 344 rows, 8 columns Without --target, this is a joint model")
    assert "--target NAME fits a model" in words
    commands = [line.partition(": posteriori ")[2] for line in page.splitlines() if ": posteriori " in line]
    assert [one.split()[0] for one in commands] == ["predict", "report", "impute", "query", "explore", "sample", "fit"]
    import shlex

    for one in commands[:-1]:
        succeeds(*shlex.split(one.replace("TABLE", "penguins.csv").replace("FILE", "filled.csv")))


@pytest.mark.parametrize(
    "rows",
    ["a\n1\n2\n1\n", "a,b\n1,x\n2,y\n3,\n", "a,b,c\n1,,x\n2,,\n3,,y\n4,,y\n", '"a, in",b = c\n1,x y\n2,"u,v"\n5,x y\n'],
)
def test_the_question_of_the_first_page_works_for_odd_tables(folder, rows):
    import shlex

    (folder / "odd.csv").write_text(rows)
    page = succeeds("fit", "odd.csv")
    question = next(line for line in page.splitlines() if line.startswith("a question: posteriori "))
    succeeds(*shlex.split(question.partition(": posteriori ")[2]))


@pytest.mark.parametrize(
    "option",
    [
        ("--model", "nb"),
        ("--set", "bins=4"),
        ("--folds", "4"),
        ("--groups", "year"),
        ("--holdout", "0.2"),
        ("--holdout-by", "year"),
        ("--positive", "male"),
        ("--classes", "3"),
        ("--target-is-class",),
        ("--for", "sql"),
    ],
)
def test_options_of_a_target_are_refused_without_one(option):
    error = refused("fit", "penguins.csv", *option)
    assert error.startswith(f"{option[0]} is for a model of one column; name that with --target")


def test_options_on_columns_are_those_of_fit():
    arguments = ("--ignore", "island,sex", "--categorical", "year", "--column", "species=categorical", "-o", "m")
    facts = json.loads(succeeds("fit", "penguins.csv", *arguments, "--json"))
    kinds = {one["name"]: one["kind"] for one in facts["columns"]}
    assert kinds["year"] == "categorical"
    assert not {"island", "sex"} & set(kinds)
    assert "not poisson" in refused("fit", "penguins.csv", "--column", "year=poisson")
    assert "--ignore names 'islnd'" in refused("fit", "penguins.csv", "--ignore", "islnd")


def test_parts_of_one_date_do_not_explain_each_other():
    days = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 12, 30), eager=True).alias("when")
    rng = np.random.default_rng(0)
    pl.DataFrame([days]).with_columns(a=pl.Series(rng.choice(["u", "v"], len(days)))).write_csv("days.csv")
    facts = json.loads(succeeds("fit", "days.csv", "--json"))
    assert [one["column"] for one in facts["explained"]] == ["a"]
    assert facts["links"] == []


def test_a_model_is_replaced_by_force_only(model):
    error = CommandLine().refused("fit", "penguins.csv", "--target", "sex", "-o", model)
    assert "holds a joint model of all columns" in error


# predict --------------------------------------------------------------------------------------------------------


def test_predict_writes_each_kind_of_column_as_the_library_does(model):
    table, loaded = load_penguins(), po.load(model)
    found = frame_of(succeeds("predict", model, "penguins.csv", "--target", "species", "--proba"))
    assert found.columns == ["prediction", "p_Adelie", "p_Chinstrap", "p_Gentoo"]
    assert found["prediction"].to_list() == loaded.predict(table, "species", "joint").tolist()
    assert_allclose(found.drop("prediction").to_numpy(), loaded.predict_proba(table, "species", "joint"))
    numbers = frame_of(succeeds("predict", model, "penguins.csv", "--target", "body_mass_g", "--coverage", "0.5"))
    density = loaded.predict_density(table, "body_mass_g", "joint")
    assert numbers.columns == ["prediction", "prediction_low", "prediction_high"]
    assert_allclose(numbers["prediction"].to_numpy(), density.mean)
    assert_allclose(numbers[:, 1:].to_numpy(), density.quantile([0.25, 0.75]))


def test_predict_needs_no_target_cells_and_uses_the_threshold(model):
    load_penguins().drop("sex").write_csv("without.csv")
    code, out, err = run(
        "predict", model, "without.csv", "--target", "sex", "--threshold", "female=0", "--with", "year"
    )
    assert (code, err) == (0, "")
    assert set(frame_of(out)["prediction"]) == {"female"}
    assert frame_of(out).columns == ["year", "prediction"]


def test_predict_by_the_pool_that_a_file_holds(folder):
    table = load_penguins().select("species", "sex", "body_mass_g")
    made = po.JointModel(random_state=0).fit(table)
    expected = made.predict_proba(table, "sex")
    po.save(made, "pooled.posteriori")
    table.write_csv("birds.csv")
    arguments = ("predict", "pooled.posteriori", "birds.csv", "--proba", "--method", "pool", "--target")
    found = frame_of(succeeds(*arguments, "sex"))
    assert_allclose(found.select("p_female", "p_male").to_numpy(), expected, atol=1e-9)
    assert "holds no pool of 'species'" in refused(*arguments, "species")


def test_fit_stores_the_pools_of_targets(folder):
    table = load_penguins().select("species", "sex", "body_mass_g").with_columns(same=pl.lit("x"))
    table.write_csv("birds.csv")
    facts = json.loads(succeeds("fit", "birds.csv", "--targets", "sex,species", "--json"))
    assert facts["pools"] == ["sex", "species"]
    expected = po.JointModel(targets=["sex"]).fit(table).predict_proba(table, "sex")
    arguments = ("predict", "birds.joint.posteriori", "birds.csv", "--method", "pool", "--target")
    found = frame_of(succeeds(*arguments, "sex", "--proba"))
    assert_allclose(found.select("p_female", "p_male").to_numpy(), expected, atol=1e-9)
    assert "fit the model again with --targets body_mass_g" in refused(*arguments, "body_mass_g")
    assert set(frame_of(succeeds(*arguments, "same"))["prediction"]) == {"x"}  # one value needs no pool


def test_fit_stores_the_pools_of_all_columns_and_names_them(folder):
    load_penguins().select("sex", "island").write_csv("birds.csv")
    page = succeeds("fit", "birds.csv", "--targets", "all")
    assert "with pools of single columns: island, sex" in page
    assert "--target island --method pool" in page
    found = frame_of(succeeds("impute", "birds.csv", "--model", "birds.joint.posteriori", "--method", "pool"))
    assert found.null_count().sum_horizontal()[0] == 0


def test_one_sentence_refuses_targets_that_no_pool_can_have(folder):
    rows = "".join(f"u{i},{i % 3},{'xy'[i % 2]}\n" for i in range(60))
    (folder / "t.csv").write_text("id,a,b\n" + rows)
    assert "--targets names 'bb', which is not" in refused("fit", "t.csv", "--targets", "bb")
    assert "--targets names 'a', which is not" in refused("fit", "t.csv", "--targets", "a", "--ignore", "a")
    assert "the model ignores the column 'id': its values hardly repeat" in refused("fit", "t.csv", "--targets", "b,id")
    assert "--targets is for a joint model" in refused("fit", "t.csv", "--targets", "b", "--target", "b")


# report ---------------------------------------------------------------------------------------------------------


def test_report_writes_the_page_of_the_library(model, folder):
    succeeds("report", model, "penguins.csv", "-o", "page.html")
    expected = po.report(po.load(model), load_penguins(), title="The columns of penguins.csv")
    assert (folder / "page.html").read_text(encoding="utf-8") == expected.html


def test_report_takes_rows_with_other_columns(model, folder):
    load_penguins().head(9).drop("year").with_columns(more=pl.lit(1)).write_csv("few.csv")
    code, _, err = run("report", model, "few.csv", "-o", "page.html", "--title", "Few <rows>")
    assert code == 0
    assert "the table lacks column 'year'" in err
    assert "ignored, because the model does not have it: column 'more'" in err
    assert "<h1>Few &lt;rows&gt;</h1>" in (folder / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("option", [("--target", "sex"), ("--against", "penguins.csv"), ("--positive", "male")])
def test_report_refuses_options_of_targets(model, option):
    assert f"{option[0]} is for models of one column" in refused("report", model, "penguins.csv", *option)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name the column to predict: --target NAME; it has 'island', 'bill_length_mm'"),
        (("--target", "specis"), "did you mean 'species'?"),
        (("--target", "year", "--proba"), "--proba is for classes"),
        (("--target", "sex", "--quantiles", "0.5"), "--quantiles is for numbers"),
        (("--target", "sex", "--strangeness"), "--strangeness is for models of one column"),
    ],
)
def test_predict_refuses_by_one_sentence(model, arguments, words):
    assert words in refused("predict", model, "penguins.csv", *arguments)


def test_a_target_is_for_joint_models_alone(tmp_path):
    succeeds("fit", "penguins.csv", "--target", "species", "--model", "nb", "-o", "nb.posteriori")
    assert "--target is for joint models" in refused("predict", "nb.posteriori", "penguins.csv", "--target", "sex")
    assert "--given is for joint models" in refused("sample", "nb.posteriori", "--given", "sex=male")
    assert "holds no joint model" in refused("impute", "penguins.csv", "--model", "nb.posteriori")


# query, sample, show ----------------------------------------------------------------------------------------------


def test_query_answers_as_the_library_does(model):
    loaded = po.load(model)
    event = "P(species = Gentoo | body_mass_g > 5000, island in (Biscoe, Dream))"
    assert json.loads(succeeds("query", model, event, "--json"))["probability"] == loaded.query(event)
    assert succeeds("query", model, event).startswith(f"{event} = {loaded.query(event):.3f}"[:-1])
    facts = json.loads(succeeds("query", model, "P(sex, body_mass_g | species = Gentoo)", "--json"))
    both = facts["marginals"]
    expected = loaded.query("P(sex, body_mass_g | species = Gentoo)")
    assert both["sex"] == expected["sex"]
    assert both["body_mass_g"]["mean"] == expected["body_mass_g"].mean[0]
    assert both["body_mass_g"]["quantiles"]["0.5"] == expected["body_mass_g"].median[0]
    assert facts["standard_error"] == {"sex": {state: p.standard_error for state, p in expected["sex"].items()}}
    assert facts["rows"] == {"sex": expected["sex"]["male"].rows, "body_mass_g": 123.0}
    words = succeeds("query", model, "P(sex, body_mass_g | species = Gentoo)")
    assert "mean" in words
    assert words.splitlines()[-1] == "from 119 to 123 training rows"


def test_query_prints_standard_errors_and_training_rows(model):
    loaded = po.load(model)
    event = "P(sex = male | species = Chinstrap, body_mass_g > 3800)"
    found, facts = loaded.query(event), json.loads(succeeds("query", model, event, "--json"))
    assert (facts["rows"], facts["standard_error"]) == (found.rows, found.standard_error)
    assert (
        succeeds("query", model, event)
        == f"{event} = {found:.3f} ± {found.standard_error:.3f}, from 23 training rows\n"
    )
    rare = succeeds("query", model, "P(sex = male | species = Adelie, body_mass_g > 4600)")
    assert ", from 5 training rows\nOnly 5 training rows are like that; the answer leans on the model." in rare
    several = succeeds("query", model, "P(sex, island | species = Adelie, body_mass_g > 4600)")
    assert several.endswith(
        "from 5 training rows\nOnly 5 training rows are like that; the answers lean on the model.\n"
    )
    none = succeeds("query", model, "P(sex = male | species = Gentoo, island = Torgersen)")
    assert none.endswith(", from the model alone\nNo training row is like that.\n")
    assert succeeds("query", model, "P(body_mass_g > 100000)") == "P(body_mass_g > 100000) = 0\n"


def test_query_without_kept_rows_has_no_standard_error(model, tmp_path):
    succeeds("fit", "penguins.csv", "--target", "species", "--model", "nb", "-o", tmp_path / "nb.posteriori")
    for asked in ("P(island = Dream | species = Adelie)", "P(island | species = Adelie)"):
        facts = json.loads(succeeds("query", tmp_path / "nb.posteriori", asked, "--json"))
        assert not {"rows", "standard_error"} & set(facts)
        words = succeeds("query", tmp_path / "nb.posteriori", asked)
        assert "±" not in words
        assert "training row" not in words
    without = po.JointModel()
    without.fitted_ = po.load(model).fitted_.without_kept_rows()
    facts = joint_answer(without, "P(island = Dream | species = Adelie)")
    assert facts == {"probability": float(without.query("P(island = Dream | species = Adelie)"))}
    assert set(joint_answer(without, "P(island | species = Adelie)")) == {"marginals"}


def test_query_of_all_columns_leaves_out_what_is_known(model):
    found = json.loads(succeeds("query", model, "P(* | sex = male)", "--json"))["marginals"]
    assert set(found) == set(load_penguins().columns) - {"sex"}
    assert set(json.loads(succeeds("query", model, "--json"))["marginals"]) == set(load_penguins().columns)


def test_query_refuses_by_one_sentence(model):
    assert "did you mean 'sex'?" in refused("query", model, "P(sexx)")
    assert "cannot read" in refused("query", model, "P(sex | )")
    assert "--mpe is for networks" in refused("query", model, "P(sex)", "--mpe")
    po.save(po.JointModel().fit(pl.DataFrame({"a": np.random.default_rng(0).normal(size=50)})), "a.posteriori")
    assert "ask for a range, a in [low, high]" in refused("query", "a.posteriori", "P(a = 0)")


def test_sample_draws_rows_that_agree_with_what_is_given(model):
    given = "body_mass_g=3000..3500, sex=female, species in (Adelie, Chinstrap)"
    found = frame_of(succeeds("sample", model, "--given", given, "-n", "40", "--seed", "1"))
    assert found.columns == load_penguins().columns
    assert found["body_mass_g"].is_between(3000, 3500).all()
    assert set(found["sex"]) == {"female"}
    assert set(found["species"]) == {"Adelie", "Chinstrap"}
    assert "'sex' is never 'x'" in refused("sample", model, "--given", "sex=x")


def test_sample_ignores_ranges_if_it_is_asked_to():
    table = pl.DataFrame({"month": np.random.default_rng(0).integers(1, 13, 100)})
    po.save(po.JointModel().fit(table), "months.posteriori")
    usual, wide = (
        frame_of(succeeds("sample", "months.posteriori", "-n", "20000", "--seed", "1", *more))["month"]
        for more in ([], ["--ignore-ranges"])
    )
    assert (usual.min(), usual.max()) == (1, 12)
    assert wide.max() > 12
    assert wide.dtype == pl.Int64


def test_show_lists_columns_links_and_weights(model, fitted):
    facts = json.loads(succeeds("show", model, "--json"))
    assert [one["name"] for one in facts["columns"]] == load_penguins().columns
    assert facts["links"] == fitted[0]["links"]
    page = succeeds("show", model)
    assert "weights of the members: tree 0." in page
    assert "3 categories" in page


@pytest.mark.parametrize(
    "words",
    ["evaluate M T", "explain M T", "sql M", "merge M M -o x", "network show M"],
)
def test_other_commands_say_what_to_use_instead(model, words):
    arguments = [{"M": model, "T": "penguins.csv"}.get(word, word) for word in words.split()]
    error = CommandLine().refused(*arguments)
    assert "joint model" in error
    assert "posteriori query" in error or "--target NAME" in error or "posteriori fit" in error


# impute -----------------------------------------------------------------------------------------------------------


def test_impute_fills_cells_and_leaves_others_as_written(folder):
    load_penguins().write_csv("birds.csv")
    code, _, err = run("impute", "birds.csv", "--output", "filled.csv")
    assert code == 0
    assert "note: filled 19 missing cells: bill_length_mm 2, bill_depth_mm 2, flipper_length_mm 2, body_mass_g 2" in err
    before, after = ((folder / name).read_text().splitlines() for name in ("birds.csv", "filled.csv"))
    changed = [one for one, other in zip(before, after, strict=True) if one != other]
    assert len(changed) == load_penguins().height - load_penguins().drop_nulls().height
    expected = po.JointModel().fit(load_penguins()).impute(load_penguins(), "joint")
    filled = pl.read_csv("filled.csv")
    assert filled.null_count().sum_horizontal()[0] == 0
    assert filled["sex"].to_list() == expected["sex"].to_list()
    assert filled["body_mass_g"].dtype == pl.Int64


def test_impute_by_a_saved_model_reads_no_other_rows(model):
    load_penguins().head(20).drop("year").write_csv("few.csv")
    found = frame_of(succeeds("impute", "few.csv", "--model", model))
    expected = po.load(model).impute(load_penguins().head(20).with_columns(year=None), "joint")
    assert found["sex"].to_list() == expected["sex"].to_list()
    assert found.columns == [name for name in load_penguins().columns if name != "year"]
    assert "holds no pools of these columns, and no rows" in refused(
        "impute", "few.csv", "--model", model, "--method", "pool"
    )
    assert "--ignore is for the fit" in refused("impute", "few.csv", "--model", model, "--ignore", "sex")


def test_impute_draws_repeatably(model):
    drawn = [succeeds("impute", "penguins.csv", "--model", model, "--draw", "--seed", seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert "add --draw" in refused("impute", "penguins.csv", "--seed", "1")


def test_impute_says_how_sure_each_filled_cell_is(folder, model):
    found = frame_of(succeeds("impute", "penguins.csv", "--model", model, "--sure"))
    plain = frame_of(succeeds("impute", "penguins.csv", "--model", model))
    numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]
    beside = {name: f"{name}_sd" for name in numbers} | {"sex": "sex_probability"}
    wanted = [one for name in plain.columns for one in (name, beside.get(name)) if one]
    assert found.columns == wanted
    assert found.select(plain.columns).equals(plain)
    gaps = po.load(model).missing(load_penguins(), "joint")
    for name, new in beside.items():
        of_column = gaps.filter(pl.col("column") == name)
        assert found[new].is_not_null().arg_true().to_list() == of_column["row"].to_list()
        certainty = of_column["probability" if name == "sex" else "std"].to_list()
        assert found[new].drop_nulls().to_list() == pytest.approx(certainty, rel=1e-9)


def test_impute_refuses_to_hide_a_column_by_how_sure(folder):
    load_penguins().with_columns(sex_probability=1).write_csv("birds.csv")
    error = refused("impute", "birds.csv", "--sure")
    assert error.startswith("--sure adds the column 'sex_probability', which the table has; rename it")
    assert "leave out --draw" in refused("impute", "birds.csv", "--sure", "--draw")


def test_impute_by_pools_says_how_sure_too(folder):
    load_penguins().head(60).write_csv("birds.csv")
    found = frame_of(succeeds("impute", "birds.csv", "--method", "pool", "--sure"))
    assert found["sex_probability"].drop_nulls().is_between(0.5, 1.0).all()
    assert found["body_mass_g_sd"].drop_nulls().is_between(1.0, 1000.0).all()


@pytest.mark.parametrize(
    ("header", "sep"), [(",a,b", ","), (" a ,,c d ", ","), ("a,a,b", ","), ('"x, y","d""e",b', ","), ("n\t\tm", "\t")]
)
def test_impute_keeps_the_header_as_written(folder, header, sep):
    rows = "".join(sep.join([str(i % 7), "" if i % 5 == 0 else str(i % 3), "xy"[i % 2]]) + "\n" for i in range(60))
    name = "t.csv" if sep == "," else "t.tsv"
    (folder / name).write_text(f"{header}\n{rows}")
    assert run("impute", name, "--output", f"filled-{name}")[0] == 0
    lines = (folder / f"filled-{name}").read_text().splitlines()
    assert next(csv.reader([lines[0]], delimiter=sep)) == next(csv.reader([header], delimiter=sep))
    assert all(line.count(sep) == 2 and sep * 2 not in line for line in lines[1:])
    run("impute", name, "--sure", "--output", f"sure-{name}")
    found = next(csv.reader([(folder / f"sure-{name}").read_text().splitlines()[0]], delimiter=sep))
    assert found[:2] + found[3:] == next(csv.reader([header], delimiter=sep))
    assert found[2].endswith(("_sd", "_probability"))


def test_the_file_of_an_imputer_is_that_of_its_joint_model(folder):
    po.save(po.GenerativeImputer(method="joint").fit(load_penguins()), "imputer.posteriori")
    po.save(po.JointModel().fit(load_penguins()), "joint.posteriori")
    asked = "P(sex | species = Gentoo, body_mass_g > 5000)"
    for arguments in (("query", asked, "--json"), ("show",), ("impute",)):
        command, *rest = arguments
        of_each = []
        for path in ("imputer.posteriori", "joint.posteriori"):
            given = ("penguins.csv", "--model", path) if command == "impute" else (path, *rest)
            of_each.append(succeeds(command, *given).replace(path, "MODEL"))
        assert of_each[0] == of_each[1]
    assert "holds a joint model of all columns" in refused("explain", "imputer.posteriori", "penguins.csv")
    with pytest.raises(ValueError, match="holds a GenerativeImputer"):
        po.scoring.load_scorer("imputer.posteriori")


def odd_table():
    """Return text of all kinds of columns: codes, money, true and false, dates, text, identifiers; some are missing."""
    rng = np.random.default_rng(3)
    lines = ["id,when,price,qty,flag,grade,code"]
    for i in range(120):
        grade = rng.choice(list("ABC"))
        many = int(rng.integers(1, 9)) + 10 * (grade == "A")
        price = f'"$1,{rng.integers(100, 999)}"' if grade == "A" else f"${rng.integers(10, 99)}"
        flag = "TRUE" if many > 9 else "FALSE"
        cells = [f"u{i}", f"2024-{1 + i % 12:02}-{1 + i % 28:02}", price, str(many), flag, grade, f"00{many % 3}"]
        lines.append(",".join(cells[:1] + ["" if rng.random() < 0.1 else cell for cell in cells[1:]]))
    return "\n".join(lines) + "\n"


def test_impute_keeps_spellings_and_names_what_it_leaves(folder):
    (folder / "odd.csv").write_text(odd_table())
    code, out, err = run("impute", "odd.csv")
    assert code == 0
    before, after = (pl.read_csv(io.StringIO(text), infer_schema=False) for text in (odd_table(), out))
    for name in ("qty", "flag", "grade", "code"):
        known = before[name].is_not_null()
        assert after.filter(known)[name].to_list() == before.filter(known)[name].to_list()
        assert set(after[name]) <= {*before[name].drop_nulls(), *(str(one) for one in range(20) if name == "qty")}
    assert after["price"].cast(pl.Float64).is_not_null().all()  # money is written as plain numbers
    n_dates = before["when"].null_count()
    assert after["when"].to_list() == before["when"].to_list()
    assert f"note: column 'when' keeps {n_dates} missing cells: dates are not filled" in err


def test_impute_writes_other_formats_with_their_types(folder):
    (folder / "odd.csv").write_text(odd_table())
    succeeds("impute", "odd.csv", "--output", "odd.parquet")
    types = dict(pl.read_parquet("odd.parquet").schema)
    assert (types["qty"], types["flag"], types["when"]) == (pl.Int64, pl.Boolean, pl.Date)


def test_impute_leaves_a_column_without_any_value(folder):
    (folder / "empty.csv").write_text("a,b,c\n1,,x\n2,,\n3,,y\n4,,y\n")
    code, out, err = run("impute", "empty.csv")
    assert (code, out) == (0, "a,b,c\n1,,x\n2,,y\n3,,y\n4,,y\n")
    assert "column 'b' keeps 4 missing cells: no row has a value" in err
    assert "invalid value" not in err


def test_impute_of_a_full_table_writes_it_as_it_is(folder):
    (folder / "full.csv").write_text("a,b\n1.50,x\n02,y\n")
    code, out, err = run("impute", "full.csv")
    assert (code, out) == (0, "a,b\n1.50,x\n02,y\n")
    assert "no cell is missing" in err


def test_impute_takes_the_table_first(model):
    assert "the table comes first" in refused("impute", model)
    assert "there is no file" in refused("impute", "penguins.csv", "--model", "none.posteriori")


def test_sample_draws_no_copies_and_compares_as_the_library_does(folder):
    few = load_penguins().select("species", "island", "sex", "year")
    few.write_csv("few.csv")
    succeeds("fit", "few.csv", "-o", "few.posteriori")
    drawn = succeeds("sample", "few.posteriori", "-n", 50, "--seed", 0, "--no-copies", "few.csv")
    assert not set(frame_of(drawn).rows()) & set(few.rows())
    _, out, err = run("sample", "few.posteriori", "-n", 200, "--seed", 0, "--compare", "few.csv")
    expected = po.compare_tables(few, frame_of(out))
    assert expected.copies > 0.5
    assert err.strip().endswith(str(expected))
    few.select("sex").drop_nulls().write_csv("sex.csv")
    succeeds("fit", "sex.csv", "-o", "sex.posteriori")
    assert "5 of 5 drawn rows are copies" in refused("sample", "sex.posteriori", "-n", 5, "--no-copies", "sex.csv")
    assert "reads" in refused("sample", "few.posteriori", "--compare", "few.csv", "-o", "few.csv")


def test_sample_compares_rows_of_a_classifier(folder):
    succeeds("fit", "penguins.csv", "--target", "species", "--model", "nb", "-o", "nb.posteriori")
    code, out, err = run(
        "sample", "nb.posteriori", "-n", 100, "--seed", 0, "--compare", "penguins.csv", "-o", "drawn.csv"
    )
    assert (code, out) == (0, "")
    assert str(po.compare_tables(load_penguins(), pl.read_csv("drawn.csv"))) in err
    assert "--no-copies is for joint models" in refused("sample", "nb.posteriori", "--no-copies", "penguins.csv")
