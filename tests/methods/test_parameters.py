"""Parameters are checked by the types of their fields, with one sentence for each kind."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

import equipoise as eq
from equipoise.ground.errors import import_extra, require_columns
from equipoise.methods.method import Rule
from equipoise.methods.parameters import above, check_fields, share


@dataclass(frozen=True, slots=True)
class Method:
    rule: Rule
    kind: Literal["fast", "slow", "still"] = "fast"
    columns: tuple[str, ...] | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        check_fields(self, size=2)


def test_names_become_tuples_and_none_stays() -> None:
    assert Method(eq.rules.MinCount(3), columns="age").columns == ("age",)
    assert Method(eq.rules.MinCount(3)).columns is None


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"rule": eq.rules.MinCount}, eq.ParameterError, "rule must be a rule"),
        ({"rule": 3}, eq.ParameterError, "rule must be a rule"),
        ({"kind": "quick"}, eq.ParameterError, "kind must be 'fast', 'slow' or 'still', got 'quick'"),
        ({"columns": ["age", "age"]}, eq.RolesError, "stands twice"),
        ({"size": 1}, eq.ParameterError, "size must be a whole number, at least 2, got 1"),
        ({"size": True}, eq.ParameterError, "whole number"),
        ({"size": 2.0}, eq.ParameterError, "whole number"),
    ],
)
def test_what_does_not_fit_is_refused(fields: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        Method(**{"rule": eq.rules.MinCount(3), **fields})


@pytest.mark.parametrize("value", [0, -1, np.nan, np.inf, True, "2", None])
def test_numbers_above_a_bound(value: Any) -> None:
    above(np.float64(2), "width")
    above(0, "width", strict=False)
    with pytest.raises(eq.ParameterError, match="width must be a finite number above 0"):
        above(value, "width")


@pytest.mark.parametrize(
    ("value", "words"), [(0, "above 0"), (20, "Write 20 % as 0.2"), (True, "got bool"), (None, "got No")]
)
def test_shares(value: Any, words: str) -> None:
    share(1, "rate")
    share(0, "rate", zero=True)
    with pytest.raises(eq.ParameterError, match=words):
        share(value, "rate")
    with pytest.raises(eq.ParameterError, match="below 1, got 1"):
        share(1, "rate", open_=True)


def test_columns_and_packages_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    require_columns(("age",), {"age": int})
    with pytest.raises(eq.RolesError, match="Did you mean 'age'"):
        require_columns(("age", "agee"), {"age": int})
    monkeypatch.setitem(__import__("sys").modules, "sklearn.tree", None)
    with pytest.raises(eq.MissingExtraError, match=r"'scikit-learn'.*equipoise\[learn\]"):
        import_extra("sklearn.tree")
