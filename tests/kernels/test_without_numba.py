"""Where Numba is not installed, every model fits, predicts and explains by plain Python, with the same numbers."""

import json
import subprocess
import sys
import warnings

import numpy as np
import polars as pl

import posteriori as po
from posteriori.registry import MODELS

_HIDE_NUMBA = """
import importlib.util, sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}")
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == "numba" else found(name, package)
sys.meta_path.insert(0, Hidden())
from tests.kernels import test_without_numba as test
import json
print(json.dumps(test.answers(json.loads(sys.argv[1]))))
assert "numba" not in sys.modules
"""


def _table(of_counts):
    rng = np.random.default_rng(0)
    y = np.repeat(["p", "q"], 15)
    second = y == "q"
    if of_counts:
        return pl.DataFrame({f"w{j}": rng.poisson(1 + 2 * (second ^ j % 2)) for j in range(4)}), y
    columns = {
        "a": np.where(rng.random(30) < 0.3, "u", np.where(second, "v", "w")),
        "b": rng.choice(["s", "t"], 30),
        "x": rng.normal(size=30) + 2 * second,
        "z": rng.normal(size=30) - second,
    }
    return pl.DataFrame(columns), y


def answers(names):
    """Return the posteriors of five rows and the explanation of one, by the name of the model."""
    found = {}
    for name in names:
        X, y = _table(name != "network" and MODELS[name].of_counts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name == "network":
                network = po.learn_network(X[["a", "b"]].with_columns(y=y))
                found[name] = [network.predict_proba(X[["a", "b"]], "y").tolist()]
                continue
            model = MODELS[name].make(**_SMALLER.get(name, {})).fit(X, y)
            found[name] = [model.predict_proba(X[:5]).tolist()]
            if MODELS[name].generative:
                found[name].append(model.explain(X[:1]).log_factors.tolist())
    return found


_SMALLER = {"pool": {"members": ["nb predictive", "tan"]}, "forest": {"n_trees": 3}, "forest best": {"n_trees": 3}}


def test_every_model_gives_the_same_numbers_without_numba():
    names = ["network", "logistic", *(name for name, one in MODELS.items() if one.generative)]
    run = subprocess.run([sys.executable, "-c", _HIDE_NUMBA, json.dumps(names)], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    found, expected = json.loads(run.stdout), answers(names)
    for name in names:
        for without, compiled in zip(found[name], expected[name], strict=True):
            np.testing.assert_allclose(without, compiled, rtol=1e-6, atol=1e-9, err_msg=name)
