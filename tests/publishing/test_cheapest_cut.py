"""The cheapest cut of a forest against every cut there is."""

from itertools import product

import numpy as np
import pytest

from equipoise.ground.errors import DataError
from equipoise.publishing.cheapest_cut import cheapest


def rows_of(paths, height, start, stop):
    """The children, at the height below, of the node that holds leaves start to stop."""
    below = paths[height - 1][start:stop]
    firsts = [i for i in range(len(below)) if i == 0 or below[i] != below[i - 1]]
    ends = [*firsts[1:], len(below)]
    return [(start + a, start + b) for a, b in zip(firsts, ends, strict=True)]


def every_cut(paths, height, start, stop, reach):
    """All ways to tell a node: whole, or any cut of its row of children into runs."""
    if height == 0:
        yield ((start, stop, 0),)
        return
    children = rows_of(paths, height, start, stop)
    if len(children) > 1:
        yield ((start, stop, height),)
    yield from every_row(paths, height, children, reach)


def every_row(paths, height, children, reach):
    if not children:
        yield ()
        return
    for length in range(1, min(reach, len(children)) + 1):
        first, last = children[0][0], children[length - 1][1]
        heads = every_cut(paths, height - 1, first, last, reach) if length == 1 else [((first, last, height),)]
        tails = list(every_row(paths, height, children[length:], reach))
        yield from (head + tail for head, tail in product(heads, tails))


def forest(random, leaves, heights):
    """Nested levels with random breaks."""
    paths = [np.arange(leaves)]
    breaks = np.arange(leaves)
    for _ in range(heights):
        keep = random.random(len(breaks)) < 0.45
        keep[0] = True
        breaks = breaks[keep]
        paths.append(np.searchsorted(breaks, np.arange(leaves), side="right") - 1)
    return paths


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("reach", [1, 2, 3])
def test_no_cut_is_cheaper(seed, reach):
    random = np.random.default_rng(seed)
    paths = forest(random, int(random.integers(1, 8)), int(random.integers(1, 4)))
    costs = {}

    def price(start, stop, height):
        keys = [(int(a), int(b), height) for a, b in zip(start, stop, strict=True)]
        return np.array([costs.setdefault(key, float(random.random() * (key[1] - key[0]))) for key in keys])

    cut = cheapest(paths, price, reach)
    roots = rows_of([*paths, np.zeros(len(paths[0]))], len(paths), 0, len(paths[0]))
    best = 0.0
    for start, stop in roots:
        cuts = every_cut(paths, len(paths) - 1, start, stop, reach)
        best += min(sum(price([a], [b], h)[0] for a, b, h in pieces) for pieces in cuts)
    assert cut.cost == pytest.approx(best, abs=1e-12)
    ends = np.append(cut.starts[1:], len(cut.piece))
    told = [price([a], [b], int(cut.height[a]))[0] for a, b in zip(cut.starts, ends, strict=True)]
    assert sum(told) == pytest.approx(best, abs=1e-12)


def test_a_million_leaves_are_cut_by_level():
    leaves = np.arange(1_000_000)
    paths = [leaves, leaves // 10, leaves // 1000, leaves // 100_000]
    cut = cheapest(paths, lambda start, stop, height: np.sqrt(stop - start), reach=3)
    assert cut.cost == pytest.approx(10 * np.sqrt(100_000))
    assert (cut.height == 3).all()


def test_levels_that_do_not_nest_are_refused():
    with pytest.raises(DataError, match="nest"):
        cheapest([np.arange(4), np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])], lambda a, b, h: b - a)
    with pytest.raises(DataError, match="order"):
        cheapest([np.arange(3), np.array([0, 1, 0])], lambda a, b, h: b - a)
