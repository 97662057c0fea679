"""Sweep: from cells exactly as from records, random masks over draws, and a holdout nobody touches."""

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Records
from equipoise.search.sweep import reserve

MEASURES = [
    eq.risk.Uniques(),
    eq.risk.Uniques(3),
    eq.risk.PopulationUniques(0.5),
    eq.risk.AttributeDisclosure("ill"),
    eq.utility.Entropy(),
]


def test_cells_give_what_records_give(people_records: eq.Records) -> None:
    """Every coarsening, every measure: the roll-up equals running the recipe on records, exactly."""
    recipes = [
        *eq.coarsenings(people_records),
        eq.Recipe([eq.masks.TopCode("age", 60)]),
        eq.Recipe([eq.masks.BottomCode("age", 30, "median"), eq.masks.Recode("age", "5")]),
        eq.Recipe([eq.masks.TopCode("salary", 20_000), eq.masks.Recode("area", "2")]),
    ]
    trials = eq.sweep(people_records, recipes, MEASURES)
    assert len(trials) == len(recipes)
    for trial, recipe in zip(trials, recipes, strict=True):
        released = recipe.run(people_records)
        assert trial.recipe is recipe
        for measure, score in zip(MEASURES, trial.scores, strict=True):
            expected = measure.measure(released, people_records)
            assert (score.name, score.value, score.number) == (expected.name, expected.value, expected.number)


def test_a_lattice_never_touches_records(people_records: eq.Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweep evaluates coarsenings from the finest cell table by roll-up, never from records."""

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("records were touched")

    recipes = eq.coarsenings(people_records)
    for measure in MEASURES:
        eq.count(people_records, measure.by(people_records.roles))  # type: ignore[attr-defined]
    monkeypatch.setattr(eq.Recipe, "run", fail)
    monkeypatch.setattr(Records, "collect", fail)
    trials = eq.sweep(people_records, recipes, MEASURES)
    assert len(trials) == 20


def test_the_records_are_counted_once(people_records: eq.Records, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of recipes: one pass, for the finest set of columns."""
    from equipoise.data import cells

    passes: list[tuple[str, ...]] = []
    real = cells._count
    monkeypatch.setattr(cells, "_count", lambda records, by: passes.append(by) or real(records, by))
    eq.sweep(people_records, eq.coarsenings(people_records), [eq.risk.Uniques(), eq.risk.AttributeDisclosure("ill")])
    assert passes == [("sex", "area", "age", "ill")]


def test_a_raw_file_is_the_worst_case(people_records: eq.Records) -> None:
    """Coarsening lowers both scores, never raises one."""
    trials = eq.sweep(people_records, eq.coarsenings(people_records), [eq.risk.Uniques(), eq.utility.Entropy()])
    raw = trials[0].scores
    assert all(t.scores["uniques"].value <= raw["uniques"].value for t in trials)
    assert all(t.scores["entropy"].value <= raw["entropy"].value + 1e-12 for t in trials)


def test_details_on_request(people_records: eq.Records) -> None:
    recipe = eq.Recipe([eq.masks.Recode("age", "10")])
    (brief,) = eq.sweep(people_records, [recipe], [eq.risk.Uniques()])
    with pytest.raises(eq.EquipoiseError, match="details=True"):
        _ = brief.scores["uniques"].detail
    (full,) = eq.sweep(people_records, [recipe], [eq.risk.Uniques()], details=True)
    assert full.scores["uniques"].detail["n"].sum() == 400


def test_random_masks_over_several_draws(jumble: Any, people_records: eq.Records) -> None:
    """The mean, a 95 % interval of Student's t by hand, and every draw kept."""
    from scipy.stats import t

    recipe = eq.Recipe([jumble("area")], seed=8)
    measures = [eq.risk.Uniques(), eq.utility.Entropy()]
    (trial,) = eq.sweep(people_records, [recipe], measures, draws=6)
    by_hand = [eq.utility.Entropy().measure(recipe.run(people_records, d), people_records).value for d in range(6)]
    score = trial.scores["entropy"]
    assert [d["entropy"].value for d in trial.draws] == by_hand
    assert len(set(by_hand)) == 6
    assert score.value == pytest.approx(fmean(by_hand))
    half = t.ppf(0.975, 5) * stdev(by_hand) / 6**0.5
    assert score.interval == pytest.approx((score.value - half, score.value + half))
    assert score.error == pytest.approx(half)


def test_recipes_without_chance_are_run_once(people_records: eq.Records) -> None:
    (trial,) = eq.sweep(people_records, [eq.Recipe([eq.masks.Recode("age", "5")])], [eq.risk.Uniques()], draws=5)
    assert trial.draws == ()
    assert trial.scores["uniques"].interval is None


def test_one_draw_has_no_interval(jumble: Any, people_records: eq.Records) -> None:
    (trial,) = eq.sweep(people_records, [eq.Recipe([jumble("area")])], [eq.risk.Uniques()])
    assert trial.scores["uniques"].interval is None


def test_draws_that_tie_are_tied_on_the_frontier(jumble: Any, people_records: eq.Records) -> None:
    """Two seeds of one recipe differ by chance only: both stay on the frontier."""
    trials = eq.sweep(
        people_records,
        [eq.Recipe([jumble("area")], seed=1), eq.Recipe([jumble("area")], seed=2)],
        [eq.risk.Uniques(), eq.utility.Entropy()],
        draws=8,
    )
    assert len(eq.frontier(trials)) == 2


# --- the holdout --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Witness:
    """A measure that writes down whom it saw."""

    seen: list[Any]

    def measure(self, released: Records, original: Records) -> eq.Score:
        held = original.holdout
        self.seen.append(
            (
                set(released.collect("person")["person"]),
                set(original.collect("person")["person"]),
                set(held.collect("person")["person"]) if held else set(),
                held.collect("area", "person").sort("person") if held else None,
            )
        )
        return eq.Score("witness", 0.0, "lower")


def test_a_holdout_is_reserved_before_any_mask(jumble: Any, people: pl.DataFrame, people_records: eq.Records) -> None:
    """Disjoint, together the whole file, about the share asked for, untouched by the mask, one for the whole sweep."""
    seen: list[Any] = []
    recipes = [eq.Recipe([jumble("area")]), eq.Recipe([eq.masks.Recode("area", "1")])]
    eq.sweep(people_records, recipes, [Witness(seen)], draws=2, holdout=0.3)
    assert len(seen) == 3
    for released, original, held, values in seen:
        assert released == original
        assert not original & held
        assert original | held == set(range(1, 401))
        assert held == seen[0][2]
        assert values.equals(people.filter(pl.col("person").is_in(list(held))).select("area", "person").sort("person"))
    assert len(seen[0][2]) / 400 == pytest.approx(0.3, abs=4 * (0.3 * 0.7 / 400) ** 0.5)


def test_without_a_holdout_there_is_none(people_records: eq.Records) -> None:
    seen: list[Any] = []
    eq.sweep(people_records, [eq.Recipe()], [Witness(seen)])
    assert seen[0][2] == set()


def test_a_holdout_lowers_what_is_counted(people_records: eq.Records) -> None:
    """Cells too are of the records that are left."""
    (trial,) = eq.sweep(people_records, [eq.Recipe()], [eq.risk.Uniques()], holdout=0.5, details=True)
    assert 100 < trial.scores["uniques"].detail["n"].sum() < 300


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5, 30])
def test_unfit_holdouts(people_records: eq.Records, share: float) -> None:
    with pytest.raises(eq.ParameterError, match="holdout"):
        eq.sweep(people_records, [eq.Recipe()], [eq.risk.Uniques()], holdout=share)


def test_a_holdout_does_not_depend_on_row_order(people: pl.DataFrame, people_roles: eq.Roles) -> None:
    one = reserve(eq.read(people, people_roles), 0.4, seed=3)
    two = reserve(eq.read(people.reverse(), people_roles), 0.4, seed=3)
    assert set(one.collect("person")["person"]) == set(two.collect("person")["person"])


def test_a_holdout_that_leaves_nobody() -> None:
    records = eq.read(pl.DataFrame({"x": [1]}), eq.Roles(["x"]))
    with pytest.raises(eq.ParameterError, match="no records on one side"):
        reserve(records, 0.5)


# --- what is refused ----------------------------------------------------------------------------------------------


def test_a_sweep_needs_something_to_do(people_records: eq.Records) -> None:
    with pytest.raises(eq.ParameterError, match="at least one recipe"):
        eq.sweep(people_records, [], [eq.risk.Uniques()])
    with pytest.raises(eq.ParameterError, match="one measure"):
        eq.sweep(people_records, [eq.Recipe()], [])
    with pytest.raises(eq.ParameterError, match="draws"):
        eq.sweep(people_records, [eq.Recipe()], [eq.risk.Uniques()], draws=0)


def test_the_same_measure_twice_is_refused(people_records: eq.Records) -> None:
    with pytest.raises(eq.ParameterError, match="share a name"):
        eq.sweep(people_records, [eq.Recipe()], [eq.risk.Uniques(), eq.risk.Uniques()])


def test_a_misspelled_column_is_refused(people_records: eq.Records) -> None:
    """On cells as on records: a recipe that does nothing by mistake must not pass as safe."""
    for mask in (eq.masks.TopCode("agee", 50), eq.masks.Recode("agee", 1)):
        with pytest.raises(eq.EquipoiseError, match="agee"):
            eq.sweep(people_records, [eq.Recipe([mask])], [eq.risk.Uniques()])


def test_a_holdout_needs_the_records_at_hand(people: pl.DataFrame, people_roles: eq.Roles) -> None:
    """Data that stays on another engine cannot be split here, and the refusal says what can."""
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("people", people.to_arrow())
    with pytest.raises(eq.EngineError, match="Polars, pandas, PyArrow or file"):
        reserve(eq.read(connection.sql("select * from people"), people_roles), 0.5)
