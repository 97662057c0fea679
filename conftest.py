"""Names that an example in a docstring may use without importing them."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq


@pytest.fixture(autouse=True, scope="session")
def names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace |= {"eq": eq, "np": np, "pl": pl}
