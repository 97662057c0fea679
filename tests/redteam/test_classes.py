"""Attacks on masks that coarsen or leave out: released rows that fit a person are counted by plain Python.

The intruder knows the true keys of a person, and that a label such as "30-34" holds the ages it names. After sampling
he may know that the person took part; after the names are gone he looks for them in every byte of the public folder.
"""

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.methods.method import Mask

Row = tuple[object, ...]
Record = Callable[..., None]
AGES = eq.Hierarchy.intervals([5, 10, 20], root=True)


@cache
def holds(label: object, age: int) -> bool:
    """Whether an age is in a released category: "37", "30-39", "30 (10)" or "*"."""
    text = str(label)
    if text == "*":
        return True
    low, _, high = text.split(" ")[0].partition("-")
    width = int(text.split("(")[1].rstrip(")")) if "(" in text else 1
    return int(low) <= age <= (int(high) if high else int(low) + width - 1)


def fitting(truth: list[Row], released: list[Row]) -> np.ndarray:
    """For each person (age last) the released rows that do not contradict the true keys."""
    by_rest: dict[Row, Counter[object]] = {}
    for *rest, label in released:
        by_rest.setdefault(tuple(rest), Counter())[label] += 1

    @cache
    def count(row: Row) -> int:
        labels = by_rest.get(row[:-1], Counter())
        return sum(n for label, n in labels.items() if holds(label, int(str(row[-1]))))

    return np.array([count(row) for row in truth])


def identical(released: list[Row]) -> np.ndarray:
    """For each released row how many are the same."""
    counts = Counter(released)
    return np.array([counts[row] for row in released])


def survey(people: int) -> tuple[pl.DataFrame, tuple[str, ...], str]:
    return eq.demo.survey().head(people), ("sex", "race", "age"), "demo survey"


def adult(folder: Path, people: int) -> tuple[pl.DataFrame, tuple[str, ...], str]:
    table = pl.read_csv(folder / "arx" / "adult.csv", separator=";").head(people)
    return table, ("sex", "race", "marital-status", "age"), "adult"


def attacked(
    record: Record, source: tuple[pl.DataFrame, tuple[str, ...], str], mask: Mask, parameter: str, *, least: int = 1
) -> None:
    """Count the rows that fit, and those that are the same; both reports are at least what follows."""
    table, keys, file = source
    original = eq.read(table.select(keys), eq.Roles(keys, hierarchies={"age": AGES}))
    released = eq.Recipe([mask], 1).run(original)
    rows = released.collect().select(keys).rows()
    fits, same = fitting(table.select(keys).rows(), rows), identical(rows)
    assert fits.min() >= least
    name = {"Recode": "recode", "LocalRecode": "local_recode"}[type(mask).__name__]
    for of, worst in (("worst", np.max), ("mean", np.mean)):
        reported = eq.risk.Prosecutor(of).measure(released, original).value  # type: ignore[arg-type]
        reached = max(float(worst(1 / fits)), float(worst(1 / same)))
        record(name, parameter, file=file, measure=f"person found, {of}", reported=reported, reached=reached)
    alone = float((fits == 1).mean())
    assert eq.risk.Uniques().measure(released, original).value >= alone - 1e-12


@pytest.mark.parametrize("level", [1, 2])
def test_recoded_ages(record: Record, level: int, full: Callable[..., int]) -> None:
    mask = eq.masks.Recode("age", level)
    attacked(record, survey(full(1_500, 60_000)), mask, f"age in bands of {5 * level}")


def test_recoded_ages_of_adult(record: Record, data_folder: Path, full: Callable[..., int]) -> None:
    attacked(record, adult(data_folder, full(2_000, 40_000)), eq.masks.Recode("age", 2), "age in bands of 10")


@pytest.mark.parametrize("k", [3, 5])
def test_locally_recoded(record: Record, k: int, full: Callable[..., int]) -> None:
    mask = eq.masks.LocalRecode(eq.rules.MinCount(k))
    attacked(record, survey(full(1_500, 20_000)), mask, f"classes of {k}", least=k)


def test_locally_recoded_adult(record: Record, data_folder: Path) -> None:
    table, keys, file = adult(data_folder, 4_000)
    source = (table.filter(pl.len().over(keys[:-1]) >= 5), keys, file)
    attacked(record, source, eq.masks.LocalRecode(eq.rules.MinCount(5)), "classes of 5", least=5)


@pytest.mark.parametrize("fraction", [0.1, 0.5])
def test_samples(record: Record, fraction: float, full: Callable[..., int]) -> None:
    """Who knows that a person took part counts the rows alike; by a weight he undoes the division that is public."""
    table, keys, file = survey(full(2_000, 20_000))
    table = table.select(*keys, "weight", "person")
    original = eq.read(table, eq.Roles(keys, weight="weight", id="person"))
    released = eq.Recipe([eq.masks.Sample(fraction)], 1).run(original)
    sample = released.collect()
    same = identical(sample.select(keys).rows())
    parameter = f"fraction {fraction:g}"
    for of, reached in (("worst", float(np.max(1 / same))), ("mean", float(np.mean(1 / same)))):
        reported = eq.risk.Prosecutor(of).measure(released, original).value  # type: ignore[arg-type]
        record("sample", parameter, file=file, measure=f"person found, {of}", reported=reported, reached=reached)
    kept = released.history[-1].parameters["kept"]
    true = Counter(table["weight"].round(6).to_list())
    own = Counter((sample["weight"] * kept).round(6).to_list())
    reached = sum(n for weight, n in own.items() if n < 3 and weight in true) / sample.height
    reported = eq.risk.RevealingColumns().measure(released, original).value
    record("sample", parameter, file=file, measure="found by weight", reported=reported, reached=reached)


def test_names_are_in_no_public_byte(record: Record, tmp_path: Path) -> None:
    """Names, numbers and addresses are looked for in the data, the codebook, the evidence and the report."""
    people = 60
    table = pl.DataFrame({"name": [f"Nomen{i}" for i in range(people)], "mail": [f"q{i}@zz" for i in range(people)]})
    table = table.with_columns(age=pl.int_range(people) // 10, tax=pl.int_range(people) * 7919 + 10**9)
    records = eq.read(table, eq.Roles("age", direct=["name", "mail"]))
    mask = eq.masks.DropDirectIdentifiers(["tax"])
    eq.protect(records, [mask], tmp_path / "out")
    public = tmp_path / "out" / "public"
    data = pl.read_parquet(public / "data.parquet").write_csv().encode()
    text = b"\n".join([data, *(path.read_bytes() for path in public.rglob("*") if path.is_file())])
    names = table.select("name", "mail", pl.col("tax").cast(pl.String)).rows()
    reached = float(np.mean([any(word.encode() in text for word in row) for row in names]))
    record("drop_direct_identifiers", "", file="made", measure="named in the folder", reported=0.0, reached=reached)
