"""Cell statuses in files: sensitive marks, and the status codes of tau-ARGUS and others."""

import numpy as np
import polars as pl

from equipoise.data.cells import Cells
from equipoise.ground.arrays import Booleans
from equipoise.ground.errors import DataError

SENSITIVE, SECONDARY, SAFE, SHOWN, EMPTY = "sensitive", "secondary", "published", "shown", "empty"
STATUS_WORDS = {
    SENSITIVE: "u unsafe sensitive primary",
    SECONDARY: "x m secondary helper",
    SAFE: "s safe published changed",
    SHOWN: "p z protect protected",
    EMPTY: "e empty",
}
ARGUS_NUMBERS = {SAFE: (1, 2), SENSITIVE: (3, 4, 5, 6, 7, 8, 9), SHOWN: (10,), SECONDARY: (11, 12), EMPTY: (13, 14)}
"""Codes of tau-ARGUS for safe, unsafe (by a rule, on request, by hand), protected, secondary and empty."""
YES_WORDS, NO_WORDS = "1 true t yes y", "0 false f no n"
STATUS_OF_WORD = {text: kind for kind, texts in STATUS_WORDS.items() for text in texts.split()}
STATUS_OF_NUMBER = {str(code): kind for kind, codes in ARGUS_NUMBERS.items() for code in codes}
STRUCTURAL, APRIORI_STATUS = "structural", "apriori_status"
"""Columns of a table: which cells are structural zeros, and what was said of each beforehand."""


def statuses(values: pl.Series) -> pl.Series:
    """Status of each cell as one of five words, from letters (s, u, x, z), words or the numbers of tau-ARGUS.

    >>> statuses(pl.Series("status", ["S", "u", None])).to_list(), statuses(pl.Series("status", [1, 3, 11])).to_list()
    (['published', 'sensitive', 'published'], ['published', 'sensitive', 'secondary'])
    """
    what = "a status: s, u, x, z, e or a number of tau-ARGUS, from 1 to 14"
    return _translate(values, STATUS_OF_WORD | STATUS_OF_NUMBER, what)


def marked(values: pl.Series) -> pl.Series:
    """Which cells a column marks: true, 1, yes or u; a null marks nothing.

    >>> marked(pl.Series("secret", [1, 0, None])).to_list(), marked(pl.Series("secret", ["u", "s", "S"])).to_list()
    ([True, False, False], [True, False, False])
    """
    if values.dtype == pl.Boolean:
        return values.fill_null(value=False)
    booleans = dict.fromkeys(YES_WORDS.split(), SENSITIVE) | dict.fromkeys(NO_WORDS.split(), SAFE)
    return _translate(values, STATUS_OF_WORD | booleans, "a mark: true or false, 1 or 0, u or s") == SENSITIVE


def marked_or_counted(values: pl.Series) -> pl.Series:
    """Which cells a column marks, where numbers may be sums of marks: those that are not 0."""
    return (values != 0).fill_null(value=False) if values.dtype.is_numeric() else marked(values)


def _translate(values: pl.Series, vocabulary: dict[str, str], what: str) -> pl.Series:
    whole = values.dtype.is_float() and bool((values.drop_nulls() % 1 == 0).all())
    texts = (values.cast(pl.Int64) if whole else values).cast(pl.String).str.strip_chars().str.to_lowercase()
    words = texts.replace_strict(vocabulary, default=None, return_dtype=pl.String)
    unreadable = int((words.is_null() & texts.is_not_null() & (texts != "")).sum())
    if unreadable:
        raise DataError(f"{unreadable:,} cells have something else in column {values.name!r} than {what}.")
    return words.fill_null(SAFE)


def structural(cells: Cells) -> Booleans:
    """Cells that are known to everybody to be empty: those that the column `structural` marks."""
    if STRUCTURAL not in cells.more.columns or STRUCTURAL in cells.by:
        return np.zeros(len(cells), dtype=np.bool_)
    return marked_or_counted(cells.more[STRUCTURAL]).to_numpy() & (cells.n == 0)
