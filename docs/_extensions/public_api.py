"""The pages of the reference: one per public name, listed by `__all__`, so that none can be forgotten."""

import inspect

from sphinx.application import Sphinx


def skip_foreign(app, what, name, thing, skip, options):
    """Leave out members that scikit-learn defines: its own documentation describes them."""
    home = (
        getattr(
            inspect.unwrap(thing) if callable(thing) else thing, "__module__", ""
        )
        or ""
    )
    return (
        True
        if home.split(".")[0] in ("sklearn", "builtins", "enum", "abc")
        else None
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the filter."""
    app.connect("autodoc-skip-member", skip_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
