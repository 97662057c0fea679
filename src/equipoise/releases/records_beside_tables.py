"""Audit of records beside tables of the same people: can the suppressed cells of a table be counted in the records?

A cell is counted exactly where no class of the records, by the columns of the table, lies across its border. Sums need
the column that is added up, and the weights, as they are; where that column was changed its sum is an estimate, whose
error is held against the protection level.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from equipoise.data.tables.table import Table
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import RefusedError
from equipoise.ground.packed_keys import code
from equipoise.presentation.numbers import number
from equipoise.provenance.fingerprint import canonical_texts
from equipoise.provenance.people_tokens import PeopleTokens, look_up
from equipoise.provenance.registered_tables import recalled
from equipoise.provenance.seed_register import EarlierRelease, Register, RegisterView
from equipoise.releases.earlier_releases import JointView, meet
from equipoise.tables.audits import KnownTable


@dataclass(frozen=True, eq=False, repr=False)
class ShownRecords:
    """What a release of records shows of each record of the original: a column of tokens each, null for no record.

    `names` has the own names of columns that a table has under another name.
    """

    columns: dict[str, pl.Series]
    tokens: PeopleTokens
    names: dict[str, str] = field(default_factory=dict)

    def shows(self, column: str) -> bool:
        """Whether a column was released as it is."""
        if column not in self.columns or column not in self.tokens.table.columns:
            return False
        true = self.tokens.of_values(self.tokens.table.select(column))[column]
        return bool((self.columns[column] == pl.Series(true)).fill_null(value=False).all())


def computed_cells(table: Table, needed: Sequence[str], display: ShownRecords) -> int | None:
    """How many suppressed cells the records give exactly; None where they cannot be counted from these columns.

    Misleads when cells are not groups of values of the columns, as totals over a hierarchy: they are not looked at,
    for a sensitive total has sensitive parts. Cost: O(n log n) in records.
    """
    by, needed = ([display.names.get(column, column) for column in columns] for columns in (table.by, needed))
    if not set(by) <= set(display.tokens.table.columns) or not all(map(display.shows, needed)):
        return None
    return int(_countable(table, by, display)[1].sum()) if set(by) <= set(display.columns) else 0


def _countable(table: Table, by: Sequence[str], display: ShownRecords) -> tuple[Integers, NDArray[np.bool_]]:
    """The suppressed cell of each record, -1 for none, and whether the records of each cell can be told."""
    hidden = table.table.select(table.by).filter(pl.Series(np.isnan(table.published_values)))
    cells = _places(display.tokens.table.select(by), hidden)
    classes = meet([display.columns[column] for column in by])
    missing = display.columns[by[0]].is_null().to_numpy()
    return cells, whole_cells(classes, cells, hidden.height) & ~np.isin(np.arange(hidden.height), cells[missing])


def estimated_cells(known: KnownTable, measured: str, display: ShownRecords, joint: JointView) -> int | None:
    """How many suppressed cells the sums of changed values give more closely than their levels; None without sums.

    The error of a sum is the root of the sum of the squared changes of its records, as for independent ones.
    """
    by = [display.names.get(column, column) for column in known.table.by]
    original, column = display.tokens.table, display.names.get(measured, measured)
    released = joint.released.collect()
    if not {*by, column} <= {*original.columns} & {*released.columns} or not released[column].dtype.is_numeric():
        return None
    cells, whole = _countable(known.table, by, display)
    records = np.flatnonzero((cells[joint.rows] >= 0) & ~released[column].is_null().to_numpy())
    true = original[column].cast(pl.Float64).fill_null(0.0).to_numpy()[joint.rows[records]]
    changes = released[column].cast(pl.Float64).to_numpy()[records] - true
    error = np.sqrt(np.bincount(cells[joint.rows[records]], changes**2, minlength=len(whole)))
    level = np.minimum(known.below, known.above)[np.isnan(known.table.published_values)]
    return int((whole & (level > 0) & (error < level)).sum())


def whole_cells(classes: Integers, cells: Integers, size: int) -> NDArray[np.bool_]:
    """Which of `size` cells, numbered in `cells` (-1 for none), are unions of classes.

    >>> whole_cells(np.array([0, 0, 1, 2]), np.array([0, -1, 1, 1]), 2).tolist()
    [False, True]
    """
    pairs = np.unique(np.stack([classes, cells]), axis=1)
    mixed = np.bincount(pairs[0]) > 1
    whole = np.isin(np.arange(size), cells)
    whole[pairs[1][mixed[pairs[0]] & (pairs[1] >= 0)]] = False
    return whole


def _places(rows: pl.DataFrame, cells: pl.DataFrame) -> Integers:
    """The cell that each record is in, by the texts of its values; -1 for none."""
    texts = [
        table.select(pl.concat_str(canonical_texts(table), separator="\x1f").alias("cell"))["cell"]
        for table in (rows, cells)
    ]
    codes = code(pl.concat(texts)).codes.astype(np.int64)
    return look_up(codes[: rows.height], codes[rows.height :])


def beside_tables(joint: JointView, register: Register) -> tuple[str, ...]:
    """Refuse records from which a suppressed cell of an earlier table can be counted; else what was audited."""
    return tuple(_beside_tables(joint, register))


def _beside_tables(joint: JointView, register: Register) -> Iterator[str]:
    tables = [one for one in joint.view.earlier if one.entry["kind"] == "table"]
    display, audited = _shown_now(joint), 0
    for one in tables:
        count = _computed(one, register, display)
        if count:
            raise RefusedError(
                f"Nothing was released: whoever counts these records computes {number(count)} suppressed cells of the "
                f"earlier table {one.words} exactly. Coarsen a column that it is grouped by, or leave one out."
            )
        if count is None and (count := _estimated(one, register, display, joint)):
            raise RefusedError(
                f"Nothing was released: whoever adds up {one.entry['table']['measured']!r}, changed as it is, knows "
                f"{number(count)} suppressed cells of the earlier table {one.words} more closely than their protection "
                "levels allow. Coarsen a column that it is grouped by, or change the values more."
            )
        audited += count is not None
    yield from _notes("table", audited, len(tables))


def _computed(one: EarlierRelease, register: Register, display: ShownRecords) -> int | None:
    entry = one.entry["table"]
    if "bounds" in entry:
        return None
    needed = [column for column in (entry["measured"], entry["weight"]) if column]
    named = replace(display, names=one.other_names(display.tokens))
    return computed_cells(recalled(register, entry).table, needed, named)


def _estimated(one: EarlierRelease, register: Register, display: ShownRecords, joint: JointView) -> int | None:
    """The same by sums of the column that was changed; of weighted sums and of tables that show bounds: None."""
    entry = one.entry["table"]
    if "bounds" in entry or entry["weight"] or not entry["measured"]:
        return None
    named = replace(display, names=one.other_names(display.tokens))
    return estimated_cells(recalled(register, entry), entry["measured"], named, joint)


def _notes(kind: str, audited: int, total: int) -> Iterator[str]:
    if audited:
        yield f"No suppressed cell can be counted together with {_earlier(kind, audited)} of these people."
    if total > audited:
        yield f"Not audited together with {_earlier(kind, total - audited)} of these people, which show something else."


def _earlier(kind: str, many: int) -> str:
    return f"{number(many)} earlier {kind}{'' if many == 1 else 's'}"


def _shown_now(joint: JointView) -> ShownRecords:
    """The columns of a release by the records of the original."""
    tokens, rows = joint.view.tokens, joint.rows
    places = look_up(np.arange(tokens.table.height), rows)
    columns = {name: _gathered(joint.display[name], places) for name in joint.display.columns}
    return ShownRecords(columns, tokens)


def _gathered(tokens: pl.Series, places: Integers) -> pl.Series:
    if not len(tokens):
        return pl.repeat(None, len(places), dtype=tokens.dtype, eager=True)
    return tokens.gather(pl.Series(np.where(places < 0, 0, places))).set(pl.Series(places < 0), None)


def beside_records(table: Table, needed: Sequence[str], view: RegisterView) -> tuple[str, ...]:
    """Refuse a table of which records that were released before give a suppressed cell; else what was audited."""
    return tuple(_beside_records(table, needed, view))


def _beside_records(table: Table, needed: Sequence[str], view: RegisterView) -> Iterator[str]:
    releases = [one for one in view.earlier if one.entry["kind"] == "records"]
    every, audited = np.arange(view.tokens.table.height), 0
    for one in releases:
        names = one.other_names(view.tokens)
        shown = {names.get(name, name): one.tokens(name, every) for name in one.table.columns}
        display = ShownRecords(shown, view.tokens)
        count = computed_cells(table, needed, display)
        if count:
            raise RefusedError(
                f"Nothing was published: whoever counts the records of the earlier release {one.words} computes "
                f"{number(count)} suppressed cells exactly. Group as coarsely as those records, or more."
            )
        audited += count is not None
    yield from _notes("release", audited, len(releases))
