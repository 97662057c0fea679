"""Tables in recipes, sweep, frontier, policy and map."""

from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.tables.table import Table
from equipoise.recipe.catalogue import parse
from equipoise.releases.tabulate import tabulate
from equipoise.search.table_comparison import TableComparison, standard
from equipoise.search.table_map import score_name, score_words, table_map
from equipoise.tables import Adjust, CellKey, Distance, Exposed, Round, Suppress, Suppressed
from equipoise.trials.table_method_names import method_text, rule_text
from equipoise.trials.trial import original_trial

P10, FEW = eq.rules.PPercent(0.1), eq.rules.MinCount(3)


def firms(seed: int = 1, many: int = 300) -> eq.Records:
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "region": rng.choice(["n1", "n2", "s1", "s2"], many, p=[0.5, 0.3, 0.15, 0.05]),
            "trade": rng.choice([*"ABCDE"], many, p=[0.45, 0.3, 0.15, 0.07, 0.03]),
            "turnover": np.ceil(rng.lognormal(3, 1.6, many)).astype(np.int64),
            "rkey": rng.random(many),
        }
    )
    return eq.Records.of(frame, eq.Roles())


@pytest.fixture(scope="module")
def made() -> Table:
    return eq.table(firms(3), ["region", "trade"], "turnover")


@pytest.fixture(scope="module")
def trials(made: Table) -> Any:
    masks = [*eq.grid(Suppress, rule=["p-percent:10%", FEW]), *eq.grid(Round, base=[20, 500]), Adjust(P10), CellKey()]
    return eq.sweep(made, eq.recipes(masks, seed=3), [Exposed(P10), Suppressed(), Distance()], draws=3)


def test_one_trial_per_recipe_by_the_same_numbers(made: Table, trials: Any) -> None:
    """Each is what the method and the measures give by themselves; what draws nothing runs once."""
    names = ["suppress by p-percent:10%", "suppress by min-count:3", "round to 20", "round to 500"]
    assert [t.words() for t in trials] == [*names, "adjust by p-percent:10%"]
    first = trials[0]
    shown = Suppress(P10).apply(made, None)  # type: ignore[arg-type]
    assert [s.value for s in first.scores] == [
        m.measure(shown, made).value for m in (Exposed(P10), Suppressed(), Distance())
    ]
    assert not first.draws
    assert len(trials[2].draws) == 3
    assert trials[2].scores["distance"].interval is not None
    assert first.scores["exposed"].value == 0 < trials[1].scores["exposed"].value


def test_what_cannot_be_made_is_left_out_and_named(trials: Any) -> None:
    (left,) = trials.left_out
    assert left.name == "cell key"
    assert "counts" in left.reason


def test_a_suppression_without_a_pattern_does_not_end_the_sweep(made: Table) -> None:
    tight = Suppress(FEW, publish="contributors")
    found = eq.sweep(made, eq.recipes([tight, Suppress(FEW)]), [Exposed(FEW)])
    assert [left.name for left in found.left_out] == ["suppress by min-count:3, publish contributors"]
    assert len(found) == 1
    with pytest.raises(eq.InfeasibleError, match=r"None of 1 candidates can be made of this data\. No pattern"):
        eq.sweep(made, [eq.Recipe([tight])], [Exposed(FEW)])


def test_cell_keys_come_with_the_table() -> None:
    keyed = eq.table(firms(), ["region", "trade"], key="rkey")
    found = eq.sweep(keyed, eq.recipes([CellKey(), CellKey(most=2, variance=1.0)]), standard(FEW))
    assert [t.words() for t in found] == ["cell key", "cell key, most 2, variance 1"]
    bare = eq.table(firms(), ["region", "trade"])
    with pytest.raises(eq.InfeasibleError, match="no cell keys"):
        eq.sweep(bare, [eq.Recipe([CellKey()])], [Exposed(FEW)])


def test_frontier_policy_and_chart(trials: Any) -> None:
    best = eq.frontier(trials)
    assert trials[0] in best
    assert set(best.table().columns) == {"recipe", *trials[0].scores.keys(), "frontier"}
    spec = best.chart()
    assert spec["usermeta"]["tried"] == 5
    policy = eq.Policy({"exposed(rule='p-percent:10%')": "<= 0", "distance": "< 10%"})
    assert policy.choose(trials).words() == "suppress by p-percent:10%"
    silent = eq.Policy({"exposed": "<= 0", "suppressed": "< 60%"})
    assert silent.choose(trials).words() == "round to 500", "it suppresses nothing"
    with pytest.raises(eq.RefusedError, match=r"Nearest is '.*', which breaks: exposed"):
        eq.Policy({"exposed": "<= 0", "distance": "< 1%"}).choose(trials)


@pytest.mark.parametrize(
    ("recipe", "measure", "words"),
    [
        ([eq.masks.TopCode("turnover", 9)], Exposed(P10), "TopCode changes records, not tables"),
        ([Suppress(P10)], eq.risk.Uniques(), "Uniques measures records, not tables"),
    ],
)
def test_methods_for_records_on_a_table(made: Table, recipe: Any, measure: Any, words: str) -> None:
    with pytest.raises(eq.ParameterError, match=words):
        eq.sweep(made, [eq.Recipe(recipe)], [measure])


def test_methods_for_tables_on_records() -> None:
    with pytest.raises(eq.ParameterError, match=r"Round changes tables, not records: make one with eq\.table"):
        eq.sweep(firms(), [eq.Recipe([Round(5)])], [eq.utility.Entropy()])


def test_tables_that_do_not_fit(made: Table) -> None:
    with pytest.raises(eq.ParameterError, match="no records to hold out"):
        eq.sweep(made, [eq.Recipe([Round(5)])], [Exposed(P10)], holdout=0.2)
    with pytest.raises(eq.DataError, match="protected already"):
        eq.sweep(Suppress(P10).apply(made, None), [eq.Recipe([Round(5)])], [Exposed(P10)])  # type: ignore[arg-type]
    with pytest.raises(eq.DataError, match="largest contributions"):
        eq.sweep(made, [eq.Recipe([Round(5)])], [Exposed(eq.rules.Dominance(9, 0.9))])


# --- words and the map --------------------------------------------------------------------------------------------


def test_rules_and_methods_as_they_are_written() -> None:
    texts = ["p-percent:10% | min-count:3", "dominance:2,85%", "prior-posterior:10%,50%", "min-count:5 & p-percent:15%"]
    for text in texts:
        rule = parse(text, "rule")
        assert rule_text(rule) == text
        assert parse(rule_text(rule), "rule") == rule
    assert method_text(Round(3, controlled=False)) == "round to 3, not controlled"
    assert method_text(Suppress(P10, method="optimal", singletons=False)) == (
        "suppress by p-percent:10%, method optimal, not singletons"
    )


def test_the_map_names_axes_methods_and_limits(made: Table, trials: Any) -> None:
    measures = (Exposed(P10), Suppressed(), Distance())
    policy = eq.Policy({"exposed": "<= 0", "distance": "< 30%"})
    compared = TableComparison(trials, original_trial(made, measures), trials[0], policy)
    spec = table_map(compared)
    assert spec["encoding"]["y"]["axis"]["title"] == "Share of sensitive cells an attacker could bound too closely"
    assert spec["encoding"]["x"]["axis"]["title"] == "Share of the value that was moved or suppressed"
    layers = {layer["name"]: layer for layer in spec["layer"]}
    assert layers["methods"]["encoding"]["color"]["scale"]["domain"] == ["suppress", "round", "adjust"]
    assert len(set(layers["methods"]["encoding"]["shape"]["scale"]["range"])) == 3
    rows = layers["methods"]["data"]["values"]
    assert [row["recipe"] for row in rows] == [f"{i} {t.words()}" for i, t in enumerate(trials, start=1)]
    assert [row["risk"] for row in rows] == [t.scores["exposed"].value for t in trials]
    numbers = {n for row in layers["method_numbers"]["data"]["values"] for n in row["label"].split(", ")}
    assert numbers == set("12345")
    assert layers["ring"]["data"]["values"][0]["risk"] == 0
    assert layers["risk_bound_label_0"]["data"]["values"][0]["label"].replace("\xa0", " ") == "limit ≤ 0 %"
    assert {"ends", "rectangle", "best_line"} <= layers.keys()
    assert not any(name.startswith("curve") for name in layers)


def test_scores_in_plain_words() -> None:
    def told(name: str) -> str:
        return score_words(eq.Score(name, 0.1, "lower")).replace("\xa0", " ")

    assert told("suppressed") == "Share of cells suppressed"
    assert told("suppressed(of='value')") == "Share of the value suppressed"
    assert told("distance(kind='largest')") == "Largest change of a cell"
    assert told("kept_margins(within=0.05)") == "Share of totals published to within 5 %"
    assert told("entropy") == "Entropy kept"
    assert told("something") == "Something"
    name = score_name(eq.Score("exposed(rule='dominance(n=2, k=0.85)', of='shortfall')", 0.1, "lower"))
    assert name == "Share of their protection levels that an attacker can exclude, by dominance:2,85%"


# --- compared with what was published -----------------------------------------------------------------------------


def test_what_is_published_beside_other_methods() -> None:
    others = ["round:20", "suppress(rule='dominance:1,60%')", "cell-key", Adjust(P10)]
    found = tabulate(firms(), ["region", "trade"], "turnover", rule=P10, compare=others, seed=1)
    compared = found.compared
    assert compared is not None
    assert [t.words() for t in compared.trials] == [
        "suppress by p-percent:10%", "round to 20", "suppress by dominance:1,60%", "adjust by p-percent:10%",
    ]  # fmt: skip
    assert compared.chosen is compared.trials[0]
    assert compared.original.scores["exposed"].value == 1
    assert [left.name for left in compared.trials.left_out] == ["cell key"]
    assert [w.rule for w in found.warnings] == ["dominance:1,60%"]
    told = found.to_plain()["compared"]
    assert [row["method"] for row in told][-1] == "cell key"
    assert "counts" in told[-1]["left_out"]


def test_keys_are_drawn_where_a_compared_method_needs_them() -> None:
    found = tabulate(firms(), ["region", "trade"], rule="min-count:3", compare=["cell-key(most=3)", "cell-key"], seed=1)
    assert found.compared is not None
    assert len(found.compared.trials) == 3
    assert "key" not in found.public.columns
    assert "key" not in found.internal.columns


def test_bad_comparisons() -> None:
    with pytest.raises(eq.ParameterError, match="compared under one rule"):
        tabulate(firms(), "trade", method=Round(5), compare=["round:3"])
    with pytest.raises(eq.ParameterError, match="changes records"):
        tabulate(firms(), "trade", rule=FEW, compare=["top-code:turnover,5"])
    with pytest.raises(eq.ParameterError, match="Did you mean 'round'"):
        tabulate(firms(), "trade", rule=FEW, compare=["rond:3"])


def test_an_adjusted_table_is_audited() -> None:
    found = tabulate(firms(2), ["region", "trade"], "turnover", method=Adjust(eq.rules.MinCount(2)), seed=1)
    assert found.counts["exposed"] == 0
    assert found.counts["changed"] > 0
    assert any("two values" in note for note in found.notes)
    shown = found.internal.filter(pl.col("status") == "changed")
    assert (shown["published"] != shown["value"]).all()
