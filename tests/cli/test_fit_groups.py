"""Rows of a group are held out together by fit, and the column of groups is no feature."""

import json

import numpy as np
import polars as pl
import pytest

import posteriori as po
from tests.cli.command_line import CommandLine

line = CommandLine(replaces=True)


@pytest.fixture(autouse=True)
def table(tmp_path, monkeypatch):
    """60 patients with 6 visits each: each has numbers of its own, and one label at random."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 6)
    own = rng.normal(size=(60, 2))[patient] + rng.normal(scale=0.01, size=(360, 2))
    label = rng.choice(["u", "v"], 60)[patient]
    frame = pl.DataFrame({"patient": patient, "room": [f"r{one}" for one in patient % 30], "y": label})
    frame.with_columns(a=own[:, 0], b=own[:, 1]).write_csv("visits.csv")


def facts(*options):
    return json.loads(line.succeeds("fit", "visits.csv", "-t", "y", "--ignore", "room", "--json", *options))


@pytest.mark.parametrize("model", ["forest", None])
def test_scores_are_those_of_new_groups(model):
    options = () if model is None else ("--model", model)
    known = facts(*options, "--ignore", "patient")["cross_validation"]
    new = facts(*options, "--groups", "patient")["cross_validation"]
    assert known["model"]["accuracy"] > 0.85  # other visits of a patient have its label
    assert new["model"]["accuracy"] < new["class_prior"]["accuracy"] + 0.05
    assert po.load("visits.posteriori").schema_.names == ("a", "b")


def test_no_fold_shares_a_group_with_another():
    frame, pool = pl.read_csv("visits.csv"), po.GenerativeClassifier(members=["nb"])
    pool.fit(frame.select("a", "b", "y"), "y", groups=frame["patient"])
    folds = pl.DataFrame({"patient": frame["patient"], "fold": pool.out_of_fold_.fold})
    assert folds.group_by("patient").n_unique()["fold"].to_list() == [1] * 60


def test_groups_of_rows_without_label_are_left_out_with_them():
    frame = pl.read_csv("visits.csv").with_columns(y=pl.when(pl.col("patient") < 5).then(None).otherwise(pl.col("y")))
    frame.write_csv("visits.csv")
    assert facts("--model", "nb", "--groups", "patient")["cross_validation"]["rows"] == 330


def test_wrong_groups_are_refused():
    command = ("fit", "visits.csv", "-t", "y", "--model", "nb")
    assert "--groups names 'nurse'" in line.refused(*command, "--groups", "nurse")
    assert "name one column" in line.refused(*command, "--groups", "patient,room")
    assert "no more than the 60 groups" in line.refused(*command, "--groups", "patient", "--folds", 70)
