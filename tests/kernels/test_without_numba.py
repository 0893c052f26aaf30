"""Without machine code and Numba every model fits, predicts and explains by plain Python, with the same numbers."""

import json
import os
import subprocess
import sys
import warnings

import numpy as np
import polars as pl

import posteriori as po
from posteriori.registry import MODELS

_ANSWERS = """
import json, sys
from tests.kernels import test_without_numba as test
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
    plain = os.environ | {"POSTERIORI_KERNELS": "python"}
    command = [sys.executable, "-c", _ANSWERS, json.dumps(names)]
    run = subprocess.run(command, env=plain, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-2000:]
    found, expected = json.loads(run.stdout), answers(names)
    for name in names:
        for without, compiled in zip(found[name], expected[name], strict=True):
            np.testing.assert_allclose(without, compiled, rtol=1e-6, atol=1e-9, err_msg=name)
