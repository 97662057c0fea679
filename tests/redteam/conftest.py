"""What attackers reach, beside what is reported: asserted, and written down for the table of docs/attacks.md."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

ROWS = os.environ.get("EQUIPOISE_ATTACK_ROWS")
"""The file to which `make redteam` has the rows of its table written."""


@pytest.fixture(scope="session")
def record() -> Callable[..., None]:
    """Asserts that a reported number is at least what an attacker reaches, and writes both down."""
    return _record


def _record(
    mask: str, parameter: str, *, file: str, measure: str, reported: float, reached: float, error: float = 1e-9
) -> None:
    """`error` is what chance may add to what was reached; `measure` says in words what both are a share of."""
    row = {"mask": mask, "parameter": parameter, "file": file, "measure": measure}
    if ROWS:
        with Path(ROWS).open("a", encoding="utf-8") as rows:
            rows.write(json.dumps({**row, "reported": float(reported), "reached": float(reached)}) + "\n")
    assert reported >= reached - error, f"{mask} {parameter}: {reported:.4g} reported, {reached:.4g} reached"
