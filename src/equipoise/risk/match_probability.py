"""Audit of post-randomization (PRAM): the probability that a match is right."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np
import polars as pl

from equipoise.data.cells import by_record
from equipoise.data.records import Records
from equipoise.ground.arrays import Floats, Integers
from equipoise.ground.errors import ParameterError
from equipoise.laws.cell_law import CellLaw
from equipoise.laws.move_records import MovePlan, plan_of
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields, share
from equipoise.methods.score import Score, not_applicable

MAX_COUNT = 64
"""Released counts computed exactly, at most; beyond, a match is right with probability below 1 / MAX_COUNT."""
MAX_CLASSES = 2000
"""Classes of cells whose curve is listed, at most."""
MIN_COEFFICIENT = 1e-280
MAX_MINUS_LOG = 36.0
"""Probabilities below exp of minus this are left out."""


@dataclass(frozen=True, slots=True)
class MatchProbability:
    """The largest probability, over all cells and released counts, that an intruder's match is right.

    IR(j, a) = P(correct match | S_j = a, T) = (1/a) p q(a-1) / (p q(a-1) + (1-p) q(a)), with p the probability that a
    record of cell j stays and q the law of the number of other records in it afterwards (Nayak 2015, eq. 8, with the
    binomial coefficient of eq. 6 mended). The law of the mask is read from the history of the released records; a
    file that was only coarsened has IR = 1 / T. `given="table"` is the same for an intruder who conditions on all
    released counts and may guess any record: exact for blocks.

    The detail has a row per cell: `risk` (the worst released count), `table` (given all counts), `unconditional`
    (before the release is seen), `vanishes` (P(S = 0)). `curve()` gives IR for every released count. When membership of
    the sample is unknown, `fraction` is the probability that the target is in it, and the value is multiplied by it.

    Source: Nayak (2015), eq. (6) to (9). Misleads when another column shows the original cell, or moved records can
    be recognised: see `Recognisable`. Cost: O(cells), and O(distinct counts) for the curve.

    >>> records = Records.of(pl.DataFrame({"k": ["a", "b", "b"]}), eq.Roles("k"))
    >>> MatchProbability().measure(records, records).value
    1.0
    """

    given: Literal["count", "table"] = "count"
    fraction: float = 1.0

    def __post_init__(self) -> None:
        check_fields(self)
        share(self.fraction, "fraction")

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        plan = plan_of(released)
        worst = worst_count(plan.law) if self.given == "count" else worst_table(plan.law)
        if worst is None:
            raise ParameterError("Given all released counts, the match probability is exact for method='blocks' only.")
        top = int(np.argmax(worst))
        unit = "record" if plan.units.of_people else "household"
        size = int(plan.law.counts[top])
        cells = f"cells of {size:,} {unit}{'s' if size > 1 else ''}"
        known_by_record = released.coarsened and plan.units.of_people
        where = f"No match is right with probability above {float(worst[top]):.4g}; the worst is in {cells}."
        return Score(
            label(self),
            self.fraction * float(worst[top]),
            unit="probability",
            notes=(where,),
            cells=lambda: audit(plan),
            records=(lambda: by_record(released, plan.units.cells, worst)) if known_by_record else None,
        )

    def curve(self, released: Records) -> pl.DataFrame:
        """IR for every cell class and released count: `t` (original count), `cells`, `a`, `probability`, `chance`."""
        return match_curve(plan_of(released).law)


def worst_count(law: CellLaw) -> Floats:
    """Largest IR(j, a) over a: a single released record is the worst (`cell_law`) except in Nayak's two-cell groups."""
    worst = law.match()
    narrow = np.flatnonzero((law.cells_in_block == 2) & (law.spread(law.strength) > 0.5))
    if law.kind == "mixing" or not len(narrow):
        return worst
    mates = law.spread(law.per_block(law.counts))[narrow].astype(np.int64) - law.counts[narrow]
    kinds, which = np.unique(np.column_stack([law.counts[narrow], mates]), axis=0, return_inverse=True)
    theta = float(law.strength[0])
    worst_of_kind = np.array(
        [_ratios(int(t), theta / t, _arriving(theta / m, int(m), min(t + m, MAX_COUNT)))[0].max() for t, m in kinds]
    )
    worst[narrow] = np.maximum(worst[narrow], worst_of_kind[which])
    return worst


def worst_table(law: CellLaw) -> Floats | None:
    """Largest match probability over all released tables and guesses, for every cell; None if not known exactly."""
    if law.kind == "leaving":
        return None
    worst = 1.0 / law.counts
    cells, sizes = law.cells_in_block, law.sizes
    mixed = (law.block >= 0) & (law.spread(law.strength) == 1)
    worst[mixed] = 1.0 / sizes[mixed]
    partial = np.flatnonzero((law.block >= 0) & ~mixed)
    if (cells[partial] != 2).any():
        return None
    facts = np.column_stack([law.counts, sizes, law.share, law.spread(law.strength)])[partial]
    kinds, which = np.unique(facts, axis=0, return_inverse=True)
    worst_of_kind = np.array([_pair_worst(*row) for row in kinds]) if len(kinds) else np.zeros(0)
    worst[partial] = worst_of_kind[which]
    return worst


def _pair_worst(t: float, size: float, share: float, strength: float) -> float:
    """Probability of the best guess of a target in a two-cell block, over all released tables."""
    if strength == 0:
        return 1.0 / t
    total = int(size)
    stay = 1 - strength * (1 - share)
    own = _series(int(t) - 1, stay / (1 - stay), total)
    rest = _series(total - int(t), strength * share / (1 - strength * share), total)
    sums = _convolve(own, rest)[: total + 1]
    a = np.arange(1, total + 1)
    own_cell = _inside(sums, stay, a)
    guess = np.r_[own_cell, (1 - a * own_cell)[:-1] / (total - a[:-1])]
    return max(float(guess.max()), 1.0 / total)


def _inside(sums: Floats, stay: float, a: Integers) -> Floats:
    """IR(a) from the log coefficients of the others' generating function: (1/a) / (1 + sums[a] / (odds sums[a-1]))."""
    odds = np.log(stay) - np.log1p(-stay)
    top = np.where(a < len(sums), sums[np.minimum(a, len(sums) - 1)], -np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        ratio = np.exp(top - sums[a - 1] - odds)
    return np.where(np.isfinite(sums[a - 1]), 1 / (a * (1 + ratio)), 0.0)


def _series(times: int, odds: float, most: int) -> Floats:
    """Logs of the coefficients of (1 + odds z)^times, up to z^most: sums of the logs of their ratios."""
    m = np.arange(1, (min(times, most) if odds > 0 else 0) + 1)
    return _pad(np.r_[0.0, np.cumsum(np.log(odds * ((times - m + 1) / m)))], most + 1)


def _convolve(a: Floats, b: Floats) -> Floats:
    """Logs of the product of two series of non-negative coefficients given by their logs, of the same length.

    Scaled by their largest if nothing is lost by it, otherwise term by term of the shorter one, in logs.
    """
    size = len(a)
    short, long = sorted((_trim(a), _trim(b)), key=len)
    if size <= 2 * MAX_COUNT:
        scaled = np.convolve(np.exp(short - short.max()), np.exp(long - long.max()))
        if (scaled > MIN_COEFFICIENT).all():
            return _pad(np.log(scaled) + short.max() + long.max(), size)
    product = np.full(len(short) + len(long) - 1, -np.inf)
    for place, term in enumerate(short):
        part = slice(place, place + len(long))
        product[part] = np.logaddexp(product[part], term + long)
    return _pad(product, size)


def _trim(logs: Floats) -> Floats:
    """Coefficients without the zeros at the end."""
    last = int(np.flatnonzero(np.isfinite(logs))[-1])
    return np.asarray(logs[: last + 1])


def _pad(logs: Floats, size: int) -> Floats:
    return np.asarray(np.r_[logs[:size], np.full(max(0, size - len(logs)), -np.inf)])


Series = tuple[Floats, float]
"""Logs of the coefficients of a generating function in the odds, and the log probability of nobody."""


def _arriving(chance: float, times: int, most: int) -> Series:
    """Distribution of the number of arrivals if each of `times` units comes with this probability."""
    return _series(times, chance / (1 - chance), most), times * float(np.log1p(-chance))


def _together(one: Series, two: Series) -> Series:
    return _convolve(one[0], two[0]), one[1] + two[1]


def _ratios(t: int, leave: float, others: Series) -> tuple[Floats, Floats]:
    """IR(a) and P(S = a) for a = 1, 2, ... of a cell with t units, each leaving with this probability."""
    most = len(others[0]) - 1
    sums, zero = _together(_arriving(1 - leave, t - 1, most), others)
    a = np.arange(1, most + 1)
    chance = np.exp(zero + sums[a - 1]) * (1 - leave) + np.exp(zero + sums[a]) * leave
    return _inside(sums, 1 - leave, a), chance


def match_curve(law: CellLaw) -> pl.DataFrame:
    """IR and P(S = a) for every class of cells that have the same law, for a up to `MAX_COUNT`.

    A class is a count and the counts around it: `t`, `cells` (how many), then a row for each `a`. Cells without moves
    have one row, a = t. At most `MAX_CLASSES` classes are listed, the most frequent first; the detail has the worst
    case of every cell. O(classes).
    """
    still = law.counts[law.block < 0]
    amounts, cells = np.unique(still, return_counts=True)
    parts = [
        _rows(int(t), int(c), np.array([t]), np.array([1 / t]), np.ones(1)) for t, c in zip(amounts, cells, strict=True)
    ]
    for t, number, risk, chance in _mixing(law) if law.kind == "mixing" else _leaving(law):
        keep = chance > 0
        parts.append(_rows(t, number, np.arange(1, len(risk) + 1)[keep], risk[keep], chance[keep]))
    return pl.concat(parts)


def _rows(t: int, cells: int, a: Integers, probability: Floats, chance: Floats) -> pl.DataFrame:
    table = pl.DataFrame({"a": a.astype(np.int64), "probability": probability, "chance": chance})
    return table.select(pl.lit(t).alias("t"), pl.lit(cells).alias("cells"), "a", "probability", "chance")


Class = tuple[int, int, Floats, Floats]


def _mixing(law: CellLaw) -> Iterator[Class]:
    """Curves of mixing laws: other units of a block all arrive with the same probability, lambda times the share."""
    cells = law.moving
    facts = np.column_stack([law.counts, law.sizes, law.share, law.spread(law.strength)])[cells]
    kinds, numbers = np.unique(facts, axis=0, return_counts=True)
    for place in np.argsort(-numbers, kind="stable")[:MAX_CLASSES]:
        t, size, share, strength = kinds[place]
        if share in (0, 1):  # where the others have no weight, all units end up in one cell
            sure = np.zeros(int(size))
            sure[-1] = share
            yield int(t), int(numbers[place]), sure / size, sure
            continue
        arrive, most = strength * share, int(min(size, MAX_COUNT))
        risk, chance = _ratios(int(t), strength * (1 - share), _arriving(arrive, int(size - t), most))
        yield int(t), int(numbers[place]), risk, chance


def _leaving(law: CellLaw) -> Iterator[Class]:
    """Curves of leaving laws: in a group of k cells a unit of a cell of T arrives with theta / ((k - 1) T)."""
    groups = (
        pl.DataFrame({"block": law.block, "t": law.counts}).sort("block", "t").group_by("block", maintain_order=True)
    )
    kinds = groups.agg("t").group_by("t").agg(pl.len().alias("groups")).sort("groups", descending=True)
    theta, listed = float(law.strength[0]), 0
    for counts, times in kinds.iter_rows():
        for t, number, risk, chance in _one_group(np.asarray(counts), theta):
            if listed < MAX_CLASSES:
                yield t, number * times, risk, chance
            listed += 1
        if listed >= MAX_CLASSES:
            return


def _one_group(counts: Integers, theta: float) -> Iterator[Class]:
    """Curve of every distinct count of a group, by the products of the series before and after it."""
    amounts, numbers = np.unique(counts, return_counts=True)
    most, others = int(min(counts.sum(), MAX_COUNT)), len(counts) - 1
    chances = theta / (others * amounts)
    whole = [_arriving(p, int(t * m), most) for p, t, m in zip(chances, amounts, numbers, strict=True)]
    nobody: Series = (_series(0, 0.0, most), 0.0)
    before = [nobody, *accumulate(whole, _together)]
    after = [nobody, *accumulate(reversed(whole), _together)][::-1]
    for i, (t, m) in enumerate(zip(amounts.tolist(), numbers.tolist(), strict=True)):
        around = _together(_together(before[i], after[i + 1]), _arriving(chances[i], t * (m - 1), most))
        risk, chance = _ratios(t, theta / t, around)
        yield t, m, risk, chance


def audit(plan: MovePlan) -> pl.DataFrame:
    """Table of cells with their match probabilities."""
    law = plan.law
    table = worst_table(law)
    facts: dict[str, Any] = {"risk": worst_count(law), "unconditional": unconditional(law), "vanishes": vanishes(law)}
    facts |= {"table": table} if table is not None else {}
    facts = {"n": pl.Series(law.counts)} | {name: pl.Series(values) for name, values in facts.items()}
    return plan.units.cells.table_with(**facts).drop("total") if plan.units.of_people else pl.DataFrame(facts)


def _moments(law: CellLaw) -> Floats:
    """Sum over other units of p^r / r, p the probability that one comes in; rows are cells, columns r = 1, 2, ....

    log(1 - p w) is minus the sum of (p w)^r / r; the terms left out are smaller than exp(-MAX_MINUS_LOG).
    """
    arrive = law.spread(law.strength) / law.counts / np.maximum(law.cells_in_block - 1, 1)
    terms = np.arange(1, 2 + int(MAX_MINUS_LOG / -np.log(arrive.max())))
    parts = (law.counts * arrive**r / r for r in terms)
    return np.stack([law.spread(law.per_block(part)) - part for part in parts], axis=1)


def _log_generating(law: CellLaw, away: Floats, rows: Integers, moments: Floats | None) -> Floats:
    """log E((1 - w)^Q) for these cells and every w in `away`: Q the other units in the cell afterwards."""
    leave, t = law.leave()[rows, None], law.counts[rows, None]
    with np.errstate(divide="ignore"):
        own = np.where(t > 1, np.maximum(t - 1, 1) * np.log1p(-(1 - leave) * away), 0.0)
        if moments is not None:
            return np.asarray(own - moments[rows] @ away ** np.arange(1, moments.shape[1] + 1)[:, None])
        arrive = (law.spread(law.strength) * law.share * (law.block >= 0))[rows, None]
        strangers = np.maximum(law.sizes - law.counts, 0)[rows, None]
        return np.asarray(own + strangers * np.log1p(-arrive * away))


def unconditional(law: CellLaw) -> Floats:
    """P(correct match) before the release is seen: stay x E(1 / (1 + Q)), the integral of E((1 - w)^Q) over w.

    The integrand is below exp(-w E(Q)), so w runs to a power of 1/2 at which it is below exp(-MAX_MINUS_LOG). O(cells).
    """
    from numpy.polynomial.legendre import leggauss

    nodes, sizes = leggauss(64)
    stay = 1 - law.leave()
    moments = _moments(law) if law.kind == "leaving" else None
    halvings = np.floor(np.log2(np.maximum(law.expected() - stay, MAX_MINUS_LOG) / MAX_MINUS_LOG))
    means = np.empty(len(law))
    for times in np.unique(halvings):
        rows, reach = np.flatnonzero(halvings == times), 0.5**times
        means[rows] = np.exp(_log_generating(law, reach * (nodes + 1) / 2, rows, moments)) @ (reach * sizes / 2)
    return np.asarray(stay * means)


def vanishes(law: CellLaw) -> Floats:
    """P(S = 0): the probability that no record remains in the target's cell."""
    moments = _moments(law) if law.kind == "leaving" else None
    return np.asarray(law.leave() * np.exp(_log_generating(law, np.ones(1), np.arange(len(law)), moments)[:, 0]))
