"""A hospital file of invented stays: patients who come again, diagnoses as a code tree, rare cases.

Nobody in this file exists. Stays have dates of two years, a length that depends on age and diagnosis, and a diagnosis
whose code looks like ICD-10 (chapter letter, category, subcategory: J45.0), each code beginning with its parent's.
Categories follow Zipf's law, so that many codes belong to one or two patients. Patients with a chronic disease come
again with the same category. Only `random` and `standard_normal` are drawn from the generator.
"""

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.demo.figures import draw_codes, figures
from equipoise.ground.arrays import Floats, Integers

SEED = 1893
PATIENTS = 9_000
FIRST_DAY, PERIOD_DAYS = date(2023, 1, 1), 731  # 2023 and 2024
SECOND_YEAR = (date(2024, 1, 1) - date(1970, 1, 1)).days  # days since 1970; everybody is a year older then
MAX_STAYS = 14

CHAPTERS: dict[str, dict[str, Any]] = figures("demo/figure_files/hospital.toml").chapters
ZIPF_EXPONENT = 1.25  # exponent of the categories
SUBCATEGORIES = 6  # of a category, each 0.55 times as frequent as the one before
FEMALE = {"N": 0.6, "M": 0.58, "S": 0.44, "I": 0.45}  # share of women where it is not half
DISTRICTS = {"10": 0.34, "12": 0.22, "20": 0.18, "21": 0.12, "30": 0.09, "45": 0.05}  # first two digits of the postcode
PLACES = 9  # postcodes in a district, the first ones larger
HOSPITALS = ["Central", "North", "Lakeside", "St Mary", "University"]
COST_PER_DAY, COST_OF_STAY = 620, 900


def hospital() -> pl.DataFrame:
    """The invented stays in hospital, ordered by admission: the same frame on every call.

    A patient has one sex and postcode; the age is that on admission; nobody comes again after death; stays of a
    patient do not overlap.

    >>> hospital().columns[:4]
    ['stay', 'patient', 'hospital', 'admission']
    """
    rng = np.random.Generator(np.random.PCG64(SEED))
    chapter = draw_codes(rng, _by_chapter("share"), PATIENTS)
    age = _ages(rng, chapter)
    female = rng.random(PATIENTS) < np.array([FEMALE.get(c, 0.5) for c in CHAPTERS])[chapter]
    postcode, home = _postcodes(rng)
    patient, number = _repeats(rng, chapter, age)
    code = _diagnoses(rng, chapter, patient, number)
    length = _lengths(rng, code[0], age[patient])
    day = _days(rng, patient, length)
    died = _deaths(rng, code[0], age[patient], patient)
    frame = pl.DataFrame(
        {
            "patient": 70_001 + patient,
            "hospital": pl.Series(HOSPITALS).gather(_hospitals(rng, home[patient])),
            "admission": pl.Series(day).cast(pl.Int32).cast(pl.Date),
            "discharge": pl.Series(day + length).cast(pl.Int32).cast(pl.Date),
            "days": length,
            "age": age[patient] + (day >= SECOND_YEAR),
            "sex": pl.Series(["male", "female"]).gather(female[patient].astype(np.int64)),
            "postcode": postcode.gather(patient),
            "diagnosis": _codes(*code),
            "emergency": rng.random(len(patient)) < np.where(code[0] == list(CHAPTERS).index("S"), 0.8, 0.4),
            "outcome": pl.Series(["home", "other hospital", "died"]).gather(
                np.where(died, 2, rng.random(len(died)) < 0.07).astype(np.int64)
            ),
            "cost": _costs(rng, length),
        }
    )
    last = FIRST_DAY + timedelta(days=PERIOD_DAYS - 1)
    ordered = frame.filter(pl.col("admission") <= last).sort("admission", "patient")
    return ordered.with_columns(stay=pl.int_range(1, pl.len() + 1)).select("stay", *frame.columns)


def _by_chapter(name: str) -> NDArray[Any]:
    return np.array([chapter[name] for chapter in CHAPTERS.values()])


def _ages(rng: np.random.Generator, chapter: Integers) -> Integers:
    """Age in the first of the two years, around the mean of the chapter; infections and injuries also hit children."""
    mean = _by_chapter("age")[chapter]
    child = rng.random(PATIENTS) < np.where(mean < 50, 0.22, 0.03)
    ages = np.where(child, 16 * rng.random(PATIENTS), mean + 17 * rng.standard_normal(PATIENTS))
    return np.clip(np.rint(ages), 0, 101).astype(np.int64)


def _postcodes(rng: np.random.Generator) -> tuple[pl.Series, Integers]:
    """A postcode of five digits for each patient, and the district it is in."""
    district = draw_codes(rng, list(DISTRICTS.values()), PATIENTS)
    place = (rng.random(PATIENTS) ** 1.8 * PLACES).astype(np.int64)
    street = (rng.random(PATIENTS) ** 1.5 * 6).astype(np.int64)
    names = pl.Series(list(DISTRICTS)).gather(district)
    return names + pl.Series(place + 1).cast(pl.String) + pl.Series(street + 10).cast(pl.String), district


def _repeats(rng: np.random.Generator, chapter: Integers, age: Integers) -> tuple[Integers, Integers]:
    """The patient of each stay and which of their stays it is: chronic patients come again, the old more often."""
    chronic = rng.random(PATIENTS) < _by_chapter("chronic")[chapter]
    again = np.where(chronic, 0.62, 0.10) + np.where(age > 70, 0.06, 0.0)
    stays = 1 + np.floor(np.log(1 - rng.random(PATIENTS)) / np.log(again)).astype(np.int64)
    stays = np.minimum(stays, MAX_STAYS)
    patient = np.repeat(np.arange(PATIENTS), stays)
    return patient, np.arange(len(patient)) - np.repeat(np.cumsum(stays) - stays, stays)


def _diagnoses(
    rng: np.random.Generator, chapter: Integers, patient: Integers, number: Integers
) -> tuple[Integers, Integers, Integers]:
    """Chapter, category and subcategory of each stay; a patient keeps them, one later stay in four is for another."""
    size = len(patient)
    fresh = (rng.random(size) < 0.25) & (number > 0)
    own = np.where(fresh, draw_codes(rng, _by_chapter("share"), size), chapter[patient])
    category = np.where(fresh, _zipf(own, rng.random(size)), _zipf(own, rng.random(PATIENTS)[patient]))
    sub = draw_codes(rng, [0.55**i for i in range(SUBCATEGORIES)], size)
    return own, category, sub


def _zipf(chapter: Integers, uniform: Floats) -> Integers:
    """A category of each chapter with shares 1 / rank^ZIPF_EXPONENT."""
    categories = np.zeros(len(chapter), dtype=np.int64)
    for code, count in enumerate(_by_chapter("categories")):
        steps = np.cumsum(np.arange(1, count + 1) ** -ZIPF_EXPONENT)
        its = chapter == code
        categories[its] = np.searchsorted(steps / steps[-1], uniform[its], side="right")
    return categories


def _codes(chapter: Integers, category: Integers, sub: Integers) -> pl.Series:
    """Diagnosis codes like J45.0: a chapter's categories are spread over 00 to 99 by a fixed stride."""
    number = pl.Series((category * 37 + chapter * 11) % 100).cast(pl.String).str.zfill(2)
    return pl.Series(list(CHAPTERS)).gather(chapter) + number + "." + pl.Series(sub).cast(pl.String)


def _lengths(rng: np.random.Generator, chapter: Integers, age: Integers) -> Integers:
    """Days in hospital: lognormal, longer for the old; some stay for hours only."""
    centre = _by_chapter("days")[chapter] + 0.006 * (age - 50)
    days = np.exp(centre + 0.8 * rng.standard_normal(len(chapter)))
    return np.where(rng.random(len(chapter)) < 0.12, 0, np.minimum(np.rint(days), 120)).astype(np.int64)


def _days(rng: np.random.Generator, patient: Integers, length: Integers) -> Integers:
    """Day of admission since 1970: a patient's stays follow each other, more of them begin in winter."""
    start = rng.random(PATIENTS) ** 1.15 * PERIOD_DAYS
    start += 18 * np.sin(2 * np.pi * start / 365.25)
    gap = length + 3 + np.rint(-45 * np.log(1 - rng.random(len(patient)))).astype(np.int64)
    passed = np.cumsum(gap) - gap
    first = np.searchsorted(patient, np.arange(PATIENTS))
    since = passed - passed[first][patient]
    span = np.zeros(PATIENTS, dtype=np.int64)
    np.maximum.at(span, patient, since + length)
    begun = np.clip(np.floor(start), 0, np.maximum(PERIOD_DAYS - 1 - span, 0)).astype(np.int64)
    return (FIRST_DAY - date(1970, 1, 1)).days + begun[patient] + since


def _deaths(rng: np.random.Generator, chapter: Integers, age: Integers, patient: Integers) -> NDArray[np.bool_]:
    """Who dies in hospital: only at the last stay."""
    chance = _by_chapter("dies")[chapter] * np.exp(0.045 * (age - 70))
    last = np.append(patient[1:] != patient[:-1], True)
    return last & (rng.random(len(patient)) < chance)


def _hospitals(rng: np.random.Generator, district: Integers) -> Integers:
    """Hospital of each stay: mostly that of the district, else the university's."""
    near = np.array([0, 0, 1, 1, 2, 3])[district]
    return np.where(rng.random(len(district)) < 0.25, 4, near).astype(np.int64)


def _costs(rng: np.random.Generator, length: Integers) -> Integers:
    """Cost of a stay: a fixed part, the days, and a skewed rest."""
    rest = np.exp(6.3 + 0.9 * rng.standard_normal(len(length)))
    return np.rint(COST_OF_STAY + COST_PER_DAY * length + rest).astype(np.int64)
