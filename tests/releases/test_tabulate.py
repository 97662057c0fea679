"""From records to a table that may be published: the numbers, the proof, the refusals, the rule doctor."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

import equipoise as eq
from equipoise.data.records import Law
from equipoise.data.tables.table import Table
from equipoise.policies.column_hierarchies import column_tree
from equipoise.releases.tabulate import protect_tables, tabulate
from equipoise.tables.audits import certificate


def firms(seed: int = 1, many: int = 400) -> eq.Records:
    """Firms in two provinces of two countries each and five trades, with skewed turnover."""
    rng = np.random.default_rng(seed)
    region = rng.choice(["n1", "n2", "s1", "s2"], many, p=[0.5, 0.3, 0.15, 0.05])
    return eq.Records.of(
        pl.DataFrame(
            {
                "firm": np.arange(many),
                "region": region,
                "country": [code[0] for code in region],
                "trade": rng.choice([*"ABCDE"], many, p=[0.45, 0.3, 0.15, 0.07, 0.03]),
                "size": rng.choice(["small", "large"], many),
                "turnover": np.ceil(rng.lognormal(3, 1.6, many)).astype(np.int64),
                "group": np.arange(many) // 2,
                "w": rng.integers(1, 4, many),
            }
        ),
        eq.Roles(),
    )


RULE = eq.rules.PPercent(0.1)
COUNTRIES = eq.Hierarchy.mapping({"n1": "n", "n2": "n", "s1": "s", "s2": "s"})


def dense(found: Table, place: int) -> tuple[float, float]:
    """The attacker's interval of one cell, by a dense LP over the inner cells, written from the labels alone."""
    cells = found.table.with_columns(told=pl.Series(found.published_values).fill_nan(None))
    inner = cells.filter(~pl.any_horizontal(pl.col(found.by).is_in(["Total", "n", "s"])))
    held = {"Total": lambda code: True, "n": lambda code: code[0] == "n", "s": lambda code: code[0] == "s"}

    def row(labels: tuple[str, ...]) -> list[float]:
        tests = [held.get(label, lambda code, own=label: code == own) for label in labels]
        return [float(all(t(c) for t, c in zip(tests, codes, strict=True))) for codes in inner.select(found.by).rows()]

    rows = [row(labels) for labels in cells.select(found.by).rows()]
    known = [i for i, told in enumerate(cells["told"]) if told is not None]
    empty = [(0.0, 0.0 if n == 0 else None) for n in inner["n"]]
    ends = []
    for sign in (1.0, -1.0):
        solved = linprog(sign * np.array(rows[place]), A_eq=[rows[i] for i in known],
                         b_eq=[cells["told"][i] for i in known], bounds=empty)  # fmt: skip
        ends.append(sign * solved.fun)
    return ends[0], ends[1]


def test_the_whole_way_and_a_dense_audit() -> None:
    """Every sensitive cell is uncertain by its level both ways, by an LP that shares no code with the table wing."""
    found = tabulate(firms(), ["region", "trade"], "turnover", rule=RULE, hierarchies={"region": COUNTRIES})
    levels = RULE.levels(found.table)
    sensitive = np.flatnonzero(RULE.flag(found.table).to_numpy())
    assert found.counts["sensitive"] == len(sensitive) > 2
    audit = {tuple(row[c] for c in found.table.by): row for row in found.outsider.iter_rows(named=True)}
    for place in sensitive.tolist():
        low, high = dense(found.table, place)
        value, labels = float(found.table.numbers("value")[place]), found.table.table.select(found.table.by).row(place)
        assert low <= value - levels["lower"][place] + 1e-4
        assert high >= value + levels["upper"][place] - 1e-4
        assert (audit[labels]["lower"], audit[labels]["upper"]) == pytest.approx((low, high), rel=1e-6, abs=1e-4)
    assert (found.counts["exposed"], found.counts["exact"]) == (0, 0)


def test_what_is_told_adds_up() -> None:
    found = tabulate(firms(), ["region", "trade"], "turnover", rule="p-percent:10% | min-count:3")
    counts, statuses = found.counts, found.internal["status"]
    assert counts["suppressed"] == counts["sensitive"] + counts["secondary"] == found.outsider.height
    assert counts["suppressed"] == found.public["published"].null_count()
    assert counts["suppressed"] == (found.public["status"] == "suppressed").sum()
    assert counts["cells"] == found.public.height == 5 * 6
    assert found.public.columns == ["region", "trade", "published", "status"]
    assert set(found.public["status"]) == {"published", "suppressed"}
    codes = dict(found.internal.filter(pl.col("n") > 0).select("status", "code").unique().rows())
    assert codes == {"published": 1, "sensitive": 3, "secondary": 11}
    assert set(found.internal.filter(pl.col("n") == 0)["code"]) <= {14}
    inner = found.internal.filter((pl.col("region") != "Total") & (pl.col("trade") != "Total"))
    share = inner.filter(pl.col("published").is_null())["value"].sum() / inner["value"].sum()
    assert found.share == pytest.approx(share)
    assert f"{(statuses == 'sensitive').sum()} sensitive cells and" in found.words
    shown = found.internal.filter(pl.col("published").is_not_null())
    assert (shown["published"] == shown["value"]).all()


def test_counts_say_whether_they_were_audited_as_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    found = tabulate(firms(), ["region", "trade"], rule="min-count:5")
    assert any("used that counts are whole" in note for note in found.notes)
    assert (found.audit["lower"] == found.audit["lower"].round()).all()
    monkeypatch.setattr(certificate, "MAX_WHOLE", 1)
    assert any("does not use" in note for note in tabulate(firms(), ["region", "trade"], rule="min-count:5").notes)
    assert not any("whole" in note for note in tabulate(firms(), "trade", "turnover", rule="min-count:20").notes)


def test_nothing_sensitive() -> None:
    found = tabulate(firms(), "size", "turnover", rule="min-count:3")
    assert found.words == "No cell of 3 is sensitive: everything is published."
    assert found.audit.is_empty()
    assert found.narrowest is None


def test_holding_weight_and_request() -> None:
    """The same table as eq.table makes, with the same options."""
    made = tabulate(firms(), "trade", "turnover", rule=RULE, holding="group", weight="w")
    bare = eq.table(firms(), "trade", "turnover", holding="group", weight="w")
    assert made.table.numbers("value").tolist() == bare.numbers("value").tolist()
    assert RULE.flag(made.table).to_list() == RULE.flag(bare).to_list()
    asked = firms().collect().with_columns(asked=pl.col("trade") == "E")
    found = tabulate(eq.Records.of(asked, eq.Roles()), "trade", "turnover", rule="request:5%", request="asked")
    assert found.internal.filter(pl.col("trade") == "E")["status"].item() == "sensitive"


def test_as_many_of_the_largest_as_the_rule_needs() -> None:
    found = tabulate(firms(), "trade", "turnover", rule=eq.rules.Dominance(5, 0.9) | eq.rules.PPercent(0.1, 6))
    assert "top7" in found.table.more.columns


# --- changed tables -----------------------------------------------------------------------------------------------


def test_rounded_counts_are_audited() -> None:
    """Each interval holds the true cell and is that of a dense LP over all cells within a base of what is published."""
    found = tabulate(firms(), ["region", "trade"], method=eq.tables.Round(5), rule="min-count:3", seed=1)
    assert found.counts["suppressed"] == 0
    assert found.counts["changed"] > 5
    assert set(found.public["status"]) == {"published"}
    assert (found.public["published"] % 5 == 0).all()
    audit = found.audit
    assert audit.height == int(eq.rules.MinCount(3).flag(found.table).sum()) > 0
    assert (audit["lower"] <= audit["value"]).all()
    assert (audit["value"] <= audit["upper"]).all()
    cells = found.table.table
    inner = cells.filter((pl.col("region") != "Total") & (pl.col("trade") != "Total")).select("region", "trade").rows()
    held = [
        [float(r in (a, "Total") and t in (b, "Total")) for a, b in inner]
        for r, t in cells.select(found.table.by).rows()
    ]
    within = np.vstack([held, -np.array(held)])
    limits = np.concatenate([found.table.published_values + 5, 5 - found.table.published_values])
    places = {labels: i for i, labels in enumerate(cells.select(found.table.by).rows())}
    for row in audit.iter_rows(named=True):
        aim = np.array(held[places[row["region"], row["trade"]]])
        low, high = (sign * linprog(sign * aim, A_ub=within, b_ub=limits).fun for sign in (1.0, -1.0))
        assert (row["lower"], row["upper"]) == pytest.approx((low, high), abs=1e-6)


def test_a_base_that_is_too_small_is_refused() -> None:
    with pytest.raises(eq.RefusedError, match=r"an outsider can compute \d+ sensitive cells to within .* larger base"):
        tabulate(firms(), ["region", "trade"], "turnover", rule=RULE, method=eq.tables.Round(2))


def test_cell_keys_are_the_same_for_the_same_seed() -> None:
    one, two = (tabulate(firms(), ["region", "trade"], method=eq.tables.CellKey(), seed=7) for _ in range(2))
    assert one.public.equals(two.public)
    assert not one.public.equals(tabulate(firms(), ["region", "trade"], method=eq.tables.CellKey(), seed=8).public)
    keyed = eq.tables.record_keys(firms(), 7, "rkey")
    assert one.public.equals(tabulate(keyed, ["region", "trade"], method=eq.tables.CellKey(), key="rkey").public)


def test_small_counts_rounded() -> None:
    found = tabulate(firms(), ["region", "trade"], method=eq.tables.Round(3, small=True), seed=1)
    assert found.counts["exact"] == 0
    assert found.audit["value"].max() < 3  # type: ignore[operator]


# --- what is refused ----------------------------------------------------------------------------------------------


def test_a_failed_audit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the method did: what the audit calls computed is not given back."""

    def bad(method: Any, data: Table, draws: Any, progress: Any = None) -> Table:
        told = np.where(method.rule.flag(data).to_numpy(), np.nan, data.numbers("value"))
        status = pl.Series("status", np.where(np.isnan(told), "sensitive", "published"))
        return data.protected(told, status, Law("suppress", data.by, ""))

    monkeypatch.setattr(eq.tables.Suppress, "apply", bad)
    with pytest.raises(eq.RefusedError, match=r"the audit failed: an outsider can compute \d+ cells? exactly"):
        tabulate(firms(), ["region", "trade"], "turnover", rule=RULE)


@pytest.mark.parametrize(
    ("by", "more", "error", "words"),
    [
        ("trade", {}, eq.ParameterError, "Say which cells are sensitive"),
        ("trade", {"rule": "p-procent:10%"}, eq.ParameterError, "Did you mean"),
        ("trade", {"rule": RULE, "method": eq.tables.Suppress(eq.rules.MinCount(3))}, eq.ParameterError, "twice"),
        ("trade", {"rule": RULE, "method": eq.masks.TopCode("turnover", 9)}, eq.ParameterError, "no audit"),
        ("status", {"rule": RULE}, eq.ParameterError, "rename"),
        ("tradde", {"rule": RULE}, eq.RolesError, "Did you mean 'trade'"),
    ],
)
def test_bad_arguments(by: str, more: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tabulate(firms(), by, "turnover", **more)


def test_labels_that_name_somebody() -> None:
    named = eq.Records.of(firms().collect(), eq.Roles(id="firm"))
    with pytest.raises(eq.RolesError, match="names records"):
        tabulate(named, ["firm", "trade"], "turnover", rule=RULE)


# --- the rule doctor ----------------------------------------------------------------------------------------------


def pair() -> eq.Records:
    """Two cells of the paper's kind: in `a` the two largest leave 1 of 100, in `b` one holds 61 and 39 are many."""
    rows = [("a", 59), ("a", 40), ("a", 1), ("b", 61), *[("b", 13)] * 3, *[("c", 20)] * 9, *[("d", 10)] * 20]
    return eq.Records.of(pl.DataFrame(rows, schema=["trade", "turnover"], orient="row"), eq.Roles())


def test_the_doctor_finds_what_dominance_misses() -> None:
    found = tabulate(pair(), "trade", "turnover", rule="dominance:1,60%").diagnosis
    assert found is not None
    assert (found.missed, found.needless) == (1, 1)
    assert found.cells["trade"].to_list() == ["a"]
    assert "Dominance calls 1 of 5 cells safe" in found.words
    assert "1.69\xa0%" in found.words  # 1 of 59
    assert "trade" not in found.words
    assert found.example is not None
    assert "trade = a" in found.example


def test_the_doctor_is_silent_or_says_that_nothing_is_missed() -> None:
    assert tabulate(pair(), "trade", "turnover", rule=RULE).diagnosis is None
    joined = tabulate(pair(), "trade", "turnover", rule="dominance:1,60% | p-percent:10%").diagnosis
    assert joined is not None
    assert joined.missed == 0
    assert "misses no cell" in joined.words


# --- several tables -----------------------------------------------------------------------------------------------


def test_linked_tables_agree_and_hold_together() -> None:
    one = eq.table(firms(), ["region", "trade"], "turnover")
    two = eq.table(firms(), ["trade", "size"], "turnover")
    both = protect_tables([one, two], eq.tables.Suppress(RULE))
    assert not both.audit["exact"].any()
    assert not both.audit["exposed"].any()
    first = both[0].table.filter(pl.col("region") == "Total").select("trade", "published").sort("trade")
    second = both[1].table.filter(pl.col("size") == "Total").select("trade", "published").sort("trade")
    assert first.equals(second)
    assert [table.by for table in both] == [("region", "trade"), ("trade", "size")]


def test_linked_tables_by_default() -> None:
    counts = protect_tables([eq.table(firms(), "trade"), eq.table(firms(), ["trade", "region"])])
    assert counts[0].history[-1].parameters["rule"] == "min_count"
    amounts = protect_tables([eq.table(firms(), "trade", "turnover")])
    assert amounts[0].history[-1].parameters["rule"] == "p_percent"


def test_no_tables_and_other_methods() -> None:
    with pytest.raises(eq.ParameterError, match="no table"):
        protect_tables([])
    with pytest.raises(eq.ParameterError, match=r"tables\.Suppress"):
        protect_tables([eq.table(firms(), "trade")], eq.tables.Round(5))  # type: ignore[arg-type]


def test_a_union_that_gives_something_away_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each table protected by itself: what one publishes and the other suppresses is known."""
    made = eq.table(firms(), "trade", "turnover")
    strict, lax = (eq.tables.Suppress(eq.rules.MinCount(many)) for many in (30, 1))
    apart = [method.together([made])[0] for method in (strict, lax)]
    assert eq.tables.difference(apart[0], apart[1])["exact"].any()
    monkeypatch.setattr(eq.tables.Suppress, "together", lambda self, tables: apart)
    with pytest.raises(eq.RefusedError, match="the audit failed"):
        protect_tables([made, made], strict)


# --- hierarchies of the data --------------------------------------------------------------------------------------


def test_columns_make_the_hierarchy() -> None:
    tree = column_tree(firms(), "region", ["country"])
    made = tabulate(firms(), "region", "turnover", rule="min-count:3", hierarchies={"region": tree})
    same = tabulate(firms(), "region", "turnover", rule="min-count:3", hierarchies={"region": COUNTRIES})
    assert made.public.equals(same.public)


@pytest.mark.parametrize(
    ("groups", "error", "words"),
    [
        (["trade"], eq.DataError, "4 values of 'region' stand with more than one 'trade'"),
        (["contry"], eq.RolesError, "Did you mean 'country'"),
        ([], eq.ParameterError, "coarser columns"),
        (["region"], eq.ParameterError, "each once"),
    ],
)
def test_columns_that_make_none(groups: list[str], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        column_tree(firms(), "region", groups)


def test_long_work_reports_and_can_be_stopped() -> None:
    rng = np.random.default_rng(4)
    firms = pl.DataFrame({"a": rng.choice([*"pqrs"], 60), "b": rng.choice([*"tuvw"], 60), "x": rng.lognormal(3, 1, 60)})
    records = eq.read(firms, eq.Roles(numeric="x"))
    seen: list[str] = []
    eq.tabulate(records, ["a", "b"], "x", rule="p-percent:10%", progress=lambda done, total, what: seen.append(what))
    assert seen[0] == "protecting the table"
    assert "finding cells to suppress" in seen
    with pytest.raises(eq.Cancelled):
        eq.tabulate(records, ["a", "b"], "x", rule="p-percent:10%", progress=lambda done, total, what: False)


def test_last_period_s_folder_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a policy that stands beside it, by tabulate, and when the release is made again; nothing differs."""
    rng = np.random.default_rng(1)
    frame = pl.DataFrame({"a": rng.integers(0, 4, 60), "b": rng.integers(0, 3, 60), "v": rng.lognormal(3, 1, 60)})
    frame.write_csv(tmp_path / "firms.csv")
    monkeypatch.chdir(tmp_path)
    rule: Any = eq.rules.PPercent(0.1)
    eq.tabulate(eq.read("firms.csv"), ["a", "b"], "v", rule=rule, out="last")
    again = eq.tabulate(eq.read("firms.csv"), ["a", "b"], "v", method=eq.tables.Suppress(rule, like="last"), out="now")
    assert again.changes is not None
    assert set(again.changes["change"]) <= {"unchanged", "suppressed in both"}
    (tmp_path / "policy.toml").write_text(
        'data.path = "firms.csv"\ntable.by = ["a", "b"]\ntable.value = "v"\n'
        'limits."exposed(rule=\'p-percent:10%\')" = "<= 0"\n'
        '[[candidates]]\nmasks = [{ use = "suppress", rule = "p-percent:10%", like = "last" }]\n'
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    eq.balance(tmp_path / "policy.toml", out=tmp_path / "released")
    for folder in ("now", "released"):
        assert any("Made again" in check.words for check in eq.verify(tmp_path / folder).checks)


def test_a_revision_without_an_id_is_said_not_to_be_covered(tmp_path: Path) -> None:
    """Records are told by their content: who is revised is another record to the audit, and may be known to be one."""
    rng = np.random.default_rng(2)
    frame = pl.DataFrame({"a": rng.integers(0, 4, 60), "b": rng.integers(0, 3, 60), "v": rng.lognormal(3, 1, 60)})
    later = frame.with_columns(v=pl.when(pl.int_range(pl.len()) < 5).then(pl.col("v") * 2).otherwise("v"))
    said = {}
    for name, roles in (("content", eq.Roles()), ("id", eq.Roles(id="who"))):
        for number, file in enumerate((frame, later)):
            made = eq.tabulate(
                eq.Records.of(file.with_row_index("who") if name == "id" else file, roles), ["a", "b"], "v",
                rule="p-percent:10%", register=tmp_path / f"{name}.json", out=tmp_path / f"{name}{number}",
            )  # fmt: skip
        said[name] = any("without an id" in who for who in made.attackers.not_cover)
    assert said == {"content": True, "id": False}


@pytest.mark.parametrize("least", [-40.0, 1.0])
def test_who_knows_signs_is_said_not_to_be_covered(tmp_path: Path, least: float) -> None:
    """Values of both signs have no lower end in the audit: who knows a sign has one."""
    rng = np.random.default_rng(6)
    values = np.r_[least, rng.lognormal(3, 1, 59)]
    frame = pl.DataFrame({"a": rng.integers(0, 4, 60), "b": rng.integers(0, 3, 60), "v": values})
    made = eq.tabulate(eq.Records.of(frame, eq.Roles()), ["a", "b"], "v", rule="p-percent:10%", out=tmp_path / "out")
    phrase = "somebody who knows which suppressed numbers are negative"
    public = "".join(path.read_text("utf-8") for path in sorted((tmp_path / "out" / "public").glob("*.[hj][ts]*")))
    assert [phrase in made.attackers.not_cover, phrase in public] == [least < 0] * 2
