"""A housing survey of 81,567 invented persons.

Nobody in this file exists. It is modelled on the extract of the American Housing Survey 1997 with which
Massell (1999), "Deterministic modifications of microdata", section III c, weighs entropy against uniques.
The margins of sex, race, age and salary are the printed ones, to the person. The dependence between the four,
and the heaping of salaries at round numbers, are calibrated so that the eight printed INFO-DRM points are
nearly reproduced. Everything else (households, schooling, homes) is plausible and no more.

Margins are met by rank: every person gets a latent score, persons are sorted by it, and the printed counts
are dealt out along that order. Only `random` and `standard_normal` are drawn from the generator.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from equipoise.demo.figures import draw_codes, figures
from equipoise.ground.arrays import Floats, Integers

SEED = 1997
FIGURES = figures("demo/figure_files/survey.toml")
"""Printed margins and our own shares."""
PERSONS = int(FIGURES.age5.sum())
HEAD, SPOUSE, CHILD, OTHER = 0, 1, 2, 3
"""The places in a household."""
PLACES = np.array([HEAD, SPOUSE, CHILD, CHILD, CHILD, CHILD, OTHER])


def survey() -> pl.DataFrame:
    """The invented housing survey, ordered by household: the same frame on every call."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    household, place, latent_age = _households(rng)
    age = _deal(latent_age, *_single_years())
    region = draw_codes(rng, list(FIGURES.region.values()), int(household[-1]) + 1)
    luck = (rng.standard_normal(len(region)) + FIGURES.luck_by_region[region])[household]
    race = _races(rng, household, latent_age, region)
    sex = _sexes(rng, place, age)
    education = _education(rng, age, race, luck)
    marital = _marital(rng, place, age, sex)
    salary = _salaries(rng, age, sex, race, education, marital, luck)
    tenure, rooms, housing_cost = _homes(rng, household, age, salary, region)
    return pl.DataFrame(
        {
            "person": np.arange(1, PERSONS + 1, dtype=np.int64),
            "household": household + 1,
            "region": _names(FIGURES.region, region[household]),
            "weight": _weights(rng, household, region),
            "sex": _names(FIGURES.sex, sex),
            "race": _names(FIGURES.race, race),
            "age": age,
            "salary": salary,
            "education": _names(FIGURES.education, education),
            "marital": _names(FIGURES.marital, marital),
            "tenure": _names(FIGURES.tenure, tenure[household]),
            "rooms": rooms[household],
            "housing_cost": housing_cost[household],
        }
    )


def _names(names: list[str] | dict[str, int] | dict[str, float], codes: Integers) -> pl.Series:
    """The names that the codes stand for."""
    return pl.Series(list(names)).gather(codes)


def _deal(score: Floats, values: Integers, counts: Integers) -> Integers:
    """Deal out exactly `counts` of each of `values` along the order of the score, lowest first."""
    dealt = np.empty(len(score), dtype=np.int64)
    dealt[np.argsort(score, kind="stable")] = np.repeat(values, counts)
    return dealt


def _curve(at: Floats | Integers, points: Mapping[Any, float]) -> Floats:
    """The broken line through the points, level beyond its ends."""
    return np.interp(at, [int(point) for point in points], list(points.values()))


def _logit(p: Floats) -> Floats:
    """Log odds: `_logit(p)` plus logistic noise is positive with probability p."""
    return np.log(p / (1 - p))


def _logistic(rng: np.random.Generator, size: int) -> Floats:
    """Standard logistic noise."""
    return _logit(np.clip(rng.random(size), 1e-12, None))


def _households(rng: np.random.Generator) -> tuple[Integers, Integers, Floats]:
    """Household number, place in the household and latent age of every person."""
    n = FIGURES.households_drawn
    band = draw_codes(rng, FIGURES.head_shares, n)
    head = FIGURES.head_ages[band] + np.diff(FIGURES.head_ages)[band] * rng.random(n)
    ages = np.empty((n, len(PLACES)))
    ages[:, 0] = head
    ages[:, 1] = np.maximum(head - 1 + 4 * rng.standard_normal(n), 17 + 2 * rng.random(n))
    ages[:, 2:6] = head[:, None] - np.clip(27.5 + 5.5 * rng.standard_normal((n, 4)), 18, 45)
    lodger, old_parent = 18 + (head - 17) * rng.random(n) ** 0.3, head + 24 + 4 * rng.random(n)
    ages[:, 6] = np.where(rng.random(n) < _curve(head, {35: 0, 50: 0.4, 60: 0.6}), old_parent, lodger)
    chance = np.ones_like(ages)
    chance[:, 1] = _curve(head, {18: 0.2, 23: 0.42, 30: 0.6, 45: 0.65, 65: 0.64, 75: 0.5, 85: 0.28, 95: 0.1})
    born = np.where(rng.random((n, 1)) < 0.06, 1, np.array([0.80, 0.63, 0.36, 0.18]))
    at_home = _curve(ages[:, 2:6], {14: 0.98, 17: 0.85, 19: 0.62, 22: 0.48, 25: 0.27, 32: 0.09, 45: 0.05})
    chance[:, 2:6] = np.where(ages[:, 2:6] < 14, 0, born * at_home)
    chance[:, 6] = np.where(ages[:, 6] > 97, 0, _curve(head, {18: 0.5, 23: 0.4, 30: 0.2, 60: 0.08}))
    number, column = np.nonzero(rng.random(ages.shape) < chance)
    number, column = number[:PERSONS], column[:PERSONS]
    return number, PLACES[column], ages[number, column]


def _single_years() -> tuple[Integers, Integers]:
    """Ages 14..90 and how many have each: every band of AGE5 is split along the slope of its neighbours."""
    years, counts, age5 = [14, 15], [FIGURES.age5[0] // 2, FIGURES.age5[0] - FIGURES.age5[0] // 2], FIGURES.age5
    for i in range(1, len(age5)):
        if i == 1:  # the band before holds two ages only and tells no slope
            shares = np.full(5, 0.2)
        elif i < len(age5) - 1:
            shares = (1 + (age5[i + 1] - age5[i - 1]) / (10 * age5[i]) * np.arange(-2, 3)) / 5
        else:
            shares = np.array([0.28, 0.23, 0.17, 0.12, 0.20])  # 86..89, and 90 or more
        years += range(5 * i + 11, 5 * i + 16)
        counts += np.diff(np.rint(age5[i] * np.cumsum(shares)), prepend=0).astype(int).tolist()
    return np.array(years), np.array(counts)


def _races(rng: np.random.Generator, household: Integers, latent_age: Floats, region: Integers) -> Integers:
    """Race: minorities get whole households until their count is full, then a few persons are mixed."""
    race = np.zeros(PERSONS, dtype=np.int64)
    head = np.searchsorted(household, np.arange(len(region)))
    youth = np.exp(-0.008 * latent_age[head])
    assigned = np.zeros(len(region), dtype=bool)
    for code, (name, count) in enumerate(FIGURES.race.items()):
        if name in FIGURES.race_by_region:
            wait = -np.log(1 - rng.random(len(region))) / (youth * np.array(FIGURES.race_by_region[name])[region])
            wait[assigned] = np.inf
            members = np.argsort(wait[household], kind="stable")[:count]
            race[members] = code
            assigned[household[members]] = True
    mixed = np.flatnonzero(rng.random(PERSONS) < FIGURES.mixed)
    race[mixed] = race[mixed[np.argsort(rng.random(len(mixed)))]]
    return race


def _sexes(rng: np.random.Generator, place: Integers, age: Integers) -> Integers:
    """Sex (1 is female): spouses differ, the others make up the count; old singles are mostly women."""
    spouse = np.flatnonzero(place == SPOUSE)
    head_is_woman = rng.random(len(spouse)) < 0.2
    sex = np.zeros(PERSONS, dtype=np.int64)
    sex[spouse] = ~head_is_woman
    sex[spouse - 1] = head_is_woman  # a spouse follows the head
    single = np.ones(PERSONS, dtype=bool)
    single[spouse] = single[spouse - 1] = False
    score = _logit(_curve(age, {14: 0.52, 25: 0.5, 35: 0.5, 60: 0.6, 75: 0.75, 90: 0.8}))
    score += np.where(place == HEAD, 0.3, -0.1) + _logistic(rng, PERSONS)
    sex[single] = _deal(score[single], np.array([0, 1]), np.array(list(FIGURES.sex.values())) - len(spouse))
    return sex


def _education(rng: np.random.Generator, age: Integers, race: Integers, luck: Floats) -> Integers:
    """Education: rising over the cohorts, alike within a household, never ahead of the age."""
    score = 0.5 * luck + 0.85 * rng.standard_normal(PERSONS)
    score += _curve(age, {25: 0.1, 50: 0.15, 65: -0.35, 85: -0.75})
    score += np.array([0.0, -0.35, -0.35, 0.4, -0.6])[race]
    reached = np.searchsorted([-0.95, 0.05, 0.72, 1.4], score)
    return np.minimum(reached, np.searchsorted([17, 19, 22, 25], age, side="right")).astype(np.int64)


def _marital(rng: np.random.Generator, place: Integers, age: Integers, sex: Integers) -> Integers:
    """Marital state: couples are married, except some of the young; the others by age, sex and place."""
    u = rng.random(PERSONS)
    widowed = _curve(age, {40: 0, 60: 0.15, 75: 0.55, 90: 0.85}) * np.where(sex == 1, 1.0, 0.6)
    divorced = _curve(age, {20: 0, 30: 0.2, 45: 0.5, 60: 0.5, 75: 0.15}) * np.where(place == CHILD, 0.4, 1.0)
    marital = np.where(u < widowed, 3, np.where(u < widowed + divorced, 2, 0)).astype(np.int64)
    spouse = np.flatnonzero(place == SPOUSE)
    wed = _curve(age[spouse], {18: 0.4, 25: 0.8, 35: 0.93, 60: 0.98})
    married = spouse[rng.random(len(spouse)) < wed]
    marital[married] = marital[married - 1] = 1
    return marital


def _salaries(
    rng: np.random.Generator,
    age: Integers,
    sex: Integers,
    race: Integers,
    education: Integers,
    marital: Integers,
    luck: Floats,
) -> Integers:
    """Salary in dollars: who has none, then the bracket of the others by latent pay, then a round figure."""
    idle = _logit(np.where(sex == 1, _curve(age, FIGURES.idle_women), _curve(age, FIGURES.idle_men)))
    idle += _logistic(rng, PERSONS) - 0.5 * FIGURES.pay_by_education[education]
    pay = _curve(age, FIGURES.pay_by_age) + FIGURES.pay_by_education[education] + FIGURES.pay_by_race[race]
    pay += FIGURES.pay_of_women * sex
    pay += 0.1 * ((marital == 1) & (sex == 0)) + 0.2 * luck + _curve(age, FIGURES.pay_rest) * _logistic(rng, PERSONS)
    brackets = FIGURES.sal10000
    salaried = _deal(idle, np.array([1, 0]), np.array([PERSONS - brackets[0], brackets[0]])) == 1
    pay[~salaried] = -np.inf
    rank = _deal(pay, np.arange(PERSONS), np.ones(PERSONS, dtype=np.int64))
    ends = np.cumsum(brackets)
    bracket = np.searchsorted(ends, rank, side="right")
    depth = (rank + 0.5 - ends[bracket - 1]) / brackets[bracket]  # from 0 to 1 across the bracket
    depth[bracket == 10] = np.minimum(depth[bracket == 10] / (1 - FIGURES.top_coded), 1)
    low, high = (draw_codes(rng, shares, PERSONS) for shares in (FIGURES.heaps_low, FIGURES.heaps_high))
    heap = FIGURES.heaps[np.where(bracket <= 4, low, high)]
    salary = 10_000 * (bracket - 1) + heap * np.ceil(depth * 10_000 / heap)
    return np.where(salaried, salary, 0).astype(np.int64)


def _homes(
    rng: np.random.Generator, household: Integers, age: Integers, salary: Integers, region: Integers
) -> tuple[Integers, Integers, Integers]:
    """Tenure, rooms and monthly cost of every household, from its salaries, size, oldest member, region."""
    n = len(region)
    size = np.bincount(household)
    retired = np.bincount(household, weights=age >= 65)
    oldest = np.zeros(n, dtype=np.int64)
    np.maximum.at(oldest, household, age)
    # People without a salary live on something else. In logs, near 0 for a usual household.
    means = np.log(np.bincount(household, weights=salary) + 6_000 + 14_000 * retired) - 10
    owns = _logit(_curve(oldest, {18: 0.07, 25: 0.22, 35: 0.5, 50: 0.65, 65: 0.76, 90: 0.66}))
    owns += 0.9 * means + np.array([-0.15, 0.2, 0.1, -0.2])[region] + _logistic(rng, n)
    tenure = np.where(owns > 0, 0, np.where(rng.random(n) < 0.05, 2, 1)).astype(np.int64)
    rooms = 3.1 + 1.6 * (tenure == 0) + 0.35 * np.minimum(size, 5) + 0.4 * means
    rooms = np.clip(np.rint(rooms + rng.standard_normal(n)), 1, 12)
    owes = (tenure == 0) & (rng.random(n) < _curve(oldest, {30: 0.95, 50: 0.8, 65: 0.4, 80: 0.12}))
    cost = np.log(np.where(owes, 820.0, np.array([280.0, 500.0, 90.0])[tenure]))
    cost += 0.25 * means + 0.04 * (rooms - 5) + np.array([0.18, -0.06, -0.14, 0.16])[region]
    cost = np.exp(cost + 0.35 * rng.standard_normal(n))
    step = np.where((tenure == 1) & (rng.random(n) < 0.6), 25, 1)  # most rents are round sums
    cost = step * np.maximum(np.rint(cost / step), 1)
    return tenure, rooms.astype(np.int64), cost.astype(np.int64)


def _weights(rng: np.random.Generator, household: Integers, region: Integers) -> Floats:
    """Persons that each record stands for: one weight per household, 2,000 on average over the records."""
    weight = np.array([1.06, 0.92, 1.0, 1.05])[region] * np.exp(0.25 * rng.standard_normal(len(region)))
    weight *= 2_000 / weight[household].mean()
    return np.asarray(np.round(weight, 2)[household], dtype=np.float64)
