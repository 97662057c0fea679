"""Special uniques (SUDA2): records unique on few of their keys already."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from equipoise.data.cells import Cells, by_record
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import RolesError
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score
from equipoise.risk._cell_score import KeyRisk, fraction_of
from equipoise.risk._suda import dis, dis_scores, elliot, ihsn, minimal_uniques

SCORE_WEIGHTS: dict[str, Callable[[int, int], Floats]] = {"elliot": elliot, "ihsn": ihsn}


@dataclass(frozen=True, slots=True)
class SpecialUniques(KeyRisk):
    """Share (and number) of special uniques: records alone on all keys and on fewer of them too (SUDA2).

    A minimal sample unique (MSU) of a record is a set of keys on which it is unique while it is on no smaller part of
    that set. All MSUs of up to `max_size` keys (all keys when not given) are found. value = (1/n) x records with an MSU
    of fewer than all keys; `risk` is 1 for them. The detail also has

    - `score`: the sum over the record's MSUs, one of k among K keys giving (with M = `max_size`) the product over
      i = k, ..., M of (K - i) without its factor 0 (`scores="elliot"`), or
      (2^(K-k) - 1) k! (K-k)! / K! (`scores="ihsn"`);
    - `dis`: P(a unique match with this record is right), the file's rate U f / (U f + P (1 - f)) shared out by score,
      with U uniques, P records in pairs and the sampling `fraction` f (by default records / sum of weights);
    - `msus` and `smallest`: how many MSUs, and the size of the smallest (0: none).

    `by_key` says how much of all scores comes from MSUs with each key, `by_value` with each of its values, `scores_of`
    gives `score` and `dis` by record. Under `missing="any"` a missing key is in no MSU.

    Source: Elliot, Manning and Ford (2002), *A computational algorithm for handling the special uniques problem*;
    Manning, Haglin and Keane (2008), *A recursive search algorithm for statistical disclosure assessment*; Elliot and
    Manning (2003), *Using DIS to modify the classification of special uniques*; Skinner and Elliot (2002).
    Misleads when weights differ much between records (`dis` knows one sampling fraction), or when scores of files with
    other keys are compared. Cost: O(sets of keys x cells) at worst; 127 sets over a million records take a second.

    >>> cells = Cells.of(pl.DataFrame({"sex": ["f", "f", "m"], "age": [30, 40, 30], "n": [2, 1, 3]}))
    >>> score = SpecialUniques(fraction=0.1).measure(cells, cells)
    >>> score.number, score.detail["score"].to_list()
    (1.0, [0.0, 1.0, 0.0])
    """

    max_size: int | None = None
    scores: Literal["elliot", "ihsn"] = "elliot"
    fraction: float | None = None

    def __post_init__(self) -> None:
        check_fields(self, max_size=1)
        if self.fraction is not None:
            share(self.fraction, "fraction")

    def _score(self, released: Records | Cells, cells: Cells) -> Score:
        totals = self._search(cells)
        risk = np.where((totals.smallest > 0) & (totals.smallest < len(cells.by)), 1.0, 0.0)
        number = float(risk.sum())
        return Score(
            label(self),
            number / cells.records if cells.records else 0.0,
            number=number,
            unit="share of records",
            notes=self._notes(cells, totals),
            cells=lambda: cells.table.with_columns(risk=risk, **self._detail(cells, totals)),
            records=(lambda: by_record(released, cells, risk)) if isinstance(released, Records) else None,
        )

    def by_key(self, released: Records | Cells) -> pl.DataFrame:
        """Table of keys: the share of all scores from MSUs with this key (they overlap), and their number."""
        cells = self._cells(released)
        totals = self._search(cells)
        whole = max(totals.score.sum(), np.finfo(float).tiny)
        return pl.DataFrame(
            {"key": cells.by, "contribution": totals.shares.sum(axis=1) / whole, "msus": totals.times},
            schema={"key": pl.String, "contribution": pl.Float64, "msus": pl.Int64},
        ).sort("contribution", "key", descending=[True, False])

    def by_value(self, released: Records | Cells, key: str) -> pl.DataFrame:
        """Table of the values of a key: the share of all scores from MSUs with this value. Shows data: internal."""
        cells = self._cells(released)
        totals, place = self._search(cells), cells.place(key)
        whole = max(totals.score.sum(), np.finfo(float).tiny)
        sums = np.bincount(cells.cube.codes[place], totals.shares[place], minlength=cells.cube.sizes[place])
        return pl.DataFrame([cells.values(key).alias(key), pl.Series("contribution", sums / whole)])

    def scores_of(self, released: Records) -> pl.DataFrame:
        """`score` and `dis` of every record, by id (or row number), in input order for frames in memory."""
        cells = self._cells(released)
        detail = self._detail(cells, self._search(cells))
        tables = [by_record(released, cells, detail[name]).rename({"risk": name}) for name in ("score", "dis")]
        return tables[0].with_columns(tables[1]["dis"])

    def _cells(self, released: Records | Cells) -> Cells:
        if isinstance(released, Records) and not released.roles.keys:
            raise RolesError("No keys were named: say which columns an intruder may know.")
        return KeyRisk._cells(self, released)

    def _search(self, cells: Cells) -> "_MinimalUniqueTotals":
        """Totals over all minimal uniques, cell by cell."""
        keys, size = len(cells.by), len(cells)
        most = min(self.max_size or keys, keys)
        weights = SCORE_WEIGHTS[self.scores](keys, most)
        totals = _MinimalUniqueTotals(
            np.zeros(size), np.zeros((keys, size)), np.zeros(size, np.int64), np.zeros(size, np.int64), [0] * keys
        )
        wild = [cells.by.index(column) for column in cells.open if column in cells.by]
        for places, rows in minimal_uniques(cells.cube, most, wild):
            worth = weights[len(places) - 1]
            totals.score[rows] += worth
            totals.msus[rows] += 1
            totals.smallest[rows] = len(places)
            for place in places:
                totals.shares[place, rows] += worth
                totals.times[place] += len(rows)
        return totals

    def _detail(self, cells: Cells, totals: "_MinimalUniqueTotals") -> dict[str, Floats | Integers]:
        matching = cells.alike[0]
        uniques, pairs = int((matching == 1).sum()), int(cells.n[matching == 2].sum())
        rate = dis(uniques, pairs, fraction_of(cells, self.fraction)[0])
        shared = dis_scores(totals.score, uniques, rate, len(cells.by))
        return {"score": totals.score, "dis": shared, "msus": totals.msus, "smallest": totals.smallest}

    def _notes(self, cells: Cells, totals: "_MinimalUniqueTotals") -> tuple[str, ...]:
        _, notes = fraction_of(cells, self.fraction)
        if (whole := totals.score.sum()) > 0:
            sums = totals.shares.sum(axis=1)
            first = int(sums.argmax())
            notes = (*notes, f"{sums[first] / whole:.0%} of the score comes from sets with {cells.by[first]!r}.")
        return notes


@dataclass(frozen=True, eq=False, repr=False)
class _MinimalUniqueTotals:
    """Totals over minimal uniques, cell by cell: score, part of each key, number of sets and size of the smallest."""

    score: Floats
    shares: Floats
    msus: Integers
    smallest: Integers
    times: list[int]
