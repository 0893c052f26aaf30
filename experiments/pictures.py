"""Draw the pictures of the documentation: python -m experiments.pictures."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

import posteriori as po
from experiments.page import PICTURES
from posteriori.datasets import load_penguins
from posteriori.plotting import plot_decision_regions, plot_densities, plot_explanation, plot_network, plot_tree

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


def draw_tree(path: Path) -> None:
    """Draw which measurements of a penguin depend on which, once its species is known."""
    model = po.TreeAugmentedNaiveBayes(bins=None).fit(load_penguins(), "species")
    figure = plot_tree(model).figure
    figure.savefig(path, dpi=100)
    plt.close(figure)


def draw_network(path: Path) -> None:
    """Draw the sprinkler network: the grass is wet, and the sprinkler was on, which explains the rain away."""
    net = po.BayesianNetwork([("cloudy", "sprinkler"), ("cloudy", "rain"), ("sprinkler", "wet"), ("rain", "wet")])
    net.add_cpt("cloudy", [0.5, 0.5], states=["yes", "no"])
    net.add_cpt("sprinkler", [[0.1, 0.9], [0.5, 0.5]], states=["on", "off"])
    net.add_cpt("rain", [[0.8, 0.2], [0.2, 0.8]], states=["yes", "no"])
    net.add_cpt("wet", [[[0.99, 0.01], [0.9, 0.1]], [[0.9, 0.1], [0.0, 1.0]]], states=["yes", "no"])
    figure = plot_network(net, {"wet": "yes", "sprinkler": "on"}).figure
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    draw_penguins(PICTURES / "penguins.png")
    draw_tree(PICTURES / "tree.png")
    draw_network(PICTURES / "network.png")
