"""Every coarsening of a public file of nine keys: 12,960 nodes."""

import os
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import equipoise as eq
from benchmarks.rows import Row, Scale, Skipped, cost, race
from equipoise.ground.packed_keys import code

NAME = "lattice of adult"
RECOUNTS = 12


def lattice(scale: Scale) -> Iterator[Row | Skipped]:
    """CPU for each node, against a recount of the coarsened records by Polars."""
    folder = Path(os.environ.get("EQUIPOISE_DATA", "")) / "arx"
    if not (folder / "adult.csv").exists():
        yield Skipped(NAME, "EQUIPOISE_DATA does not name a folder with arx/adult.csv")
        return
    records = adult(folder)
    recipes = eq.coarsenings(records)
    tried = recipes[: max(1, round(len(recipes) * scale.share))]
    eq.count(records)
    spent = cost(lambda: eq.sweep(records, tried, [eq.risk.Uniques(), eq.utility.Entropy()]))
    picked = recipes[:: len(recipes) // RECOUNTS]
    recount = sum(_recount(recipe.run(records), scale) for recipe in picked) / len(picked)
    yield Row(
        f"{NAME}, each node", spent.cpu / len(tried) * 1e3, recount * 1e3, unit="CPU ms", against="Polars recount",
        note=f"{len(tried):,} of {len(recipes):,} nodes, with Uniques and Entropy; {len(picked)} recounts",
    )  # fmt: skip


def adult(folder: Path) -> eq.Records:
    keys = pl.read_csv(folder / "adult.csv", separator=";", n_rows=1).columns
    trees = {key: eq.Hierarchy.csv(folder / "hierarchies" / f"adult_hierarchy_{key}.csv") for key in keys}
    return eq.read(folder / "adult.csv", eq.Roles(tuple(keys), hierarchies=trees))


def _recount(released: eq.Records, scale: Scale) -> float:
    keys = released.roles.keys
    table = pl.DataFrame({key: code(column).codes for key, column in released.collect(*keys).to_dict().items()})
    eager = {"eager": lambda: table.group_by(keys).agg(pl.len())}
    lazy = {"streaming": lambda: table.lazy().group_by(keys).agg(pl.len()).collect(engine="streaming")}
    return min(found.cpu for found in race(scale.repeat(5), eager | lazy).values())
