"""What every example starts from: the same figure size and resolution, and a fixed seed for code that takes none."""


def reset(gallery_conf, fname):
    """Set warnings, Matplotlib and NumPy before and after each example."""
    import warnings

    import matplotlib as mpl
    import numpy as np
    import polars as pl

    warnings.filterwarnings(
        "error", category=UserWarning
    )  # a page that warns is wrong
    warnings.filterwarnings("ignore", message=".*non-interactive")
    mpl.rcdefaults()
    mpl.use("Agg")
    mpl.rcParams |= {
        "figure.figsize": (7.2, 4.4),
        "figure.dpi": 100,
        "savefig.dpi": 100,
        "figure.constrained_layout.use": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    np.random.seed(0)  # noqa: NPY002
    pl.Config.set_tbl_rows(8)
