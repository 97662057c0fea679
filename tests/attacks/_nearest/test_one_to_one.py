"""One-to-one links against all permutations, worked by hand, and whatever the order of the rows."""

from itertools import permutations

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.attacks import Nearest
from equipoise.attacks._nearest import one_to_one
from equipoise.attacks._nearest.cell_pairs_by_cost import Costs
from equipoise.attacks._nearest.points import Cloud

COLUMNS = ("a", "b", "c")


def cloud(points: np.ndarray, codes: np.ndarray | None = None) -> Cloud:
    return Cloud(points, np.zeros((len(points), 0), dtype=int) if codes is None else codes)


def records(values: np.ndarray, **more: object) -> eq.Records:
    frame = pl.DataFrame(dict(zip(COLUMNS, values.T, strict=True))).with_columns(**more)
    return eq.read(frame, eq.Roles(numeric=COLUMNS, id="id" if "id" in more else None))


def noisy(n: int, scale: float = 0.5, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 3)) @ np.array([[1.0, 0.9, 0.9], [0.0, 0.4, 0.3], [0.0, 0.0, 0.3]])
    return x, x + scale * rng.normal(size=x.shape) * x.std(axis=0)


@pytest.mark.parametrize("seed", range(4))
def test_at_least_the_best_of_all_permutations(seed: int) -> None:
    """Six people, by the sums of distances and of squares over all 720 assignments."""
    x, z = noisy(6, 1.0, seed)
    gaps = np.sqrt(((x[:, None] - z) ** 2).sum(axis=2))
    best = [min(permutations(range(6)), key=lambda p, g=g: g[range(6), p].sum()) for g in (gaps, gaps**2)]
    expected = max(np.mean(np.array(p) == np.arange(6)) for p in best)
    assert one_to_one.assign(cloud(z), cloud(x), Costs(np.zeros(0)), np.arange(6)).risk.mean() >= expected - 1e-12


def test_equal_records_are_dealt_out() -> None:
    """Two people alike and two equal records: each has an even chance; the third is alone."""
    points = np.array([[0.0], [0.0], [9.0]])
    risk = one_to_one.assign(cloud(points), cloud(points), Costs(np.zeros(0)), np.arange(3)).risk
    assert risk == pytest.approx([0.5, 0.5, 1.0])


def test_a_category_costs_its_penalty_and_a_block_must_agree() -> None:
    """Person 0 is nearer to record 1, which has another category: the penalty, or the block, decides."""
    points, codes = np.array([[0.0], [1.0]]), np.array([[0], [1]])
    released = cloud(np.array([[2.0], [0.1]]), codes)
    for penalty, expected in ((0.01, 0.0), (9.0, 1.0), (np.inf, 1.0)):
        assignment = one_to_one.assign(released, cloud(points, codes), Costs(np.array([penalty])), np.arange(2))
        assert assignment.risk.mean() == pytest.approx(expected)


def test_people_who_know_of_the_others_link_more() -> None:
    """On noise one-to-one beats the nearest record, and Mahalanobis beats Euclid where noise is correlated."""
    x, _ = noisy(400)
    original = records(x)
    released = eq.Recipe([eq.masks.Noise(COLUMNS, 0.4, kind="correlated")], 1).run(original)
    plain, far, assigned = (
        Nearest(**ways).measure(released, original).value  # type: ignore[arg-type]
        for ways in ({}, {"metric": "mahalanobis"}, {"metric": "mahalanobis", "links": "one-to-one"})
    )
    assert plain < far < assigned


def test_ranks_undo_what_keeps_the_order() -> None:
    """y = exp(x): far away in values, the same in ranks; a factor is undone by logarithms."""
    x, _ = noisy(300)
    original, released = records(x), records(np.exp(x))
    assert Nearest(metric="rank").measure(released, original).value == pytest.approx(1.0)
    assert Nearest().measure(released, original).value < 0.5
    rng = np.random.default_rng(4)
    large, shaken = np.exp(5 * x), np.exp(5 * x) * rng.choice([0.8, 1.25], size=x.shape)
    log, plain = (Nearest(metric=m).measure(records(shaken), records(large)).value for m in ("log", "euclidean"))
    assert log > plain + 0.2


def test_the_order_of_the_rows_does_not_matter() -> None:
    x, z = noisy(200, 0.3)
    ids, order = np.arange(200), np.random.default_rng(3).permutation(200)
    attack = Nearest(links="one-to-one")
    one = attack.measure(records(z, id=ids), records(x, id=ids))
    two = attack.measure(records(z[order], id=ids[order]), records(x, id=ids))
    assert one.value == pytest.approx(two.value)
    assert one.by_record().columns == ["id", "risk"]


def test_large_files_are_searched_among_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree gives what all pairs give; a release that is a sample leaves records to nobody."""
    x, z = noisy(300, 0.3)
    dense = one_to_one.assign(cloud(z), cloud(x[:250]), Costs(np.zeros(0)), np.arange(250)).risk.mean()
    monkeypatch.setattr(one_to_one, "MAX_EXACT_RECORDS", 10)
    monkeypatch.setattr(one_to_one, "MAX_DENSE_RECORDS", 20)
    for most in (300, 20):
        monkeypatch.setattr(one_to_one, "MAX_MATCHED_RECORDS", most)
        tree = one_to_one.assign(cloud(z), cloud(x[:250]), Costs(np.zeros(0)), np.arange(250))
        assert tree.risk.mean() == pytest.approx(dense, abs=0.05)
    monkeypatch.setattr(one_to_one, "MAX_RECORDS", 30)
    with pytest.raises(eq.EngineError, match="at most 30 records"):
        one_to_one.assign(cloud(z), cloud(x), Costs(np.zeros(0)), np.arange(300))


def test_what_it_does_not_take() -> None:
    x, z = noisy(20)
    with pytest.raises(eq.ParameterError, match="one-to-one"):
        Nearest(links="one-to-one", truth="nearest")
    with pytest.raises(eq.ParameterError, match="links"):
        Nearest(links="many")  # type: ignore[arg-type]
    with pytest.raises(eq.EngineError, match="whose record"):
        Nearest(links="one-to-one").measure(records(z[:10]), records(x))
