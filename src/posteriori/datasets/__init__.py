"""A small real table to try things on.

It is read from the package, without network, and the examples and tests use it.
"""

from __future__ import annotations

from importlib.resources import files

import polars as pl

__all__ = ["load_penguins"]


def load_penguins() -> pl.DataFrame:
    """Return the Palmer penguins: 344 birds of three species, measured near Palmer Station, Antarctica.

    Returns
    -------
    polars.DataFrame (344, 8)
        ``island``, ``bill_length_mm``, ``bill_depth_mm``, ``flipper_length_mm``, ``body_mass_g``, ``sex``,
        ``year`` (2007–2009) and ``species`` (Adelie, Chinstrap, Gentoo). Two birds lack every measurement and
        eleven their sex: these cells are null.

    Notes
    -----
    Collected by Kristen Gorman and the Palmer Station Long Term Ecological Research programme; published by
    Horst, Hill & Gorman as the R package palmerpenguins, and dedicated to the public domain (CC0).

    References
    ----------
    Gorman, Williams & Fraser (2014), Ecological sexual dimorphism and environmental variability within a
    community of Antarctic penguins (genus Pygoscelis), PLoS ONE 9(3): e90081.

    Horst, Hill & Gorman (2020), palmerpenguins: Palmer Archipelago (Antarctica) penguin data,
    doi:10.5281/zenodo.3960218.

    Examples
    --------
    >>> from posteriori.datasets import load_penguins
    >>> load_penguins()["species"].value_counts(sort=True).rows()
    [('Adelie', 152), ('Gentoo', 124), ('Chinstrap', 68)]
    """
    with files(__name__).joinpath("penguins.csv").open("rb") as table:
        return pl.read_csv(table, null_values=["", "NA"])
