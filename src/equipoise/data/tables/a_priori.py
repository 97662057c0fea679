"""A-priori information on cells: which must be published or suppressed, at what cost, and how far protected.

It comes from labels ("region=N & industry=A"), from columns of marks, or from an a-priori file of tau-ARGUS (.hst).
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from equipoise.data.roles import names
from equipoise.data.tables.axes import Axis
from equipoise.data.tables.cell_status import APRIORI_STATUS, marked_or_counted
from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Booleans, Floats, Integers
from equipoise.ground.errors import DataError, ParameterError, require_columns

PUBLISHED, SUPPRESSED, SAFE, SECONDARY = "published", "suppressed", "safe", "secondary"
FILE_STATUSES = {"s": SAFE, "u": SUPPRESSED, "p": PUBLISHED, "m": SECONDARY, "ml": SECONDARY}
"""Codes of an a-priori file that change a status; m and ml (not in the manual) are cells suppressed for others."""
FILE_NUMBERS = {"c": ("cost",), "w": ("cost",), "pl": ("lower", "upper")}
"""Codes of an a-priori file that take numbers, and what these are."""
Said = dict[int, dict[str, Any]]
"""What was said of each cell: its status and by which words, cost, lower and upper."""
PREFIX = "apriori_"
"""Columns of a table that hold a-priori information: status, cost, lower, upper; null where nothing was said."""


@dataclass(frozen=True, eq=False, repr=False)
class APriori:
    """What was said of each cell beforehand; `cost`, `lower` and `upper` are NaN where nothing was."""

    status: pl.Series
    cost: Floats
    lower: Floats
    upper: Floats

    def cells(self, status: str) -> Booleans:
        """The cells of which this was said."""
        return (self.status == status).fill_null(value=False).to_numpy()


def a_priori(table: Table) -> APriori | None:
    """The a-priori information of a table; None where it has none."""
    if APRIORI_STATUS not in table.more.columns:
        return None
    numbers = (table.more[PREFIX + name].fill_null(np.nan).to_numpy() for name in ("cost", "lower", "upper"))
    return APriori(table.more[APRIORI_STATUS], *numbers)


def with_a_priori(
    table: Table, publish: str | Sequence[str] = (), suppress: str | Sequence[str] = (), file: str | Path | None = None
) -> Table:
    """The table with its a-priori information.

    `publish` and `suppress` name cells by labels, "region=N & industry=A" (a column that is not named means all its
    labels; a total is region=Total), or columns of marks. A line of the `file` has the codes of a cell in the order of
    the table's columns (empty: the total), then s (safe, whatever the rule says), u (suppressed and protected), p
    (published), m (suppressed for others), c and its cost, or pl and the levels below and above. What is said of a cell
    holds for cells of the same records under other labels, too. Two different statuses of one cell are refused.

    Source: Hundepool et al. (2014), *tau-ARGUS User's Manual*, version 4.1, sections 4.2.1 and 5.6.

    >>> table = eq.table(eq.Records.of(pl.DataFrame({"k": ["a", "b"], "s": ["f", "m"]}), eq.Roles()), ["k", "s"])
    >>> with_a_priori(table, publish="k=a & s=Total").table.filter(pl.col("apriori_status").is_not_null()).rows()[0][:2]
    ('a', 'Total')
    """
    texts = [(text, PUBLISHED) for text in names(publish, "publish")]
    texts += [(text, SUPPRESSED) for text in names(suppress, "suppress")]
    if file is None and not texts:
        return table
    parts = [_leaf_sets(axis)[nodes] for axis, nodes in zip(table.axes, table.nodes, strict=True)]
    twins: Integers = np.unique(np.stack(parts, 1), axis=0, return_inverse=True)[1].ravel()
    said: Said = {}
    for text, status in texts:
        cells = _with_labels(table, text) if "=" in text else _in_column(table, text)
        if status == SUPPRESSED and not (cells & (table.n > 0)).any():
            raise ParameterError(f"{text!r} names empty cells only: they are published as 0 unless a rule hides zeros.")
        _put_status(said, np.unique(twins[cells]).tolist(), status, f"{text!r} to be {status}")
    if file is not None:
        _read(Path(file), table, twins.tolist(), said)
    kinds = {"status": pl.String, "cost": pl.Float64, "lower": pl.Float64, "upper": pl.Float64}
    told = [said.get(twin, {}) for twin in twins.tolist()]
    columns = (pl.Series(PREFIX + name, [one.get(name) for one in told], dtype=kind) for name, kind in kinds.items())
    return replace(table, more=table.more.with_columns(*columns))


def _put_status(said: Said, cells: Iterable[int], status: str, words: str) -> None:
    for cell in cells:
        before = said.setdefault(cell, {})
        if before.get("status", status) != status:
            raise ParameterError(f"A cell is said to be two things: {before['words']}, and {words}.")
        before |= {"status": status, "words": words}


def _leaf_sets(axis: Axis) -> Integers:
    """A number for each node, the same for nodes over the same leaves."""
    leaves = axis.members.group_by("node").agg(pl.col("leaf").sort()).sort("node")["leaf"].to_list()
    numbers: dict[tuple[int, ...], int] = {}
    return np.array([numbers.setdefault(tuple(group), len(numbers)) for group in leaves], dtype=np.int64)


def _with_labels(table: Table, text: str) -> Booleans:
    """The cells with these labels, whatever the others are."""
    cells = np.ones(len(table), dtype=np.bool_)
    for part in text.split("&"):
        column, _, label = (piece.strip() for piece in part.partition("="))
        place = table.place(column)
        labels = table.axes[place].nodes.to_list()
        if label not in labels:
            raise ParameterError(f"Column {column!r} of the table has no label {label!r}.")
        cells &= table.nodes[place] == labels.index(label)
    return cells


def _in_column(table: Table, column: str) -> Booleans:
    require_columns((column,), table.more.columns)
    return marked_or_counted(table.more[column]).to_numpy()


def _read(path: Path, table: Table, twins: list[int], said: Said) -> None:
    """Put in what the lines of an a-priori file say."""
    if not path.is_file():
        raise DataError(f"There is no a-priori file {path.name!r}.")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise DataError("The a-priori file cannot be read as text.") from None
    separator = max(";,\t", key=lambda mark: (lines[0] if lines else "").count(mark))
    labels = [dict(zip(axis.nodes.to_list(), range(len(axis)), strict=True)) for axis in table.axes]
    keys, strides = table.packed
    cells = dict(zip(keys.tolist(), twins, strict=True))
    try:
        rows = list(csv.reader(lines, delimiter=separator, skipinitialspace=True))
    except csv.Error:
        raise DataError("The a-priori file cannot be read: a code is too long.") from None
    for number, fields in enumerate(rows, start=1):
        parts, key = [field.strip() for field in fields], 0
        if not any(parts):
            continue
        for axis, known, stride, code in zip(table.axes, labels, strides, parts, strict=False):
            node = axis.total if code == "" else known.get(code)
            if node is None:
                raise DataError(f"Line {number} of the a-priori file has a code that {axis.name!r} does not have.")
            key += node * stride
        cell = said.setdefault(cells.get(key, -1), {})
        command = parts[len(table.axes) :]
        if (code := command[0].lower() if command else "") in FILE_STATUSES:
            words = f"{FILE_STATUSES[code]} in line {number} of the a-priori file"
            _put_status(said, [cells.get(key, -1)], FILE_STATUSES[code], words)
        else:
            cell |= _numbers(code, command[1:], number, decimal="," if separator == ";" else ".")


def _numbers(code: str, texts: list[str], number: int, decimal: str) -> dict[str, float]:
    """The cost, or the two levels, of a line."""
    line = f"Line {number} of the a-priori file"
    if code not in FILE_NUMBERS:
        raise DataError(f"{line} does not say s, u, p, m, c or pl after the codes of the table's columns.")
    wanted = FILE_NUMBERS[code]
    try:
        numbers = [float(text.replace(decimal, ".")) for text in texts if text]
    except ValueError:
        numbers = []
    fits = len(numbers) == len(wanted) and all(0 <= x < float("inf") for x in numbers)
    if not fits or (wanted == ("cost",) and not numbers[0]):
        one, two = "one number above 0, the cost,", "two numbers of at least 0, the levels below and above,"
        raise DataError(f"{line} needs {one if len(wanted) == 1 else two} after {code}.")
    return dict(zip(wanted, numbers, strict=True))
