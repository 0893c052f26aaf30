"""The table of outputs: which model gives which output, and why one does not; `python -m tests.outputs` prints it."""

import tempfile
import warnings
from pathlib import Path

import duckdb

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.registry import Subject

PENGUINS = load_penguins().drop_nulls("body_mass_g").drop("year")
FEW = PENGUINS[::3]
TARGETS = {Subject.CLASS: "species", Subject.NUMBER: "body_mass_g"}
MODELS = (
    *("NaiveBayes", "GaussianDiscriminant", "TreeAugmentedNaiveBayes", "KDependenceBayes", "AveragedOneDependence"),
    *("GenerativeForest", "GenerativeClassifier", "AdditiveRegressor", "KernelRegressor", "GenerativeRegressor"),
    *("MixtureModel", "ChowLiuTree", "JointModel", "BayesianNetwork"),
)
YES = "yes"

# Why a model does not give an output, by its subject or its name.
NO_TARGET = "has no target"
NO_CLASSES = "has no classes"
NO_SELECT = "has no SELECT; to_polars scores rows within queries"
OF_NETWORKS = "a network is asked by query and marginals"
REASONS = {
    "explain": {
        Subject.COMPONENT: NO_TARGET,
        Subject.ROWS: NO_TARGET,
        Subject.COLUMNS: "has no target: score_cells says which cells do not fit",
        Subject.VARIABLES: "influence and active_trails of the network explain",
    },
    "report": {
        Subject.ROWS: "a JointModel of the same columns has one",
        Subject.VARIABLES: "explore shows a network",
    },
    "explorer": {
        Subject.ROWS: "a JointModel of the same columns has one",
        "KernelRegressor": "similarities to rows are in no page",
        "GenerativeRegressor": "similarities to rows are in no page; its additive member has one",
    },
    "importance": {Subject.COMPONENT: NO_TARGET, Subject.ROWS: NO_TARGET, Subject.VARIABLES: OF_NETWORKS},
    "held-out scores": {
        Subject.COMPONENT: NO_TARGET,
        Subject.ROWS: NO_TARGET,
        Subject.COLUMNS: "fit prints how far each column follows from the others",
        Subject.VARIABLES: "as_classifier(variable) is cross-validated",
    },
    "cross_validate, compare": {
        Subject.COMPONENT: NO_TARGET,
        Subject.ROWS: NO_TARGET,
        Subject.COLUMNS: "compare_tables compares drawn rows",
        Subject.VARIABLES: "as_classifier(variable) is compared",
    },
    "sets or intervals": {
        Subject.COMPONENT: "components have no order, and no truth to cover",
        Subject.ROWS: NO_TARGET,
        Subject.VARIABLES: "as_classifier(variable) has probabilities",
    },
    "decisions by costs": {
        Subject.COMPONENT: NO_CLASSES,
        Subject.ROWS: NO_CLASSES,
        Subject.NUMBER: "costs are of classes; quantiles minimise costs of too much and too little",
    },
    "monitor": {Subject.VARIABLES: "a JointModel of the same columns is watched"},
    "partial_fit": {
        Subject.COMPONENT: "EM needs all rows",
        Subject.VARIABLES: "tables are learned from all rows",
        "GenerativeRegressor": "its trees need all rows; AdditiveRegressor and KernelRegressor learn on",
    },
    "merge": {
        Subject.COMPONENT: "EM needs all rows",
        Subject.VARIABLES: "keeps no counts",
        Subject.NUMBER: "steps and cells are at places of its rows",
        Subject.COLUMNS: "bins are at places of its rows",
    },
    "files of predictions": {Subject.ROWS: NO_TARGET, Subject.VARIABLES: "marginals gives a table"},
    "expression of polars": {Subject.ROWS: NO_TARGET},
    "graph of ONNX": {
        Subject.ROWS: NO_TARGET,
        "GenerativeRegressor": "leaves of rows are in no graph; its additive member has one",
        **dict.fromkeys((Subject.COLUMNS, Subject.VARIABLES), "any column is asked, in Python and JavaScript"),
    },
    "JavaScript": {
        Subject.ROWS: NO_TARGET,
        "KernelRegressor": "similarities to rows are in no page",
        "GenerativeRegressor": "similarities to rows are in no page; its additive member is written",
    },
    "macros of DuckDB": {
        **dict.fromkeys((Subject.COLUMNS, Subject.VARIABLES), NO_SELECT),
        Subject.ROWS: NO_TARGET,
        "KernelRegressor": NO_SELECT,
        "GenerativeRegressor": "leaves of rows are in no SELECT; its additive member has one",
    },
}


def fitted(name):
    if name == "BayesianNetwork":
        return po.learn_network(PENGUINS.select("species", "island", "sex"))
    model = getattr(po, name)()
    return model.fit(PENGUINS, *targets(model))


def targets(model):
    return [TARGETS[model.subject]] if model.subject in TARGETS else []


def asked(model):
    """Return the column that a model is asked about, where it has to be stated."""
    return {"column": "sex"} if model.subject in (Subject.COLUMNS, Subject.VARIABLES) else {}


def saved(model):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.posteriori"
        po.save(model, path)
        po.load(path)


def predicted(model):
    with tempfile.TemporaryDirectory() as folder:
        PENGUINS.write_csv(Path(folder) / "rows.csv")
        column = asked(model) if model.subject is Subject.COLUMNS else {}
        po.predict_to(model, po.scan(Path(folder) / "rows.csv"), Path(folder) / "out.csv", **column)


def held_out(model):
    if model.subject is Subject.NUMBER or model.fitted_.members:
        return model.out_of_fold_
    return po.model_selection.out_of_fold(type(model)(), PENGUINS, *targets(model))


def compared(model):
    po.cross_validate([type(model)()], FEW, *targets(model), folds=3)
    po.compare([type(model)()], FEW, *targets(model), sizes=[60], repeats=1)


def spread(model):
    if model.subject is Subject.CLASS:
        return model.predict_set(PENGUINS, held_out=held_out(model))
    return model.answer(PENGUINS, *(["body_mass_g"] if model.subject is Subject.COLUMNS else [])).interval()


def decided(model):
    about = {Subject.COLUMNS: ["species"], Subject.VARIABLES: ["species"]}.get(model.subject, [])
    rows = PENGUINS.select("island", "sex") if model.subject is Subject.VARIABLES else PENGUINS
    species = PENGUINS["species"].unique().sort().to_list()
    wrong = {true: {other: float(true != other) for other in species} for true in species}
    return po.decide(model.answer(rows, *about), costs=wrong)


OUTPUTS = {
    "model files": saved,
    "files of predictions": predicted,
    "expression of polars": lambda model: PENGUINS.select(po.to_polars(model, **asked(model))),
    "macros of DuckDB": lambda model: po.to_duckdb(duckdb.connect(), model),
    "graph of ONNX": lambda model: model.to_onnx(),
    "JavaScript": po.javascript.to_javascript,
    "explain": lambda model: model.explain(PENGUINS.head(2)),
    "report": lambda model: po.report(model, PENGUINS, *targets(model)),
    "explorer": po.explore,
    "importance": lambda model: model.importance_,
    "held-out scores": held_out,
    "cross_validate, compare": compared,
    "sets or intervals": spread,
    "decisions by costs": decided,
    "monitor": lambda model: po.Monitor(model, PENGUINS),
    "partial_fit": lambda model: type(model)().partial_fit(PENGUINS, *targets(model)),
    "merge": lambda model: po.merge([model, model]),
}


def stated(name, subject, output):
    """Return the entry of the table for a model and an output."""
    reasons = REASONS.get(output, {})
    return reasons.get(name, reasons.get(subject, YES))


def gives(model, output):
    """Return whether a model gives an output: it is made, or refused with an error in one sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            OUTPUTS[output](model)
        except (ValueError, TypeError, AttributeError):
            return False
    return True


def subject_of(name):
    return getattr(po, name).subject


def table():
    """Return the table in Markdown: a line per output, and a column per model."""
    lines, notes = [], []
    for output in OUTPUTS:
        cells = []
        for name in MODELS:
            said = stated(name, subject_of(name), output)
            if said == YES:
                cells.append("●")
                continue
            sentence = f"{output}: {said}"
            if sentence not in notes:
                notes.append(sentence)
            cells.append(f"{notes.index(sentence) + 1}")
        lines.append(f"| {output} | {' | '.join(cells)} |")
    head = f"| | {' | '.join(SHORT[name] for name in MODELS)} |\n|-|{'-|' * len(MODELS)}"
    listed = "\n".join(f"{k}. {note}." for k, note in enumerate(notes, 1))
    return "\n".join([head, *lines, "", listed]) + "\n"


_SHORT = (
    *("nb", "discriminant", "tan", "kdb", "aode", "forest", "pool", "additive", "kernel", "pool of numbers"),
    *("mixture", "tree", "joint", "network"),
)
SHORT = dict(zip(MODELS, _SHORT, strict=True))


if __name__ == "__main__":
    print(table())
