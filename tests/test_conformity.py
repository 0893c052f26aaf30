"""The check of fields against their annotations."""

import types
from typing import Any

import numpy as np

from posteriori.support.checks import conforms


def test_an_alias_of_a_type_statement_is_its_value():
    class Alias:  # what `type NDArray[T] = np.ndarray[Any, T]` makes on Python 3.12
        __value__ = np.ndarray[Any, Any]

    hint = types.GenericAlias(Alias, (Any,))
    assert conforms(np.ones(2), hint)
    assert not conforms([1.0, 2.0], hint)
