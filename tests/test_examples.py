"""The service of `examples/serve.py` answers with the numbers of `predict_proba`."""

import json
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest

import posteriori as po
from examples.serve import make_server
from posteriori.datasets import load_penguins


@pytest.fixture(scope="module")
def model():
    return po.NaiveBayes().fit(load_penguins(), "species")


@pytest.fixture(scope="module")
def url(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "model.posteriori"
    po.save(model, path)
    with make_server(path, 0, "127.0.0.1") as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(autouse=True)
def silent(monkeypatch):
    monkeypatch.setattr("http.server.BaseHTTPRequestHandler.log_message", lambda *arguments: None)


def answer(url, content=None):
    with urllib.request.urlopen(url, content, timeout=10) as response:
        return json.load(response)


def test_a_row_gets_its_posterior(url, model):
    row = {"bill_length_mm": 50.0, "island": "Biscoe", "body_mass_g": None}
    found = answer(url, json.dumps(row).encode())
    assert list(found) == model.classes_.tolist()
    np.testing.assert_allclose(list(found.values()), model.predict_proba(row)[0], rtol=1e-12)


def test_columns_and_classes_are_listed(url, model):
    assert answer(url) == {"columns": list(model.schema_.names), "classes": model.classes_.tolist()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"body_mass_g": "heavy"}', "column 'body_mass_g' was numeric in training"),
        (b"[1, 2]", "send one row as a JSON object"),
        (b"{", "Expecting"),
    ],
)
def test_a_row_that_cannot_be_read_is_a_bad_request(url, content, message):
    with pytest.raises(urllib.error.HTTPError) as error:
        answer(url, content)
    with error.value as response:
        assert response.code == 400
        assert message in json.load(response)["error"]
