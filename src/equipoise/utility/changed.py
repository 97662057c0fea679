"""Share of changed records, and the size of the changes."""

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
    of the hierarchy's levels up to the first common category of old and new value; 0/1 for keys without order), and one
    row for all keys together, its distance the mean over keys of the records changed in any.

    Source: Nayak (2015), section 5. Misleads when a column was recoded: then every value differs. Cost: O(records).

    >>> records = eq.Records.of(pl.DataFrame({"k": ["a", "b", "b"]}), eq.Roles("k"))
    >>> Changed().measure(records, records).value
    0.0
    """

    def measure(self, released: Records, original: Records) -> Score:
        keys = original.roles.keys
        new, old = aligned(released, original, keys)
        table = _movement(new, old, original)
        whole = table.row(-1, named=True)
        expected = [law.detail.law.movers() for law in released.history if hasattr(law.detail, "law")]
        notes = tuple(f"{movers:,.1f} units were expected to move." for movers in expected)
        return Score(
            label(self),
            whole["changed"],
            side="utility",
            number=whole["changed"] * new.height,
            unit="share of records",
            notes=notes,
            cells=lambda: table,
        )


def _movement(after: pl.DataFrame, before: pl.DataFrame, original: Records) -> pl.DataFrame:
    either, gaps, rows = np.zeros(after.height, dtype=bool), np.zeros(after.height), []
    for key in after.columns:
        both = code(pl.concat([before[key], after[key].cast(before[key].dtype, strict=False)]))
        old, new = both.codes[: after.height].astype(np.int64), both.codes[after.height :].astype(np.int64)
        differ = old != new
        gap = ladder(both.values, original.roles.hierarchies.get(key)).distance(old, new)
        rows.append({"key": key, "changed": float(differ.mean()), "distance": _mean(gap[differ])})
        either, gaps = either | differ, gaps + gap / after.width
    return pl.DataFrame([*rows, {"key": "all", "changed": float(either.mean()), "distance": _mean(gaps[either])}])


def _mean(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float:
    return float(values.mean()) if len(values) else 0.0
