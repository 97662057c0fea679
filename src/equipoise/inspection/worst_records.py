"""Records most at risk, by id alone, and the coarsenings of single keys that remove most uniques."""

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, cell_of
from equipoise.data.hierarchy import Hierarchy
from equipoise.data.levels import ORIGINAL, ROOT
from equipoise.data.records import Records
from equipoise.data.roles import beside
from equipoise.ground.errors import EquipoiseError
from equipoise.inspection.column_facts import facts_of
from equipoise.inspection.propose_hierarchies import nested
from equipoise.laws.mean_reciprocal import of_cells

WORST_RECORDS = 10
"""Records named at most."""
SUGGESTION_RECORDS = 20_000
"""Records from whose values the hierarchy of a key is proposed."""

NO_HELP = pl.DataFrame(
    schema={"key": pl.String, "level": pl.String, "words": pl.String, "left": pl.Int64, "removed": pl.Float64}
)
NO_RECORDS = pl.DataFrame(schema={"record": pl.Int64, "risk": pl.Float64, "alike": pl.Int64})


def worst(records: Records, cells: Cells) -> pl.DataFrame:
    """The records most at risk: their row (`record`), their id if there is one, their `risk` as in `risk.Individual`,
    and how many are `alike`. Never a value of a key. Cost: O(cells), and one pass that picks their rows.
    """
    if records.kind == "pyspark":
        return NO_RECORDS
    risk = of_cells(cells)
    least = np.partition(risk, max(0, len(risk) - WORST_RECORDS))[max(0, len(risk) - WORST_RECORDS)]
    order = np.flatnonzero(risk >= least)
    order = order[np.lexsort((cells.alike[0][order], -risk[order]))][:WORST_RECORDS]
    name = records.roles.id
    table = records.collect(*dict.fromkeys((*cells.by, *((name,) if name else ()))))
    place = cell_of(table, cells)
    rows = np.flatnonzero(np.isin(place, order))
    key = beside(name, "record", "risk", "alike") if name else "record"
    ids = {key: table[name][rows]} if name else {}
    measured = {"risk": risk[place[rows]], "alike": cells.alike[0][place[rows]]}
    risks = pl.DataFrame({"record": rows.astype(np.uint32), **ids, **measured})
    return risks.sort("risk", "alike", key, descending=[True, False, False]).head(WORST_RECORDS)


def helps(cells: Cells) -> pl.DataFrame:
    """For each key its levels, those of its hierarchy or those that its values suggest, and the uniques left at each.

    `removed` is the share of the uniques that coarsening this key alone takes away, most first; `words` say how.
    Cost: O(cells) for each level.
    """
    alone = _uniques(cells)
    if not alone:
        return NO_HELP
    rows = [row for key in cells.by for row in _levels(cells, key, alone)]
    return pl.DataFrame(rows, schema=NO_HELP.schema).sort("removed", "key", descending=[True, False])


def _levels(cells: Cells, key: str, alone: int) -> list[dict[str, object]]:
    tree = cells.hierarchies.get(key) or _suggest_hierarchy(cells, key)
    if tree is None:
        return []
    rows = list[dict[str, object]]()
    for level in tree.allowed:
        if level.name in (ORIGINAL, ROOT):
            continue
        try:
            uniques = _uniques(cells.relabel(key, lambda values, n, level=level: level.label(values)))  # type: ignore[misc]
        except EquipoiseError:
            continue
        removed = (alone - uniques) / alone
        rows.append({"key": key, "level": level.name, "words": level.words(), "left": uniques, "removed": removed})
    return rows


def _uniques(cells: Cells) -> int:
    return int(cells.n[cells.alike[0] == 1].sum())


def _suggest_hierarchy(cells: Cells, key: str) -> Hierarchy | None:
    """The hierarchy that the values of a key suggest, from as many of them as there are records, but not too many."""
    values, counts = cells.values(key), cells.counts(key)
    times = np.ceil(counts * min(1.0, SUGGESTION_RECORDS / max(1, cells.records))).astype(np.int64)
    return nested(facts_of(values.gather(pl.Series(np.repeat(np.arange(len(values)), times).astype(np.uint32)))))


def mildest(levels: pl.DataFrame) -> pl.DataFrame:
    """For each key the mildest level that removes at least four fifths of what its strongest does, most first."""
    if levels.is_empty():
        return levels
    strong = pl.col("removed") >= 0.8 * pl.col("removed").max().over("key")
    mild = (
        levels.filter(strong & (pl.col("removed") > 0))
        .sort("removed", "key")
        .unique("key", keep="first", maintain_order=True)
    )
    return mild.sort("removed", "key", descending=[True, False])
