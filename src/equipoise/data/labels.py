"""Labels: metadata of a file about its columns (variable and value labels, missing codes), kept into the release."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import polars as pl

from equipoise.ground.errors import EquipoiseError

Code = float | int | str
Change = Callable[[pl.Series], pl.Series]

LABEL_BYTES = 120
"""Longest label joined from the labels of several categories (the limit of SPSS and Stata)."""


@dataclass(frozen=True, slots=True)
class Tail:
    """Top- or bottom-coded values: those beyond `at` are replaced by one value with this label."""

    words: str
    at: float
    above: bool

    def holds(self, code: Code) -> bool:
        return not isinstance(code, str) and (code > self.at if self.above else code < self.at)


@dataclass(frozen=True, slots=True)
class Column:
    """Metadata of one column: its label, value labels, missing codes, storage and display format.

    `missing` holds (lowest, highest) of each range of codes, equal for a single one; `total` is the code of the total
    where the file is a table.
    """

    label: str | None = None
    values: tuple[tuple[Code, str], ...] = field(default=(), repr=False)
    missing: tuple[tuple[Code, Code], ...] = field(default=(), repr=False)
    format: str | None = None
    storage: str | None = None
    measure: str | None = None
    width: int | None = None
    total: str | None = None

    @property
    def numeric(self) -> bool:
        """Whether the file stores numbers in this column, whatever its type is now."""
        return self.storage is not None and self.storage != "string"

    def is_missing(self, code: Code) -> bool:
        """Whether a code stands for a missing value.

        >>> Column(missing=((97, 99),)).is_missing(98), Column(missing=(("Z", "Z"),)).is_missing(98)
        (True, False)
        """
        alike = (pair for pair in self.missing if isinstance(pair[0], str) == isinstance(code, str))
        return any(low <= code <= high for low, high in alike)  # type: ignore[operator]

    def flagged(self, values: pl.Series) -> pl.Series:
        """Which values are missing codes."""
        texts = values.dtype == pl.String
        pairs = [pair for pair in self.missing if isinstance(pair[0], str) == texts]
        flags = [pl.lit(values).is_between(pl.lit(low), pl.lit(high)) for low, high in pairs]
        return pl.select(pl.any_horizontal(pl.lit(values).is_null() & False, *flags)).to_series()


@dataclass(frozen=True)
class Labels:
    """The labels of a file, and the missing codes of its records.

    On reading, user-missing codes become null: "refused" is no category to count and no number to average. Which code
    a record had stays in `gaps` (a column for each that has some, null where there is a value), row by row, and is
    written back where the value is still null. A random mask ends that for the columns it touched: a code beside a
    null would show which nulls it moved.

    Does not guard against an intruder who knows why a value is missing: risk counts all nulls of a column as one.

    >>> Labels({"sex": Column("Sex", ((1, "man"), (2, "woman")))})
    Labels(1 column)
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    title: str | None = None
    gaps: pl.DataFrame | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"Labels({len(self.columns)} column{'s' if len(self.columns) != 1 else ''})"

    def __bool__(self) -> bool:
        return bool(self.columns)

    def of(self, column: str) -> Column:
        return self.columns.get(column, Column())

    def only(self, columns: Iterable[str]) -> "Labels":
        """Labels of some columns; withheld columns lose theirs."""
        names = set(columns)
        return replace(self, columns={name: label for name, label in self.columns.items() if name in names})

    def having(self, column: str, label: Column) -> "Labels":
        return replace(self, columns={**self.columns, column: label})

    def without_gaps(self, touched: Iterable[str]) -> "Labels":
        """The labels after a random mask changed some columns."""
        if self.gaps is None:
            return self
        return replace(self, gaps=self.gaps.drop(list(touched), strict=False))

    def recoded(
        self, column: str, old: pl.Series, new: pl.Series, change: Change, tail: Tail | None = None
    ) -> "Labels":
        """The labels after each value of a column was replaced by another one.

        A new category is labelled by the labels of all categories the file lists for it, present or not (those present
        alone would tell more than the recode), else by itself. `tail` is what one value now stands for.
        """
        if not self or (old.dtype == new.dtype and old.equals(new, null_equal=True)):
            return self
        label = self.of(column)
        missing = tuple((code, text) for code, text in label.values if label.is_missing(code))
        listed = [(code, text) for code, text in label.values if not label.is_missing(code)]
        if tail is not None:
            below = {code: text for code, text in listed if not tail.holds(code)}
            values = below | dict.fromkeys(new.filter(new != old).unique().sort().to_list(), tail.words)
            return self.having(column, replace(label, values=(*values.items(), *missing)))
        targets = _mapped(change, [code for code, _ in listed], old)
        groups = _groups(listed, targets, old, new) if label.numeric or listed else {}
        measure = "ordinal" if label.measure == "scale" else label.measure
        return self.having(
            column, replace(label, values=(*groups.items(), *missing), format=None, width=None, measure=measure)
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain data for JSON, without empty fields."""
        columns = {n: {k: v for k, v in asdict(c).items() if v not in (None, ())} for n, c in self.columns.items()}
        return {"title": self.title, "columns": columns}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Labels":
        """The inverse of `to_plain`.

        >>> labels = Labels({"sex": Column("Sex", ((1, "man"),), missing=((9, 9),))})
        >>> Labels.from_plain(labels.to_plain()) == labels
        True
        """
        columns = {str(name): _column(label) for name, label in plain.get("columns", {}).items()}
        return cls(columns, plain.get("title"))


def split_missing_codes(table: pl.DataFrame, labels: Labels) -> tuple[pl.DataFrame, Labels]:
    """The table with null for every missing code, and the labels with the codes."""
    codes = {}
    for name, label in labels.columns.items():
        if label.missing and name in table.columns and (flag := label.flagged(table[name])).any():
            codes[name] = pl.select(pl.when(flag).then(table[name]).alias(name)).to_series()
            table = table.with_columns(pl.when(~flag.fill_null(False)).then(pl.col(name)).alias(name))
    return table, replace(labels, gaps=pl.DataFrame(codes) if codes else None)


def _mapped(change: Change, codes: list[Code], old: pl.Series) -> list[Any]:
    """New category of each listed code; None where the recode lacks it."""
    values = pl.Series(old.name, codes, dtype=old.dtype, strict=False)
    try:
        return change(values).to_list()
    except EquipoiseError:
        return [_one(change, values[i : i + 1]) for i in range(len(values))]


def _one(change: Change, value: pl.Series) -> Any:
    try:
        return change(value)[0]
    except EquipoiseError:
        return None


def _groups(listed: list[tuple[Code, str]], targets: list[Any], old: pl.Series, new: pl.Series) -> dict[Code, str]:
    """Label of each new category, in the order of the smallest value of each."""
    texts: dict[Any, str] = dict(listed)
    goes: dict[Any, Any] = {code: goal for (code, _), goal in zip(listed, targets, strict=True) if goal is not None}
    goes |= {a: b for a, b in zip(old.to_list(), new.to_list(), strict=True) if b is not None and a == a}
    members: dict[Any, list[str]] = {}
    for value in sorted(goes):
        members.setdefault(goes[value], []).extend([texts[value]] if value in texts else [])
    if len(members) == 1 and len(goes) > 1:
        return {group: f"any of {len(texts):,} categories" if len(texts) > 1 else str(group) for group in members}
    return {group: _joined(labels) or str(group) for group, labels in members.items()}


def _joined(texts: list[str]) -> str:
    """Labels joined by commas, as many as fit.

    >>> _joined(["Oslo", "Bergen"])
    'Oslo, Bergen'
    """
    whole = ", ".join(texts)
    if len(whole.encode()) <= LABEL_BYTES:
        return whole
    fit = next((i for i in range(len(texts) - 1, 0, -1) if len(", ".join(texts[:i]).encode()) <= LABEL_BYTES - 20), 0)
    return f"{', '.join(texts[:fit])} and {len(texts) - fit:,} more" if fit else f"{len(texts):,} categories"


def _column(label: Mapping[str, Any]) -> Column:
    values: dict[str, Any] = {f.name: label[f.name] for f in fields(Column) if f.name in label}
    pairs = {name: _pairs(values.get(name, ())) for name in ("values", "missing")}
    return Column(**(values | pairs))


def _pairs(value: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(tuple(pair) for pair in value)
