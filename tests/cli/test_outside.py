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


@pytest.mark.parametrize(("target", "options"), [("buys", []), ("price", []), ("buys", ["--categorical", "StoreID"])])
def test_fit_says_that_a_column_looks_like_a_code(tmp_path, capsys, target, options):
    rows = ROWS.with_columns(
        pl.Series("StoreID", [1, 2, 3, 4, 7] * 20), pl.Series("buys", ["yes", "no", "no", "yes"] * 25)
    )
    rows.write_csv(tmp_path / "rows.csv")
    arguments = [str(tmp_path / "rows.csv"), "--target", target, "-o", str(tmp_path / "model.posteriori"), *options]
    main(["fit", *arguments, "--model", "nb" if target == "buys" else "additive"])
    said = capsys.readouterr().err
    assert ("'StoreID' looks like a code and is read as a quantity, of 5 values" in said) == (not options)
    assert "rooms" not in said
