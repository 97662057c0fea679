"""Distributions before and after: counted right, on one scale, and nothing invented."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Law
from equipoise.releases import overlays as module
from equipoise.releases.overlays import changed_columns, overlays


@pytest.fixture(autouse=True)
def _name_all(monkeypatch, request):
    """Files of a few records are counted by hand here: every category is named, but where that is the question."""
    if "rare" not in request.node.name:
        monkeypatch.setattr(module, "MIN_NAMED_RECORDS", 1)


def test_rare_categories_are_counted_and_not_named():
    one = drawn(["a"] * 6 + ["b"] * 4 + ["CANARY"] * 2, ["a"] * 7 + ["b"] * 3 + ["CANARY", "SECOND"])
    assert one.labels == ("a", "b", "2 others")
    assert one.before == pytest.approx((6 / 12, 4 / 12, 2 / 12))
    assert one.after == pytest.approx((7 / 12, 3 / 12, 2 / 12))


def files(before, after, **roles):
    """Two files in memory, the second masked in its first column."""
    one, two = (
        eq.read(pl.DataFrame({"v": side, "other": range(len(side))}), eq.Roles(["v"], **roles))
        for side in (before, after)
    )
    return one, two


def drawn(before, after):
    (one,) = overlays(*files(before, after), ["v"])
    return one


def brute(values, one):
    """Shares counted one by one, from the labels of the bins."""
    ends = [tuple(float(end.replace(",", "").replace("−", "-")) for end in label.split(" to ")) for label in one.labels]
    return [sum(low <= value <= high for value in values) / len(values) for low, high in ends]


def test_whole_numbers_are_counted_in_bins_of_whole_numbers():
    rng = np.random.default_rng(1)
    before, after = rng.integers(0, 90, 500).tolist(), rng.integers(10, 80, 500).tolist()
    one = drawn(before, after)
    assert one.kind == "histogram"
    inner = slice(1, -1)
    assert one.before[inner] == pytest.approx(brute(before, one)[inner])
    assert one.after[inner] == pytest.approx(brute(after, one)[inner])
    assert sum(one.before) == pytest.approx(1)
    assert sum(one.after) == pytest.approx(1)
    assert one.shift == pytest.approx(np.abs(np.subtract(one.before, one.after)).sum() / 2)


def test_the_mean_is_told():
    one = drawn([float(v) for v in range(40)], [float(v + 1) for v in range(40)])
    assert one.words == "mean 19.5 → 20.5, standard deviation 11.5 → 11.5"


def test_a_number_released_as_groups_is_spread_over_the_range_of_each():
    ages = list(range(60)) * 2
    one = drawn(ages, [f"{age // 20 * 20}-" for age in ages])
    assert one.kind == "histogram"
    assert one.after == pytest.approx(one.before)
    assert one.words == "60 values became 3 groups, drawn spread evenly"
    uneven = [*range(20), *([0] * 20), *range(20, 40)]
    one = drawn(uneven, [f"{age // 20 * 20}-" for age in uneven])
    first = one.labels.index(next(label for label in one.labels if label.startswith("0 to")))
    assert one.before[first] > 0.3
    assert one.after[first] == pytest.approx(2 / 3 * 2 / 20)


def test_dates_are_days():
    days = [date(2024, 1, 1) + timedelta(days=k) for k in range(300)]
    one = drawn(days, [str(day.year) for day in days])
    assert one.labels[0].startswith("2024-01-0")
    assert all(words.startswith("2024-") for _, words in one.ticks)


def test_skewed_numbers_have_a_stretched_axis_with_round_ticks():
    rng = np.random.default_rng(2)
    values = rng.lognormal(5, 2.5, 2_000)
    one = drawn(values.tolist(), (values * 1.1).tolist())
    assert {"100", "1,000"} <= {words for _, words in one.ticks}
    widths = np.diff(one.edges)
    assert widths == pytest.approx(widths[0] * np.ones(len(widths)))


def test_what_lies_beyond_the_ends_is_in_the_last_bins():
    values = [*np.linspace(0, 1, 998).tolist(), -1e9, 1e9]
    one = drawn(values, values)
    assert sum(one.before) == pytest.approx(1)
    assert "000,000" not in " ".join(one.labels)


def test_categories_of_both_files_are_listed_the_rest_together():
    towns = [f"t{k:02}" for k in range(30) for _ in range(30 - k)]
    one = drawn(towns, ["t00"] * len(towns))
    assert one.kind == "bars"
    assert one.labels[0] == "t00"
    assert one.labels[-1] == "20 others"
    assert one.before[0] == pytest.approx(30 / len(towns))
    assert one.after[0] == 1
    assert one.shift == pytest.approx(1 - 30 / len(towns))
    assert one.words == "30 categories → 1"


def test_categories_that_were_grouped_are_drawn_in_their_groups():
    codes = [f"{letter}{k}" for letter in "AB" for k in range(10) for _ in range(2)]
    one = drawn(codes, [code[0] for code in codes])
    assert one.labels == ("A", "B")
    assert one.before == one.after == (0.5, 0.5)
    assert "drawn in their groups" in one.words


def test_missing_values_are_told_and_not_drawn():
    one = drawn(["a", "b", "c", "d"], ["a", None, None, "d"])
    assert dict(zip(one.labels, one.after, strict=True)) == {"a": 0.5, "b": 0.0, "c": 0.0, "d": 0.5}
    assert one.words.replace("\xa0", " ") == "4 categories → 2; missing 0 % → 50 %"


@pytest.mark.parametrize("values", [[None] * 20, [1.0] * 20, [float("nan")] * 20])
def test_columns_of_one_value_or_none(values):
    column = pl.Series("v", values, dtype=pl.Float64)
    one, two = (eq.read(pl.DataFrame({"v": column, "k": range(20)}), eq.Roles(["k"])) for _ in "ab")
    (found,) = overlays(one, two, ["v"])
    assert found.shift == 0


def test_the_variables_that_were_touched_and_those_that_matter():
    frame = pl.DataFrame({"person": [1, 2], "age": [1, 2], "sex": ["a", "b"], "rent": [1.0, 2.0], "note": ["x", "y"]})
    file = eq.read(frame, eq.Roles(["age", "sex"], numeric=["rent"], id="person"))
    masked = file.with_frame(file.frame, Law("noise", ("rent", "gone"), "noise"))
    assert changed_columns(file, masked) == (("rent",), ("age", "sex"))
    synthetic = file.with_frame(file.frame, Law("synthesize", ("rent",), "made up", {"synthetic": "full"}))
    assert changed_columns(file, synthetic) == (("rent", "age", "sex"), ())


def test_twelve_variables_at_most_and_none_of_huge_files(monkeypatch):
    frame = pl.DataFrame({f"c{k}": ["a", "b"] for k in range(20)})
    file = eq.read(frame, eq.Roles(["c0"]))
    assert len(overlays(file, file, frame.columns)) == module.MAX_OVERLAYS
    monkeypatch.setattr(module, "MAX_RECORDS", 1)
    assert overlays(file, file, frame.columns) == ()


# Weights --------------------------------------------------------------------------------------------------------------


def weighed(before, after, weights, released=None):
    """Two files with a weight, the second masked in its first column."""
    sides = ((before, weights), (after, released or weights))
    one, two = (eq.read(pl.DataFrame({"v": v, "w": w}), eq.Roles(["v"], weight="w")) for v, w in sides)
    (found,) = overlays(one, two, ["v"])
    return found


def test_categories_count_by_weight():
    """By hand: 1 + 2 of 10 are a, 3 are b, 4 are c; after, c became b."""
    one = weighed(["a", "a", "b", "c"], ["a", "a", "b", "b"], [1.0, 2.0, 3.0, 4.0])
    assert one.weight == "w"
    assert dict(zip(one.labels, one.before, strict=True)) == pytest.approx({"a": 0.3, "b": 0.3, "c": 0.4})
    assert dict(zip(one.labels, one.after, strict=True)) == pytest.approx({"a": 0.3, "b": 0.7, "c": 0.0})
    assert one.shift == pytest.approx(0.4)


def test_missing_values_count_by_weight():
    """The one record without a value after has 4 of 10; the others have 6 between them."""
    one = weighed(["a", "a", "b", "c"], ["a", "a", "b", None], [1.0, 2.0, 3.0, 4.0])
    assert dict(zip(one.labels, one.after, strict=True)) == pytest.approx({"a": 0.5, "b": 0.5, "c": 0.0})
    assert one.words.replace("\xa0", " ") == "3 categories → 2; missing 0 % → 40 %"


def test_numbers_count_by_weight():
    """Twelve numbers, the weight of 0 being nine times that of the others: 9 of 20; mean (1 + ... + 11) / 20."""
    values, weights = [float(v) for v in range(12)], [9.0] + [1.0] * 11
    one = weighed(values, [v + 12 for v in values], weights)
    assert one.kind == "histogram"
    assert one.before[0] == pytest.approx(9 / 20)
    assert one.before[1:12] == pytest.approx([1 / 20] * 11)
    assert one.after[12] == pytest.approx(9 / 20)
    spread = (sum(v * v for v in range(12)) / 20 - 3.3**2) ** 0.5
    assert one.words == f"mean 3.3 → 15.3, standard deviation {spread:.3g} → {spread:.3g}"


def test_groups_are_spread_by_weight():
    """0 to 19 and 20 to 39, the second half with three times the weight: a quarter is spread over the first."""
    values = list(range(40))
    one = weighed(values, [f"{v // 20}" for v in values], [1.0] * 20 + [3.0] * 20)
    ends = np.array([float(label.split(" to ")[1]) for label in one.labels])
    assert sum(share for share, end in zip(one.after, ends, strict=True) if end < 20) == pytest.approx(0.25)
    assert sum(one.before) == pytest.approx(1)


def test_weights_of_the_release_count_there():
    """A sample of the file whose weights were raised."""
    one = weighed(["a", "b", "c", "c"], ["a", "c"], [1.0, 1.0, 1.0, 1.0], [1.0, 3.0])
    assert dict(zip(one.labels, one.after, strict=True)) == pytest.approx({"a": 0.25, "b": 0.0, "c": 0.75})


def test_a_weight_itself_and_a_release_without_it_count_by_record():
    frame = pl.DataFrame({"v": ["a", "b"], "w": [1.0, 3.0]})
    file = eq.read(frame, eq.Roles(["v"], weight="w"))
    bare = eq.read(frame.drop("w"), eq.Roles(["v"]))
    (own,) = overlays(file, file, ["w"])
    (less,) = overlays(file, bare, ["v"])
    assert (own.weight, less.weight) == ("", "")
    assert less.before == (0.5, 0.5)


def test_the_axis_says_that_shares_are_weighted():
    from equipoise.doors.report.variable_changes import overlay_facts

    values = [float(v) for v in range(12)]
    told = overlay_facts(weighed(values, [v + 3 for v in values], [1.0] * 12))
    assert '<text class="axis" x="0" y="-5">Share, weighted by w</text>' in told["picture"]
    assert told["axis"] == "share of records, weighted by w"
    assert "of the weight in another bar" in told["words"]
    assert "weighted" not in overlay_facts(drawn(values, values))["picture"]
