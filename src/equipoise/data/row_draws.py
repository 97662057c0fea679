"""Running a random mask: record by record on the engine that holds the data, or on the whole table in memory."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import narwhals as nw
import polars as pl

from equipoise.data import engines
from equipoise.data.records import Law, Records, collect_one
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import EngineError, RolesError

Change = Callable[[pl.DataFrame, pl.Series], pl.DataFrame]
"""Maps a table and the key of each record's draws to the changed table: same rows, same order, same column types."""


def rowwise(records: Records, change: Change) -> engines.Frame:
    """Run a change of one record at a time; on Spark and on scanned files piece by piece, with draws keyed by id.

    For Spark the change must be picklable: a function of a module, a `functools.partial` of one, a dataclass.
    """
    name = records.roles.id
    if name and not records.in_memory:
        refuse_repeated(records, name)
        return engines.mapped(records.frame, _ById(change, name))
    if records.kind == "pyspark":
        raise RolesError("Records on Spark have no order: name an id role, so that each record has its own draws.")
    return engines.like(records.frame, change(records.collect(), records.keys_of_rows()))


def whole(records: Records, change: Change) -> pl.DataFrame:
    """Run a change that needs all records together, in memory."""
    return change(*together(records))


def together(records: Records) -> tuple[pl.DataFrame, pl.Series]:
    """All records in memory, and the key of each one's draws."""
    return all_in_memory(records), records.keys_of_rows()


def all_in_memory(records: Records) -> pl.DataFrame:
    """All records in memory; refused on Spark."""
    if records.kind == "pyspark":
        raise EngineError(
            "This mask looks at all records together, in memory: give Polars, pandas, PyArrow, DuckDB or file data."
        )
    return records.collect()


def picked(records: Records, rows: Integers, law: Law, **changed: pl.Expr) -> Records:
    """Records at these rows, in this order, with some columns changed; their missing codes go with them."""
    table = all_in_memory(records)[rows].with_columns(**changed)
    labels = records.labels
    if labels.gaps is not None:
        labels = replace(labels, gaps=labels.gaps[rows])
    return replace(records.with_frame(table, law), labels=labels)


def refuse_repeated(records: Records, name: str) -> None:
    """Refuse missing or repeated ids in data that is not in memory: such records would share their draws."""
    id_ = nw.col(name)
    facts = [id_.n_unique().alias("distinct"), id_.null_count().alias("missing"), nw.len().alias("rows")]
    counts = collect_one(records.frame.select(facts))
    if counts["missing"] or counts["distinct"] < counts["rows"]:
        raise RolesError(f"The id column {name!r} has missing or repeated values: ids must be unique.")


@dataclass(frozen=True, slots=True)
class _ById:
    """A change of one piece of a file, the draws keyed by its id column."""

    change: Change
    id: str

    def __call__(self, piece: pl.DataFrame) -> pl.DataFrame:
        return self.change(piece, piece[self.id])
