"""The overlap of what users compute: the law of fresh samples, bands, blanks, withheld columns, groups too small."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.utility import Overlap, _user_view
from equipoise.utility._default_queries import default_queries
from equipoise.utility.overlap import fresh_sample_overlap


def file(roles: eq.Roles | None = None, **columns: Any) -> eq.Records:
    return eq.read(pl.DataFrame(columns), roles or eq.Roles())


def people(size: int, seed: int, **given: Any) -> eq.Records:
    """Ages, regions and incomes that depend on both; the roles of a survey."""
    rng = np.random.default_rng(seed)
    age, region = rng.integers(18, 80, size), rng.choice(["n", "s", "w"], size, p=[0.5, 0.3, 0.2])
    income = 1000 + 20 * age + 300 * (region == "n") + rng.gamma(2, 400, size)
    frame = pl.DataFrame({"age": age, "region": region, "income": income}).with_columns(**given)
    bands = {"age": eq.Hierarchy.intervals([5, 20])}
    return eq.read(frame, eq.Roles(["age", "region"], numeric="income", hierarchies=bands))


def masked(records: eq.Records, *masks: Any) -> eq.Records:
    return eq.Recipe(list(masks), seed=1).run(records)


def test_fresh_samples_reach_the_expected_overlap() -> None:
    """300 pairs of independent samples of 300: the mean is E max(0, 1 - |d| / (2 z s)), within 4 standard errors."""
    rng = np.random.default_rng(1)
    measure = Overlap(("mean:x",))
    values = [measure.measure(*(file(x=rng.normal(size=300)) for _ in range(2))).value for _ in range(300)]
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - fresh_sample_overlap()) < 4 * error
    draws = np.abs(np.random.default_rng(2).normal(size=400_000)) * np.sqrt(2)
    assert fresh_sample_overlap() == pytest.approx(np.maximum(0, 1 - draws / (2 * 1.959964)).mean(), abs=0.002)


def test_analyses_count_alike_and_terms_within_them() -> None:
    """One mean that is apart and a table of two cells that is kept: the mean of 0 and of 1, not of three numbers."""
    old = file(x=np.arange(100.0), g=["a", "b"] * 50)
    new = file(x=np.arange(100.0) + 1000, g=["a", "b"] * 50)
    score = Overlap(("mean:x", "table:g")).measure(new, old)
    assert score.value == pytest.approx(0.5)
    assert score.detail["analysis"].to_list() == ["mean:x", "table:g", "table:g"]
    assert score.detail["overlap"].to_list() == pytest.approx([0.0, 1.0, 1.0])


def test_bands_are_read_by_their_middles_and_spread_for_quantiles() -> None:
    """Ages uniform on 30..49 in bands of 5: middles keep the mean, spreading keeps every tenth of the distribution."""
    roles = eq.Roles("age", hierarchies={"age": eq.Hierarchy.intervals(5)})
    old = file(roles, age=np.tile(np.arange(30, 50), 20))
    new = masked(old, eq.masks.Recode("age", 1))
    assert new.collect("age")["age"].dtype == pl.String
    queries = ("mean:age", *(f"quantile:age,{tenth / 10}" for tenth in range(1, 10)))
    table = Overlap(queries).measure(new, old).detail
    assert table["released"].to_list() == pytest.approx(table["original"].to_list())


def test_coarser_bands_keep_less() -> None:
    original = people(4000, seed=3)
    kept = [Overlap().measure(masked(original, eq.masks.Recode("age", level)), original).value for level in (0, 1, 2)]
    assert kept[0] == 1.0
    assert kept[0] > kept[1] > kept[2]


def test_recoded_categories_are_compared_as_recoded_and_as_collected() -> None:
    """Groups of 40 and 60 become one label of 100: dealt out evenly they are 50 and 50 of 200."""
    tree = eq.Hierarchy.mapping({"a": "ab", "b": "ab", "c": "c"})
    old = file(eq.Roles("g", hierarchies={"g": tree}), g=["a"] * 40 + ["b"] * 60 + ["c"] * 100)
    table = Overlap(("table:g",)).measure(masked(old, eq.masks.Recode("g", 1)), old).detail
    rows = {row["term"]: row for row in table.iter_rows(named=True)}
    assert list(rows) == ["ab", "c", "a as collected", "b as collected", "c as collected"]
    assert [rows[name]["overlap"] for name in ("ab", "c", "c as collected")] == pytest.approx([1.0, 1.0, 1.0])
    assert [rows[f"{name} as collected"]["original"] for name in "ab"] == pytest.approx([0.2, 0.3])
    assert [rows[f"{name} as collected"]["released"] for name in "ab"] == pytest.approx([0.25, 0.25])


def test_blanks_at_random_cost_little_and_others_are_bias() -> None:
    """A third of the ages blanked at random, or those of the old."""
    rng = np.random.default_rng(5)
    original = people(3000, seed=4)
    frame = original.collect()
    random = frame.with_columns(age=pl.when(pl.Series(rng.random(3000) > 1 / 3)).then("age"))
    oldest = frame.with_columns(age=pl.when(pl.col("age") < frame["age"].quantile(2 / 3)).then("age"))
    at_random, biased = (
        Overlap(("mean:age",)).measure(eq.read(side, original.roles), original).value for side in (random, oldest)
    )
    assert at_random > 0.6
    assert biased == 0.0


@pytest.mark.parametrize("way", ["dropped", "blank", "constant"])
def test_nothing_is_left_of_a_withheld_column(way: str) -> None:
    original = people(200, seed=6)
    frame = original.collect()
    ways = {"dropped": frame.drop("age"), "blank": frame.with_columns(age=None), "constant": frame.with_columns(age=40)}
    roles = eq.Roles("region", numeric="income")
    score = Overlap(("mean:age", "mean:income")).measure(eq.read(ways[way], roles), original)
    assert score.value == pytest.approx(0.5)


def test_quantities_of_few_records_are_left_out() -> None:
    old = file(x=np.arange(100.0), g=["a"] * 90 + ["b"] * 10)
    table = Overlap(("mean:x by g", "table:g")).measure(old, old).detail
    assert table["term"].to_list() == ["x, a", "a"]
    with pytest.raises(eq.DataError, match="No analysis rests on 30 records"):
        Overlap(("mean:x",)).measure(file(x=np.arange(10.0)), file(x=np.arange(10.0)))


def test_the_default_analyses_of_a_survey() -> None:
    """Every column by itself, means by group, pairs, and the number with a role regressed on the others."""
    assert default_queries(people(500, seed=7)) == (
        "table:region",
        *("mean:age", "quantile:age,0.1", "quantile:age,0.5", "quantile:age,0.9", "mean:age by region"),
        *("mean:income", "quantile:income,0.1", "quantile:income,0.5", "quantile:income,0.9", "mean:income by region"),
        "correlation:age,income",
        "regression:income ~ region + age",
    )


def test_columns_without_content_are_not_analysed() -> None:
    frame = pl.DataFrame(
        {"id": range(60), "w": [1.5] * 60, "note": [f"text {i}" for i in range(60)], "sex": ["f", "m"] * 30}
    )
    assert default_queries(eq.read(frame, eq.Roles("sex", id="id", weight="w"))) == ("table:sex",)


def test_weights_change_what_is_estimated() -> None:
    """The mean of the weighted file by hand."""
    x, w = np.arange(40.0), np.where(np.arange(40) < 20, 1.0, 3.0)
    old = file(eq.Roles(weight="w"), x=x, w=w)
    row = Overlap(("mean:x",)).measure(old, old).detail.row(0, named=True)
    assert row["original"] == pytest.approx((x * w).sum() / w.sum())


@pytest.mark.parametrize("bad", [{"estimates": ("median:x",)}, {"level": 95}, {"smallest": 0}])
def test_bad_parameters(bad: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError):
        Overlap(**bad)


def test_numbers_that_became_labels_have_no_mean() -> None:
    """Numbers recoded to labels that are no bands: their distribution is left, their mean is not."""
    groups = {number: "few" if number < 5 else str(number) for number in range(20)}
    roles = eq.Roles("x", hierarchies={"x": eq.Hierarchy.mapping(groups)})
    old = file(roles, x=np.tile(np.arange(20), 40))
    new = masked(old, eq.masks.Recode("x", 1))
    score = Overlap(("mean:x", "quantile:x,0.5", "table:x")).measure(new, old)
    means = score.detail.group_by("analysis", maintain_order=True).agg(pl.col("overlap").mean())
    assert means["overlap"].to_list()[:2] == [0.0, 0.0]
    assert means["overlap"].to_list()[2] > 0.5


def test_what_was_computed_for_an_earlier_release_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second release differs in one column: analyses of the others are those of the first; the score is right."""
    old = people(400, 1)
    first = masked(old, eq.masks.Recode("age", 1))
    second = masked(old, eq.masks.Recode("age", 2))
    again = people(400, 1)
    fits: list[str] = []
    analysis = Overlap._analysis

    def counting(self: Overlap, question: Any, *files: Any) -> pl.DataFrame:
        fits.append(question.kind)
        return analysis(self, question, *files)

    monkeypatch.setattr(Overlap, "_analysis", counting)
    measure = Overlap(("mean:income", "table:region", "mean:age"))
    measure.measure(first, old)
    value = measure.measure(second, old).value
    assert fits == ["mean", "table", "mean", "mean"]
    assert value == measure.measure(masked(again, eq.masks.Recode("age", 2)), again).value


def test_a_large_file_is_read_in_part_with_the_intervals_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the records: the same shift in units of the same standard error, within what a tenth can tell."""
    old = people(20_000, 2)
    new = masked(old, eq.masks.Noise(("income",), 0.01))
    shifted = new.with_frame(new.collect().with_columns(pl.col("income") + 6.0), new.history[0])
    whole = Overlap(("mean:income",)).measure(shifted, old)
    monkeypatch.setattr(_user_view, "MAX_RECORDS", 2000)
    fresh = people(20_000, 2)
    part = Overlap(("mean:income",)).measure(shifted, fresh)
    assert 0.1 < whole.value < 0.9
    assert part.value == pytest.approx(whole.value, abs=0.05)
    assert "2,000 records" in part.notes[1]
    assert len(whole.notes) == 1


def test_codes_of_codes_are_no_numbers() -> None:
    """Codes 1 to 4 merged into 100 and 200 once shifted a mean by sixty standard deviations."""
    groups = eq.Hierarchy.mapping({"1": "100", "2": "100", "3": "200", "4": "200"}, names=("group",))
    records = file(eq.Roles(["water"], hierarchies={"water": groups}), water=[1, 2, 3, 4] * 25)
    released = masked(records, eq.masks.Recode("water", "group"))
    assert eq.utility.Bias().measure(released, records).value == 0
    assert Overlap(("mean:water",)).measure(released, records).value == 0
    assert Overlap(("table:water",)).measure(released, records).value == pytest.approx(1)
