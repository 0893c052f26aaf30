"""Tables of scores, candidates and feature importance, which several commands print."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from posteriori.cli.facts import Facts
from posteriori.cli.tables import NAME, label_text, new_table, print_table
from posteriori.formatting import count, plural, probability

MOST_FEATURES = 10


def print_scores(out: Console, title: str, found: Facts) -> None:
    """Print the scores of a model beside those of its class prior."""
    table = new_table(title, "model", "class prior")
    names = {"accuracy": "accuracy", "log_loss": "log-loss (nats)", "brier_score": "Brier score", "auc": "AUC"}
    names |= {f"{name.lower()}_macro": f"{name} (mean of the classes)" for name in ("precision", "recall", "F1")}
    for key, name in names.items():
        table.add_row(name, probability(found["model"][key]), probability(found["class_prior"][key]))
    print_table(out, table)


def print_candidates(out: Console, candidates: Sequence[Facts], verdict: str) -> None:
    """Print the cross-validated scores and the weight of each candidate of a pool, and what the names stand for."""
    table = new_table("candidate", "log-loss (nats)", "accuracy", "weight")
    for candidate in candidates:
        scores = (f"{candidate[name]:.3f} ± {candidate[f'{name}_se']:.3f}" for name in ("log_loss", "accuracy"))
        weight = "" if candidate["member"] == "pool" else f"{candidate['weight']:.2f}"
        table.add_row(candidate["member"], *scores, weight)
    print_table(out, table)
    for candidate in candidates:
        if candidate["description"]:
            out.print(f"{candidate['member']}: {candidate['description']}")
    out.print("weight: exponent of the candidate's posterior in the pool; weights are not shares and need not sum to 1")
    if verdict:
        out.print(verdict)
    out.print()


def print_information(out: Console, facts: Facts) -> None:
    """Print the feature importance with standard errors, the greatest first."""
    features, measured = facts["information"], facts["information_rows"]
    table = new_table("feature importance", "nats lost without it", "")
    table.columns[0].max_width = NAME
    table.columns[2].justify = "left"
    greatest = max((feature["nats"] for feature in features), default=0.0)
    for feature in features[:MOST_FEATURES]:
        nats = f"{feature['nats']:.4f} ± {feature['standard_error']:.4f}"
        table.add_row(label_text(feature["feature"]), nats, bar(feature["nats"], greatest))
    out.print(table)
    if len(features) > MOST_FEATURES:
        out.print(f"and {plural(len(features) - MOST_FEATURES, 'more feature')}")
    rows = f"{measured['rows']:,}"
    where = f"on {rows} held-out rows" if measured["held_out"] else f"expected by the model, over {rows} rows it drew"
    out.print(f"log-loss added when the column is unknown, {where}\n")


def print_parameter_count(out: Console, facts: Facts) -> None:
    """Print the number of free parameters, and that of the full joint distribution if it is known."""
    full = facts["n_parameters_full_joint"]
    beside = f" ({count(full)} without independence given the class)" if full is not None else ""
    out.print(f"{count(facts['n_parameters'])} parameters{beside}")


def bar(value: float, greatest: float, width: int = 24) -> str:
    """Return a horizontal bar, of this width in characters for the greatest value."""
    return "█" * round(width * value / greatest) if greatest > 0 else ""
