"""Identifiers that are nobody's, made with their check digits, for the tests that look for them."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest

SIZE = 200
DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
GIVEN = [
    "Anna", "Lena", "Jan", "Piotr", "Giulia", "Marco", "Camille", "Lucas", "Carmen", "José",
    "Inês", "João", "Emma", "William", "Sanne", "Daan",
]  # fmt: skip
FAMILY = [
    "Nowak", "Müller", "Rossi", "Moreau", "García", "Silva", "Jansen", "Smith", "Wójcik", "Becker",
    "Ricci", "Petit", "Ruiz", "Costa", "Visser", "Brown",
]  # fmt: skip
ODD = [1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23]


def numbers(low: int, high: int, seed: int) -> list[int]:
    return [int(n) for n in np.random.default_rng(seed).integers(low, high, SIZE)]


def total(digits: str, weights: list[int]) -> int:
    return sum(int(d) * w for d, w in zip(digits, weights, strict=False))


def bsn() -> list[str]:
    found = [str(n) + str(total(str(n), [9, 8, 7, 6, 5, 4, 3, 2]) % 11) for n in numbers(10_000_000, 99_999_999, 1)]
    return [text for text in found if len(text) == 9]


def pesel() -> list[str]:
    days = [date(1944, 1, 1) + timedelta(days=n) for n in numbers(0, 20_000, 2)]
    stems = [f"{day:%y%m%d}{n:04d}" for day, n in zip(days, numbers(0, 9_999, 12), strict=True)]
    return [s + str(-total(s, [1, 3, 7, 9] * 3) % 10) for s in stems]


def nir() -> list[str]:
    return [f"{n}{97 - n % 97:02d}" for n in numbers(1_300_175_000_000, 2_991_295_999_999, 3)]


def dni() -> list[str]:
    return [f"{n:08d}-{DNI[n % 23]}" for n in numbers(1_000_000, 99_999_999, 4)]


def iban() -> list[str]:
    made = []
    for n in numbers(10**17, 10**18 - 1, 5):
        check = 98 - int(f"{n}131400") % 97
        made.append(f"DE{check:02d} {str(n)[:4]} {str(n)[4:]}")
    return made


def italian() -> list[str]:
    made = []
    for n in numbers(0, 10**9, 6):
        letters = "".join(chr(65 + n // 26**i % 26) for i in range(6))
        stem = f"{letters}{n % 90 + 10}{'ABCDEHLMPRST'[n % 12]}{n % 20 + 11}{chr(65 + n % 26)}{n % 900 + 100}"
        code = [int(c) if c.isdigit() else ord(c) - 65 for c in stem]
        made.append(stem + chr(65 + (sum(ODD[c] for c in code[0::2]) + sum(code[1::2])) % 26))
    return made


def luhn(stem: str) -> str:
    doubled = [int(d) * (2 - i % 2) for i, d in enumerate(reversed(stem))]
    return stem + str(-sum(d // 10 + d % 10 for d in doubled) % 10)


def cards() -> list[str]:
    return [luhn(f"4{n:014d}") for n in numbers(0, 10**14, 7)]


def names(seed: int = 8) -> list[tuple[str, str]]:
    rng = np.random.default_rng(seed)
    endings = ["", "", "son", "er", "ska", "ez"]
    given = [GIVEN[rng.integers(16)] + ["", "-Maria", "-Luc"][rng.integers(3)] for _ in range(SIZE)]
    family = [FAMILY[rng.integers(16)] + endings[rng.integers(6)] for _ in range(SIZE)]
    return list(zip(given, family, strict=True))


def birthdays() -> list[date]:
    return [date(1930, 1, 1) + timedelta(days=n) for n in numbers(0, 30_000, 9)]


@pytest.fixture(scope="session")
def planted() -> tuple[pl.DataFrame, set[str]]:
    """A file in several languages, and the names of its direct identifiers; the other columns are none."""
    people, rng = names(), np.random.default_rng(10)
    shapes = {"bsn": bsn(), "c_11": pesel(), "numéro": nir(), "documento": dni(), "konto": iban(), "cf": italian()}
    direct: dict[str, list[object]] = {
        name: [values[i % len(values)] for i in range(SIZE)] for name, values in shapes.items()
    }
    direct |= {
        "karte": list(cards()),
        "Vorname": [given for given, _ in people],
        "nazwisko": [family for _, family in people],
        "v17": [f"{family}, {given} {i}" for i, (given, family) in enumerate(people)],
        "beneficiario": [f"{given} {family}" for given, family in people],
        "contact": [f"{given[:3].lower()}{i}@example.org" for i, (given, _) in enumerate(people)],
        "remarks": [f"write to p{i}@example.org" if i % 9 == 0 else f"note {i % 40}" for i in range(SIZE)],
        "téléphone": [f"06 {n:08d}"[:11] for n in numbers(0, 99_999_999, 11)],
        "handy": numbers(4_915_100_000_000, 4_917_999_999_999, 12),
        "tel_2": [f"+48 {n}" for n in numbers(500_000_000, 899_999_999, 13)],
        "adres": [f"Kerkstraat {i + 1}, Utrecht" for i in range(SIZE)],
        "fecha_nacimiento": list(birthdays()),
        "Geburtsdatum": [f"{d:%d.%m.%Y}" for d in birthdays()],
        "lat": [52 + float(x) for x in rng.random(SIZE).round(5)],
        "longitude": [5 + float(x) for x in rng.random(SIZE).round(6)],
        "addr_v4": [f"10.{i}.{i * 7 % 250}.{i * 3 % 250}" for i in range(SIZE)],
        "page": [f"https://example.org/u/{i}" for i in range(SIZE)],
        "ss": [f"{n // 10**6:03d}-{n // 10**4 % 100:02d}-{n % 10**4:04d}" for n in numbers(10**8, 7 * 10**8, 14)],
        "ragione_sociale": [f"{family} {i % 90} S.r.l." for i, (_, family) in enumerate(people)],
    }  # fmt: skip
    safe = {
        "sexe": ["f", "m"] * (SIZE // 2),
        "leeftijd": [int(n) for n in rng.integers(0, 95, SIZE)],
        "plz": [f"{n:05d}" for n in rng.integers(10_000, 10_040, SIZE)],
        "fatturato": [float(x) for x in rng.lognormal(8, 2, SIZE)],
        "nine_digits": numbers(100_000_000, 999_999_999, 15),
        "eleven_digits": numbers(10_000_000_000, 99_999_999_999, 16),
        "país": [["España", "Portugal", "Jordan", "Chad"][i % 4] for i in range(SIZE)],
        "lp": list(range(1, SIZE + 1)),
        "diagnoza": [f"J{n:02d}.{n % 7}" for n in rng.integers(0, 60, SIZE)],
        "data_przyjęcia": [date(2024, 1, 1) + timedelta(days=int(n)) for n in rng.integers(0, 365, SIZE)],
        "waga": [float(x) for x in rng.choice([1.5, 2.25, 10.0], SIZE)],
    }  # fmt: skip
    return pl.DataFrame({**direct, **safe}), set(direct)
