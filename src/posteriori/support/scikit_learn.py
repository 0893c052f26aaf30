"""Let a command import scikit-learn without scipy.stats and pandas, which take half of the time of that import.

`sklearn.utils.fixes` imports both. It needs the first in one function, which estimators here do not call, and of the
second only its name. This is for commands: they own their process, and no other thread imports anything meanwhile. Who
imports posteriori as a library gets scikit-learn as it is. Import this module before any part of scikit-learn.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from posteriori import support


class _Deferred(ModuleType):
    """A module that is imported when something of it is needed."""

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


if support.is_command and "sklearn" not in sys.modules:
    _deferred = [
        _Deferred(name) for name in ("scipy.stats", "pandas") if name not in sys.modules and find_spec(name) is not None
    ]
    sys.modules.update({module.__name__: module for module in _deferred})
    try:
        import_module("sklearn.base")
    finally:  # any other import loads the real module
        for module in _deferred:
            if sys.modules.get(module.__name__) is module:
                del sys.modules[module.__name__]
