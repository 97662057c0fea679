"""A housing survey of 81,567 invented persons.

Nobody in this file exists. It is modelled on the extract of the American Housing Survey 1997 with which
Massell (1999), "Deterministic modifications of microdata", section III c, weighs entropy against uniques.
The margins of sex, race, age and salary are the printed ones, to the person. The dependence between the four,
and the heaping of salaries at round numbers, are calibrated so that the eight printed INFO-DRM points are
nearly reproduced. Everything else (households, schooling, homes) is plausible and no more.

Margins are met by rank: every person gets a latent score, persons are sorted by it, and the printed counts
are dealt out along that order. Only `random` and `standard_normal` are drawn from the generator.
"""

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from equipoise.ground.arrays import Floats, Integers

SEED = 1997

# Printed margins, Massell (1999). AGE5 code 5i holds ages 5i-4..5i, from code 15 (nobody is under 14) to 90.
# SAL10000 holds 0 alone, then intervals of 10,000 dollars closed above, the last with the top code 100,000.
SEX = {"Male": 38_830, "Female": 42_737}
RACE = {
    "White": 67_500,
    "Black": 8_845,
    "American Indian, Aleut": 511,
    "Asian, Pacific Islander": 2_954,
    "Other": 1_757,
}
AGE5 = [3349, 7213, 6347, 7225, 8063, 8476, 7804, 7201, 5397, 4437, 3832, 3664, 3461, 2550, 1570, 978]
SAL10000 = [30_615, 13_772, 11_360, 9_715, 6_386, 3_754, 2_155, 1_200, 825, 404, 1_381]
PERSONS = sum(AGE5)

# From here on the figures are ours. The names are in the order of their codes, which index the tables below.
REGION = {"Northeast": 0.20, "Midwest": 0.25, "South": 0.34, "West": 0.21}
EDUCATION = ["Below high school", "High school", "Some college", "Bachelor", "Graduate"]
MARITAL = ["Never married", "Married", "Divorced", "Widowed"]
TENURE = ["Owner", "Renter", "No cash rent"]

# The places in a household, and the ages of its head: the shares bring all persons close to AGE5 unaided.
HEAD, SPOUSE, CHILD, OTHER = 0, 1, 2, 3
PLACES = np.array([HEAD, SPOUSE, CHILD, CHILD, CHILD, CHILD, OTHER])
HEAD_AGES = np.array([18.0, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90, 95])
HEAD_SHARES = np.array([0.9, 3.0, 7.7, 10.5, 12.6, 10.9, 12.0, 8.3, 7.0, 5.8, 5.4, 6.1, 4.7, 3.3, 1.2, 0.6])
HOUSEHOLDS_DRAWN = 45_000  # more than are used: the file stops at the last person needed

# How often each minority lives in a region, relative to its share of the country.
RACE_BY_REGION = {
    "Black": [0.9, 0.8, 1.6, 0.5],
    "American Indian, Aleut": [0.2, 0.6, 0.9, 2.4],
    "Asian, Pacific Islander": [0.9, 0.4, 0.4, 2.6],
    "Other": [1.0, 0.4, 0.9, 2.0],
}
MIXED = 0.03  # share of persons whose race is dealt again, whatever the household's
LUCK_BY_REGION = np.array([0.15, 0.0, -0.2, 0.1])  # luck is what a household shares, in schooling and pay

# Chance of no salary by age, before the exact count is imposed: men and women.
IDLE_MEN = {14: 0.96, 15: 0.93, 16: 0.70, 18: 0.38, 20: 0.23, 23: 0.14, 27: 0.10, 40: 0.11, 50: 0.14}
IDLE_MEN |= {55: 0.20, 60: 0.34, 63: 0.52, 67: 0.72, 72: 0.85, 80: 0.93, 90: 0.97}
IDLE_WOMEN = {14: 0.96, 15: 0.93, 16: 0.70, 18: 0.40, 20: 0.30, 23: 0.27, 27: 0.28, 40: 0.25, 50: 0.25}
IDLE_WOMEN |= {55: 0.34, 60: 0.50, 63: 0.67, 67: 0.83, 72: 0.92, 80: 0.97, 90: 0.99}
# Log of pay: by age, by education, by race, for women; and the scale of the (logistic) rest, by age.
PAY_BY_AGE = {14: -2.6, 16: -2.1, 18: -1.5, 20: -1.0, 23: -0.5, 27: -0.15, 32: 0.05, 40: 0.2, 50: 0.27}
PAY_BY_AGE |= {57: 0.2, 62: 0.0, 66: -0.6, 75: -0.9, 90: -1.0}
PAY_BY_EDUCATION = np.array([-0.35, -0.1, 0.05, 0.4, 0.65])
PAY_BY_RACE = np.array([0.0, -0.12, -0.18, 0.0, -0.2])
PAY_OF_WOMEN = -0.38
PAY_REST = {14: 0.3, 22: 0.55}

# Salaries are answered in multiples of so many dollars: how often up to 40,000 dollars, and how often above.
HEAPS = np.array([10_000, 5_000, 1_000, 500, 100, 1])
HEAPS_LOW = np.array([0.10, 0.16, 0.42, 0.12, 0.10, 0.10])
HEAPS_HIGH = np.array([0.24, 0.40, 0.30, 0.02, 0.02, 0.02])
TOP_CODED = 0.75  # of the highest bracket


def survey() -> pl.DataFrame:
    """The invented housing survey, ordered by household: the same frame on every call."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    household, place, latent_age = _households(rng)
    age = _deal(latent_age, *_single_years())
    region = _draw(rng, list(REGION.values()), int(household[-1]) + 1)
    luck = (rng.standard_normal(len(region)) + LUCK_BY_REGION[region])[household]
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
            "region": _names(REGION, region[household]),
            "weight": _weights(rng, household, region),
            "sex": _names(SEX, sex),
            "race": _names(RACE, race),
            "age": age,
            "salary": salary,
            "education": _names(EDUCATION, education),
            "marital": _names(MARITAL, marital),
            "tenure": _names(TENURE, tenure[household]),
            "rooms": rooms[household],
            "housing_cost": housing_cost[household],
        }
    )


def _names(names: list[str] | dict[str, int] | dict[str, float], codes: Integers) -> pl.Series:
    """The names that the codes stand for."""
    return pl.Series(list(names)).gather(codes)


def _draw(rng: np.random.Generator, shares: ArrayLike, size: int) -> Integers:
    """Codes 0, 1, ... drawn with the given shares."""
    steps = np.cumsum(shares)
    return np.searchsorted(steps / steps[-1], rng.random(size), side="right").astype(np.int64)


def _deal(score: Floats, values: Integers, counts: Integers) -> Integers:
    """Deal out exactly `counts` of each of `values` along the order of the score, lowest first."""
    dealt = np.empty(len(score), dtype=np.int64)
    dealt[np.argsort(score, kind="stable")] = np.repeat(values, counts)
    return dealt


def _curve(at: Floats | Integers, points: dict[int, float]) -> Floats:
    """The broken line through the points, level beyond its ends."""
    return np.interp(at, list(points), list(points.values()))


def _logit(p: Floats) -> Floats:
    """Log odds: `_logit(p)` plus logistic noise is positive with probability p."""
    return np.log(p / (1 - p))


def _logistic(rng: np.random.Generator, size: int) -> Floats:
    """Standard logistic noise."""
    return _logit(np.clip(rng.random(size), 1e-12, None))


def _households(rng: np.random.Generator) -> tuple[Integers, Integers, Floats]:
    """Household number, place in the household and latent age of every person."""
    n = HOUSEHOLDS_DRAWN
    band = _draw(rng, HEAD_SHARES, n)
    head = HEAD_AGES[band] + np.diff(HEAD_AGES)[band] * rng.random(n)
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
    """Ages 14..90 and how many have each: every AGE5 band is split along the slope of its neighbours."""
    years, counts = [14, 15], [AGE5[0] // 2, AGE5[0] - AGE5[0] // 2]
    for i in range(1, len(AGE5)):
        if i == 1:  # the band before holds two ages only and tells no slope
            shares = np.full(5, 0.2)
        elif i < len(AGE5) - 1:
            shares = (1 + (AGE5[i + 1] - AGE5[i - 1]) / (10 * AGE5[i]) * np.arange(-2, 3)) / 5
        else:
            shares = np.array([0.28, 0.23, 0.17, 0.12, 0.20])  # 86..89, and 90 or more
        years += range(5 * i + 11, 5 * i + 16)
        counts += np.diff(np.rint(AGE5[i] * np.cumsum(shares)), prepend=0).astype(int).tolist()
    return np.array(years), np.array(counts)


def _races(rng: np.random.Generator, household: Integers, latent_age: Floats, region: Integers) -> Integers:
    """Race: minorities get whole households until their count is full, then a few persons are mixed."""
    race = np.zeros(PERSONS, dtype=np.int64)
    head = np.searchsorted(household, np.arange(len(region)))
    youth = np.exp(-0.008 * latent_age[head])
    assigned = np.zeros(len(region), dtype=bool)
    for code, (name, count) in enumerate(RACE.items()):
        if name in RACE_BY_REGION:
            wait = -np.log(1 - rng.random(len(region))) / (youth * np.array(RACE_BY_REGION[name])[region])
            wait[assigned] = np.inf
            members = np.argsort(wait[household], kind="stable")[:count]
            race[members] = code
            assigned[household[members]] = True
    mixed = np.flatnonzero(rng.random(PERSONS) < MIXED)
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
    sex[single] = _deal(score[single], np.array([0, 1]), np.array(list(SEX.values())) - len(spouse))
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
    idle = _logit(np.where(sex == 1, _curve(age, IDLE_WOMEN), _curve(age, IDLE_MEN)))
    idle += _logistic(rng, PERSONS) - 0.5 * PAY_BY_EDUCATION[education]
    pay = _curve(age, PAY_BY_AGE) + PAY_BY_EDUCATION[education] + PAY_BY_RACE[race] + PAY_OF_WOMEN * sex
    pay += 0.1 * ((marital == 1) & (sex == 0)) + 0.2 * luck + _curve(age, PAY_REST) * _logistic(rng, PERSONS)
    salaried = _deal(idle, np.array([1, 0]), np.array([PERSONS - SAL10000[0], SAL10000[0]])) == 1
    pay[~salaried] = -np.inf
    rank = _deal(pay, np.arange(PERSONS), np.ones(PERSONS, dtype=np.int64))
    ends = np.cumsum(SAL10000)
    bracket = np.searchsorted(ends, rank, side="right")
    depth = (rank + 0.5 - ends[bracket - 1]) / np.array(SAL10000)[bracket]  # from 0 to 1 across the bracket
    depth[bracket == 10] = np.minimum(depth[bracket == 10] / (1 - TOP_CODED), 1)
    heap = HEAPS[np.where(bracket <= 4, _draw(rng, HEAPS_LOW, PERSONS), _draw(rng, HEAPS_HIGH, PERSONS))]
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
