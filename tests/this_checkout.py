"""Whether Python finds the package of this checkout. Otherwise an installed copy would be tested in its place."""

import importlib.util
import os
from pathlib import Path

_FIX = 'run .venv/bin/python -m pip install --editable ".[test]"'


def why_not_tested(root=Path(__file__).parents[1]):
    """Return a sentence on which copy would be tested instead of that of a checkout, or nothing.

    POSTERIORI_TEST_INSTALLED=1 allows any copy, such as that of a wheel.
    """
    package = importlib.util.find_spec("posteriori")  # imports nothing, because a copy may be broken
    if package is None or package.origin is None:
        return f"posteriori is not installed; {_FIX}"
    folder = Path(package.origin).resolve().parent
    if folder == Path(root, "src", "posteriori").resolve() or os.environ.get("POSTERIORI_TEST_INSTALLED") == "1":
        return ""
    return (
        f"these tests would test the copy of posteriori in {folder} instead of this checkout; {_FIX}, "
        "or set POSTERIORI_TEST_INSTALLED=1 to test that copy"
    )
