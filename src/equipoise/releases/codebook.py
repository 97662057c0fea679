"""Codebook: what a user of the released data must know of every variable, for people and for machines."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from equipoise.data.labels import Column
from equipoise.data.levels import as_text, number_text
from equipoise.data.records import Law, Records
from equipoise.releases.released_categories import without_absent
from equipoise.releases.valid_uses import Comparison, Effect, effect_of

CODEBOOK_FORMAT = 1
LEAST_RECORDS = 10
"""Categories of fewer released records are not named: the data has them, a codebook need not point at them."""
MOST_CATEGORIES = 60
"""A column with more categories is not listed."""
ROW_CHANGING_MASKS = ("sample", "shuffle_order", "synthesize", "suppress_records")
"""Masks after which a row need not be the record it was."""
TYPE_WORDS = {"Int": "whole number", "UInt": "whole number", "Float": "number", "Bool": "yes or no", "Date": "date"}


@dataclass(frozen=True)
class Change:
    """One mask that touched a variable: what it did, what stays valid, what does not, and how to adjust."""

    mask: str
    words: str
    valid: tuple[str, ...] = ()
    spoiled: tuple[str, ...] = ()
    adjust: tuple[str, ...] = ()


@dataclass(frozen=True)
class CodebookVariable:
    """A column as a data user meets it."""

    name: str
    label: str | None
    kind: str
    categories: tuple[tuple[str, str], ...]
    more_categories: bool
    missing: tuple[str, ...]
    changes: tuple[Change, ...]
    added_variance: float | None

    @property
    def unchanged(self) -> bool:
        return not self.changes


FORMULAS = (
    "Text that begins with =, +, -, @, a tab or a carriage return may have an apostrophe before it, which is not part "
    "of the value; where it has none, a spreadsheet may run it as a formula."
)


@dataclass(frozen=True)
class Codebook:
    """The variables in the order of the file, what was done to the records as a whole, and what is not in it."""

    title: str
    file: str
    records: int
    variables: tuple[CodebookVariable, ...]
    records_changes: tuple[Change, ...] = ()
    withheld: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps({"format": CODEBOOK_FORMAT, **asdict(self)}, indent=2, ensure_ascii=False) + "\n"

    def to_markdown(self) -> str:
        """The same as a page of plain text."""
        lines = [f"# Codebook: {self.title}", "", f"File `{self.file}`, {self.records:,} records, "
                 f"{len(self.variables)} variables.", "", *_preface(self)]  # fmt: skip
        for variable in self.variables:
            lines += _section(variable)
        return "\n".join(lines).rstrip() + "\n"


def codebook(released: Records, original: Records, *, title: str, file: str, withheld: Iterable[str] = ()) -> Codebook:
    """What a user must know of each released variable, from the laws of the masks and the labels of the file.

    No count, no value of a rare category, no seed: the parameters of masks are public, because users need them and
    risk is measured against an intruder who has them. The share of variance that a microaggregation leaves, and the
    correlation between swapped and original values, are told to two decimals. Cost: one pass over the released data.
    """
    released, hidden = without_absent(released), tuple(withheld)
    types = {name: str(dtype) for name, dtype in released.schema().items() if name not in hidden}
    texts, comparisons = _texts(released, types), _comparisons(released, original)
    variables = tuple(
        _variable(released, name, kind, texts.get(name), comparisons.get(name, Comparison()))
        for name, kind in types.items()
    )
    whole = tuple(_as_change(law, effect_of(law, "")) for law in released.history if not law.columns)
    return Codebook(title, file, released.height(), variables, whole, hidden)


def _texts(released: Records, types: Mapping[str, str]) -> dict[str, pl.Series]:
    """The columns that hold categories; none of data that stays on Spark."""
    texts = [name for name, kind in types.items() if kind.startswith(("String", "Boolean", "Categorical", "Enum"))]
    table = released.collect(*texts) if texts and released.kind != "pyspark" else pl.DataFrame()
    return {name: table[name] for name in table.columns}


def _variable(
    released: Records, name: str, type_name: str, values: pl.Series | None, comparison: Comparison
) -> CodebookVariable:
    labels = released.labels.of(name)
    laws = [law for law in released.history if name in law.columns]
    effects = [effect_of(law, name, comparison) for law in laws]
    added = [effect.added for effect in effects if effect.added is not None]
    listed, more = _categories(labels, values)
    changes = tuple(_as_change(law, effect) for law, effect in zip(laws, effects, strict=True))
    kind = next((words for start, words in TYPE_WORDS.items() if type_name.startswith(start)), "text")
    codes = tuple(f"{low}" if low == high else f"{low} to {high}" for low, high in labels.missing)
    return CodebookVariable(name, labels.label, kind, listed, more, codes, changes, sum(added) if added else None)


def _as_change(law: Law, effect: Effect) -> Change:
    return Change(law.mask, law.words, effect.valid, effect.spoiled, effect.adjust)


def _categories(labels: Column, values: pl.Series | None) -> tuple[tuple[tuple[str, str], ...], bool]:
    """Codes and labels that the file lists, else the categories that are not rare; and whether there are others."""
    labelled = [(_code(code), text) for code, text in labels.values if not labels.is_missing(code)]
    listed = {code: text for code, text in labelled if code != text}
    if values is None:
        return tuple(listed.items()), False
    counts = as_text(values).drop_nulls().alias("value").value_counts(sort=False)
    common = counts.filter(pl.col("count") >= LEAST_RECORDS, counts.height <= MOST_CATEGORIES)["value"].sort().to_list()
    categories = {**listed, **{value: listed.get(value, "") for value in common}}
    return tuple(categories.items()), counts.filter(~pl.col("value").is_in(list(categories))).height > 0


def _code(value: float | str) -> str:
    return number_text(value) if isinstance(value, float) else str(value)


def _comparisons(released: Records, original: Records) -> dict[str, Comparison]:
    """Released against original values of columns that one mask alone changed, where rows kept their order."""
    laws = released.history
    restored = [law for law in laws if law.mask == "noise" and "preserve" in law.parameters and len(law.columns) == 1]
    moving_laws = [law for law in laws if law.mask in ("microaggregate", "rank_swap") or law in restored]
    if not moving_laws or released.kind == "pyspark" or any(law.mask in ROW_CHANGING_MASKS for law in laws):
        return {}
    touched, schema = [column for law in laws for column in law.columns], released.schema()
    once = [c for law in moving_laws for c in law.columns if touched.count(c) == 1 and schema[c].is_numeric()]
    if not once:
        return {}
    after, before = released.collect(*once), original.collect(*once)
    return {column: _compared(after[column], before[column]) for column in once}


def _compared(after: pl.Series, before: pl.Series) -> Comparison:
    x, y = (values.cast(pl.Float64).fill_null(np.nan).to_numpy() for values in (before, after))
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < LEAST_RECORDS or not x[both].std() or not y[both].std():
        return Comparison()
    variance_ratio = float(y[both].var() / x[both].var())
    return Comparison(round(variance_ratio, 2), round(float(np.corrcoef(x[both], y[both])[0, 1]), 2))


def _preface(book: Codebook) -> list[str]:
    lines = [f"- {change.words}" for change in book.records_changes]
    lines += [f"  - {note}" for change in book.records_changes for note in change.adjust]
    lines += [f"- Not released: {', '.join(f'`{name}`' for name in book.withheld)}."] if book.withheld else []
    lines += [f"- {FORMULAS}"] if book.file.endswith(".csv") else []
    lines += [
        "- In the formulas s^2, r and b are a variance, a correlation and a slope from the released data; n is its "
        "number of records, d the deviations of the column from its mean, e and t^2 the deviations and the variance of "
        "the other column, sd a standard deviation. An estimate plus and minus 1.96 standard errors is a 95 % interval."
    ]
    return [*lines, ""]


def _section(variable: CodebookVariable) -> list[str]:
    lines = [f"## {variable.name}", ""]
    lines += [variable.label, ""] if variable.label else []
    lines += [f"Type: {variable.kind}."]
    lines += [f"Missing codes: {', '.join(variable.missing)}."] if variable.missing else []
    if variable.categories:
        categories = [f"`{code}`{f' {text}' if text else ''}" for code, text in variable.categories]
        lines += [f"Categories: {'; '.join(categories)}{'; and others' if variable.more_categories else ''}."]
    if variable.unchanged:
        return [*lines, "", "As collected: nothing was changed.", ""]
    if variable.added_variance is not None:
        lines += [f"Variance added: {float(f'{variable.added_variance:.6g}'):.12g}."]
    return [*lines, *(line for change in variable.changes for line in _change_lines(change)), ""]


def _change_lines(change: Change) -> list[str]:
    parts: list[tuple[str, tuple[str, ...]]] = [
        ("Stays valid", change.valid), ("Does not", change.spoiled), ("To adjust", change.adjust),
    ]  # fmt: skip
    lines = ["", f"**Changed:** {change.words}.".replace("..", "."), ""]
    return lines + [f"- {name}: {text}." for name, texts in parts for text in texts]
