"""The classes of all releases of the same people together: who is linked to whom, and what is measured."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Law, Records
from equipoise.provenance.seed_register import Register
from equipoise.releases.earlier_releases import JointView, at_most, audit, changed_columns, facts_of, view_of

RNG = np.random.default_rng(6)
TABLE = pl.DataFrame(
    {"nr": RNG.permutation(200), "age": RNG.integers(20, 50, 200), "sex": RNG.choice(["f", "m"], 200), "x": range(200)}
)
TREE = {"age": eq.Hierarchy.intervals(2) | eq.Hierarchy.intervals(3)}


def look(register: Register, records: Records, *masks: Any, withheld: tuple[str, ...] = ()) -> JointView:
    recipe, view = eq.Recipe(masks, 3), register.view(records)
    return view_of(recipe.run(records, 1), view, recipe, records=records, draw=1, withheld=withheld)


def keep(register: Register, joint: JointView) -> None:
    register.keep(joint.view, joint.display, facts_of(joint, eq.Recipe(), "one"))


@pytest.fixture
def register(tmp_path: Path) -> Register:
    return Register(tmp_path / "register.json")


@pytest.mark.parametrize("id_role", ["nr", None])
@pytest.mark.parametrize("mask", [eq.masks.Sample(0.4), eq.masks.ShuffleOrder()])
def test_rows_that_were_drawn_or_moved_are_traced(register: Register, id_role: str | None, mask: Any) -> None:
    """Each released row is the record of the original that has its content, with an id or without."""
    joint = look(register, eq.read(TABLE, eq.Roles(["age", "sex"], id=id_role)), mask)
    assert TABLE["x"].gather(joint.rows).equals(joint.released.collect()["x"])


def test_the_joint_classes_are_the_meet(register: Register) -> None:
    """Every pair of bands and the sex: as many classes as Polars counts."""
    first = eq.read(TABLE, eq.Roles(["age", "sex"], id="nr", hierarchies=TREE))
    keep(register, look(register, first, eq.masks.Recode("age", "2"), withheld=("nr",)))
    second = eq.read(TABLE.reverse(), eq.Roles(["age"], id="nr", hierarchies=TREE))
    joint = look(register, second, eq.masks.Recode("age", "3"), withheld=("nr",))
    records = joint.records(eq.Policy())
    assert records.roles.keys == ("age", "sex")
    meets = TABLE.group_by(pl.col("age") // 2, (pl.col("age") // 3).alias("three"), "sex").len()
    assert sorted(eq.count(records).n.tolist()) == sorted(meets["len"].to_list())
    alone = eq.risk.Uniques().measure(records, records).value
    (sentence,) = audit(joint, eq.Policy({"uniques": "<= 1", "entropy": ">= 0"}))[:1]
    assert f"{at_most(alone)} of the records are alone" in sentence
    limits = {"entropy": ">= 0", "value_disclosure": "<= 1"}
    assert "Not audited together with them: value_disclosure." in audit(joint, eq.Policy(limits))


def test_people_with_several_records_are_one_person(register: Register) -> None:
    """Waves of a panel: the records are new, the people are not."""
    wave = pl.DataFrame({"pid": [1, 1, 2, 3, 4], "age": [30, 31, 30, 40, 40], "wave": 1})
    keep(register, look(register, eq.read(wave, eq.Roles(["age"], person="pid"))))
    later = pl.DataFrame({"pid": [4, 3, 2, 1], "age": [40, 40, 40, 40], "wave": 2})
    joint = look(register, eq.read(later, eq.Roles(["age"], person="pid")))
    assert joint.earlier[0].overlap == 4
    assert sorted(eq.count(joint.records(eq.Policy())).n.tolist()) == [1, 1, 2], "1 and 2 differ before, 3 and 4 do not"


def test_earlier_releases_that_break_a_limit_alone_refuse_nothing_coarser(register: Register) -> None:
    records = eq.read(TABLE, eq.Roles(["age", "sex"], id="nr", hierarchies=TREE))
    keep(register, look(register, records))
    joint = look(register, records, eq.masks.Recode("age", "3"))
    sentences = audit(joint, eq.Policy({"uniques": "<= 0"}))
    assert "break a limit of this policy by themselves" in sentences[1]


def test_who_left_is_an_assumption(register: Register) -> None:
    roles = eq.Roles(["sex"], id="nr")
    keep(register, look(register, eq.read(TABLE, roles)))
    sentences = audit(look(register, eq.read(TABLE.head(190), roles)), eq.Policy())
    assert sentences[-1] == "Assumes that nobody knows who left: 10 records of earlier releases are not in this one."


def test_synthetic_records_stand_for_nobody(register: Register) -> None:
    records = eq.read(TABLE, eq.Roles(["age", "sex"], id="nr"))
    keep(register, look(register, records))
    law = Law("synthesize", ("age", "sex"), "all values were drawn", {"synthetic": "full"})
    synthetic = records.with_frame(records.frame, law)
    joint = view_of(synthetic, register.view(records), eq.Recipe(), records=records, draw=1, withheld=())
    (sentence,) = audit(joint, eq.Policy({"uniques": "<= 0"}))
    assert "synthetic" in sentence


def test_blanks_and_categories_are_no_other_values() -> None:
    """They intersect; noise and swaps do not."""
    records = eq.read(TABLE, eq.Roles(["age", "sex"], id="nr", numeric="x"))
    blank = eq.masks.LocalSuppress(eq.rules.MinCount(3))
    released = eq.Recipe([blank, eq.masks.Noise("x", 0.1)], 1).run(records)
    assert changed_columns(released) == ("x",)
