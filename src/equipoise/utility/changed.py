"""How many records were changed, and how far."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.category_order import ladder
from equipoise.data.records import Records
from equipoise.ground.packed_keys import code
from equipoise.methods.method import label
from equipoise.methods.score import Score


@dataclass(frozen=True, slots=True)
class Changed:
    """Share of records whose keys differ from the original ones.

    The detail has a row per key: the share of records `changed`, and the mean `distance` of the changed ones (the share
    of the hierarchy's levels that must be climbed before old and new value meet; 0/1 for keys without order), and one
    row for all keys together, its distance the mean over keys of the records changed in any.

    Source: Nayak (2015), section 5. Misleads when a column was recoded: then every value differs. Cost: O(records).

    >>> from equipoise.data.roles import Roles
    >>> records = Records.of(pl.DataFrame({"k": ["a", "b", "b"]}), Roles("k"))
    >>> Changed().measure(records, records).value
    0.0
    """

    def measure(self, released: Records, original: Records) -> Score:
        keys = original.roles.keys
        here, there = aligned(released, original, keys)
        table = _movement(here, there, original)
        whole = table.row(-1, named=True)
        expected = [law.detail.law.movers() for law in released.history if hasattr(law.detail, "law")]
        notes = tuple(f"{movers:,.1f} units were expected to move." for movers in expected)
        return Score(
            label(self),
            whole["changed"],
            "lower",
            side="utility",
            number=whole["changed"] * here.height,
            unit="share of records",
            notes=notes,
            cells=lambda: table,
        )


def _movement(here: pl.DataFrame, there: pl.DataFrame, original: Records) -> pl.DataFrame:
    moved, gaps, rows = np.zeros(here.height, dtype=bool), np.zeros(here.height), []
    for key in here.columns:
        both = code(pl.concat([there[key], here[key].cast(there[key].dtype, strict=False)]))
        old, new = both.codes[: here.height].astype(np.int64), both.codes[here.height :].astype(np.int64)
        differ = old != new
        gap = ladder(both.values, original.roles.hierarchies.get(key)).distance(old, new)
        rows.append({"key": key, "changed": float(differ.mean()), "distance": _mean(gap[differ])})
        moved, gaps = moved | differ, gaps + gap / here.width
    return pl.DataFrame([*rows, {"key": "all", "changed": float(moved.mean()), "distance": _mean(gaps[moved])}])


def _mean(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    return float(values.mean()) if len(values) else 0.0
