"""Check digits of national, bank and card numbers, for many numbers at once.

Each function takes a matrix with one number per row and one character code (0 to 9, then A = 10 to Z = 35) per column,
and says which rows are right. A random number of ten digits is right once in ten or eleven times, so a column in
which nearly all are right is no accident.
"""

import numpy as np
from numpy.typing import NDArray

Digits = NDArray[np.int64]
Right = NDArray[np.bool_]

DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
ODD = dict(zip("0123456789", (1, 0, 5, 7, 9, 13, 15, 17, 19, 21), strict=True)) | dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)


def digits(texts: list[str]) -> Digits:
    """Texts of one length as a matrix of codes.

    >>> digits(["1A", "09"]).tolist()
    [[1, 10], [0, 9]]
    """
    size = len(texts[0]) if texts else 0
    codes = np.array(texts, dtype=f"U{max(size, 1)}").view(np.uint32).reshape(len(texts), -1).astype(np.int64)
    return np.where(codes >= 65, codes - 55, codes - 48)


def remainder(rows: Digits, base: int) -> Digits:
    """The number that a row spells, letters as two digits, modulo `base`; Horner, so nothing overflows."""
    rest = np.zeros(len(rows), dtype=np.int64)
    for column in rows.T:
        rest = (rest * np.where(column > 9, 100, 10) + column) % base
    return rest


def weighted(rows: Digits, *weights: int) -> Digits:
    """The weighted sum of the first digits of each row."""
    total: Digits = rows[:, : len(weights)] @ np.array(weights, dtype=np.int64)
    return total


def luhn(rows: Digits) -> Right:
    """Cards, Swedish personal numbers, French SIREN: every second digit from the right doubled, sum divisible by 10.

    >>> luhn(digits(["4539578763621486", "4539578763621487"])).tolist()
    [True, False]
    """
    twice = rows.copy()
    twice[:, -2::-2] *= 2
    return np.asarray((twice // 10 + twice % 10).sum(axis=1) % 10 == 0)


def last_ten(rows: Digits) -> Right:
    """Swedish personal numbers with the century, which the check digit leaves out.

    >>> last_ten(digits(["198112189876", "198112189877"])).tolist()
    [True, False]
    """
    return luhn(rows[:, -10:])


def iban(rows: Digits) -> Right:
    """ISO 7064 mod 97-10 with the first four characters moved to the end (ISO 13616).

    >>> iban(digits(["DE89370400440532013000", "DE88370400440532013000"])).tolist()
    [True, False]
    """
    return np.asarray(remainder(np.hstack([rows[:, 4:], rows[:, :4]]), 97) == 1)


def french_nir(rows: Digits) -> Right:
    """The key is 97 minus the first 13 digits modulo 97; Corsica's 2A and 2B count as 19 and 18.

    >>> french_nir(digits(["255081416802538", "255081416802539"])).tolist()
    [True, False]
    """
    plain = rows.copy()
    island = plain[:, 6] > 9
    plain[island, 6] = 19 - plain[island, 6]
    plain[island, 5] = 1
    return np.asarray(97 - remainder(plain[:, :13], 97) == 10 * rows[:, 13] + rows[:, 14])


def spanish_dni(rows: Digits) -> Right:
    """The letter is the number modulo 23; X, Y, Z of a NIE count as 0, 1, 2.

    >>> spanish_dni(digits(["12345678Z", "X1234567L", "12345678A"])).tolist()
    [True, True, False]
    """
    plain = rows[:, :8].copy()
    plain[:, 0] = np.where(plain[:, 0] > 9, plain[:, 0] - 33, plain[:, 0])
    letters = np.array([ord(c) - 55 for c in DNI])
    return np.asarray(letters[remainder(plain, 23)] == rows[:, 8])


def dutch_bsn(rows: Digits) -> Right:
    """The eleven test: weights 9 to 2, then -1.

    >>> dutch_bsn(digits(["111222333", "111222334"])).tolist()
    [True, False]
    """
    return np.asarray(weighted(rows, 9, 8, 7, 6, 5, 4, 3, 2, -1) % 11 == 0)


def italian_code(rows: Digits) -> Right:
    """Codice fiscale: odd places by a table, even places by value, the sum modulo 26 as a letter.

    >>> italian_code(digits(["RSSMRA85T10A562S", "RSSMRA85T10A562T"])).tolist()
    [True, False]
    """
    order = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    odd = np.array([ODD[c] for c in order])
    even = np.array([int(c) if c.isdigit() else ord(c) - 65 for c in order])
    total = odd[rows[:, 0:15:2]].sum(axis=1) + even[rows[:, 1:15:2]].sum(axis=1)
    return np.asarray(total % 26 == rows[:, 15] - 10)


def polish_pesel(rows: Digits) -> Right:
    """
    >>> polish_pesel(digits(["44051401359", "44051401358"])).tolist()
    [True, False]
    """
    return np.asarray((10 - weighted(rows, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3) % 10) % 10 == rows[:, 10])


def german_tax(rows: Digits) -> Right:
    """ISO 7064 mod 11,10.

    >>> german_tax(digits(["86095742719", "86095742710"])).tolist()
    [True, False]
    """
    product = np.full(len(rows), 10, dtype=np.int64)
    for column in rows[:, :10].T:
        total = (column + product) % 10
        product = 2 * np.where(total == 0, 10, total) % 11
    return np.asarray((11 - product) % 10 == rows[:, 10])


def portuguese_nif(rows: Digits) -> Right:
    """
    >>> portuguese_nif(digits(["123456789", "123456788"])).tolist()
    [True, False]
    """
    rest = weighted(rows, 9, 8, 7, 6, 5, 4, 3, 2) % 11
    return np.asarray(np.where(rest < 2, 0, 11 - rest) == rows[:, 8])


def brazilian_cpf(rows: Digits) -> Right:
    """
    >>> brazilian_cpf(digits(["11144477735", "11144477734"])).tolist()
    [True, False]
    """
    first = weighted(rows, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
    second = weighted(rows, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2) * 10 % 11 % 10
    return np.asarray((first == rows[:, 9]) & (second == rows[:, 10]))


def belgian_number(rows: Digits) -> Right:
    """97 minus the first nine digits modulo 97, a 2 before them for who was born from 2000 on.

    >>> belgian_number(digits(["93051822361", "93051822362"])).tolist()
    [True, False]
    """
    check = 10 * rows[:, 9] + rows[:, 10]
    old = 97 - remainder(rows[:, :9], 97)
    young = 97 - remainder(np.hstack([np.full((len(rows), 1), 2), rows[:, :9]]), 97)
    return np.asarray((old == check) | (young == check))


def swiss_number(rows: Digits) -> Right:
    """EAN-13.

    >>> swiss_number(digits(["7569217076985", "7569217076984"])).tolist()
    [True, False]
    """
    return np.asarray((10 - weighted(rows, *([1, 3] * 6)) % 10) % 10 == rows[:, 12])


def british_nhs(rows: Digits) -> Right:
    """
    >>> british_nhs(digits(["9434765919", "9434765918"])).tolist()
    [True, False]
    """
    return np.asarray((11 - weighted(rows, 10, 9, 8, 7, 6, 5, 4, 3, 2) % 11) % 11 == rows[:, 9])
