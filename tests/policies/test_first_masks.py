"""Masks beside the keys: which of several families is proposed, and how far weights are made coarser."""

from collections.abc import Iterator

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.masks import CoarsenWeights, Noise, RankSwap
from equipoise.methods.method import Mask
from equipoise.policies import first_masks
from equipoise.policies.coarsening_path import PathStep
from equipoise.policies.first_candidates import _left_at


@pytest.fixture(scope="module")
def firms() -> eq.Records:
    rng = np.random.default_rng(7)
    size = np.exp(1.5 * rng.standard_normal(400))
    amounts = {name: np.round(1000 * size * np.exp(0.3 * rng.standard_normal(400))) for name in ("sales", "wages")}
    return eq.read(pl.DataFrame({"region": ["n", "s"] * 200, **amounts}), eq.Roles("region", numeric=list(amounts)))


def test_where_no_mask_is_enough_the_one_that_keeps_most_of_those_as_strong_as_the_widest_swap(
    monkeypatch: pytest.MonkeyPatch, firms: eq.Records
) -> None:
    """The widest swap was proposed, and nothing of the correlations was left; or, since columns that single people out
    alone were not counted in pairs, the weakest noise, and all candidates were refused."""
    left = dict(zip(first_masks.SWAP_WINDOWS, [0.4, 0.3, 0.2, 0.1, 0.08], strict=True))
    left_by_noise = dict(zip(first_masks.NOISE_SCALES, [0.5, 0.2, 0.09, 0.075, 0.06], strict=True))

    def alone(
        _records: eq.Records, _masks: object, family: list[Mask], _columns: object
    ) -> Iterator[tuple[Mask, float]]:
        yield from ((mask, 0.05) for mask in family)

    def with_pairs(_records: eq.Records, masks: tuple[Mask, ...], *, enough: float) -> float:
        assert enough == 1
        return left[masks[-1].window] if isinstance(masks[-1], RankSwap) else left_by_noise[masks[-1].scale]  # type: ignore[attr-defined]

    monkeypatch.setattr(first_masks, "_shares_left", alone)
    monkeypatch.setattr(first_masks, "share_left", with_pairs)
    mask = first_masks._mask_of_numbers(firms, (), ["sales", "wages"])
    assert isinstance(mask, Noise)
    assert (mask.scale, mask.preserve) == (0.8, "distributions")


def test_weights_that_show_a_key_stay_in_as_many_groups_as_may_be() -> None:
    """Two groups of weights, whatever these were, cost every weighted estimate."""
    table = pl.DataFrame({"size": ["small"] * 900 + ["large"] * 100, "w": [1.0] * 900 + [2.0 + i for i in range(100)]})
    records = eq.read(table, eq.Roles("size", weight="w"))
    (mask,) = first_masks.masks_beside_keys(records, ())
    assert mask == CoarsenWeights(10)


def test_a_path_that_counts_records_is_left_between_its_ends_where_people_repeat() -> None:
    path = [PathStep({"state": str(i)} if i else {}, 0.0, "state") for i in range(9)]
    assert len(_left_at(path, single=True)) == 2
    assert [step.levels.get("state") for step in _left_at(path, single=False)[2:]] == [None, "3", "6"]


def test_one_lucky_draw_does_not_decide() -> None:
    """Noise of 0.2 left 4 % where 0.4 left 10 %: it was proposed, and left 20 % in the next draw."""
    masks = [Noise("x", scale) for scale in (0.1, 0.2, 0.4, 0.8)]
    assert first_masks._weakest(list(zip(masks, [0.06, 0.04, 0.1, 0.05], strict=True)), 0.055) == [masks[3]]
    assert first_masks._weakest(list(zip(masks, [0.06, 0.04, 0.07, 0.05], strict=True)), 0.055) == [masks[1]]
    assert first_masks._weakest(list(zip(masks, [0.06, 0.04, 0.1, 0.06], strict=True)), 0.055) == []


def test_a_family_that_cannot_be_run_takes_no_part() -> None:
    """Noise that preserves distributions refuses a household's column beside a person's, and `init` ended with that."""
    rng = np.random.default_rng(3)
    homes = np.repeat(np.arange(60), 3)
    rent = np.exp(rng.standard_normal(60))[homes]
    table = {"region": ["n", "s", "w"] * 60, "home": homes, "rent": rent, "pay": np.exp(rng.standard_normal(180))}
    records = eq.read(pl.DataFrame(table), eq.Roles("region", numeric=["rent", "pay"], household="home"))
    families = [
        list(first_masks._shares_left(records, (), f, ["rent", "pay"]))
        for f in first_masks._families(records, ["rent", "pay"])
    ]
    assert [bool(family) for family in families] == [True, True, False]
    mask = first_masks._mask_of_numbers(records, (), ["rent", "pay"])
    assert mask in {tried for family in families for tried, _ in family}
