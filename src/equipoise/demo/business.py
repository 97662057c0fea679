"""A business survey of invented enterprises: a stratified sample from a population of 40,000.

Nobody in this file exists. Its structure is that of a structural business survey: employees and turnover are lognormal
with effects of the industry and a Pareto tail, a few hundred holdings control several enterprises each, and the sample
takes all large enterprises and few small ones, so that the weights differ and sum to the population.

Industries look like NACE (section, division, group: C10.1), regions like NUTS (EQ1, EQ12, EQ123): each code begins with
its parent's. Only `random` and `standard_normal` are drawn from the generator.
"""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.demo.figures import draw_codes, figures
from equipoise.ground.arrays import Floats, Integers

SEED = 2003
POPULATION = 40_000

SECTIONS: dict[str, dict[str, Any]] = figures("demo/figure_files/business.toml").sections
GROUPS = 5  # groups in a division, each half as frequent as the one before
REGIONS = {"EQ1": (4, 5), "EQ2": (3, 6), "EQ3": (5, 4), "EQ4": (2, 3)}  # level 1: level 2s, and level 3s in each
REGION_SHARES = {"EQ1": 0.38, "EQ2": 0.30, "EQ3": 0.24, "EQ4": 0.08}
SIZES = {"1-9": 1, "10-49": 10, "50-249": 50, "250+": 250}  # the least employees of each class
FRACTIONS = {"1-9": 0.10, "10-49": 0.30, "50-249": 0.80, "250+": 1.0}  # sampled of each class, in every section
MIN_STRATUM_SAMPLE = 3  # of a stratum, where it has so many
SPREAD_OF_SIZE = 1.25  # standard deviation of log employees
TAIL_EXPONENT, TAIL_SHARE = 1.1, 0.012  # Pareto exponent of the largest, and how many they are
SPREAD_OF_TURNOVER = 0.75
HOLDINGS, MEMBERS = 260, 1_500  # holdings of several enterprises, and the enterprises they control
FORMS = ["Sole trader", "Partnership", "Limited company", "Public company"]


def business() -> pl.DataFrame:
    """The invented business survey, ordered by enterprise: the same frame on every call.

    `weight` is the size of the stratum (section by size class) in the population over that in the sample. Turnover,
    wages, investment and exports are in thousands.

    >>> business().columns[:5]
    ['enterprise', 'holding', 'industry', 'region', 'legal_form']
    """
    rng = np.random.Generator(np.random.PCG64(SEED))
    section = draw_codes(rng, _by_section("share"), POPULATION)
    industry, region = _industries(rng, section), _regions(rng)
    employees = _employees(rng, section)
    amounts = _amounts(rng, section, employees)
    size = np.searchsorted(list(SIZES.values()), employees, side="right") - 1
    holding = _holdings(rng, employees)
    chosen, weight = _sample(rng, section, size)
    frame = pl.DataFrame(
        {
            "enterprise": np.arange(100_001, 100_001 + POPULATION),
            "holding": holding,
            "industry": industry,
            "region": region,
            "legal_form": pl.Series(FORMS).gather(_forms(rng, employees)),
            "size_class": pl.Series(list(SIZES)).gather(size),
            "employees": employees,
            **amounts,
        }
    )
    return frame[chosen].with_columns(pl.Series("weight", weight))


def _by_section(name: str) -> NDArray[Any]:
    return np.array([section[name] for section in SECTIONS.values()])


def _industries(rng: np.random.Generator, section: Integers) -> pl.Series:
    """Industry code of each enterprise: section, division, group; low numbers more often."""
    depth, group = rng.random(POPULATION) ** 1.6, draw_codes(rng, [0.5**i for i in range(GROUPS)], POPULATION)
    first, last = _by_section("divisions")[section].T
    count = last - first + 1
    division = first + np.minimum(depth * count, count - 1).astype(np.int64)
    letters = pl.Series(list(SECTIONS)).gather(section)
    number = pl.Series(division).cast(pl.String).str.zfill(2)
    return letters + number + "." + pl.Series(group + 1).cast(pl.String)


def _regions(rng: np.random.Generator) -> pl.Series:
    """Region code of three levels for each enterprise; the first place of each level is its city."""
    top = draw_codes(rng, list(REGION_SHARES.values()), POPULATION)
    second, third = (np.array([its[i] for its in REGIONS.values()])[top] for i in (0, 1))
    middle = (rng.random(POPULATION) ** 1.7 * second).astype(np.int64) + 1
    last = (rng.random(POPULATION) ** 1.4 * third).astype(np.int64) + 1
    names = pl.Series(list(REGIONS)).gather(top)
    return names + pl.Series(middle).cast(pl.String) + pl.Series(last).cast(pl.String)


def _employees(rng: np.random.Generator, section: Integers) -> Integers:
    """Number of employees: lognormal by section, the largest with a Pareto tail; at least one."""
    centre = _by_section("employees")[section]
    numbers = np.exp(centre + SPREAD_OF_SIZE * rng.standard_normal(POPULATION))
    tail = rng.random(POPULATION) < TAIL_SHARE * np.exp(centre - 1.2)
    numbers[tail] = np.minimum(120 * (1 - rng.random(int(tail.sum()))) ** (-1 / TAIL_EXPONENT), 30_000)
    return np.maximum(1, np.rint(numbers)).astype(np.int64)


def _amounts(rng: np.random.Generator, section: Integers, employees: Integers) -> dict[str, Integers]:
    """Turnover, wages, investment and exports, in thousands."""
    productivity = _by_section("turnover")[section]
    noise = rng.standard_normal((4, POPULATION))
    turnover = employees * np.exp(productivity + 0.06 * np.log(employees) + SPREAD_OF_TURNOVER * noise[0])
    pay = np.exp(3.35 + 0.12 * (productivity - 4.5) + 0.04 * np.log(employees) + 0.25 * noise[1])
    wages = np.minimum(employees * pay, 0.8 * turnover)
    invests = rng.random(POPULATION) < 0.35 + 0.08 * np.log(employees)
    investment = np.where(invests, turnover * np.exp(-3.4 + 0.9 * noise[2]), 0)
    share = _by_section("exports")[section] * (1 + 0.35 * np.log(employees))
    exports = np.where(rng.random(POPULATION) < share, turnover / (1 + np.exp(1.2 + 1.3 * noise[3])), 0)
    amounts = {"turnover": turnover, "wages": wages, "investment": investment, "exports": exports}
    return {name: np.rint(values).astype(np.int64) for name, values in amounts.items()}


def _forms(rng: np.random.Generator, employees: Integers) -> Integers:
    """Legal form: the larger, the more often a company."""
    score = 0.9 * np.log(employees) + 1.2 * rng.standard_normal(POPULATION)
    return np.searchsorted([0.3, 1.0, 5.2], score).astype(np.int64)


def _holdings(rng: np.random.Generator, employees: Integers) -> Integers:
    """Holding of each enterprise: its own number, or that of one that controls several, mostly large ones."""
    alone = np.arange(500_001, 500_001 + POPULATION)
    wait = -np.log(1 - rng.random(POPULATION)) / employees**0.8
    members = np.argsort(wait, kind="stable")[:MEMBERS]
    group = (rng.random(MEMBERS) ** 1.5 * HOLDINGS).astype(np.int64)
    alone[members] = 900_001 + group
    return alone


def _sample(rng: np.random.Generator, section: Integers, size: Integers) -> tuple[Integers, Floats]:
    """Rows of the stratified sample, in order, and their weights: strata are sections by size classes."""
    stratum = section * len(SIZES) + size
    total = np.bincount(stratum, minlength=len(SECTIONS) * len(SIZES))
    sizes = np.rint(total * np.tile(list(FRACTIONS.values()), len(SECTIONS))).astype(np.int64)
    sizes = np.minimum(total, np.maximum(sizes, MIN_STRATUM_SAMPLE))
    order = np.lexsort((rng.random(POPULATION), stratum))
    rank = np.arange(POPULATION) - np.repeat(np.cumsum(total) - total, total)
    chosen = np.sort(order[rank < sizes[stratum[order]]])
    return chosen, (total / np.maximum(sizes, 1))[stratum[chosen]]
