"""Mutated inputs end in an answer or in one sentence, never in a crash; a longer run is `make fuzz`."""

import pytest

from fuzz.harness import run_in_child
from fuzz.targets import TARGETS

COUNTS = {"options": 25, "tables": 25}  # these run whole commands


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_input_provokes_an_unexpected_error(name):
    report = run_in_child(TARGETS[name], first=0, count=COUNTS.get(name, 100))
    assert report.tried == COUNTS.get(name, 100)
    assert report.findings == []
