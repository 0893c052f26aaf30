"""Questions about dates by the name of their column."""

import datetime

import numpy as np
import polars as pl
import pytest

import posteriori as po

RNG = np.random.default_rng(0)
DAYS = RNG.integers(0, 180, 900)
FIRST = datetime.date(2024, 1, 1)
CUT = datetime.date(2024, 3, 1)
SHOP = np.where(RNG.random(900) < 0.2 + 0.6 * (DAYS > 60), "A", "B")
SALES = np.round(10 + 0.1 * DAYS + RNG.normal(size=900))
TABLE = pl.DataFrame(
    {"d": [FIRST + datetime.timedelta(int(day)) for day in DAYS], "shop": SHOP, "sales": pl.Series(SALES)}
)
AFTER = DAYS > 60  # the first of March of a leap year


@pytest.fixture(scope="module")
def model():
    return po.JointModel().fit(TABLE)


@pytest.mark.parametrize(
    ("question", "share"),
    [
        ("P(d > 2024-03-01)", AFTER.mean()),
        ("P('d' <= '2024-03-01')", 1 - AFTER.mean()),
        ("P(d > 2024-03-01 | shop = A)", AFTER[SHOP == "A"].mean()),
        ("P(shop = A | d > 2024-03-01)", (SHOP == "A")[AFTER].mean()),
        ("P(sales > 20 | d > 2024-03-01)", (SALES > 20)[AFTER].mean()),
        ("P(d in [2024-02-01, 2024-02-29])", ((DAYS >= 31) & (DAYS <= 59)).mean()),
        ("P(d = 2024-02-01..2024-02-29)", ((DAYS >= 31) & (DAYS <= 59)).mean()),
        ("P(d = ..2024-02-29)", (DAYS <= 59).mean()),
        ("P(d not in [2024-02-01, 2024-02-29])", 1 - ((DAYS >= 31) & (DAYS <= 59)).mean()),
        ("P(d in (2024-02-10, 2024-02-11))", np.isin(DAYS, [40, 41]).mean()),
        ("P(d != 2024-02-10)", (DAYS != 40).mean()),
    ],
)
def test_a_date_is_asked_and_known_by_its_name(model, question, share):
    assert model.query(question) == pytest.approx(share, abs=0.04)


def test_a_date_is_the_days_since_the_first_one(model):
    assert model.query("P(shop = A | d > 2024-03-01)") == model.query("P(shop = A | d.days > 60)")
    assert model.query("P(d >= 2024-04-01, shop = A)") == model.query("P(d.days >= 91, shop = A)")
    np.testing.assert_array_equal(model.query("P(d | shop = A)").mean, model.query("P(d.days | shop = A)").mean)


def test_dates_in_findings_of_python(model):
    wanted = model.query("P(d >= 2024-03-01 | shop = A)")
    for value in (CUT, "2024-03-01", np.datetime64("2024-03-01"), datetime.datetime(2024, 3, 1)):
        assert model.probability({"d": (value, None)}, {"shop": "A"}) == wanted
    assert model.probability({"d": po.Not((None, CUT))}) == model.query("P(d > 2024-03-01)")
    drawn = model.sample(200, {"d": (datetime.date(2024, 5, 1), datetime.date(2024, 5, 31))}, 0)
    assert drawn["d"].is_between(datetime.date(2024, 5, 1), datetime.date(2024, 5, 31)).all()


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("P(d > 7)", "'d' holds dates, and '7' is none; write 2024-12-31"),
        ("P(d > soon)", "'d' holds dates, and 'soon' is none"),
        ("P(d > 2024-03-01, d.days < 90)", "'d.days' is stated twice"),
        ("P(e > 2024-03-01)", "there is no column 'e'"),
    ],
)
def test_what_is_no_date_is_refused_by_one_sentence(model, question, words):
    with pytest.raises(ValueError, match=words):
        model.query(question)


def test_dates_without_days_name_the_parts_that_can_be_asked():
    model = po.JointModel(members=["tree"], columns=po.Columns(dates=["month", "weekday"])).fit(TABLE)
    with pytest.raises(ValueError, match=r"has no 'd' as a number; ask 'd\.month' or 'd\.weekday'"):
        model.query("P(d > 2024-03-01)")


def test_times_of_day_count_and_durations_are_seconds():
    minutes = RNG.integers(0, 1440, 900)
    when = TABLE["d"].cast(pl.Datetime("us")) + pl.Series(minutes * 60_000_000).cast(pl.Duration("us"))
    lasted = pl.Series(RNG.integers(1, 5000, 900) * 1_000_000).cast(pl.Duration("us"))
    model = po.JointModel(members=["tree"]).fit(pl.DataFrame({"when": when, "lasted": lasted, "shop": SHOP}))
    share = (when > datetime.datetime(2024, 3, 1, 18, 30)).mean()
    assert model.query("P(when > 2024-03-01 18:30)") == pytest.approx(share, abs=0.03)
    assert model.query("P(lasted > 2500)") == pytest.approx(0.5, abs=0.05)
    found = model.probability({"lasted": po.Not((None, datetime.timedelta(seconds=2500)))})
    assert found == model.query("P(lasted > 2500)")


@pytest.mark.parametrize("kind", [po.NaiveBayes, po.GaussianDiscriminant, po.TreeAugmentedNaiveBayes])
def test_classifiers_are_asked_about_dates_too(kind):
    model = kind().fit(TABLE, "shop")
    early, late = (model.query(f"P(shop = A | d = {day})") for day in ("2024-01-20", "2024-05-20"))
    assert early < 0.45 < 0.65 < late
    assert model.query("P(d > 2024-03-01 | shop = A)") == pytest.approx(AFTER[SHOP == "A"].mean(), abs=0.06)
    assert model.query("P(shop = A | d.month = 5)") > 0.65
