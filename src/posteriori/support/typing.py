"""Type aliases for arrays."""

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
