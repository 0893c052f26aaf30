"""Inputs with at most one thing wrong end in an answer or in one sentence; a longer run is `make fuzz`."""

import pytest

from fuzz.harness import run_in_child
from fuzz.targets import TARGETS


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_input_provokes_an_unexpected_error(name):
    report = run_in_child(TARGETS[name], first=0, count=8)
    assert report.findings == []
    assert report.tried == 8
    assert report.outcomes["answer"] > 1
