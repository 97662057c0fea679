"""Hierarchies edited level by level: chains stay chains, floors stay floors."""

from typing import Any

import pytest

from equipoise.data.hierarchy import Hierarchy
from equipoise.doors.web.work.edit_hierarchy import free_name, with_level, without_level
from equipoise.ground.errors import ParameterError

AGES = Hierarchy.intervals([5, 10], top=80) | Hierarchy.intervals(3)


def names(tree: Hierarchy) -> list[list[str]]:
    return [[level.name for level in branch.levels()] for branch in tree.branches]


def one(tree: Hierarchy) -> Any:
    return tree.branches[0]


SALARY = Hierarchy.intervals([1000, 2000, 10000], floor=1000) | Hierarchy.intervals([1000, 5000, 10000], floor=1000)


def test_a_level_that_nests_joins_its_chain() -> None:
    assert names(with_level(AGES, one(Hierarchy.intervals(20, top=80)))) == [["5", "10", "20"], ["3"]]
    assert names(with_level(AGES, one(Hierarchy.intervals(20)))) == [["5", "10"], ["3"], ["20"]]
    assert names(with_level(Hierarchy.prefix(3, root=True), one(Hierarchy.prefix(1)))) == [["3", "1", "all"]]
    assert names(with_level(Hierarchy.dates("day", "year"), one(Hierarchy.dates("month")))) == [
        ["day", "month", "year"]
    ]
    assert names(with_level(Hierarchy.dates("month"), one(Hierarchy.dates("week")))) == [["month"], ["week"]]
    fine, coarse = Hierarchy.breaks([10, 20, 30]), Hierarchy.breaks([20], names=["two"])
    assert names(with_level(fine, one(coarse))) == [["1", "two"]]
    letters = Hierarchy.mapping({"a": "x", "b": "x", "c": "y"})
    assert names(with_level(letters, one(Hierarchy.mapping({"a": "z", "b": "z", "c": "z"}, names=["one"])))) == [
        ["1", "one"]
    ]
    assert names(with_level(letters, one(Hierarchy.mapping({"a": "p", "b": "q", "c": "q"}, names=["own"])))) == [
        ["1"],
        ["own"],
    ]


def test_a_level_is_put_in_the_place_of_another_in_every_chain() -> None:
    assert names(with_level(SALARY, one(Hierarchy.intervals(500)), "1000"))[0][0] == "500"
    moved = with_level(SALARY, one(Hierarchy.intervals(2000, top=50000)), "2000")
    assert {branch.top for branch in moved.branches} == {50000}
    own = with_level(SALARY, one(Hierarchy.breaks([5000, 20000], names=["own"])), "2000")
    assert names(own) == [["1000", "5000", "10000"], ["own"]]
    assert [level.name for level in own.allowed] == ["1000", "5000", "10000", "own"]


def test_a_floor_is_never_lost() -> None:
    only = Hierarchy.intervals(1000, floor=1000)
    for made in (Hierarchy.breaks([5000], names=["own"]), Hierarchy.mapping({"0": "x"}, other="y", names=["own"])):
        assert [level.name for level in with_level(only, one(made), "1000").allowed] == ["own"]
    named = Hierarchy.prefix(3, 1, floor="3")
    assert [level.name for level in with_level(named, one(Hierarchy.prefix(2)), "3").allowed] == ["2", "1"]
    assert [level.name for level in with_level(named, one(Hierarchy.prefix(4)), "3").allowed] == ["1"]
    assert [level.name for level in without_level(Hierarchy.prefix(3, 2, 1, floor=2), "2").allowed] == ["1"]  # type: ignore[union-attr]
    with pytest.raises(ParameterError, match="finer than 1000"):
        with_level(only, one(Hierarchy.breaks([5000, 5100], names=["own"])))
    with pytest.raises(ParameterError, match="floor"):
        without_level(only, "1000")


def test_names_of_levels_do_not_clash() -> None:
    assert free_name("3", AGES) == "3 (2)"
    assert free_name("3", AGES, "3") == "3"
    with pytest.raises(ParameterError, match="another level '3'"):
        with_level(AGES, one(Hierarchy.breaks([50], names=["3"])))
    with pytest.raises(ParameterError, match="cannot be called"):
        with_level(None, one(Hierarchy.breaks([50], names=["all"])))
    assert without_level(Hierarchy.prefix(2), "2") is None
    assert names(without_level(AGES, "3")) == [["5", "10"]]  # type: ignore[arg-type]
