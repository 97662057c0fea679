"""Before anything is imported: one thread for each library; then the names that examples may use without importing.

And secret seeds that are no secret: in `make test` each test and each shared fixture draws its seeds from its own name,
so that a run which passes passes again. `make evidence` draws them from the operating system, as users do.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that wait burn CPU
os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import secrets
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq

DRAWN = os.environ.get("EQUIPOISE_EVIDENCE") == "1"
"""Whether seeds are drawn by the operating system."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if not DRAWN:
            patch.setattr(secrets, "randbits", random.Random(item.nodeid).getrandbits)
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Iterator[None]:
    """What several tests share does not depend on which of them came first."""
    with pytest.MonkeyPatch.context() as patch:
        if not DRAWN and fixturedef.scope != "function":
            name = f"{fixturedef.baseid}::{fixturedef.argname}[{request.param_index}]"
            patch.setattr(secrets, "randbits", random.Random(name).getrandbits)
        return (yield)


@pytest.fixture(autouse=True, scope="session")
def names_of_examples(doctest_namespace: dict[str, Any]) -> None:
    doctest_namespace |= {"eq": eq, "np": np, "pl": pl}
