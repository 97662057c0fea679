"""Somebody who knows a family looks for it in a release: no household is found more surely than reported.

The intruder is written here: he pairs every member he knows with a released one, and counts the released households
that do not contradict him. A blank contradicts nothing, and what one member shows of the dwelling holds for all.
"""

from itertools import combinations, permutations

import numpy as np
import polars as pl
import pytest

import equipoise as eq

KEYS = ("sex", "age", "roof")
Member = tuple[object, ...]


def agrees(person: Member, row: Member) -> bool:
    return all(shown is None or shown == true for true, shown in zip(person, row, strict=True))


def fits(family: tuple[Member, ...], household: list[Member]) -> bool:
    """Whether each known member can be a different member of a household."""
    roofs = {row[-1] for row in household} - {None}
    if roofs and roofs != {family[0][-1]}:
        return False
    return any(all(map(agrees, family, rows)) for rows in permutations(household, len(family)))


def families(table: pl.DataFrame) -> dict[int, list[Member]]:
    parts = table.partition_by("home", as_dict=True, maintain_order=True)
    return {int(home): part.select(KEYS).rows() for (home,), part in parts.items()}


def success(truth: pl.DataFrame, released: pl.DataFrame, known: int | str, size_known: bool) -> dict[int, float]:
    """The chance to pick each household, for the members that give it away most."""
    shown, chances = families(released), {}
    for home, family in families(truth).items():
        size = len(family) if known == "all" else min(int(known), len(family))
        candidates = [rows for rows in shown.values() if not size_known or len(rows) == len(family)]
        counts = [sum(fits(some, rows) for rows in candidates) for some in combinations(family, size)]
        chances[home] = 1 / min(counts)
    return chances


def village(rng: np.random.Generator, homes: int) -> pl.DataFrame:
    home = np.repeat(np.arange(homes), rng.integers(1, 4, homes))
    people = len(home)
    return pl.DataFrame(
        {"home": home, "sex": rng.integers(0, 2, people), "age": rng.integers(0, 2, people)}
    ).with_columns(roof=pl.Series(rng.integers(0, 2, homes)[home]))


@pytest.mark.parametrize("known", [1, 2, "all"])
@pytest.mark.parametrize("size_known", [True, False])
def test_no_family_is_found_more_surely_than_reported(known: int | str, size_known: bool, full) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(5)
    for _ in range(full(8, 200, 50)):
        truth = village(rng, 8)
        blanks = [pl.when(pl.Series(rng.random(truth.height) > 0.3)).then(pl.col(key)).alias(key) for key in KEYS]
        released = truth.with_columns(blanks)
        chances = success(truth, released, known, size_known or known == "all")
        measure = eq.risk.Composition(known, size_known=size_known)  # type: ignore[arg-type]
        roles = eq.Roles(KEYS, household="home")
        score = measure.measure(eq.read(released, roles), eq.read(truth, roles))
        reported = dict(score.detail.select("home", "risk").iter_rows())
        assert all(reported[home] >= chance - 1e-12 for home, chance in chances.items())


def test_without_blanks_the_intruder_reaches_what_is_reported() -> None:
    truth = village(np.random.default_rng(6), 12)
    records = eq.read(truth, eq.Roles(KEYS, household="home"))
    reported = eq.risk.Composition().measure(records, records).detail
    reached = success(truth, truth, "all", True)
    assert dict(reported.select("home", "risk").iter_rows()) == pytest.approx(reached)
