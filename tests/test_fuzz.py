"""Inputs with at most one thing wrong end in an answer or in one sentence; a longer run is `make fuzz`."""

import pytest

from fuzz.harness import run_in_child
from fuzz.targets import TARGETS
from posteriori.kernels.machine.compiling import machine_code


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_no_input_provokes_an_unexpected_error(name):
    if name == "calls" and machine_code() is None:
        pytest.skip("this installation has no machine code of its own")
    report = run_in_child(TARGETS[name], first=0, count=8)
    assert report.findings == []
    assert report.tried == 8
    assert report.outcomes["answer"] > 1
