"""Counting ten million records by seven keys, with the sum of their weights."""

from collections.abc import Callable, Iterator

import polars as pl

import equipoise as eq
from benchmarks import data
from benchmarks.rows import Row, Scale, Skipped, cheapest, race
from equipoise.ground.packed_keys import code, tally

RECORDS = 10_000_000
THEN = 3.9
"""CPU seconds of the yardstick where the figures of other packages were taken."""


def coded(scale: Scale) -> Iterator[Row | Skipped]:
    """After the columns were coded; also the machine's own yardstick."""
    table = data.numbers(scale.records(RECORDS))
    columns = [code(table[key]) for key in data.KEYS]
    weights = table["weight"].to_numpy()
    costs = race(scale.repeat(5), {"ours": lambda: tally(columns, weights), **polars(table)})
    best = cheapest(costs, ("eager", "streaming"))
    if len(tally(columns, weights)) != table.select(data.KEYS).n_unique():
        raise AssertionError("Polars finds another number of cells.")
    yield Row(
        "count coded keys", costs["ours"].cpu, costs[best].cpu, 1 / 4, against=f"Polars group-by, {best}",
        note=f"wall {costs['ours'].wall / costs[best].wall:.2f}",
    )  # fmt: skip
    yield Row(
        "yardstick of this machine", costs["eager"].cpu, THEN * scale.share, against="where peers were measured",
        note="Polars eager group-by, 10 M x 7 u8: multiply the peers' CPU seconds by this ratio",
    )  # fmt: skip


def raw(scale: Scale) -> Iterator[Row | Skipped]:
    """From text, with reading the roles, checking, coding."""
    table = data.texts(data.numbers(scale.records(RECORDS)))
    rivals = polars(table) | duckdb(table)
    costs = race(scale.repeat(3), {"ours": lambda: eq.count(eq.read(table, data.roles())), **rivals})
    best = cheapest(costs, rivals)
    yield Row("count raw text", costs["ours"].cpu, costs[best].cpu, 1.2, against=f"{best}, the best of {_list(rivals)}")
    soonest = min(rivals, key=lambda name: costs[name].wall)
    yield Row(
        "count raw text, wall", costs["ours"].wall, costs[soonest].wall, unit="wall s", against=soonest,
        note="ours codes on one thread",
    )  # fmt: skip


def polars(table: pl.DataFrame) -> dict[str, Callable[[], object]]:
    """Polars' own ways."""
    sums = (pl.len().alias("n"), pl.col("weight").sum().alias("total"))
    return {
        "eager": lambda: table.group_by(data.KEYS).agg(*sums),
        "streaming": lambda: table.lazy().group_by(data.KEYS).agg(*sums).collect(engine="streaming"),
    }


def duckdb(table: pl.DataFrame) -> dict[str, Callable[[], object]]:
    """DuckDB on a table of its own, loaded before the race."""
    import duckdb

    connection = duckdb.connect()
    arrow = table.to_arrow()
    connection.register("arrow", arrow)
    connection.execute("create table records as select * from arrow")
    query = f"select {', '.join(data.KEYS)}, count(*) n, sum(weight) total from records group by all"
    return {"DuckDB": lambda: connection.sql(query).to_arrow_table()}


def _list(names: dict[str, Callable[[], object]]) -> str:
    return ", ".join(names)
