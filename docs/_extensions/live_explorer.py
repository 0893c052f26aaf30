"""Explorers in pages: made while the site is built, and shown in a frame."""

import json
from pathlib import Path, PurePosixPath
from typing import ClassVar
from urllib.parse import quote

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx

import posteriori as po
from posteriori.datasets import load_penguins

FOLDER = "explorers"  # of the site


def sprinkler():
    """Return the network of the gallery."""
    net = po.BayesianNetwork(
        [
            ("cloudy", "sprinkler"),
            ("cloudy", "rain"),
            ("sprinkler", "wet"),
            ("rain", "wet"),
        ]
    )
    net.add_cpt("cloudy", [0.5, 0.5], states=["yes", "no"])
    net.add_cpt("sprinkler", [[0.1, 0.9], [0.5, 0.5]], states=["on", "off"])
    net.add_cpt("rain", [[0.8, 0.2], [0.2, 0.8]], states=["yes", "no"])
    wet = [[[0.99, 0.01], [0.9, 0.1]], [[0.9, 0.1], [0.0, 1.0]]]
    net.add_cpt("wet", wet, states=["yes", "no"])
    return net


MODELS = {
    "species": lambda: po.NaiveBayes().fit(load_penguins(), "species"),
    "mass": lambda: po.AdditiveRegressor().fit(
        load_penguins().drop_nulls("body_mass_g"), "body_mass_g"
    ),
    "any": lambda: po.JointModel().fit(load_penguins()),
    "sprinkler": sprinkler,
}


class LiveExplorer(Directive):
    """Show the explorer of one of `MODELS`, with some cells known: `{explorer} species`, `:row: {"island": "Biscoe"}`."""

    required_arguments = 1
    option_spec: ClassVar = {
        "row": directives.unchanged,
        "height": directives.unchanged,
    }

    def run(self):
        """Return the frame, and a link to the same page alone."""
        (name,) = self.arguments
        document = self.state.document.settings.env.docname
        up = "../" * (len(PurePosixPath(document).parts) - 1)
        address = f"{up}{FOLDER}/{name}.html"
        if row := self.options.get("row"):
            address += "#" + quote(json.dumps({"row": json.loads(row)}))
        height = self.options.get("height", "34rem")
        frame = (
            f'<iframe class="explorer" src="{address}" title="The explorer of a model, to try" loading="lazy" '
            f'style="height: {height}"></iframe>'
        )
        return [nodes.raw("", frame, format="html")]


def write_explorers(app: Sphinx) -> None:
    """Write the page of each model into the site."""
    if app.builder.format == "html":
        folder = Path(app.outdir, FOLDER)
        folder.mkdir(parents=True, exist_ok=True)
        for name, model in MODELS.items():
            po.explore(model(), path=folder / f"{name}.html", embed=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and write the pages before the site is."""
    app.add_directive("explorer", LiveExplorer)
    app.connect("builder-inited", write_explorers)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
