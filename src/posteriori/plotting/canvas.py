"""Shared elements of figures: axes, scales, colours, legend and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.support.formatting import shorten
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Okabe & Ito (2008), distinguishable with any colour vision; without yellow, which has no contrast on white.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")
INK, GREY = "#333333", "#8C8C8C"
OBSERVED = "observed"
TURNED: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}  # names under an axis

# Colours between which those of many classes are interpolated: the map Turbo (Mikhailov 2019) from 0.05 to 0.95. They
# stand here because reports, which have the same colours, need no Matplotlib.
_TURBO = "3d358b 466be3 3e9bfe 1fc9dd 20eaac 5dfc6f a1fd3d d4e735 f6c33a fe932a f05b12 d02f05 a11201"

_LETTERS_PER_INCH = 11.0
_MARGIN = 0.1  # inches around a figure, so that labels do not touch its edge


def open_axes(ax: Axes | None, width: float = 6.4, height: float = 4.0) -> Axes:
    """Return the axes, or axes of a new figure (size in inches), without top and right spines."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install matplotlib") from error
    if ax is None:
        figure: Any
        figure, ax = plt.subplots(figsize=(width, height), layout="constrained")
        figure.get_layout_engine().set(w_pad=_MARGIN, h_pad=_MARGIN)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(color=GREY)
    return ax


def class_colours(n_classes: int) -> list[str]:
    """Return a colour for each class."""
    if n_classes <= len(PALETTE):
        return list(PALETTE[:n_classes])
    known = np.array([list(bytes.fromhex(colour)) for colour in _TURBO.split()])
    along = np.linspace(0.0, len(known) - 1.0, n_classes)
    mixed = [np.interp(along, np.arange(len(known)), primary) for primary in known.T]
    return ["#" + bytes(colour).hex() for colour in np.rint(mixed).astype(np.uint8).T.tolist()]


def class_names(model: Any) -> list[str]:
    """Return the display name of each class of a classifier."""
    target = model.schema_.target if hasattr(model, "schema_") else None
    return [class_name(label, target) for label in model.classes_.tolist()]


def class_name(label: Any, target: str | None = None) -> str:
    """Return the display name of a label; "target = 1" if it is a number."""
    return shorten(label) if isinstance(label, str) else f"{target or 'class'} = {shorten(label)}"


def draw_legend(ax: Axes) -> None:
    """Draw the legend above the axes, or beside them if there are many classes; never over the data."""
    entries = zip(*ax.get_legend_handles_labels(), strict=True)
    handles, names = zip(*sorted(entries, key=lambda entry: entry[1] == OBSERVED), strict=True)
    position = _legend_place(ax, names)
    legend = ax.legend(
        handles, names, **position, frameon=False, handlelength=1.2, columnspacing=1.4, borderaxespad=0.2
    )
    for handle in legend.legend_handles:
        if handle is not None and hasattr(handle, "set_sizes"):
            handle.set_sizes([30.0])


def _legend_place(ax: Axes, names: tuple[str, ...]) -> dict[str, Any]:
    letters = _LETTERS_PER_INCH * ax.bbox.width / ax.figure.dpi
    lengths = [len(name) + 5 for name in names]
    columns = len(names) if sum(lengths) <= letters else max(int(letters // max(lengths)), 1)
    if len(names) > 3 * columns:
        return {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "ncols": 1 + len(names) // 18}
    return {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "ncols": columns}


_WIDEST_OF_WHOLE = 1e6
_LARGEST_HALF = 1e15  # halves between larger whole numbers are not exact


def histogram_edges(position: Array, bins: int, whole: bool) -> Array:
    """Return the edges of about as many histogram bins; of whole numbers each bin holds equally many."""
    low, high = (float(position.min()), float(position.max())) if len(position) else (0.0, 1.0)
    largest = max(abs(low), abs(high))
    resolution = 2.0 * bins * float(np.spacing(largest))
    if high - low < resolution:  # too close for so many edges
        margin = max(resolution, 0.5)
        return np.linspace(low - margin, high + margin, bins + 1)
    if not whole or high - low > _WIDEST_OF_WHOLE or largest > _LARGEST_HALF:
        return np.linspace(low, high, bins + 1)
    width = max(np.ceil((high - low) / bins), 1.0)
    return np.arange(np.floor(low) - 0.5, high + width, width)
