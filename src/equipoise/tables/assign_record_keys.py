"""Give records the keys that cell keys are made of."""

from dataclasses import replace

import polars as pl

from equipoise.data import engines
from equipoise.data.records import Records
from equipoise.data.roles import names
from equipoise.ground.errors import DataError, EngineError
from equipoise.ground.randomness import Draws


def record_keys(records: Records, seed: int, column: str = "rkey") -> Records:
    """The records with a column of keys, uniform in [0, 1): a number drawn by (seed, record id) alone.

    One seed for one register of people, kept secret and for ever: the same person has the same key in every table and
    every year, so that equal cells are changed alike. Without an id role a key depends on the whole record.
    Cost: one pass, in memory.

    >>> people = eq.Records.of(pl.DataFrame({"person": [1, 2]}), eq.Roles(id="person"))
    >>> record_keys(people, 7).collect("rkey")["rkey"].is_between(0, 1).to_list()
    [True, True]
    """
    names(column, "column")
    if column in records.schema():
        raise DataError(f"There is a column {column!r} already: name another one for the record keys.")
    if records.kind == "pyspark":
        raise EngineError("Record keys are made in memory: give Polars, pandas, PyArrow or file data.")
    keys = pl.Series(column, Draws(seed).child(0).uniform(records.keys_of_rows()))
    return replace(records, frame=engines.like(records.frame, records.collect().with_columns(keys)))
