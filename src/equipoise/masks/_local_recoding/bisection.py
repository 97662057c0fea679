"""Bisection: sets of records cut in two where that costs least, again and again while it helps.

A cut is a place in an order: of the values of one key, or of the distance from a record that was drawn. The boxes
before and after each place come from running minima and maxima, so that every cut of every set in one order costs
O(keys x records).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from equipoise.ground.arrays import Floats, Integers
from equipoise.masks._local_recoding.merge_cost import Span, Spans, cost, joint, ranked

STEPS = 4096
"""Steps in which distances are ordered."""
TIE = 1e-9
"""A gain that is smaller is none."""


def bisected(spans: Spans, codes: Integers, weights: Integers, pools: Integers, least: int, rng: Any) -> Integers:
    """The class of each record (or of several alike: `weights`) when pools are cut as long as that lowers the cost.

    Each class keeps at least `least` records. O(keys^2 x records) for each of about log2(records / least) passes.
    """
    labels, live, last = pools.astype(np.int64), np.arange(len(pools)), int(pools.max()) + 1
    while len(live):
        live = live[ranked([labels[live]], [last])]
        _, starts, pool = np.unique(labels[live], return_index=True, return_inverse=True)
        live_codes, w = codes[:, live], weights[live]
        size = np.add.reduceat(w, starts)
        low, high = np.minimum.reduceat(live_codes, starts, axis=1), np.maximum.reduceat(live_codes, starts, axis=1)
        now = size * cost(spans, (low, high))
        wide = ((size >= 2 * least) & (now > TIE))[pool]
        if not wide.all():
            live = live[wide]
            continue
        gain, late = halves(spans, live_codes, w, starts, now, least, rng)
        cut = (gain > TIE)[pool]
        labels[live[late & cut]] = last + pool[late & cut]
        last += len(starts)
        live = live[cut]
    return labels


def halves(
    spans: Spans, codes: Integers, weights: Integers, starts: Integers, now: Floats, least: int, rng: Any,
    *, keys: bool = True, pivots: int = 4,
) -> tuple[Floats, Integers]:  # fmt: skip
    """For pools of records that stand together: what the best cut found saves, and which records come after it."""
    counts = np.diff(np.append(starts, codes.shape[1]))
    pool = np.repeat(np.arange(len(starts)), counts)
    gain, late = np.zeros(len(starts)), np.zeros(codes.shape[1], dtype=np.bool_)
    for rank, size in _orders(spans, codes, starts, counts, rng, keys, pivots):
        order = ranked([pool, rank], [len(starts), size])
        saved, at = _cut(spans, codes, weights, pool, order, now, least)
        better = saved > gain + TIE
        gain[better] = saved[better]
        inside = better[pool]
        late[order[inside]] = np.flatnonzero(inside) > at[pool[inside]]
    return gain, late


def _orders(
    spans: Spans, codes: Integers, starts: Integers, counts: Integers, rng: Any, keys: bool, pivots: int
) -> Iterator[tuple[Integers, int]]:
    """Ranks to order records by, and how many there are."""
    for span, places in zip(spans, codes if keys else codes[:0], strict=False):
        if span.size > 1:
            yield places, span.size
    everyone = np.arange(codes.shape[1])
    for _ in range(pivots):
        pivot = np.repeat(starts + (rng.random(len(starts)) * counts).astype(np.int64), counts)
        far = joint(spans, (codes, codes), everyone, (codes, codes), pivot)
        yield (far * ((STEPS - 1) / max(TIE, float(far.max())))).astype(np.int64), STEPS


def _cut(
    spans: Spans, codes: Integers, weights: Integers, pool: Integers, order: Integers, now: Floats, least: int
) -> tuple[Floats, Integers]:
    """For each pool what the best cut in this order saves, and the place after which it is."""
    before = np.cumsum(weights[order])
    ends = np.flatnonzero(np.append(pool[1:] != pool[:-1], True))
    whole = before[ends]
    before -= np.append(0, whole[:-1])[pool]
    after = np.diff(np.append(0, whole))[pool] - before
    places = np.flatnonzero((before >= least) & (after >= least))
    saved, at = np.zeros(len(now)), np.zeros(len(now), dtype=np.int64)
    if not len(places):
        return saved, at
    lower, right = np.zeros(len(places)), np.zeros(len(places))
    for span, key_codes in zip(spans, codes, strict=True):
        if span.size > 1:
            x = key_codes[order].astype(np.int64)
            lower += span.cost(*(part[places] for part in _running(span, x, pool)))
            back = _running(span, x[::-1], len(now) - 1 - pool[::-1])
            right += span.cost(*(part[::-1][places + 1] for part in back))
    gain = now[pool[places]] - before[places] * lower - after[places] * right
    np.maximum.at(saved, pool[places], gain)
    best = np.flatnonzero(gain >= saved[pool[places]])[::-1]
    at[pool[places[best]]] = places[best]
    return saved, at


def _running(span: Span, x: Integers, pool: Integers) -> tuple[Integers, Integers]:
    """The lowest and the highest place so far, within each pool."""
    shift = pool * span.size
    top = span.size - 1
    low = top - (np.maximum.accumulate(top - x + shift) - shift)
    return low, np.maximum.accumulate(x + shift) - shift
