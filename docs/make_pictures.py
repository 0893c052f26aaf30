"""Draw the pictures of the documentation: python docs/make_pictures.py."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.plotting import plot_decision_regions, plot_densities, plot_explanation

PICTURES = Path(__file__).parent / "pictures"
ROW = 314


def draw_penguins(path: Path) -> None:
    """Draw what a model learns, what it decides and why, on one strip 1600 pixels wide."""
    penguins = load_penguins().drop("island", "year")
    model = po.NaiveBayes().fit(penguins, "species")
    figure, (learned, decided, explained) = plt.subplots(
        1, 3, figsize=(16.0, 4.9), layout="constrained", width_ratios=(1.0, 1.0, 1.15)
    )
    figure.get_layout_engine().set(w_pad=0.12, wspace=0.04)
    plot_densities(model, "flipper_length_mm", X=penguins, y="species", ax=learned)
    plot_decision_regions(model, penguins, "species", features=("bill_length_mm", "flipper_length_mm"), ax=decided)
    plot_explanation(model, penguins, ROW, ax=explained)
    odds = explained.get_title(loc="left")
    explained.text(0.0, 1.02, odds, transform=explained.transAxes, va="bottom")
    heads = ("Learn what each species is like", "Decide by Bayes’ rule", "Explain: the evidence adds up")
    for number, (ax, head) in enumerate(zip((learned, decided, explained), heads, strict=True), start=1):
        ax.set_title(f"{number}  {head}", loc="left", fontsize=14, fontweight="bold", pad=28)
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    draw_penguins(PICTURES / "penguins.png")
