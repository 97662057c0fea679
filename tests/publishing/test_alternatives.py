"""The joint decision over a hierarchy against every cut of small trees, each union summed out by hand."""

from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.stats import betabinom

import equipoise as eq
from equipoise.data.hierarchy import Hierarchy

TREE = Hierarchy.mapping({"a": "x", "b": "x", "c": "x", "d": "y", "e": "y"}, names=("group",))
PRIOR = {c: (alpha, 12 - alpha) for c, alpha in zip("abcde", (1.0, 0.5, 3.0, 0.8, 2.0), strict=True)}


def table(seed: int) -> pl.DataFrame:
    """Two domains by five classes."""
    random = np.random.default_rng(seed)
    rows = []
    for domain, n, people in (("north", 12, 60), ("south", 20, 45)):
        counts = random.multinomial(n, random.dirichlet(np.ones(5)))
        rows += [(domain, c, int(y), n, people) for c, y in zip("abcde", counts, strict=True)]
    return pl.DataFrame(rows, schema=["area", "job", "y", "n", "N"], orient="row")


def summed(y: float, n: int, people: int, alpha: float, size: float) -> float:
    """E y exp(-Y/5), term by term."""
    rest = np.arange(people - n + 1)
    chances = betabinom.pmf(rest, people - n, alpha + y, size - alpha + n - y)
    return float((chances * y * np.exp(-(y + rest) / 5)).sum())


def told(rows: list[tuple], cutoff: float, ways: dict) -> float:
    """The cheapest way to tell some classes of one domain together."""
    y, (_, _, _, n, people) = sum(r[2] for r in rows), rows[0]
    exposed = summed(y, n, people, sum(PRIOR[r[1]][0] for r in rows), 12)
    if len(rows) == 1:
        return min(exposed, cutoff * y, *(e * exposed + s * cutoff * y for e, s in ways.values()))
    mixed = y - sum(r[2] ** 2 for r in rows) / y if y else 0.0
    return exposed + cutoff * mixed


def cuts(classes: str, reach: int) -> list[list[str]]:
    """All ways to cut a row into runs of up to `reach`, and whole."""
    found = [[classes]] if len(classes) > 1 else []
    for breaks in product((False, True), repeat=len(classes) - 1):
        parts, part = [], classes[0]
        for c, cut in zip(classes[1:], breaks, strict=True):
            parts, part = ([*parts, part], c) if cut else (parts, part + c)
        if max(map(len, [*parts, part])) <= reach:
            found.append([*parts, part])
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("cutoff", "reach", "ways"), [(0.4, 2, {}), (0.8, 3, {}), (0.6, 2, {"round": (0.5, 0.2)})])
def test_no_way_to_tell_the_classes_is_cheaper(seed: int, cutoff: float, reach: int, ways: dict) -> None:
    frame = table(seed)
    study = eq.publication(frame, PRIOR, "uniques:5", "y", domain="area", target="job")
    found = study.answers("job", TREE, cutoff=cutoff, reach=reach, ways=ways)
    best = 0.0
    for area in ("north", "south"):
        for group in ("abc", "de"):
            rows = {r[1]: r for r in frame.filter(area=area).rows()}
            options = cuts(group, reach)
            best += min(sum(told([rows[c] for c in part], cutoff, ways) for part in cut) for cut in options)
    assert found.loss == pytest.approx(best, rel=1e-9)
    assert found.loss <= found.two_way + 1e-12
    decided = study.choose(cutoff=cutoff).cells
    two = decided.select(pl.when("publish").then("R1").otherwise(pl.col("R0") * cutoff).sum()).item()
    assert found.two_way == pytest.approx(two)
    assert found.cells.unique("piece")["loss"].sum() == pytest.approx(found.loss)
    assert set(found.cells["answer"]) <= {"publish", "suppress", "merge", "coarser: group", *ways}


def test_neighbouring_domains_are_merged_as_independent_populations() -> None:
    """Three small areas of one class: the union has the sum of means and variances of its parts."""
    frame = pl.DataFrame({"area": ["p", "q", "r"], "y": [1, 1, 9], "n": [5, 6, 20], "N": [30, 25, 90]})
    study = eq.publication(frame, (1, 4), "uniques:10", "y", domain="area")
    tree = Hierarchy.mapping({"p": "west", "q": "west", "r": "east"}, names=("side",))
    found = study.answers("area", tree, cutoff=0.5, coarseness=0.3)
    law = study.posterior
    joint = np.convolve(*(betabinom.pmf(np.arange(law.rest[i] + 1), law.rest[i], law.a[i], law.b[i]) for i in (0, 1)))
    exact = float((joint * 2 * np.exp(-(2 + np.arange(len(joint))) / 10)).sum()) + 0.5 * 0.3 * (2 - 2 / 2)
    merged = found.cells.filter(pl.col("area") == "p")
    assert merged["answer"].item() == "coarser: side"
    assert merged["together"].item() == 2
    assert merged["loss"].item() == pytest.approx(exact, rel=0.02)
    assert found.loss < found.two_way
    assert "% below that of publishing or suppressing alone" in found.words


@pytest.mark.parametrize("seed", range(4))
def test_no_merging_of_domains_or_hiding_of_fields_is_cheaper(seed: int) -> None:
    """Five areas in two regions, every cut of them tried, unions summed out by convolution: publish, suppress, hide a
    field (which leaves 0.3 of the exposure for half of the silence), merge neighbours, or tell the region alone."""
    random = np.random.default_rng(seed)
    areas = [
        (a, int(random.integers(0, 6)), int(random.integers(6, 15)), int(random.integers(30, 90))) for a in "abcde"
    ]
    frame = pl.DataFrame(areas, schema=["area", "y", "n", "N"], orient="row")
    study = eq.publication(frame, (1, 4), "uniques:5", "y", domain="area")
    tree = Hierarchy.mapping({"a": "x", "b": "x", "c": "x", "d": "y", "e": "y"}, names=("region",))
    found = study.answers("area", tree, cutoff=0.5, coarseness=0.4, ways={"hide": (0.3, 0.5)})

    def cost(part: str) -> float:
        rows = [row for row in areas if row[0] in part]
        law, y = np.ones(1), sum(row[1] for row in rows)
        for _, one, n, people in rows:
            law = np.convolve(law, betabinom.pmf(np.arange(people - n + 1), people - n, 1 + one, 4 + n - one))
        exposed = float((law * y * np.exp(-(y + np.arange(len(law))) / 5)).sum())
        if len(rows) == 1:
            return min(exposed, 0.5 * y, 0.3 * exposed + 0.5 * 0.5 * y)
        return exposed + 0.5 * 0.4 * (y - sum(row[1] ** 2 for row in rows) / y if y else 0.0)

    best = sum(min(sum(map(cost, cut)) for cut in cuts(group, 2)) for group in ("abc", "de"))
    chosen = ["".join(part["area"]) for _, part in found.cells.group_by("piece", maintain_order=True)]
    # The law of united areas keeps mean and variance alone: what is chosen by it may cost 2 % more than the best.
    assert best <= sum(map(cost, chosen)) * (1 + 1e-9) <= best * 1.02
    assert found.loss == pytest.approx(best, rel=0.02)


def test_priors_that_add_up_to_more_than_one_are_scaled_and_said() -> None:
    study = eq.publication(table(1), (1, 2), "uniques:5", "y", domain="area", target="job")
    found = study.answers("job", TREE, cutoff=0.5)
    assert any("scaled down" in note for note in found.notes)
    assert found.loss <= found.two_way


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"along": "size"}, "size"),
        ({"along": "job", "cutoff": -1}, "cutoff"),
        ({"along": "job", "reach": 0}, "reach"),
        ({"along": "job", "ways": {"round": (2, 0.1)}}, "two shares"),
    ],
)
def test_what_cannot_be_asked(given: dict, words: str) -> None:
    study = eq.publication(table(1), PRIOR, "uniques:5", "y", domain="area", target="job")
    with pytest.raises(eq.EquipoiseError, match=words):
        study.answers(given.pop("along"), TREE, **given)


def test_a_column_without_a_hierarchy_is_named() -> None:
    study = eq.publication(table(1), PRIOR, "uniques:5", "y", domain="area", target="job")
    with pytest.raises(eq.EquipoiseError, match="hierarchy"):
        study.answers("job")
