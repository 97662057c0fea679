"""Assess: a file against itself, and which keys and categories are behind its uniques."""

from collections import Counter

import polars as pl
import pytest

import equipoise as eq
from equipoise.inspection.assess import standard


def test_the_standard_measures(people_records: eq.Records) -> None:
    """Uniques, classes of two, population uniques where there is a weight, each sensitive column, entropy."""
    found = eq.assess(people_records)
    assert found.records == 400
    names = [score.name.partition("(")[0] for score in found.scores]
    assert names[:2] == ["uniques", "uniques"]
    assert {"population_uniques", "attribute_disclosure", "entropy"} <= set(names)


def test_measures_of_ones_own(people_records: eq.Records) -> None:
    assert eq.assess(people_records, [eq.risk.Uniques(5)]).scores.keys() == ("uniques(k=5)",)


def test_keys_and_categories_against_counters(people: pl.DataFrame, people_records: eq.Records) -> None:
    """Uniques that remain without a key, and uniques per category, by brute force."""
    keys = ["sex", "area", "age"]
    rows = people.select(keys).rows()
    alone = [row for row, n in Counter(rows).items() if n == 1]
    found = eq.assess(people_records, [eq.risk.Uniques()])
    for line in found.keys.iter_rows(named=True):
        place = keys.index(line["key"])
        rest = Counter(row[:place] + row[place + 1 :] for row in rows)
        assert line["uniques"] == len(alone)
        assert line["without"] == sum(n == 1 for n in rest.values())
        assert line["categories"] == len({row[place] for row in rows})
    for line in found.categories.iter_rows(named=True):
        place = keys.index(line["key"])
        assert line["records"] == sum(str(row[place]) == line["category"] for row in rows)
        assert line["uniques"] == sum(str(row[place]) == line["category"] for row in alone)
        assert line["share"] == pytest.approx(line["uniques"] / line["records"])
    assert found.categories["uniques"].is_sorted(descending=True)


def test_categories_are_not_in_the_repr(people_records: eq.Records) -> None:
    """They are data: for internal reports only."""
    assert "2601" not in repr(eq.assess(people_records, [eq.risk.Uniques()]))


@pytest.mark.parametrize(
    ("table", "roles", "said"),
    [
        (pl.DataFrame({"x": [1, 2]}), eq.Roles(), "No keys were named"),
        (pl.DataFrame({"x": [1]}), eq.Roles(["x"]), "one record only"),
        (pl.DataFrame({"x": [None, None]}), eq.Roles(["x"]), "'x' has no values"),
        (pl.DataFrame({"x": range(50_001)}), eq.Roles(["x"]), "50,001 categories"),
    ],
)
def test_files_without_a_risk_to_measure(table: pl.DataFrame, roles: eq.Roles, said: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=said):
        eq.assess(eq.read(table, roles))


def test_many_categories_are_fine_with_a_hierarchy() -> None:
    roles = eq.Roles(["x"], hierarchies={"x": eq.Hierarchy.intervals(1000)})
    assert (
        eq.assess(eq.read(pl.DataFrame({"x": range(50_001)}), roles), [eq.risk.Uniques()]).scores["uniques"].value == 1
    )


def test_a_number_that_became_a_label_is_not_measured_as_a_number(people_records: eq.Records) -> None:
    """Recode makes text of an age; what noise did to the salary is measured all the same."""
    recipe = eq.Recipe([eq.masks.Recode("age", "5"), eq.masks.Noise(["salary"], 0.1)], 1)
    scales = standard(people_records, recipe)
    released = recipe.run(people_records)
    assert all(scale.measure(released, people_records) for scale in scales)
    with pytest.raises(eq.DataError, match="'age' holds no numbers any more"):
        eq.risk.ValueDisclosure(["age"]).measure(released, people_records)
