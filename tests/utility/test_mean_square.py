"""Mean squared change: worked by hand, against NumPy, and its laws."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.utility import MeanSquare


def file(weight: str | None = None, **columns: Any) -> eq.Records:
    numeric = [c for c in columns if c not in ("w", "id")]
    return eq.read(
        pl.DataFrame(columns), eq.Roles(numeric=numeric, weight=weight, id="id" if "id" in columns else None)
    )


def test_worked_by_hand() -> None:
    """x: errors 0, 0, 1.5 squared over 3 = 0.75, variance 1; y: 4, 0, 0 over 3, variance 4 (mean of 0.75 and 1/3)."""
    old = file(x=[1.0, 2.0, 3.0], y=[0.0, 2.0, 4.0])
    new = file(x=[1.0, 2.0, 4.5], y=[2.0, 2.0, 4.0])
    score = MeanSquare().measure(new, old)
    assert score.value == pytest.approx((0.75 + 1 / 3) / 2)
    assert (score.better, score.side, score.unit) == ("lower", "utility", "times the variance")
    detail = {row["column"]: row for row in score.detail.iter_rows(named=True)}
    assert detail["x"] == pytest.approx(
        {"mse": 0.75, "variance": 1.0, "share": 0.75, "utility": 4 / 3} | {"column": "x"}
    )
    assert MeanSquare(columns=("x",)).measure(new, old).value == 0.75
    assert any("Crude" in note for note in score.notes)


def test_nothing_changed_has_no_reciprocal() -> None:
    old = file(x=[1.0, 2.0, 3.0])
    score = MeanSquare().measure(old, old)
    assert (score.value, score.detail["utility"].item()) == (0.0, None)


def test_weights_and_gaps() -> None:
    """Errors 1, -, 2 with weights 1, 5, 3: (1 + 12)/4; variance over the pairs that are known in both."""
    old = file("w", x=[1.0, 2.0, 3.0], w=[1.0, 5.0, 3.0])
    new = file("w", x=[2.0, None, 5.0], w=[1.0, 5.0, 3.0])
    score = MeanSquare().measure(new, old)
    assert score.detail["mse"].item() == pytest.approx(13 / 4)
    assert score.detail["variance"].item() == pytest.approx((1 * 1.5**2 + 3 * 0.5**2) / 4 * 2)
    assert score.notes[1:] == ("Weighted by 'w'.", "1 missing values were passed over.")


def test_a_column_that_does_not_vary() -> None:
    """No division by 0: the share of changed values."""
    score = MeanSquare().measure(file(x=[5.0, 5.0, 9.0, 5.0]), file(x=[5.0, 5.0, 5.0, 5.0]))
    assert score.value == 0.25


def test_records_are_found_by_id() -> None:
    old, new = file(id=[1, 2, 3], x=[1.0, 2.0, 3.0]), file(id=[3, 1, 2], x=[3.0, 1.0, 2.0])
    assert MeanSquare().measure(new, old).value == 0.0


def test_other_records_are_refused() -> None:
    """A fully synthetic file has no record of anyone: one sentence says so."""
    with pytest.raises(eq.EngineError, match="different records"):
        MeanSquare().measure(file(x=[1.0, 2.0]), file(x=[1.0, 2.0, 3.0]))
    with pytest.raises(eq.EngineError, match="different records"):
        MeanSquare().measure(file(id=[1, 4], x=[1.0, 2.0]), file(id=[1, 2], x=[1.0, 2.0]))


def test_synthetic_records_are_nobody_s() -> None:
    """As many records and the same row numbers as ids: still not the same people."""
    from equipoise.data.records import Law

    old = file(id=[1, 2, 3], x=[1.0, 2.0, 3.0])
    made = old.with_frame(old.frame, Law("synthesize", ("x",), "drawn", {"synthetic": "full"}))
    with pytest.raises(eq.EngineError, match="synthetic: its records are nobody's"):
        MeanSquare().measure(made, old)
    for measure in (eq.utility.Moments(), eq.utility.Eigenvalues(), eq.utility.Estimate("mean:x")):
        assert np.isfinite(measure.measure(made, old).value)
    assert eq.utility.Moments().measure(made, old).detail["statistic"].to_list() == ["mean", "variance"]


def test_grows_with_noise_as_it_should() -> None:
    """Noise of a share c of the standard deviation: c^2; and more with every step."""
    rng = np.random.default_rng(3)
    x, e = rng.normal(size=20_000), rng.normal(size=20_000)
    values = [MeanSquare().measure(file(x=x + c * e), file(x=x)).value for c in (0.0, 0.1, 0.5, 1.0, 2.0)]
    assert values == sorted(values)
    assert values[2] == pytest.approx(0.25, rel=0.05)


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        ({"x": ["a", "b"]}, eq.DataError, "not numeric"),
        ({"y": [1.0, 2.0]}, eq.RolesError, "No column 'x'"),
        ({"x": [None, None]}, eq.DataError, "nothing to compare"),
        ({"x": [1.0, float("inf")]}, eq.DataError, "infinite"),
    ],
)
def test_what_cannot_be_compared_is_refused(table: dict[str, Any], error: type[Exception], words: str) -> None:
    old = eq.read(pl.DataFrame({"x": [1.0, 2.0]}), eq.Roles(numeric="x"))
    new = eq.read(pl.DataFrame(table, schema_overrides={"x": pl.Float64} if table.get("x") == [None, None] else None))
    with pytest.raises(error, match=words):
        MeanSquare().measure(new, old)
