"""Models of every kind with rows to score, in which every pattern of missing cells occurs."""

import datetime
import itertools

import numpy as np
import polars as pl

import posteriori as po

TEXTS = ("Spam, spam and EGGS", "ham ham l'été", "eggs", "été spam", "nothing known", "ham eggs ham spam")


def mixed_table(n=90, seed=0):
    """Two columns of numbers, two of categories, and classes that depend on all of them; some cells are missing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    length = rng.normal(3.0 * y, 1.0 + y)
    return pl.DataFrame(
        {
            "length": np.where(rng.random(n) < 0.1, np.nan, length),
            "mass": 0.5 * length + rng.normal(size=n) + (y == 1),
            "<script>alert(1)</script>": np.array(["u", "v", "w"])[(y + (rng.random(n) < 0.3)) % 3],
            "flag": rng.random(n) < 0.2 + 0.3 * y,
            "y": np.array(["a", "b", "c"])[y],
        }
    ).with_columns(pl.col("length").fill_nan(None))


def counts_table(n=60, seed=1):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    rates = np.array([[3.0, 0.5, 1.0, 0.2], [0.5, 2.0, 1.0, 0.4]])[y]
    return pl.DataFrame({**{f"n{j}": rng.poisson(rates[:, j]) for j in range(4)}, "y": np.array(["p", "q"])[y]})


def codes_table(n=120, seed=2):
    """Four columns of few categories that depend on each other."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    columns = {"a": rng.integers(3, size=n)}
    for before, name in itertools.pairwise("abcd"):
        columns[name] = (columns[before] + y + (rng.random(n) < 0.4)) % 3
    cells = {name: np.array(["x", "y", "z"])[codes] for name, codes in columns.items()}
    return pl.DataFrame({**cells, "y": y})


def siblings_table(n=120, seed=7):
    """Columns that all depend on the first one, and so may follow it in any order."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    cause = (y + rng.integers(2, size=n)) % 3
    columns = {
        "cause": cause,
        **{name: (cause + (rng.random(n) < p)) % 3 for name, p in zip("abc", (0.3, 0.2, 0.1), strict=True)},
    }
    cells = {name: np.array(["x", "y", "z"])[codes] for name, codes in columns.items()}
    return pl.DataFrame({**cells, "y": y})


def many_categories(n=400, seed=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    code = rng.integers(45, size=n)
    return pl.DataFrame(
        {
            "code": [f"c{k:02d}" for k in np.where(rng.random(n) < 0.6, 2 * (code // 2) + y, code).tolist()],
            "other": np.array(["l", "m", "r"])[(y + rng.integers(2, size=n)) % 3],
            "y": y,
        }
    )


def dates_table(n=80, seed=4):
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    first = datetime.datetime(2023, 12, 28)
    hours = rng.integers(24 * 400, size=n) // (1 + y)
    when = [first + datetime.timedelta(hours=h) for h in hours.tolist()]
    return pl.DataFrame({"when": when, "x": rng.normal(y), "y": np.array(["early", "late"])[y]})


def patterns(table, n_rows=3):
    """Return rows as dicts: some complete rows, under every pattern of missing cells."""
    names = [name for name in table.columns if name != "y"]
    rows = []
    for start, kept in enumerate(itertools.product([False, True], repeat=len(names))):
        for i in range(n_rows):
            row = table.row((7 * start + i) % table.height, named=True)
            rows.append({name: row[name] if keep else None for name, keep in zip(names, kept, strict=True)})
    return rows


def _fitted(estimator, table):
    return estimator.fit(table, "y"), patterns(table)


def _poisson():
    table = counts_table()
    return _fitted(po.NaiveBayes(distributions=dict.fromkeys(table.columns[:4], "poisson")), table)


def _counts(name):
    table = counts_table()
    return _fitted(po.NaiveBayes(distributions=name), table)


def _exposed():
    table = counts_table().with_columns(pl.Series("hours", np.random.default_rng(7).uniform(0.5, 3.0, 60)))
    rates = {name: po.PoissonRate(exposure="hours") for name in table.columns[:4]}
    return _fitted(po.NaiveBayes(distributions=rates), table)


def _text():
    texts = [TEXTS[i % len(TEXTS)] for i in range(40)]
    labels = ["ad" if "spam" in text.lower() else "no" for text in texts]
    numbers = np.random.default_rng(5).normal(size=40)
    table = pl.DataFrame({"body": texts, "x": numbers, "y": labels})
    text = {"body": {"ngram_range": (1, 2), "stop_words": ["and"], "max_df": 1.0}}
    model = po.NaiveBayes(columns=po.Columns(text=text), distributions={"body": "multinomial"}).fit(table, "y")
    rows = [{"body": text, "x": x} for text in (*TEXTS, "ＨAM — hám_2 spam_eggs", "", None) for x in (0.5, None)]
    return model, rows


def _dates():
    table = dates_table()
    model = po.NaiveBayes().fit(table, "y")
    rows = [*table.drop("y").head(12).to_dicts(), {"when": None, "x": 0.3}, {"when": None, "x": None}]
    return model, rows


def _mixture():
    table = mixed_table()
    return po.MixtureModel(3, random_state=0, n_init=1).fit(table.drop("y")), patterns(table)


def _impossible():
    table = pl.DataFrame({"u": ["a", "a", "b", "b"], "v": ["c", "c", "d", "d"], "y": [0, 0, 1, 1]})
    return _fitted(po.NaiveBayes(alpha=0), table)


def _no_values():
    table = mixed_table().with_columns(pl.lit(None, pl.Float64).alias("empty"), pl.lit("one").alias("constant"))
    model = po.NaiveBayes().fit(table, "y")
    return model, [{**row, "empty": 3.0, "constant": "one"} for row in patterns(mixed_table(), 1)]


def _residual():
    members = [po.NaiveBayes(), po.GenerativeForest(combine="sum", n_trees=10)]
    return _fitted(po.GenerativeClassifier(members, folds=2), mixed_table(600))


MODELS = {
    "naive Bayes": lambda: _fitted(po.NaiveBayes(), mixed_table()),
    "bins": lambda: _fitted(po.NaiveBayes(distributions={"length": "binned", "mass": po.Binned(4)}), mixed_table()),
    "informative missing cells": lambda: _fitted(po.NaiveBayes(missing="informative"), mixed_table()),
    "factor weights": lambda: _fitted(po.NaiveBayes(feature_weights="conditional"), mixed_table()),
    "learned tables": lambda: _fitted(
        po.NaiveBayes(distributions="binned", bins=8, feature_weights="cells"), mixed_table()
    ),
    "several components": lambda: _fitted(
        po.NaiveBayes(em=po.EM(components_per_class=2, n_init=1), random_state=0), mixed_table()
    ),
    "poisson": _poisson,
    "multinomial": lambda: _counts("multinomial"),
    "complement": lambda: _counts("complement"),
    "compound": lambda: _counts("compound"),
    "presence": lambda: _counts("presence"),
    "scaled": lambda: _counts("scaled"),
    "predictive": lambda: _fitted(po.NaiveBayes(predictive=True), mixed_table()),
    "predictive lda": lambda: _fitted(po.GaussianDiscriminant(predictive=True), mixed_table()),
    "predictive qda": lambda: _fitted(po.GaussianDiscriminant(pooling="per_class", predictive=True), mixed_table()),
    "rates": lambda: _counts("poisson_rate"),
    "rates by exposure": _exposed,
    "text": _text,
    "dates": _dates,
    "lda": lambda: _fitted(po.GaussianDiscriminant(), mixed_table()),
    "qda": lambda: _fitted(po.GaussianDiscriminant(pooling="per_class"), mixed_table()),
    "diagonal": lambda: _fitted(po.GaussianDiscriminant(shrinkage="diagonal"), mixed_table()),
    "tan of bins": lambda: _fitted(po.TreeAugmentedNaiveBayes(), mixed_table()),
    "tan of numbers": lambda: _fitted(po.TreeAugmentedNaiveBayes(bins=None), mixed_table()),
    "trees of classes": lambda: _fitted(po.classifiers.ChowLiuClassifier(bins=None), mixed_table()),
    "trees of components": lambda: _fitted(
        po.TreeAugmentedNaiveBayes(em=po.EM(components_per_class=2, n_init=1), random_state=0), codes_table()
    ),
    "weights on a tree": lambda: _fitted(po.TreeAugmentedNaiveBayes(feature_weights="conditional"), codes_table()),
    "kdb": lambda: _fitted(po.KDependenceBayes(k=2), codes_table()),
    "weights on kdb": lambda: _fitted(po.KDependenceBayes(k=1, feature_weights="conditional"), siblings_table()),
    "kdb of numbers": lambda: _fitted(po.KDependenceBayes(k=1), mixed_table()),
    "aode": lambda: _fitted(po.AveragedOneDependence(), codes_table()),
    "full joint": lambda: _fitted(po.classifiers.FullJointClassifier(), codes_table()),
    "forest": lambda: _fitted(po.GenerativeForest(n_trees=9), mixed_table()),
    "forest of codes": lambda: _fitted(po.GenerativeForest(n_trees=5, splits="best"), codes_table()),
    "sum of trees": lambda: _fitted(po.GenerativeForest(combine="sum", n_trees=10), mixed_table(300)),
    "sum of trees of categories": lambda: _fitted(po.GenerativeForest(combine="sum", n_trees=5), many_categories()),
    "pool with a sum of trees": _residual,
    "groups": lambda: _fitted(po.TreeAugmentedNaiveBayes(), many_categories()),
    "groups in kdb": lambda: _fitted(po.KDependenceBayes(), many_categories()),
    "pool": lambda: _fitted(po.GenerativeClassifier(folds=2), mixed_table()),
    "pool of codes": lambda: _fitted(po.GenerativeClassifier(folds=2, priors=[0.7, 0.3]), codes_table()),
    "mixture": _mixture,
    "a row of probability 0": _impossible,
    "columns without information": _no_values,
}
