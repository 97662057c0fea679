"""Type aliases for NumPy arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[Any]
"""Whole numbers of any width, and flags used as such."""
Booleans = NDArray[np.bool_]
