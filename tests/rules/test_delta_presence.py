"""delta-presence: who of the population is in the sample."""

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.cells import Cells

# A sample and its population: 1 of 2, 2 of 3, 0 of 3 and 2 of 2 people of four classes are in the sample.
TABLE = pl.DataFrame(
    {
        "class": ["1", "1", "2", "2", "3", "4"],
        "in": [True, False, True, False, False, True],
        "n": [1, 1, 2, 1, 3, 2],
    }
)


@pytest.mark.parametrize(
    ("low", "high", "unsafe"),
    [
        (0.0, 1.0, set()),
        (0.0, 2 / 3, {"4"}),
        (0.5, 2 / 3, {"3", "4"}),
        (0.0, 0.5, {"2", "4"}),
        (0.6, 1.0, {"1", "3"}),
    ],
)
def test_shares_of_each_class(low: float, high: float, unsafe: set[str]) -> None:
    """1/2, 2/3, 0 and 1 of the classes are in the sample; a class without members is judged too."""
    cells = Cells.of(TABLE)
    flags = eq.rules.DeltaPresence("in", low, high).flag(cells)
    assert set(cells.table.filter(flags)["class"]) == unsafe


def test_members_by_any_value() -> None:
    told = TABLE.with_columns(pl.col("in").replace_strict({True: 1, False: 0}))
    plain, coded = (Cells.of(table) for table in (TABLE, told))
    wanted = eq.rules.DeltaPresence("in", 0, 0.5).flag(plain).sum()
    assert eq.rules.DeltaPresence("in", 0, 0.5, value="1").flag(coded).sum() == wanted


def test_it_guides_a_coarsening() -> None:
    """Every class of the release has between a tenth and half of its people in the sample."""
    people = pl.DataFrame(
        {"age": [20, 21, 22, 23, 30, 31, 32, 33], "in": [True, True, False, False, False, True, False, False]}
    )
    trees = {"age": eq.Hierarchy.intervals([2, 10], root=True)}
    records = eq.read(people, eq.Roles(["age"], hierarchies=trees))
    found = eq.best_coarsening(records, eq.rules.DeltaPresence("in", 0.1, 0.5), suppress_at_most=0)
    assert found.levels == {"age": "10"}
