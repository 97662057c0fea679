"""Before anything is imported: one thread for each library; then the names that examples may use without importing."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that wait burn CPU
os.environ.setdefault("OMP_NUM_THREADS", "1")

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq


@pytest.fixture(autouse=True, scope="session")
def names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace |= {"eq": eq, "np": np, "pl": pl}
