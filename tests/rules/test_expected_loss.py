"""The expected-loss rule flags what a publication would withhold."""
# ruff: noqa: N803

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.recipe import catalogue

TABLE = pl.DataFrame(
    {
        "area": ["a", "a", "b", "b", "c"],
        "job": ["nurse", "smith", "nurse", "smith", "nurse"],
        "domain_n": [3, 3, 5, 5, 5],
        "domain_N": [8, 8, 20, 20, 20],
        "n": [1, 2, 4, 1, 0],
    }
)


@pytest.fixture
def records() -> eq.Records:
    """Thirty areas, four jobs, a weight of ten in one half and of thirty in the other."""
    rng = np.random.default_rng(5)
    size = 1500
    area = rng.integers(0, 30, size)
    frame = pl.DataFrame(
        {
            "area": area,
            "job": rng.choice(["nurse", "smith", "clerk", "baker"], size, p=[0.02, 0.08, 0.6, 0.3]),
            "people": 400 + 10 * area,
            "w": np.where(area < 15, 10.0, 30.0),
        }
    )
    return eq.read(frame, eq.Roles(["job"], weight="w", domain="area"))


def test_ready_cells() -> None:
    """Table 2 of Zaslavsky and Horton: ratios 0.846, 0.739, 0.432, 0.761; y = 0 is free."""
    rule = eq.rules.ExpectedLoss(eq.losses.Uniques(10), "y", (1, 10), cutoff=0.75)
    assert rule.flag(eq.Cells.of(TABLE)).to_list() == [True, False, False, True, False]
    assert eq.rules.ExpectedLoss("uniques:10", "y", (1, 10)).flag(eq.Cells.of(TABLE)).sum() == 0


@pytest.mark.parametrize("population", [None, "people", "mapping"])
@pytest.mark.parametrize("prior", [None, (0.5, 9.5)])
def test_it_flags_what_the_publication_withholds(records: eq.Records, population: Any, prior: Any) -> None:
    """Equal weights in a domain: the same N, the same prior (fitted by class over all domains), the same decision."""
    given = {area: 400.0 + 10 * area for area in range(30)} if population == "mapping" else population
    rule = eq.rules.ExpectedLoss("uniques:20", "y", prior, "area", given, 0.3)
    by = ("area", "job", "people") if population == "people" else ("area", "job")
    cells = eq.count(records, by)
    flags = cells.table.select("area", "job", unsafe=rule.flag(cells))
    found = eq.publication(records, prior, "uniques:20", "y", "area", "job", given)
    decided = found.choose(cutoff=0.3).cells.filter(pl.col("y") > 0)
    both = flags.join(decided, on=["area", "job"], how="full")
    assert both.height == len(cells)
    assert (both["unsafe"] != both["publish"]).all()
    assert 0 < flags["unsafe"].sum() < len(cells)


def test_a_cell_is_explained() -> None:
    rule = eq.rules.ExpectedLoss("uniques:10", "y", (1, 10), cutoff=0.75)
    told = rule.explain({"n": 1, "domain_n": 3, "domain_N": 8})
    assert told == "Unsafe: publishing is expected to cost 0.8456, suppressing 1; the cutoff is 0.75."
    assert rule.explain({"n": 4, "domain_n": 5, "domain_N": 20}).startswith("Safe")
    with pytest.raises(eq.ParameterError, match="give the rule a prior"):
        rule.explain({"n": 1})


def test_small_groups_are_unsafe_also_without_a_record() -> None:
    rule = eq.rules.ExpectedLoss("small_group:10", "cell", (1, 10), cutoff=0.5)
    assert rule.flag(eq.Cells.of(TABLE)).to_list()[-1]


def test_as_text_and_in_files() -> None:
    rule = eq.rules.ExpectedLoss(eq.losses.GammaUniques(10, 2), "cell", (1, 10), ["area"], {"a": 10, "b": 20})
    plain = catalogue.to_plain(rule)
    assert plain["disclosure"] == "gamma_uniques(S=10, a=2)"
    assert catalogue.build(plain.pop("use"), "rule", plain) == rule
    assert catalogue.parse("expected-loss:uniques:10,y,domain=area,cutoff=2", "rule").cutoff == 2
    assert hash(rule) == hash(eq.rules.ExpectedLoss("gamma-uniques:10,2", "cell", (1, 10), "area", {"a": 10, "b": 20}))


def test_a_function_is_kept_as_it_is() -> None:
    def alone(y: Any, Y: Any, n: Any, N: Any) -> Any:
        return y / Y.clip(1)

    rule = eq.rules.ExpectedLoss(alone, "y", (1, 10), cutoff=0.5)
    assert rule.disclosure is alone
    assert len(rule.flag(eq.Cells.of(TABLE))) == 5


def test_many_large_cells(full: Any) -> None:
    """5,000 different cells (50,000 in full) with up to ten million people, without overflow."""
    rng = np.random.default_rng(1)
    size = full(5_000, 50_000)
    n = rng.integers(30, 1000, size)
    table = pl.DataFrame({"cell": np.arange(size), "domain_n": n, "domain_N": rng.integers(10**3, 10**7, size)})
    cells = eq.Cells.of(table.with_columns(n=rng.binomial(n, rng.beta(0.5, 20, size))))
    R0, R1 = eq.rules.ExpectedLoss("uniques:1000", "y", (0.5, 20)).risks(cells)  # noqa: N806
    assert np.isfinite(R0).all()
    assert np.isfinite(R1).all()


def cells(**changes: Any) -> eq.Cells:
    return eq.Cells.of(TABLE.with_columns(**changes))


BAD = [
    (lambda: eq.rules.ExpectedLoss("uniques:10", "y", (1, 10)).flag(cells(domain_N=2)), "n is above N"),
    (lambda: eq.rules.ExpectedLoss("uniques:10", "y", (1, 10)).flag(cells(n=7)), "y is above n"),
    (lambda: eq.rules.ExpectedLoss("uniques:10", "y", (1, 10)).flag(cells(domain_N=pl.lit(None))), "N is missing"),
    (lambda: eq.rules.ExpectedLoss("uniques:10", "y", (1, 10)).flag(eq.Cells.of(TABLE[["area", "n"]][::2])), "domain"),
    (lambda: _plain().flag(eq.Cells.of(TABLE[["area", "job", "n"]])), "N is missing"),
    (lambda: _plain(population={"a": 9}).flag(eq.Cells.of(TABLE[["area", "job", "n"]])), "N is missing for 2 domains"),
    (lambda: _plain(domain="aera").flag(eq.Cells.of(TABLE[["area", "job", "n"]])), "Did you mean 'area'"),
    (lambda: _plain(population="peple").flag(eq.Cells.of(TABLE[["area", "job", "n"]])), "No column 'peple'"),
    (lambda: _plain(cutoff=0), "cutoff must be"),
    (lambda: _plain(prior=(1,)), "alpha, beta"),
    (lambda: _plain(prior=(1, -2)), "beta must be"),
    (lambda: _plain(population=7), "mapping of domain to N"),
    (lambda: _plain(disclosure="uniqes"), "No loss"),
    (
        lambda: _plain(prior=None, population={"a": 9}).flag(eq.Cells.of(TABLE[["area", "job", "n"]].head(2))),
        "one domain",
    ),
]


def _plain(**changes: Any) -> eq.rules.ExpectedLoss:
    given: dict[str, Any] = {"disclosure": "uniques:10", "prior": (1, 10), "domain": "area"} | changes
    return eq.rules.ExpectedLoss(**given)


@pytest.mark.parametrize(("call", "words"), BAD)
def test_refusals(call: Any, words: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=words):
        call()
