"""The site answers to the words of other libraries: the search finds the page, and so does the list of words.

The search of Sphinx finds the pages that hold all words of a question, so the sources stand for its index.
"""

import re
from functools import cache
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "docs" / "guide"
QUESTIONS = {
    "tasks/label_shift": [
        "imbalance",
        "class weight",
        "class_weight",
        "balanced",
        "rare class",
        "priors uniform",
        "quantification",
    ],
    "tasks/prediction_sets": ["conformal prediction"],
    "tasks/costs": ["cost-sensitive", "threshold", "false positive"],
    "tasks/strange_rows": ["outlier", "anomaly", "novelty"],
    "tasks/explain": [
        *("SHAP", "counterfactual", "what-if", "partial dependence", "bias of the class", "intercept"),
        *("decision_function", "feature_importances_", "permutation importance", "feature selection", "log-odds"),
    ],
    "tasks/evaluate": ["tuning", "GridSearchCV", "hyperparameters", "n_jobs", "verbose", "scoring", "StratifiedKFold"],
    "tasks/wrong_labels": ["spelling of labels", "label noise", "mislabelled"],
    "tasks/few_labels": ["semi-supervised", "self-training"],
    "tasks/missing_cells": ["imputation", "NaN"],
    "tasks/fill_gaps": ["IterativeImputer", "MICE", "multiple imputation"],
    "tasks/ask_any_column": ["evidence", "finding", "conditional query", "synthetic data"],
    "models/joint": ["joint model", "joint distribution"],
    "models/regression": ["quantile", "prediction of a number"],
    "tasks/columns": ["one-hot", "scaling", "datetime"],
    "tasks/text": ["TF-IDF", "bag of words"],
    "tasks/large_files": ["out-of-core", "LazyFrame"],
    "tasks/sums": ["online learning", "federated"],
    "tasks/deployment": ["pickle", "ONNX", "production"],
    "tasks/clusters": ["k-means", "segmentation"],
    "models/pool": ["ensemble", "stacking", "AutoML"],
    "/networks": ["causal effect", "intervention"],
    "/drift": ["covariate shift", "PSI"],
    "tasks/new_places": ["extrapolation", "domain shift", "GroupKFold"],
    "tasks/watch": ["concept drift", "monitoring", "ADWIN"],
}


@cache
def text_of(page):
    """Return a page in lower case without marks of code, for a name such as those of links in the guide."""
    path = GUIDE.parent / page.lstrip("/") if page.startswith("/") else GUIDE / page
    return re.sub(r"\s+", " ", path.read_text(encoding="utf-8").replace("`", "").lower())


@cache
def listed():
    """Return the pages that the list of words gives to each word."""
    found = {}
    for line in (GUIDE / "words.md").read_text(encoding="utf-8").splitlines():
        row = re.fullmatch(r"\| (.+?) \| (.+) \| \[[^\]]+\]\((.+?)\) \|", line)
        for word in row[1].replace("`", "").lower().split(", ") if row else ():
            found.setdefault(word, set()).add(row[3])
    return found


@pytest.mark.parametrize(("page", "question"), [(page, one) for page, all_ in QUESTIONS.items() for one in all_])
def test_a_question_finds_its_page(page, question):
    assert all(re.search(rf"\b{re.escape(word)}", text_of(f"{page}.md")) for word in question.lower().split())


def test_every_word_of_the_list_stands_on_its_page():
    absent = [(word, page) for word, pages in listed().items() for page in pages if word not in text_of(page)]
    assert not absent


def test_the_list_answers_the_questions():
    asked = {(one.lower(), f"{page}.md") for page, all_ in QUESTIONS.items() for one in all_ if one != "priors uniform"}
    assert len(asked) >= 40
    assert {(word, page) for word, page in asked if page not in listed().get(word, ())} == set()
