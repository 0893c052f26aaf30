"""Measure the pool and naive Bayes on real texts, beside MultinomialNB, ComplementNB and logistic regression.

Usage: python -m experiments.text ARCHIVE [--keep FILE]

ARCHIVE is the source package of vaderSentiment 0.5 (MIT licence), which holds labelled tweets and snippets of reviews
and editorials; `pip download --no-deps --no-binary :all: vaderSentiment==0.5` gets it. The descriptions of Debian
packages are those that `apt-cache dumpavail` prints; they are left out where there is none. The spambase table is
looked for in the folder that POSTERIORI_DATA names. The result fills docs/text.md.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import numpy as np
import polars as pl
from scipy.sparse import csr_array, hstack
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import posteriori as po
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import data_folder
from posteriori.model_selection.metrics import accuracy, log_loss
from posteriori.support.typing import Array

PAGE = DOCS / "text.md"
FOLDS = 5
MOST = 4000  # documents of a set
SNIPPETS = ("tweets", "amazonReviewSnippets", "movieReviewSnippets", "nytEditorialSnippets")
SECTIONS = (
    *("games", "science", "admin", "net", "x11", "sound"),
    *("graphics", "mail", "editors", "math", "web", "kde"),
)
SMALLEST = 1e-15  # a posterior of 0 counts as this


@dataclass(frozen=True)
class Texts:
    """Rows of counts, beside other columns if the set has some, with the class index of each."""

    name: str
    counts: csr_array
    y: Array
    others: pl.DataFrame | None = None

    def rows(self, chosen: Array) -> Any:
        """Return some rows as posteriori reads them."""
        if self.others is None:
            return self.counts[chosen]
        return po.tables.Blocks(self.others[chosen], {"words": self.counts[chosen]})


def vectorised(name: str, documents: list[str], labels: list[Any]) -> Texts:
    """Return at most 4,000 documents, drawn at random, as counts of the words of all of them."""
    chosen = np.sort(np.random.default_rng(0).permutation(len(documents))[:MOST])
    counts = csr_array(CountVectorizer().fit_transform([documents[i] for i in chosen]))
    return Texts(name, counts, np.unique([labels[i] for i in chosen], return_inverse=True)[1])


def snippets(archive: Path) -> dict[str, list[tuple[float, str]]]:
    """Return the mean rating and the text of each snippet, by the kind of snippet."""
    with zipfile.ZipFile(archive) as packed:
        inner = next(name for name in packed.namelist() if name.endswith("hutto_ICWSM_2014.tar.gz"))
        content = io.BytesIO(packed.read(inner))
    found = {}
    with tarfile.open(fileobj=content) as files:
        for kind in SNIPPETS:
            name = next(one for one in files.getnames() if one.endswith(f"{kind}_GroundTruth.txt"))
            member = files.extractfile(name)
            assert member is not None
            lines = [line.split("\t") for line in member.read().decode("utf-8", "replace").splitlines()]
            found[kind] = [(float(cells[1]), cells[2]) for cells in lines if len(cells) == 3]
    return found


def descriptions() -> tuple[list[str], list[str]]:
    """Return the one-line descriptions of Debian packages, and their sections; empty where apt-cache is missing."""
    if shutil.which("apt-cache") is None:
        return [], []
    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    texts, sections = [], []
    for package in listed.split("\n\n"):
        section = re.search(r"^Section: (.*)$", package, re.MULTILINE)
        text = re.search(r"^Description(?:-en)?: (.*)$", package, re.MULTILINE)
        if section and text and section[1] in SECTIONS:
            texts.append(text[1])
            sections.append(section[1])
    return texts, sections


def sets(archive: Path) -> Iterator[Texts]:
    """Yield the sets that can be read here."""
    kinds = snippets(archive)
    for kind, title in zip(SNIPPETS[:3], ("tweets", "product reviews", "film reviews"), strict=True):
        yield vectorised(
            f"{title}: sentiment", [text for _, text in kinds[kind]], [mean > 0 for mean, _ in kinds[kind]]
        )
    pairs = [(text, kind) for kind, listed in kinds.items() for _, text in listed]
    yield vectorised("snippets: source", [text for text, _ in pairs], [kind for _, kind in pairs])
    texts, sections = descriptions()
    if texts:
        yield vectorised("package descriptions: section", texts, sections)
    folder = data_folder()
    if folder is not None:
        table = pl.read_csv(folder / "csv" / "spambase.csv", infer_schema_length=None)
        words = [name for name in table.columns if name.startswith(("word_freq", "char_freq"))]
        others = table.drop([*words, "class"])
        counts = csr_array(table[words].to_numpy().astype(float))
        yield Texts("spambase: words, and lengths of capitals", counts, table["class"].to_numpy(), others)


def ours(model: Any) -> Callable[[Texts, Array, Array], Array]:
    """Return the function from a set, its training rows and its held-out rows to the posterior of these."""

    def posterior(texts: Texts, train: Array, held_out: Array) -> Array:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(model.fit(texts.rows(train), texts.y[train]).predict_proba(texts.rows(held_out)))

    return posterior


def of_words(model: Any) -> Callable[[Texts, Array, Array], Array]:
    """Return the same for a model of scikit-learn that reads the counts only."""

    def posterior(texts: Texts, train: Array, held_out: Array) -> Array:
        return np.asarray(model.fit(texts.counts[train], texts.y[train]).predict_proba(texts.counts[held_out]))

    return posterior


def of_tfidf(model: Any) -> Callable[[Texts, Array, Array], Array]:
    """Return the same for a model that reads tf-idf weights, and the logarithms of the other columns, standardised."""

    def posterior(texts: Texts, train: Array, held_out: Array) -> Array:
        weights = TfidfTransformer()
        parts = [[weights.fit_transform(texts.counts[train])], [weights.transform(texts.counts[held_out])]]
        if texts.others is not None:
            scaler, numbers = StandardScaler(), np.log1p(texts.others.to_numpy())
            parts[0].append(csr_array(scaler.fit_transform(numbers[train])))
            parts[1].append(csr_array(scaler.transform(numbers[held_out])))
        fitted, seen = (hstack(part).tocsr() for part in parts)
        return np.asarray(model.fit(fitted, texts.y[train]).predict_proba(seen))

    return posterior


def chosen_strength() -> Any:
    """Return logistic regression whose penalty is chosen by the log-loss of three inner folds."""
    return LogisticRegressionCV(
        Cs=[1.0, 3.0, 10.0, 30.0],
        cv=3,
        scoring="neg_log_loss",
        max_iter=500,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )


MODELS = {
    "pool": ours(po.GenerativeClassifier(n_jobs=1)),
    "NaiveBayes, multinomial": ours(po.NaiveBayes(distributions="multinomial", n_jobs=1)),
    "NaiveBayes, scaled": ours(po.NaiveBayes(distributions=po.ScaledMultinomial(0.1), n_jobs=1)),
    "NaiveBayes, complement": ours(po.NaiveBayes(distributions="complement", n_jobs=1)),
    "NaiveBayes, compound": ours(po.NaiveBayes(distributions="compound", n_jobs=1)),
    "MultinomialNB": of_words(MultinomialNB()),
    "ComplementNB": of_words(ComplementNB()),
    "ComplementNB, tf-idf": of_words(make_pipeline(TfidfTransformer(), ComplementNB())),
    "logistic regression, tf-idf": of_tfidf(LogisticRegression(max_iter=500)),
    "logistic regression, tf-idf, C by cross-validation": of_tfidf(chosen_strength()),
}


def measure(texts: Texts) -> dict[str, tuple[float, float]]:
    """Return the log-loss in nats and the accuracy of each model on the rows outside its training rows."""
    folds = list(StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(texts.y, texts.y))
    found = {}
    for name, posterior in MODELS.items():
        if name == "NaiveBayes, compound" and (texts.counts.data % 1).any():  # it takes whole counts
            continue
        held_out = np.empty((len(texts.y), texts.y.max() + 1))
        for train, test in folds:
            held_out[test] = posterior(texts, train, test)
        held_out = np.clip(held_out, SMALLEST, 1.0)
        found[name] = log_loss(texts.y, held_out), accuracy(texts.y, held_out)
    return found


def table_of(sets_: list[Texts], scores: list[dict[str, tuple[float, float]]]) -> str:
    """Return log-loss · accuracy: one line per model, one column per set."""
    sizes = [
        f"{texts.name} ({len(texts.y):,} × {texts.counts.shape[1]:,}, {texts.y.max() + 1} classes)" for texts in sets_
    ]
    lines = []
    for name in MODELS:
        cells = []
        for of_set in scores:
            least = min(loss for loss, _ in of_set.values())
            text = f"{of_set[name][0]:.3f} · {of_set[name][1]:.3f}" if name in of_set else ""
            cells.append(f"**{text}**" if text and of_set[name][0] <= least + 5e-4 else text)
        lines.append([name, *cells])
    return markdown_table(["log-loss · accuracy", *sizes], lines)


def main() -> None:
    """Measure every set, and fill the page."""
    parser = argparse.ArgumentParser(description="Measure models of counts of words, and write docs/text.md.")
    parser.add_argument("archive", type=Path, help="vaderSentiment-0.5.zip")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="store scores here, and go on from those in it")
    arguments = parser.parse_args()
    start = time.perf_counter()
    keep = arguments.keep
    scores: dict[str, Any] = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    found = list(sets(arguments.archive))
    wanted = [texts for texts in found if texts.name not in scores]
    with ProcessPoolExecutor(2, get_context("spawn")) as processes:
        for texts, of_set in zip(wanted, processes.map(measure, wanted), strict=True):
            scores[texts.name] = of_set
            print(texts.name, {name: round(loss, 3) for name, (loss, _) in of_set.items()}, flush=True)
            if keep is not None:
                keep.write_text(json.dumps(scores))
    replace_block("measured", table_of(found, [scores[texts.name] for texts in found]), PAGE)
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
