"""What predict, explain and out_of_range write about numbers outside of the training range."""

import json

import polars as pl
import pytest

import posteriori as po
from posteriori.cli import main

ROWS = pl.DataFrame(
    {
        "area": [float(one) for one in range(334, 434)],
        "rooms": [1 + one % 5 for one in range(100)],
        "kind": ["flat", "house"] * 50,
        "price": [1000.0 + 3 * one + 50 * (one % 5) for one in range(100)],
    }
)
NEW = pl.DataFrame({"area": [400.0, 5642.0, 350.0, None], "rooms": [2, 3, 9, 2], "kind": ["flat"] * 4})
SENTENCES = ["", "area 5642: trained on 334 to 433", "rooms 9: trained on 1 to 5", ""]


@pytest.fixture(scope="module", params=["kind", "price"])
def target(request):
    return request.param


@pytest.fixture(scope="module")
def model(target, tmp_path_factory):
    folder = tmp_path_factory.mktemp("outside")
    estimator = po.NaiveBayes() if target == "kind" else po.AdditiveRegressor()
    estimator.fit(ROWS, target)
    po.save(estimator, folder / "model.posteriori")
    NEW.drop([target], strict=False).write_csv(folder / "new.csv")
    return estimator, folder


def test_python_says_it(model):
    estimator, _ = model
    assert estimator.out_of_range(NEW.with_columns(price=pl.lit(1100.0))) == SENTENCES


def test_predict_writes_a_column(model, capsys):
    _, folder = model
    main(["predict", str(folder / "model.posteriori"), str(folder / "new.csv"), "--outside"])
    captured = capsys.readouterr()
    found = pl.read_csv(captured.out.encode())
    assert found["outside"].fill_null("").to_list() == SENTENCES
    assert "numbers lie outside of the range of the training rows: 1 of 'area'" in captured.err


def test_explain_says_it(model, capsys):
    _, folder = model
    arguments = ["explain", str(folder / "model.posteriori"), str(folder / "new.csv"), "--row", "0-2"]
    main(arguments)
    assert capsys.readouterr().out.count("outside of the training range: area 5642: trained on 334 to 433") == 1
    main([*arguments, "--json"])
    assert [row["outside"] for row in json.loads(capsys.readouterr().out)["rows"]] == SENTENCES[:3]


@pytest.mark.parametrize("make", [po.GenerativeClassifier, po.GenerativeRegressor])
def test_pools_say_it(make):
    estimator = make().fit(ROWS, "kind" if make is po.GenerativeClassifier else "price")
    assert estimator.out_of_range(NEW.with_columns(price=pl.lit(1100.0))) == SENTENCES


@pytest.mark.filterwarnings("ignore:categories unseen")
def test_unseen_categories_are_named():
    model = po.NaiveBayes().fit(ROWS.drop("price"), "kind")
    assert model.out_of_range(NEW.drop("kind")) == SENTENCES
    model = po.AdditiveRegressor().fit(ROWS, "price")
    new = NEW.with_columns(kind=pl.Series(["flat", "tent", None, "tent"]))
    assert model.out_of_range(new) == [
        "",
        f"{SENTENCES[1]}; kind: an unseen category",
        SENTENCES[2],
        "kind: an unseen category",
    ]


def test_joint_models_say_it(tmp_path, capsys):
    model = po.JointModel().fit(ROWS)
    assert model.out_of_range(NEW.with_columns(price=pl.lit(1100.0))) == SENTENCES
    po.save(model, tmp_path / "joint.posteriori")
    NEW.write_csv(tmp_path / "new.csv")
    main(["predict", str(tmp_path / "joint.posteriori"), str(tmp_path / "new.csv"), "--target", "price", "--outside"])
    assert pl.read_csv(capsys.readouterr().out.encode())["outside"].fill_null("").to_list() == SENTENCES


def test_texts_are_no_order(model, capsys):
    _, folder = model
    main(["predict", str(folder / "model.posteriori"), str(folder / "new.csv"), "--outside", "--sort", "outside"])
    assert "--sort is 'outside'" in capsys.readouterr().err


def test_numbers_have_the_digits_that_tell_them_apart():
    rows = ROWS.with_columns(area=pl.col("area") + 1e9)
    model = po.NaiveBayes().fit(rows.drop("price"), "kind")
    (said,) = model.out_of_range(pl.DataFrame({"area": [1e9 + 450.0], "rooms": [2]}))
    assert said == "area 1,000,000,450: trained on 1,000,000,334 to 1,000,000,433"
