"""Publish or suppress: from records and tables to the order, the curve, the decision and what others would decide."""
# ruff: noqa: N803

from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.publishing.trade_off import TradeOff

SMALL = pl.DataFrame(
    {
        "area": list("abcdefghijkl"),
        "n": [10, 10, 10, 20, 20, 20, 5, 5, 40, 40, 8, 8],
        "N": [50, 50, 200, 30, 30, 30, 500, 500, 90, 90, 12, 12],
        "y": [1, 4, 2, 1, 7, 12, 1, 2, 3, 9, 1, 5],
    }
)


def published(**changes: Any) -> eq.Publication:
    given: dict[str, Any] = {"prior": (0.5, 1.5), "disclosure": "uniques:10", "nonpublication": "y"} | changes
    return eq.publication(given.pop("source", SMALL), given.pop("prior"), **given)


# --- the decision is the best there is ----------------------------------------------------------------------------


@pytest.mark.parametrize("disclosure", ["uniques:10", "small_group:20", "gamma_uniques:10,1"])
@pytest.mark.parametrize("nonpublication", ["y", "cell", "Y"])
def test_no_other_set_of_cells_has_less_risk(disclosure: str, nonpublication: str) -> None:
    """All 4,096 sets of twelve cells: at every step of the curve none with as little withheld has a lower risk."""
    found = published(disclosure=disclosure, nonpublication=nonpublication)
    sets = np.array(list(product([False, True], repeat=12)))
    risk, withheld = sets @ found.R1, (~sets) @ found.R0
    for count in range(13):
        chosen = np.zeros(12, dtype=bool)
        chosen[found.trade_off.order[:count]] = True
        allowed = withheld <= (~chosen) @ found.R0 + 1e-9
        assert risk[allowed].min() >= chosen @ found.R1 - 1e-9


def test_the_cutoff_minimises_the_sum_of_both_losses() -> None:
    """Publish where R1 < c R0: the least of R1 published + c R0 withheld over all sets."""
    found = published()
    sets = np.array(list(product([False, True], repeat=12)))
    for cutoff in (0.1, 0.3, 0.5, 1.0):
        chosen = found.choose(cutoff=cutoff).cells["publish"].to_numpy()
        total = sets @ found.R1 + cutoff * ((~sets) @ found.R0)
        assert chosen @ found.R1 + cutoff * ((~chosen) @ found.R0) == pytest.approx(total.min())


# --- order, curve, choice -----------------------------------------------------------------------------------------


def test_the_curve_goes_from_all_to_nothing() -> None:
    curve = published().curve()
    assert curve.select("withheld", "risk").row(0) == (0.0, 1.0)
    assert curve.select("withheld", "risk").row(-1) == (1.0, 0.0)
    assert curve["withheld"].is_sorted()
    assert curve["risk"].is_sorted(descending=True)
    slopes = np.diff(curve["risk"].to_numpy()) / np.diff(curve["withheld"].to_numpy())
    assert (np.diff(slopes) >= -1e-9).all(), "the best curve is convex"


def test_choices_agree_with_each_other() -> None:
    found = published()
    by_risk = found.choose(risk_at_most=0.3)
    assert by_risk.risk == 0.3
    assert by_risk.realised.risk <= 0.3
    assert by_risk.realised.withheld >= by_risk.withheld
    by_share = found.choose(publish_share=1 - by_risk.withheld)
    assert by_share.withheld == pytest.approx(by_risk.withheld)
    assert by_share.risk == pytest.approx(0.3)
    assert by_share.realised.withheld <= by_share.withheld
    low, high = by_risk.cutoff
    by_cutoff = found.choose(cutoff=(low + high) / 2)
    assert by_cutoff.cells.equals(by_risk.cells)
    assert (by_cutoff.risk, by_cutoff.withheld) == tuple(by_risk.realised)
    assert "withheld cuts the risk to 30\xa0% of that of full publication" in by_risk.words


def test_the_ends() -> None:
    found = published()
    assert found.choose(risk_at_most=1).cells["publish"].all()
    assert found.choose(risk_at_most=1).withheld == 0
    assert not found.choose(risk_at_most=0).cells["publish"].any()
    assert found.choose(publish_share=1).risk == 1
    assert found.choose(publish_share=0).risk == 0
    assert found.choose(cutoff=1e9).cells["publish"].all()


def test_empty_cells_are_published_and_have_no_ratio() -> None:
    table = SMALL.with_columns(y=pl.when(pl.col("area").is_in(["a", "k"])).then(0).otherwise(pl.col("y")))
    found = published(source=table)
    free = found.choose(risk_at_most=0).cells.filter("publish")
    assert set(free["area"]) == {"a", "k"}
    assert free["ratio"].null_count() == 2
    for frame in (found.cells, found.order(), found.curve(), free):
        for column in frame.select(pl.col(pl.Float64)):
            assert not column.is_nan().any()
    assert found.order()["tied"].head(2).all()


def test_a_zero_is_not_free_where_nearly_all_were_sampled() -> None:
    table = pl.DataFrame({"n": [19, 5], "N": [20, 50], "y": [0, 2]})
    assert any("y = 0 where n is near N" in note for note in published(source=table).notes)
    group = published(source=table, disclosure="small_group:10", nonpublication="cell")
    assert group.R1[0] > group.R1[1]
    assert not group.choose(cutoff=0.5).cells["publish"][0]


def test_free_silence_is_never_published() -> None:
    table = pl.DataFrame({"n": [5, 5], "N": [20, 50], "y": [0, 2]})
    found = published(source=table, disclosure="small_group:10", nonpublication="y")
    assert not found.choose(cutoff=1e6).cells["publish"][0]
    assert any("never published" in note for note in found.notes)


def test_ties_are_reported_and_broken_as_stated() -> None:
    """Equal ratios: the costlier silence first, then the larger domain, then the table's order."""
    table = pl.DataFrame({"n": [10, 10, 10, 10], "N": [50, 80, 50, 90], "y": [2, 2, 2, 3]})
    found = published(source=table, disclosure="respondents:10", nonpublication="cell")
    order = found.order()
    assert order["tied"].to_list() == [False, True, True, True]
    assert order["N"].to_list() == [90, 80, 50, 50]
    assert found.trade_off.tied == 3
    shares = pl.DataFrame({"n": 10, "N": 50, "y": [2, 2], "share": [0.25, 0.75]})
    assert published(source=shares).order()["share"].to_list() == [0.75, 0.25]


# --- cells --------------------------------------------------------------------------------------------------------


def test_every_cell_shows_its_numbers() -> None:
    cells = published().cells
    assert {"area", "y", "n", "N", "mean", "low", "high", "mass", "R0", "R1", "ratio", "jensen", "taylor"} <= {
        *cells.columns
    }
    first = cells.row(0, named=True)
    assert first["mean"] == pytest.approx(1 + 40 * 1.5 / 12)
    assert first["low"] <= first["mean"] <= first["high"]
    assert first["ratio"] == pytest.approx(first["R1"] / first["R0"])
    assert first["jensen"] == pytest.approx(first["R1"] - np.exp(-first["mean"] / 10))
    assert (first["alpha"], first["beta"]) == pytest.approx((0.5, 1.5))
    assert published(disclosure="threshold:5").cells["taylor"].null_count() == 12


def test_cells_counted_by_a_column_of_importance() -> None:
    table = SMALL.with_columns(need=pl.int_range(12) + 1)
    found = published(source=table, nonpublication="need")
    np.testing.assert_array_equal(found.R0, np.arange(1, 13))


def test_a_function_is_a_loss() -> None:
    """Of (y, Y, n, N): the same numbers as the listed one."""
    same = published(disclosure=lambda y, Y, n, N: y * np.exp(-Y / 10))
    np.testing.assert_allclose(same.R1, published().R1, rtol=1e-10)


def test_what_is_said_of_the_loss() -> None:
    assert any("monotone and convex" in note for note in published().notes)
    assert any("not a sensible loss" in note for note in published(disclosure="threshold:20").notes)
    assert any("does not fall" in note for note in published(disclosure=lambda y, Y, n, N: Y / N).notes)


# --- from records -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def survey() -> pl.DataFrame:
    rng = np.random.default_rng(11)
    size = 3000
    area = rng.integers(0, 40, size)
    theta = rng.beta(0.8, 12, 40)
    nurse = rng.random(size) < theta[area]
    return pl.DataFrame(
        {
            "person": np.arange(size),
            "area": [f"a{k:02}" for k in area],
            "job": np.where(nurse, "nurse", rng.choice(["clerk", "baker"], size)),
            "sex": rng.choice(["f", "m"], size),
            "age": rng.integers(20, 60, size),
            "people": 500 + 37 * area,
            "w": rng.choice([5.0, 10.0, 40.0], size),
            "need": rng.integers(0, 4, size),
        }
    )


def roles(**changes: Any) -> eq.Roles:
    return eq.Roles(["sex", "age"], **({"domain": "area", "id": "person"} | changes))


def test_counted_by_hand(survey: pl.DataFrame) -> None:
    """y, n and N of every cell, zeros included, as a group-by gives them."""
    found = eq.publication(eq.read(survey, roles()), (1, 12), target="job", population="people")
    assert len(found) == 40 * 3
    for row in found.table.iter_rows(named=True):
        own = survey.filter(pl.col("area") == row["area"])
        assert row["n"] == own.height
        assert row["y"] == own.filter(pl.col("job") == row["job"]).height
        assert row["N"] == own["people"][0]
    one = eq.publication(eq.read(survey, roles()), (1, 12), target="job=nurse", population="people")
    np.testing.assert_array_equal(one.posterior.y, found.table.filter(pl.col("job") == "nurse")["y"].to_numpy())
    np.testing.assert_allclose(one.R1, found.R1[(found.table["job"] == "nurse").to_numpy()])


def test_where_the_population_comes_from(survey: pl.DataFrame) -> None:
    """A column, a mapping, a frame, or the weights: the same numbers where they say the same."""
    records = eq.read(survey, roles())
    known = survey.group_by("area").agg(N=pl.col("people").first())
    ways = ["people", dict(known.rows()), known, known.to_pandas()]
    found = [eq.publication(records, (1, 12), target="job=nurse", population=way) for way in ways]
    for other in found[1:]:
        np.testing.assert_array_equal(other.posterior.N, found[0].posterior.N)
    weighted = eq.publication(eq.read(survey, roles(weight="w")), (1, 12), target="job=nurse")
    totals = survey.group_by("area").agg(pl.col("w").sum()).sort("area")["w"].to_numpy()
    np.testing.assert_array_equal(weighted.posterior.N, totals.round())
    assert any("N is estimated" in note for note in weighted.notes)


def test_unequal_weights_are_worth_fewer_records(survey: pl.DataFrame) -> None:
    """n_eff = (sum w)^2 / sum w^2, y_eff its weighted share; the people not sampled remain N - n."""
    found = eq.publication(eq.read(survey, roles(weight="w")), (1, 12), target="job=nurse", population="people")
    row = found.table.row(3, named=True)
    own = survey.filter(pl.col("area") == row["area"])
    w = own["w"].to_numpy()
    assert row["n_eff"] == pytest.approx(w.sum() ** 2 / (w**2).sum())
    part = w[(own["job"] == "nurse").to_numpy()].sum() / w.sum()
    assert row["y_eff"] == pytest.approx(row["n_eff"] * part)
    rate = (1 + row["y_eff"]) / (13 + row["n_eff"])
    assert found.posterior.mean[3] == pytest.approx(row["y"] + (row["N"] - row["n"]) * rate)
    assert any("n_eff" in note for note in found.notes)
    equal = eq.publication(eq.read(survey.with_columns(w=2.5), roles(weight="w")), (1, 12), target="job=nurse")
    assert "n_eff" not in equal.table.columns


def test_the_prior_is_fitted_by_class(survey: pl.DataFrame) -> None:
    found = eq.publication(eq.read(survey, roles()), target="job", population="people")
    by_class = found.cells.group_by("job").agg(pl.col("alpha").n_unique(), mean=pl.col("alpha").first())
    assert by_class["alpha"].to_list() == [1, 1, 1]
    assert found.prior is not None
    assert any(note.startswith("Prior: ") for note in found.notes)
    one = eq.publication(eq.read(survey, roles()), target="job=nurse", population="people")
    nurses = found.cells.filter(pl.col("job") == "nurse")
    np.testing.assert_allclose(one.cells["alpha"], nurses["alpha"], rtol=1e-5)
    given = {job: (1.0, 9.0) if job == "nurse" else (3.0, 4.0) for job in ("nurse", "clerk", "baker")}
    told = eq.publication(eq.read(survey, roles()), given, target="job", population="people")
    assert set(told.cells.filter(pl.col("job") == "nurse")["beta"].round(9)) == {9.0}
    moved = eq.publication(eq.read(survey, roles()), target="job=nurse", population="people", covariates="age")
    assert moved.cells["alpha"].n_unique() > 1


def test_importance_adds_up_over_records(survey: pl.DataFrame) -> None:
    found = eq.publication(eq.read(survey, roles()), (1, 12), "uniques:10", "need", target="job", population="people")
    wanted = survey.group_by("area", "job").agg(pl.col("need").sum())
    both = found.table.join(wanted, on=["area", "job"], how="left")
    np.testing.assert_array_equal(both["R0"], both["need"].fill_null(0))


def test_subclasses_are_counted_from_the_file(survey: pl.DataFrame) -> None:
    """Shares of the keys within each class, given by hand or counted: the same risks."""
    records = eq.read(survey, roles())
    found = eq.publication(
        records, (1, 12), eq.losses.Subclasses(keys=("sex", "age")), target="job", population="people"
    )
    for job in ("nurse", "clerk", "baker"):
        own = survey.filter(pl.col("job") == job)
        shares = (own.group_by("sex", "age").len()["len"] / own.height).to_list()
        alone = eq.publication(records, (1, 12), eq.losses.Subclasses(shares), target=f"job={job}", population="people")
        np.testing.assert_allclose(found.R1[(found.table["job"] == job).to_numpy()], alone.R1, rtol=1e-9)
    one = eq.publication(records, (1, 12), "subclasses:keys=sex+age", target="job=nurse", population="people")
    np.testing.assert_allclose(one.R1, found.R1[(found.table["job"] == "nurse").to_numpy()], rtol=1e-9)
    assert found.cells["taylor"].null_count() == 0


def test_the_model_is_compared_with_the_uniques_of_the_file(survey: pl.DataFrame) -> None:
    """Eighty equal subclasses by construction: S = 80 fits, S = 4 and S = 5,000 do not; counted by brute force."""
    records = eq.read(survey, roles())
    found = {
        size: eq.publication(records, (1, 12), eq.losses.Uniques(size), target="job", population="people")
        for size in (4, 80, 5000)
    }
    alone = survey.group_by("area", "job", "sex", "age").len().filter(pl.col("len") == 1).height
    for size, each in found.items():
        assert each.misfit is not None
        assert each.misfit.counted == alone
        y = each.posterior.y
        assert each.misfit.expected == pytest.approx((y * np.exp(-y / size)).sum())
        assert each.misfit.fits == (size == 80)
        assert each.misfit.words in each.choose(risk_at_most=0.5).notes
    assert "understates" in found[4].misfit.words  # type: ignore[union-attr]
    assert "overstates" in found[5000].misfit.words  # type: ignore[union-attr]


def test_engines_agree(engine: Any, survey: pl.DataFrame) -> None:
    here = eq.publication(eq.read(survey, roles(weight="w")), (1, 12), target="job", population="people")
    there = eq.publication(eq.read(engine.make(survey), roles(weight="w")), (1, 12), target="job", population="people")
    np.testing.assert_allclose(there.R1, here.R1, rtol=1e-9)
    if engine.name not in ("duckdb", "pyspark"):  # where n and N are one name
        np.testing.assert_allclose(eq.publication(engine.make(SMALL), (0.5, 1.5)).R1, published().R1)


def test_cells_are_a_source(survey: pl.DataFrame) -> None:
    cells = eq.Cells.of(SMALL.rename({"n": "domain_n", "N": "domain_N", "y": "n"}))
    np.testing.assert_allclose(eq.publication(cells, (0.5, 1.5)).R1, published().R1)


# --- other rules, and somebody's own decisions --------------------------------------------------------------------


def test_no_rule_beats_the_best() -> None:
    found = published()
    rules = found.compare({"per cell": ("uniques:10", "cell"), "need": ("uniques:10", "n")})
    usual = {"posterior mean", "weighted estimate", "synthetic estimate", "minimum count", "random"}
    assert set(rules) == {"optimal", "per cell", "need"} | usual
    for risk in np.linspace(0.05, 0.95, 10):
        assert (rules.at(risk_at_most=risk)["cost"] >= -1e-12).all()
        assert (rules.at(publish_share=risk)["cost"] >= -1e-12).all()
    assert rules["random"].at_risk(0.25).withheld == pytest.approx(0.75)
    assert set(rules.table()["rule"]) == set(rules)
    assert set(found.compare({"x": ("y", "y")}, standard=False)) == {"optimal", "x"}


def test_rival_orders_by_hand() -> None:
    found, law = published(), published().posterior
    rules = found.compare()
    assert rules["minimum count"].order[0] == 5
    assert (np.diff(law.mean[rules["posterior mean"].order]) <= 1e-12).all()
    assert (np.diff((law.N * law.y / law.n)[rules["weighted estimate"].order]) <= 1e-12).all()
    assert (np.diff(law.N[rules["synthetic estimate"].order]) <= 1e-12).all()


def test_elicited_cutoffs() -> None:
    """The cutoff lies between the largest ratio published and the smallest withheld."""
    found = published(domain="area")
    decision = found.choose(risk_at_most=0.4)
    choices = dict(zip(decision.cells["area"], decision.cells["publish"], strict=True))
    told = found.elicit(choices)
    assert told.consistent
    assert (told.low, told.high) == pytest.approx(decision.cutoff)
    assert found.choose(cutoff=(told.low + told.high) / 2).cells.equals(decision.cells)
    assert found.elicit(decision.cells.select("area", "publish")).high == told.high
    assert found.elicit(dict(enumerate(decision.cells["publish"]))).low == told.low


def test_decisions_that_contradict_each_other() -> None:
    found = published()
    order = found.trade_off.order.tolist()
    told = found.elicit({order[0]: False, order[1]: True, order[2]: True, order[9]: False})
    assert not told.consistent
    assert told.against == 1
    assert told.cells.filter(~pl.col("agrees")).height == 1
    assert "contradict" in told.words
    assert found.elicit({order[3]: True}).high == np.inf
    assert found.elicit({order[3]: False}).low == 0


def test_the_curve_of_one_cell() -> None:
    one = TradeOff(np.array([2.0]), np.array([3.0]), np.array([0]), np.array([0]))
    assert one.at_risk(0.25) == (0.25, 0.75)
    assert one.choose(publish_share=0.5).realised == (1.0, 0.0)


# --- what is refused ----------------------------------------------------------------------------------------------

CANARY = "Quetzalcoatlus"
FRAME = pl.DataFrame({"area": ["a", "b", CANARY], "job": ["x", CANARY, "x"], "N": [5, 6, None], "w": [1.0, 2.0, 3.0]})


def read(**given: Any) -> eq.Records:
    return eq.read(FRAME.rename({"N": "size"}), eq.Roles(**({"domain": "area"} | given)))


def alter(**changes: Any) -> pl.DataFrame:
    return SMALL.with_columns(**{name: pl.lit(value) for name, value in changes.items()})


BAD: list[tuple[Any, str]] = [
    (lambda: published(source=alter(N=3)), "n is above N in 12 cells"),
    (lambda: published(source=alter(y=99)), "y is above n"),
    (lambda: published(source=alter(n=0)), "n is 0"),
    (lambda: published(source=alter(N=None)), "N is missing"),
    (lambda: published(source=alter(N=float("nan"))), "N is missing"),
    (lambda: published(source=alter(N=float("inf"))), "N is missing or not finite"),
    (lambda: published(source=alter(y=-1)), "y is negative"),
    (lambda: published(source=alter(y=0)), "All y are 0"),
    (lambda: published(source=alter(y=CANARY)), "must hold numbers"),
    (lambda: published(source=alter(share=-1.0)), "share must hold"),
    (lambda: published(source=SMALL.drop("N")), "No column 'N'"),
    (lambda: published(source=SMALL.clear()), "no cells"),
    (lambda: published(source=[CANARY]), "Cannot read list"),
    (lambda: published(source=SMALL.head(1), prior=None), "one domain"),
    (lambda: published(source=alter(share=1.0), prior=None), "give the prior"),
    (lambda: published(prior=(1, 0)), "above 0"),
    (lambda: published(prior=(1, 2, 3)), "prior must be"),
    (lambda: published(prior={CANARY: (1, 2)}), "for every class"),
    (lambda: published(disclosure=lambda y, Y, n, N: -Y), "negative"),
    (lambda: published(source=SMALL.with_columns(need=-1), nonpublication="need"), "negative"),
    (lambda: published(source=SMALL.with_columns(need=None), nonpublication="need"), "not finite"),
    (lambda: published(nonpublication="neeed"), "No column 'neeed'"),
    (lambda: published(nonpublication=lambda y, Y, n, N: 0 * Y).choose(cutoff=1).risk, "nonpublication is 0"),
    (lambda: published(disclosure="subclasses:keys=sex+age"), "counted from records"),
    (lambda: published().choose(), "Give one of"),
    (lambda: published().choose(cutoff=1, risk_at_most=0.2), "Give one of"),
    (lambda: published().choose(risk_at_most=20), "Write 20 % as 0.2"),
    (lambda: published().choose(publish_share=-0.1), "share between 0 and 1"),
    (lambda: published().choose(cutoff=0), "cutoff must be"),
    (lambda: published().compare({"x": "uniques:10"}), "a dict of"),
    (lambda: published().compare(ties="any"), "ties must be"),
    (lambda: published().compare(ties=[3, 4]), "ties must be"),
    (lambda: published().compare()["posterior"], "Did you mean 'posterior mean'"),
    (lambda: published().elicit({CANARY: True}), "cell that is not there"),
    (lambda: published().elicit({0: "yes"}), "True .publish. or False"),
    (lambda: published().elicit({}), "No decisions"),
    (lambda: published().elicit(pl.DataFrame({"publish": [True]})), "column publish"),
    (lambda: eq.publication(read(), (1, 1), target="job"), "N is missing"),
    (lambda: eq.publication(read(), (1, 1), target="job", population="size"), "N is missing: 1 records"),
    (lambda: eq.publication(read(), (1, 1), target="job", population={"a": 5}), "N is missing for 2 of 3"),
    (lambda: eq.publication(read(), (1, 1), target="job", population={("a", 1): 5}), "one value of each"),
    (lambda: eq.publication(read(), (1, 1), target="job", population="job"), "a number"),
    (lambda: eq.publication(read(domain=()), (1, 1), target="job"), "Name the domain"),
    (lambda: eq.publication(read(), (1, 1)), "Name the target"),
    (lambda: eq.publication(read(), (1, 1), target="jobb", population="w"), "Did you mean 'job'"),
    (lambda: eq.publication(read(), (1, 1), target="job=none", population="w"), "All y are 0"),
    (lambda: eq.publication(read(), (1, 1), "subclasses:keys=area", target="job", population="w"), "others than the"),
]


@pytest.mark.parametrize(("call", "words"), BAD, ids=[words for _, words in BAD])
def test_refusals(call: Any, words: str) -> None:
    """One sentence, and no data value in it."""
    with pytest.raises(eq.EquipoiseError, match=words) as caught:
        call()
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_nothing_is_said_of_values(survey: pl.DataFrame) -> None:
    table = survey.with_columns(job=pl.when(pl.col("job") == "nurse").then(pl.lit(CANARY)).otherwise(pl.col("job")))
    found = eq.publication(eq.read(table, roles()), target="job", population="people")
    shown = repr(found) + repr(found.choose(risk_at_most=0.2)) + " ".join(found.notes) + repr(found.compare())
    assert CANARY not in shown
