"""Every method on files whose columns have the names of columns of our own: the results are those of other names."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import equipoise as eq
from equipoise.ground.randomness import Draws
from equipoise.methods.method import Mask, Measure
from equipoise.recipe import catalogue

VERBS: tuple[catalogue.Verb, ...] = ("rule", "mask", "measure")
METHODS = [
    (name, method)
    for verb in VERBS
    for name, method in sorted(catalogue.methods(verb).items())
    if catalogue.family(method) != "tables"
]
COLUMNS = ("person", "sex", "area", "age", "salary", "ill", "weight", "house")
NAMES = (
    "home", "risk", "members", "old", "new", "score", "dis", "record", "smallest", "unique", "mean", "bits",
    "candidates", "people", "p", "records", "row", "__cell__", "value", "key",
)  # fmt: skip
RENAMINGS = [dict(zip(COLUMNS, (NAMES + NAMES)[start : start + 8], strict=True)) for start in range(0, len(NAMES), 3)]
EXAMPLES: dict[str, dict[str, Any]] = {
    "recode": {"column": "age", "level": "10"},
    "renumber": {"columns": ("salary",)},
    "household": {"household": "house"},
    "pram_matrix": {"column": "area", "diagonal": 0.8},
    "expected_loss": {"disclosure": "uniques:10", "prior": (0.5, 9.5), "domain": ("area",), "cutoff": 0.5},
    "delta_presence": {"member": "ill", "value": "yes"},
    "local_suppress": {"rule": eq.rules.MinCount(3), "importance": ("age=2.0",)},
    "local_swap": {"rule": eq.rules.MinCount(2), "importance": ("age=2.0",)},
    "suppress_records": {"rule": eq.rules.MinCount(3)},
    "local_recode": {"rule": eq.rules.MinCount(3)},
    "unsafe": {"rule": eq.rules.MinCount(3)},
    "special_uniques": {"max_size": 2},
    "swap": {"keys": ("sex", "age"), "attribute": "area", "protected": ("salary",), "rate": 0.2},
    "top_code": {"column": "age", "at": 70.0},
    "bottom_code": {"column": "age", "at": 30.0},
    "uniques": {"k": 2},
}


def people() -> pl.DataFrame:
    rng = np.random.default_rng(7)
    age = rng.integers(16, 91, 60)
    return pl.DataFrame(
        {
            "person": np.arange(60),
            "sex": rng.choice(["f", "m"], 60),
            "area": rng.choice(["1011", "1012", "2600"], 60),
            "age": age,
            "salary": rng.choice([0, 1500, 99_000], 60) + age * 10,
            "ill": rng.choice(["no", "no", "yes"], 60),
            "weight": rng.choice([1.5, 2.0, 4.0], 60),
            "house": np.arange(60) // 3,
        }
    )


def roles(names: dict[str, str]) -> eq.Roles:
    trees = {"area": eq.Hierarchy.prefix(3, 2, root=True), "age": eq.Hierarchy.intervals([5, 10], top=80)}
    return eq.Roles(
        [names[c] for c in ("sex", "area", "age")],
        [names["ill"]],
        numeric=[names["salary"]],
        weight=names["weight"],
        id=names["person"],
        hierarchies={names[c]: tree for c, tree in trees.items()},
    )


def renamed(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, tuple):
        return tuple(renamed(part, names) for part in value)
    if isinstance(value, str) and "=" in value:
        return "=".join(names.get(part, part) for part in value.split("="))
    return names.get(value, value) if isinstance(value, str) else value


def example(name: str, method: type, names: dict[str, str]) -> Any:
    columns = {"column": "age", "sensitive": "ill", "columns": ("age",), "keys": ("sex", "area", "age")}
    needed = [f.name for f in catalogue.form(method) if f.required]
    fields = EXAMPLES.get(name) or {field: columns.get(field, 0.5) for field in needed}
    return method(**{field: renamed(value, names) for field, value in fields.items()})


def result(name: str, method: type, names: dict[str, str]) -> Any:
    """What a method gives on the file with these names, without the names."""
    records, made = eq.read(people().rename(names), roles(names)), example(name, method, names)
    if isinstance(made, Mask):
        released = made.apply(records, Draws(1).child(0)).collect()
        return released.rename({new: old for old, new in names.items() if new in released.columns})
    if isinstance(made, Measure):
        score = made.measure(records, records)
        tables = [table for table in (score.cells, score.records) if table]
        sizes = [
            (frame.shape, float(frame["risk"].sum()) if "risk" in frame else 0.0) for frame in (t() for t in tables)
        ]
        return [score.value, score.number or 0.0, *(number for shape, total in sizes for number in (*shape, total))]
    return made.flag(eq.count(records, tuple(names[c] for c in ("sex", "area", "ill")))).to_list()


def outcome(name: str, method: type, names: dict[str, str]) -> Any:
    """The result, or the kind of refusal."""
    try:
        return result(name, method, names)
    except eq.EquipoiseError as error:
        return type(error)


@pytest.mark.filterwarnings("ignore::equipoise.EquipoiseWarning")
@pytest.mark.parametrize(("name", "method"), METHODS, ids=[name for name, _ in METHODS])
def test_names_of_columns_change_nothing(name: str, method: type) -> None:
    plain = outcome(name, method, {c: c for c in COLUMNS})
    for names in RENAMINGS:
        other = outcome(name, method, names)
        if isinstance(plain, pl.DataFrame):
            assert_frame_equal(other, plain)
        elif isinstance(plain, type) or isinstance(plain[0], bool):
            assert other == plain
        else:
            assert other == pytest.approx(plain, rel=1e-6, nan_ok=True)


def test_the_names_are_told_apart_in_the_detail() -> None:
    """A column of the file that has the name of ours gets an underscore."""
    names = {"person": "risk", "sex": "unique", "area": "risk_", "age": "mean"}
    records = eq.read(people().rename(names), eq.Roles(["unique", "risk_", "mean"], id="risk"))
    score = eq.risk.LogLinear(fraction=0.5).measure(records, records)
    assert score.by_record().columns == ["risk_", "risk"]
    assert score.detail.columns == ["unique_", "risk_", "mean_", "n", "total", "risk", "unique", "mean"]
    assert math.isclose(score.by_record()["risk"].sum(), score.number or 0.0)


def test_names_of_ours_are_refused() -> None:
    with pytest.raises(eq.DataError, match="'__eq_cell' begins like those"):
        eq.read(pl.DataFrame({"__eq_cell": [1, 2]}))
    with pytest.raises(eq.RolesError, match="A key cannot be named 'n'"):
        eq.Roles(["n"])
