"""The penguins as tables of three libraries, and what is read off an axes."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

mpl.use("Agg")

from matplotlib.colors import to_rgb

from posteriori.datasets import load_penguins
from posteriori.plotting.canvas import class_colours

PENGUINS = load_penguins().drop("year")
MEASURES = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def numpy_table(frame):
    numeric = all(dtype.is_numeric() for dtype in frame.dtypes)
    return frame.to_numpy() if numeric else np.array(frame.rows(), dtype=object)


def pandas_table(frame):
    return pd.DataFrame({name: frame[name].to_list() for name in frame.columns})


def polars_table(frame):
    return frame


TABLES = pytest.mark.parametrize("table", [numpy_table, pandas_table, polars_table])


def areas(ax):
    return [np.trapezoid(line.get_ydata(), line.get_xdata()) for line in ax.lines]


def heights(ax, k):
    return np.array([bar.get_height() for bar in ax.containers[k]])


def winners(ax, n_classes):
    """Read the class of each cell of the picture off its hue, and the cells' places."""
    mesh = ax.collections[0]
    ink = 1.0 - np.asarray(mesh.get_array())
    hues = 1.0 - np.array([to_rgb(colour) for colour in class_colours(n_classes)])
    directions = hues / np.linalg.norm(hues, axis=1, keepdims=True)
    corners = mesh.get_coordinates()
    centres = (corners[:-1, :-1] + corners[1:, 1:]) / 2
    return (ink @ directions.T).argmax(axis=-1), centres[..., 0], centres[..., 1], ink
