"""The total code of a column of a ready table: stated, a word for total in many languages, or the code that adds up."""

import re
from collections.abc import Mapping, Sequence

import polars as pl

from equipoise.data.branches import ValueMapping
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.tables.ready_axes import chains_of, leaves_of
from equipoise.ground.errors import DataError, ParameterError

TOTAL_WORD_LIST = (
    "total totals totale totales totaal totalt tot tot. _t all alle everything overall sum summe gesamt insgesamt "
    "ensemble suma ogółem razem celkem spolu összesen yhteensä ialt samtals skupaj ukupno kokku kopā toplam jumlah "
    "всего итого σύνολο 合計 合计 总计 総数"
)
TOTAL_WORDS = frozenset(TOTAL_WORD_LIST.split())
TOTAL_PREFIX = re.compile(r"(total|totaal|gesamt|insgesamt|ensemble)[\W_]")
MIN_EVIDENCE_BITS = 20
"""Bits of evidence that sums agree not by chance: one in a million. A sum of x gives log2(1 + x)."""
EXACT_SHARE, NEAR_SHARE = 1e-9, 5e-3
"""Shares of the sum by which a code may miss it: equal, and close enough to ask the user."""

StatedTotals = str | Mapping[str, str | None] | None


def total_of(
    cells: pl.DataFrame, column: str, others: Sequence[str], totals: StatedTotals, hierarchy: Hierarchy | None
) -> str | None:
    """The code of the total of a column, or None where the table has none.

    A stated total is used; else the root of the hierarchy, a word for total, or the code whose `_x` is the sum of all
    others wherever it occurs, too often to be chance (`MIN_EVIDENCE_BITS`; half, where margins repeat each other). For
    a doubtful code the user is asked: a wrong guess would count everything twice, or lose a value.
    """
    codes = sorted(cells[column].unique().to_list())
    if isinstance(totals, Mapping) and column in totals:
        return _stated_total(totals[column], column, codes)
    if isinstance(totals, str) and totals in codes:
        return totals
    chains = [chains_of(branch, codes, column) for branch in hierarchy.branches] if hierarchy else []
    root = [code for code in codes if chains and all(_is_root(code, chain) for chain in chains)]
    lists = [branch.groups for branch in hierarchy.branches if isinstance(branch, ValueMapping)] if hierarchy else []
    listed, groups = ({code for rows in lists for row in rows for code in row[place:]} for place in (0, 1))
    worded = [code for code in codes if code not in groups and code.casefold().strip() in TOTAL_WORDS]
    begun = [code for code in codes if code not in listed and TOTAL_PREFIX.match(code.casefold().strip())]
    candidates = root or worded or begun
    if len(candidates) > 1:
        raise DataError(_ask(column, f"has several codes that may be its total ({', '.join(map(repr, candidates))})"))
    return candidates[0] if candidates else _added(cells, column, others, leaves_of(codes, chains), listed)


def _stated_total(total: str | None, column: str, codes: list[str]) -> str | None:
    if total is not None and total not in codes:
        raise ParameterError(f"Column {column!r} has no code {total!r} that could be its total.")
    return total


def _is_root(code: str, chain: Mapping[str, tuple[str, ...]]) -> bool:
    tops = {groups[-1] for groups in chain.values() if groups}
    return tops == {code}


def _added(cells: pl.DataFrame, column: str, others: Sequence[str], leaves: list[str], listed: set[str]) -> str | None:
    """The code that is the sum of the other leaves, in all combinations of the other columns."""
    inner = cells.filter(pl.col(column).is_in(leaves)).select(column, *others, "__eq_x")
    everywhere = pl.col("__eq_x").sum().over(list(others)) if others else pl.col("__eq_x").sum()
    rows = inner.with_columns(__eq_all=everywhere)
    total = float(inner["__eq_x"].sum())
    if total == 0:
        return None
    missed = (pl.col("__eq_all") - 2 * pl.col("__eq_x")).abs().sum() - pl.col("__eq_all").sum()
    codes = (
        rows.group_by(column)
        .agg(missed.alias("__eq_missed"), (1 + pl.col("__eq_x")).log(2).sum().alias("__eq_bits"))
        .sort(column)
    )
    codes = codes.with_columns(__eq_gap=(total + pl.col("__eq_missed")) / total)
    close = pl.col("__eq_gap") <= (NEAR_SHARE if codes.height > 2 else EXACT_SHARE)
    doubtful = close & ~pl.col(column).is_in(list(listed))
    near = codes.filter((pl.col("__eq_gap") <= EXACT_SHARE) | doubtful)
    if near.is_empty():
        return None
    code, exact = near[column][0], near["__eq_gap"][0] <= EXACT_SHARE
    if near.height == 1 and exact and near["__eq_bits"][0] / (2 if others else 1) >= MIN_EVIDENCE_BITS:
        return str(code)
    how = "is" if exact else "is nearly"
    raise DataError(_ask(column, f"has a code, {code!r}, that {how} the sum of the others"))


def _ask(column: str, what: str) -> str:
    return f"Column {column!r} {what}: say its total, or None if it has none, with Ready(total={{{column!r}: ...}})."
