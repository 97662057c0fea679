"""Mutual information of released and original keys, in bits per record."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from equipoise.data.aligned_files import aligned
from equipoise.data.cells import Cells, as_cells, bits, by_record, count
from equipoise.data.records import Records
from equipoise.data.roles import Roles, beside
from equipoise.ground.packed_keys import code, tally
from equipoise.methods.method import label
from equipoise.methods.score import Score, not_applicable


@dataclass(frozen=True, slots=True)
class Entropy:
    """Bits per record that are kept: the mutual information of original and released keys.

    I(X; Y) = H(X) + H(Y) - H(X, Y), with H = - sum p log2 p over the occupied cells. Under coarsening Y is a function
    of X, so I(X; Y) = H(Y), the joint entropy of the released file. The detail has one row
    per key and one for the joint: `entropy`, `independent` (the sum of the keys' entropies minus the joint one),
    `occupied`, `ones` and `zeros` (cells of that many records); `by_record()` gives the `bits` of each record; the
    baseline is 0, no data at all.

    Source: Massell (1999), section II; Cover and Thomas (2006), *Elements of Information Theory*, ch. 2.
    Misleads when records are few: the entropy of a sample overstates how well a user knows the population.
    Cost: O(cells); O(records) for files that were perturbed, which must keep their ids or row order.

    >>> cells = Cells.of(pl.DataFrame({"age": [30, 31], "n": [2, 2]}))
    >>> Entropy().measure(cells, cells).value
    1.0
    """

    def by(self, roles: Roles) -> tuple[str, ...]:
        return roles.keys

    def measure(self, released: Records | Cells, original: Records | Cells) -> Score:
        if isinstance(released, Records) and released.synthetic:
            return not_applicable(label(self), "higher")
        cells = as_cells(released, self.by(released.roles)) if isinstance(released, Records) else released
        if isinstance(released, Records) and isinstance(original, Records) and not released.coarsened:
            value = mutual_information(released, original)
        else:
            value = bits(cells.n)
        return Score(
            label(self),
            value,
            "higher",
            baseline=0.0,
            unit="bits per record",
            cells=lambda: _detail(cells),
            records=(lambda: _surprise(released, cells)) if isinstance(released, Records) else None,
        )


def mutual_information(released: Records, original: Records) -> float:
    """I(original keys; released keys) of two row-aligned files."""
    keys = original.roles.keys
    pair = [code(column) for side in aligned(released, original, keys) for column in side.iter_columns()]
    both = bits(tally(pair).n)
    return max(0.0, bits(count(original, keys).n) + bits(count(released, keys).n) - both)


def _surprise(released: Records, cells: Cells) -> pl.DataFrame:
    """Self-information of each record, - log2 of the share of its cell: the mean is the joint entropy."""
    rows = by_record(released, cells, -np.log2(cells.n / cells.records))
    ids = rows.to_series(0)
    return pl.DataFrame({beside(ids.name, "bits"): ids, "bits": rows["risk"]})


def _detail(cells: Cells) -> pl.DataFrame:
    """Marginal and joint entropies, and how full the table is."""
    margins = [(key, cells.margin((key,))) for key in cells.by]
    each = [bits(cells.counts(key)) for key in cells.by]
    rows = [
        {"key": key, "entropy": h, "independent": 0.0, "occupied": len(m), "ones": int((m.n == 1).sum()), "zeros": 0}
        for (key, m), h in zip(margins, each, strict=True)
    ]
    places = float(np.prod([len(m) for _, m in margins], dtype=np.float64))
    joint = bits(cells.n)
    whole = {"key": "joint", "entropy": joint, "independent": sum(each) - joint, "occupied": len(cells)}
    whole |= {"ones": int((cells.n == 1).sum()), "zeros": int(places) - len(cells)}
    return pl.DataFrame([*rows, whole])
