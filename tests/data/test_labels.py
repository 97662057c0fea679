"""Labels: missing codes apart from values, and what a recode makes of the labels."""

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.labels import Column, Labels, split_missing_codes
from equipoise.data.records import Records

REGION = Column("Region", ((11, "Oslo"), (12, "Bergen"), (21, "Ål"), (99, "refused")), ((98, 99),), "F4.0", "double")


def records(values: list[int | None], tree: eq.Hierarchy, told: Column = REGION) -> Records:
    table, labels = split_missing_codes(
        pl.DataFrame({"region": values}, schema={"region": pl.Int64}), Labels({"region": told})
    )
    return Records.of(table, eq.Roles(["region"], hierarchies={"region": tree}), labels=labels)


def test_missing_codes_become_null_and_stay_known() -> None:
    found = records([11, 99, 98, None], eq.Hierarchy.intervals(10))
    assert found.collect()["region"].to_list() == [11, None, None, None]
    assert found.labels.gaps is not None
    assert found.labels.gaps["region"].to_list() == [None, 99, 98, None]


def test_columns_without_missing_codes_have_no_gaps() -> None:
    assert records([11, 12], eq.Hierarchy.intervals(10)).labels.gaps is None


def test_a_recode_labels_groups_by_all_they_may_hold() -> None:
    """Bergen is not in the file: a label without it would tell Oslo from the group of both."""
    tree = eq.Hierarchy.mapping({11: "east", 12: "east", 21: "north"})
    done = eq.Recipe([eq.masks.Recode("region", 1)]).run(records([11, 21, 99], tree))
    told = done.labels.of("region")
    assert told.values == (("east", "Oslo, Bergen"), ("north", "Ål"), (99, "refused"))
    assert told.label == "Region"
    assert told.missing == ((98, 99),)
    assert told.format is None
    assert done.collect()["region"].to_list() == ["east", "north", None]


def test_listed_codes_the_hierarchy_does_not_know_are_passed_over() -> None:
    done = eq.Recipe([eq.masks.Recode("region", 1)]).run(records([11], eq.Hierarchy.mapping({11: "east"})))
    assert done.labels.of("region").values == (("east", "Oslo"), (99, "refused"))


def test_intervals_are_labelled_by_themselves() -> None:
    told = Column("Age", (), (), "F3.0", "double", "scale")
    done = eq.Recipe([eq.masks.Recode("region", 1)]).run(records([3, 17, 12], eq.Hierarchy.intervals(10), told))
    assert done.labels.of("region").values == (("0-9", "0-9"), ("10-19", "10-19"))
    assert done.labels.of("region").measure == "ordinal"


def test_one_category_for_all() -> None:
    tree = eq.Hierarchy.mapping({11: "a", 12: "b", 21: "b"}, root=True)
    done = eq.Recipe([eq.masks.Recode("region", "all")]).run(records([11, 12], tree))
    assert done.labels.of("region").values == (("*", "any of 3 categories"), (99, "refused"))


def test_long_labels_are_cut() -> None:
    told = Column(values=tuple((i, f"category number {i}") for i in range(40)), storage="double")
    done = eq.Recipe([eq.masks.Recode("region", 1)]).run(
        records([1], eq.Hierarchy.mapping({i: str(i % 2) for i in range(40)}), told)
    )
    text = dict(done.labels.of("region").values)["1"]
    assert text.startswith("category number 1, category number 3")
    assert text.endswith(" more")
    assert len(text) <= 120


@pytest.mark.parametrize(("by", "said"), [("mean", "mean of all values above 12"), ("threshold", "12 and above")])
def test_a_tail_says_what_it_is(by: str, said: str) -> None:
    """The labels of values beyond the threshold go; the others stay."""
    done = eq.Recipe([eq.masks.TopCode("region", 12, by)]).run(
        records([11, 12, 21, 26, 31, 99], eq.Hierarchy.intervals(5))
    )  # type: ignore[arg-type]
    value = 26 if by == "mean" else 12
    labels = dict(done.labels.of("region").values)
    assert labels[value] == said
    assert labels[11] == "Oslo"
    assert 21 not in labels
    assert labels[99] == "refused"


def test_a_random_mask_ends_the_codes_of_what_it_touched(people: pl.DataFrame) -> None:
    table = people.with_columns(age=pl.when(pl.col("age") > 80).then(-1).otherwise(pl.col("age")), ill=pl.lit("Z"))
    told = Labels({"age": Column(missing=((-1, -1),)), "ill": Column(missing=(("Z", "Z"),))})
    plain, labels = split_missing_codes(table, told)
    data = Records.of(plain, eq.Roles(["sex"], numeric=["age"], id="person"), labels=labels)
    assert labels.gaps is not None
    assert labels.gaps.columns == ["age", "ill"]
    moved = eq.Recipe([eq.masks.RankSwap(["age"], 0.1)], seed=1).run(data)
    assert moved.labels.gaps is not None
    assert moved.labels.gaps.columns == ["ill"]


def test_labels_never_show_values() -> None:
    assert "Oslo" not in repr(Labels({"region": REGION}))
    assert "Oslo" not in repr(REGION)
    assert repr(Labels()) == "Labels(0 columns)"
