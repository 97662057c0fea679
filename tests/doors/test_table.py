"""`equipoise table`: from a file to the published table and its proof, the same as in Python, plain refusals."""

import json
import re
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main, table
from equipoise.doors.report import render_table
from equipoise.presentation.pages import PAGES
from equipoise.presentation.reading_order import nodes_in_order

CANARY = "Canary-7731"
Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Run a command that must end with the exit code; give what it said on stdout, or on stderr where it failed."""

    def call(*args: str | Path, code: int = 0) -> str:
        assert main(["table", *(str(a) for a in args)]) == code
        out, err = capfd.readouterr()
        assert bool(err) == bool(code), err
        assert err.count("\n") <= 1
        return err if code else out

    return call


def frame(many: int = 500) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    region = rng.choice(["n1", "n2", "s1", "s2"], many, p=[0.5, 0.3, 0.15, 0.05])
    return pl.DataFrame(
        {
            "firm": [f"{CANARY}-{i}" for i in range(many)],
            "region": region,
            "country": ["North" if code[0] == "n" else "South" for code in region],
            "industry": rng.choice(["A1", "A2", "B1", "B2", "C1"], many, p=[0.45, 0.3, 0.15, 0.07, 0.03]),
            "turnover": np.ceil(rng.lognormal(3, 1.6, many)).astype(np.int64),
            "holding": np.arange(many) // 2,
            "w": rng.integers(1, 4, many),
            "loss": rng.integers(-5, 9, many),
            "key": rng.random(many),
            "large": (np.arange(many) % 9 == 0).astype(np.int64),
            "asked": (np.arange(many) % 40 == 0) + (np.arange(many) % 60 == 0),
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    frame().write_csv(folder / "firms.csv")
    (folder / "regions.csv").write_text("n1;North\nn2;North\ns1;South\ns2;South\n", encoding="utf-8")
    (folder / "short.csv").write_text("n1;North\nn2;North\ns1;South\n", encoding="utf-8")
    (folder / "regions.hrc").write_text("North\n@n1\n@n2\nSouth\n@s1\n@s2\n", encoding="utf-8")
    return folder


def firms(folder: Path, *more: str | Path) -> list[str | Path]:
    return [folder / "firms.csv", "--by", "region,industry", "--value", "turnover", *more]


RULE = ("--rule", "p-percent:10%")


@pytest.fixture(scope="module")
def folder(made: Path) -> Path:
    out = made / "written"
    args = firms(made, "--rule", "dominance:1,75% | min-count:3", "--hierarchy", "region=columns:country", "--out", out)
    assert main(["table", *map(str, args), "--json"]) == 0
    return out


# --- the walk -----------------------------------------------------------------------------------------------------


def test_python_and_the_command_line_agree(run: Run, made: Path, tmp_path: Path) -> None:
    args = firms(made, *RULE, "--holding", "holding", "--weight", "w", "--cost", "cells", "--outsiders-only")
    told = json.loads(run(*args, "--out", tmp_path / "cli", "--json"))
    records = eq.read(made / "firms.csv", eq.Roles(weight="w"))
    method = eq.tables.Suppress(eq.rules.PPercent(0.1), cost="cells", singletons=False)
    found = eq.tabulate(
        records, ["region", "industry"], "turnover", method=method, holding="holding", out=tmp_path / "python"
    )
    assert {key: told[key] for key in found.to_plain()} == found.to_plain()
    assert told["folder"] == str(tmp_path / "cli")
    for name in ("public/table.csv", "public/table.parquet", "private/table.csv", "private/table.sbs",
                 "private/audit.csv"):  # fmt: skip
        assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "python" / name).read_bytes()
    one, two = (json.loads((tmp_path / door / "public/evidence.json").read_text()) for door in ("cli", "python"))
    assert one.pop("input") != two.pop("input"), "each is hashed with a key of its own"
    assert one == two
    direct = method.apply(eq.table(records, ["region", "industry"], "turnover", holding="holding"), None)  # type: ignore[arg-type]
    assert found.table.more["status"].equals(direct.more["status"])


def test_optimal_and_proven(run: Run, made: Path) -> None:
    fast = json.loads(run(*firms(made, *RULE, "--json")))
    best = json.loads(run(*firms(made, *RULE, "--method", "optimal", "--json")))
    assert best["counts"]["sensitive"] == fast["counts"]["sensitive"]
    assert any("proven" in note for note in best["notes"])


@pytest.mark.parametrize("tree", ["region=csv:regions.csv", "region=hrc:regions.hrc", "region=columns:country"])
def test_hierarchies_from_everywhere(run: Run, made: Path, tree: str) -> None:
    kind, _, name = tree.rpartition(":")
    args = firms(made, *RULE, "--hierarchy", tree if "columns" in kind else f"{kind}:{made / name}", "--json")
    assert json.loads(run(*args))["counts"]["cells"] == 7 * 6


def test_rounding_and_cell_keys(run: Run, made: Path, tmp_path: Path) -> None:
    counts = [made / "firms.csv", "--by", "region,industry"]
    told = json.loads(run(*counts, "--round", "5", "--rule", "min-count:3", "--out", tmp_path / "rounded", "--json"))
    assert told["method"] == "round"
    assert told["counts"]["suppressed"] == 0
    assert (pl.read_csv(tmp_path / "rounded" / "public" / "table.csv")["published"] % 5 == 0).all()
    run(*counts, "--cell-key", "--key", "key", "--out", tmp_path / "keyed")
    found = eq.tabulate(eq.read(made / "firms.csv"), ["region", "industry"], method=eq.tables.CellKey(), key="key")
    assert pl.read_csv(tmp_path / "keyed" / "public" / "table.csv")["published"].equals(found.public["published"])
    page = (tmp_path / "rounded" / "public" / "report.html").read_text(encoding="utf-8")
    assert "Cells rounded to multiples of 5" in page


def test_amounts_and_count_variables_by_cell_keys(run: Run, made: Path, tmp_path: Path) -> None:
    told = json.loads(run(*firms(made, "--cell-key", "--key", "key", "--out", tmp_path / "amounts", "--json")))
    assert told["method"] == "cell_key_amounts"
    assert any("second largest" in note for note in told["notes"])
    records, by = eq.read(made / "firms.csv"), ["region", "industry"]
    found = eq.tabulate(records, by, "turnover", method=eq.tables.CellKeyAmounts(), key="key")
    assert pl.read_csv(tmp_path / "amounts" / "public" / "table.csv")["published"].equals(found.public["published"])
    assert "largest contributions" in (tmp_path / "amounts" / "public" / "report.html").read_text(encoding="utf-8")
    verified = eq.verify(tmp_path / "amounts", original=made / "firms.csv")
    assert verified, verified
    other = run(*firms(made, "--change", "cell-key-amounts(small=0.2, epsilons=[1])", "--key", "key", "--json"))
    assert json.loads(other)["method"] == "cell_key_amounts"
    counts = [made / "firms.csv", "--by", "region", "--cell-key", "--key", "key", "--counts", "large"]
    run(*counts, "--out", tmp_path / "counts")
    both = eq.tabulate(records, "region", method=eq.tables.CellKey(), key="key", counts="large")
    written = pl.read_csv(tmp_path / "counts" / "public" / "table.csv")
    assert written["published_large"].equals(both.public["published_large"])
    assert eq.verify(tmp_path / "counts", original=made / "firms.csv")


def test_what_is_said_of_cells_beforehand(run: Run, made: Path, tmp_path: Path) -> None:
    """Labels and an a-priori file, the same as in Python; made again and verified with them."""
    (tmp_path / "a.hst").write_text("n1,A1,u\nn1,A1,pl,50,60\n,,p\nn1,A2,c,1\n", encoding="utf-8")
    wishes = [
        "--apriori",
        tmp_path / "a.hst",
        "--publish",
        "region=n2 & industry=A1",
        "--suppress",
        "region=s1 & industry=A1",
    ]
    told = json.loads(run(*firms(made, *RULE, *wishes, "--out", tmp_path / "out", "--json")))
    inside = pl.read_csv(tmp_path / "out" / "private" / "table.csv")
    statuses = {row[:2]: row[2] for row in inside.select("region", "industry", "status").rows()}
    assert statuses["n1", "A1"] == statuses["s1", "A1"] == "sensitive"
    assert statuses["n2", "A1"] == statuses["Total", "Total"] == "published"
    found = eq.tabulate(
        eq.read(made / "firms.csv"), ["region", "industry"], "turnover", rule="p-percent:10%",
        publish="region=n2 & industry=A1", suppress="region=s1 & industry=A1", apriori=str(tmp_path / "a.hst"),
    )  # fmt: skip
    assert told["counts"] == found.counts
    assert eq.verify(tmp_path / "out", original=made / "firms.csv")
    audit = pl.read_csv(tmp_path / "out" / "private" / "audit.csv").filter(
        region="n1", industry="A1", against="outsider"
    )
    assert audit.select((pl.col("upper").fill_null(1e9) >= pl.col("value") + 60).all()).item()


def test_rounding_of_published_cells(run: Run, made: Path, tmp_path: Path) -> None:
    run(*firms(made, *RULE, "--round-published", "10,nearest", "--out", tmp_path / "out"))
    assert (pl.read_csv(tmp_path / "out" / "public" / "table.csv")["published"].drop_nulls() % 10 == 0).all()
    assert eq.verify(tmp_path / "out", original=made / "firms.csv")
    counts = [made / "firms.csv", "--by", "region,industry"]
    run(*counts, "--round", "5", "--publish", "industry=Total", "--out", tmp_path / "kept")
    kept = pl.read_csv(tmp_path / "kept" / "private" / "table.csv")
    assert kept.filter(industry="Total").select((pl.col("published") == pl.col("value")).all()).item()
    run(*counts, "--change", "round(base=3, controlled=False)", "--out", tmp_path / "third")
    assert (pl.read_csv(tmp_path / "third" / "public" / "table.csv")["published"] % 3 == 0).all()


def test_requests_with_two_shares_and_a_margin(run: Run, made: Path, tmp_path: Path) -> None:
    """REQ(2 %, 1 %, 30 %) of tau-ARGUS, by polars from the records: more than the share of the cell."""
    args = firms(made, "--request", "asked", "--rule", "request:2%,1%,30%", "--outsiders-only")
    run(*args, "--out", tmp_path / "out")
    inside = pl.read_csv(tmp_path / "out" / "private" / "table.csv")
    cells = pl.read_csv(made / "firms.csv").group_by("region", "industry").agg(
        one=pl.col("turnover").filter(pl.col("asked") == 1).max(),
        two=pl.col("turnover").filter(pl.col("asked") == 2).max(),
        value=pl.col("turnover").sum(),
    ).with_columns(sensitive=(pl.col("one") > 0.02 * pl.col("value")).fill_null(False)
                   | (pl.col("two") > 0.01 * pl.col("value")).fill_null(False))  # fmt: skip
    both = inside.join(cells, on=["region", "industry"])
    assert both["sensitive"].sum() > 1
    assert both["sensitive"].equals(both["status"] == "sensitive", check_names=False)
    audit = pl.read_csv(tmp_path / "out" / "private" / "audit.csv").filter(status="sensitive")
    assert (audit["upper"].fill_null(1e12) - audit["value"] >= 0.3 * audit["value"] - 1e-6).all()


def test_the_screen(run: Run, made: Path, tmp_path: Path) -> None:
    text = run(*firms(made, "--rule", "dominance:1,75%", "--out", tmp_path / "out"))
    flat = " ".join(text.split())
    order = [
        "Table: turnover by region, industry from firms.csv, 30 cells",
        "suppressed:",
        "of the value;",
        "Audit: passed against an outsider every contributor who is alone in suppressed cells and knows them",
        "Not against coalitions",
        "somebody who has other tables of this data (no register given)",
    ]
    order += [
        "Sensitive cells",
        "Secondary cells",
        "Known exactly 0",
        "The rule needs a second look",
        "Your report",
        "keep it inside",
    ]
    places = [flat.index(words) for words in order]
    assert places == sorted(places)
    assert not any(label in text for label in ("s2", "C1", CANARY))
    assert "name a folder with --out" in run(*firms(made, *RULE))


def test_the_demo_survey(run: Run, tmp_path: Path) -> None:
    eq.demo.business().with_columns(part=pl.col("region").str.slice(0, 3)).write_parquet(tmp_path / "business.parquet")
    args = [tmp_path / "business.parquet", "--by", "part,legal_form,size_class", "--value", "turnover", *RULE]
    told = json.loads(run(*args, "--out", tmp_path / "out", "--json"))
    assert told["counts"]["sensitive"] > 0
    assert told["counts"]["exposed"] == told["counts"]["exact"] == 0
    page = (tmp_path / "out" / "private" / "report.html").read_text(encoding="utf-8")
    assert "part down, legal_form across" in page
    assert "<h3>size_class: 10-49</h3>" in page
    heads = [page.index(f'data-name="{size}"') for size in ("1-9", "10-49", "50-249", "250+", "Total")]
    assert heads == sorted(heads), "bands in order, totals last"
    for kind in ("sensitive", "secondary"):
        assert page.count(f'<td class="n {kind}') == told["counts"][kind]


def test_it_is_listed(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "table" in capfd.readouterr().out
    text = run("--help")
    assert all(
        option in text
        for option in (
            "--by",
            "--value",
            "--rule",
            "--holding",
            "--round",
            "--cell-key",
            "--publish",
            "--apriori",
            "--counts",
        )
    )


# --- files --------------------------------------------------------------------------------------------------------


def test_the_folder(folder: Path) -> None:
    public, private = folder / "public", folder / "private"
    assert {f.name for f in public.iterdir()} == {"table.csv", "table.parquet", "report.html", "evidence.json"}
    assert {f.name for f in private.iterdir()} == {
        "table.csv", "table.sbs", "table.rda", "table_1.hrc", "audit.csv", "recipe.json", "report.html", "seed.json",
    }  # fmt: skip
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in private.iterdir())
    shown, inside = pl.read_csv(public / "table.csv"), pl.read_csv(private / "table.csv")
    assert shown.columns == ["region", "industry", "published", "status"]
    assert shown.equals(pl.read_parquet(public / "table.parquet"))
    assert set(inside["code"]) <= {1, 3, 11, 14}
    assert (shown["status"] == "suppressed").to_list() == inside["code"].is_in([3, 11]).to_list()
    lines = (private / "table.sbs").read_text(encoding="utf-8").splitlines()
    assert len(lines) == inside.height
    assert re.fullmatch(r'"[^"]*","[^"]*",[\d.]+,\d+,(1|3|11|14)', lines[0])


def test_the_public_folder_tells_no_status_and_no_parameter(folder: Path) -> None:
    """Neither which suppressed cell is sensitive, nor its value, nor the parameters of the rule, nor who was there."""
    inside = pl.read_csv(folder / "private" / "table.csv")
    hidden = inside.filter(pl.col("published").is_null() & (pl.col("value") > 999))["value"].to_list()
    hidden = [value for value in hidden if value not in set(inside["published"])]
    assert hidden
    for name in ("table.csv", "report.html", "evidence.json"):
        text = (folder / "public" / name).read_text(encoding="utf-8")
        text = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
        for word in ("sensitive", "secondary", "0.75", "75", "second largest", CANARY, "audit.csv"):
            if word != "75" or name == "evidence.json":
                assert word not in re.sub(r'"\w{64}"', "", text), (name, word)
        assert not any(f"{value:,}" in text or re.search(rf"\b{value}\b", text) for value in hidden), name
    evidence = json.loads((folder / "public" / "evidence.json").read_text(encoding="utf-8"))
    assert evidence["rule"] == ["dominance", "min_count"]
    assert evidence["cells"] == {"total": 42, "suppressed": inside["published"].null_count()}


def test_the_pages(folder: Path) -> None:
    page = (folder / "private" / "report.html").read_text(encoding="utf-8")
    words = ["Internal report.", "sensitive cells and", "The rule needs a second look", "The table", "North", "n1"]
    words += ["Audit certificate", "Narrowest interval", "What was done", "k = 0.75", "How it was computed", "Source:"]
    places = [page.index(word) for word in words]
    assert places == sorted(places)
    public = (folder / "public" / "report.html").read_text(encoding="utf-8")
    assert "suppressed to protect those who contributed" in public.lower()
    assert re.search(r'<td class="n suppressed( total)?"><a href="#suppressed">x<', public)
    for text in (page, public):
        assert not re.search(r"<(link|img|iframe|object|embed|base)\b|url\(|@import|<script [^>]*src", text)
        assert text.count("<script>") == 1
        assert text.count("<table") == text.count("<caption")


def test_groups_stand_above_what_they_hold() -> None:
    tree = eq.Hierarchy.mapping({"n1": "North", "n2": "North", "s1": "South", "s2": "South"})
    axis = eq.table(eq.Records.of(frame(), eq.Roles()), "region", hierarchies={"region": tree}).axes[0]
    told = [(axis.nodes[node], depth) for node, depth in nodes_in_order(axis)]
    assert told == [("North", 1), ("n1", 2), ("n2", 2), ("South", 1), ("s1", 2), ("s2", 2), ("Total", 0)]


def test_large_tables_are_cut_and_say_so() -> None:
    rng = np.random.default_rng(1)
    many = 4000
    wide = pl.DataFrame({"a": rng.integers(100, 350, many), "b": rng.integers(10, 60, many)})
    found = eq.tabulate(eq.Records.of(wide, eq.Roles()), ["a", "b"], method=eq.tables.Round(3), hierarchies={
        "b": eq.Hierarchy.intervals(10)})  # fmt: skip
    page = render_table(found, "wide", public=False)
    assert "(the first 199 of 251 rows and the total; the 6 coarsest of 56 columns; table.csv has all)" in page
    assert page.count('<tr class="d') == 200


def test_labels_are_escaped() -> None:
    hostile = frame().with_columns(region=pl.col("region").replace("s2", "<b>x</b>"))
    found = eq.tabulate(eq.Records.of(hostile, eq.Roles()), "region", "turnover", rule="min-count:3")
    for public in (True, False):
        page = render_table(found, "<i>", public=public)
        assert "&lt;b&gt;x" in page
        assert "<b>x</b>" not in page


def test_the_page_in_a_browser(folder: Path, opened_page: Any) -> None:
    """Nothing complained of, nothing asked for; groups are indented, sensitive and secondary cells look different."""
    tab, heard = opened_page(folder / "private" / "report.html")
    colour = "e => getComputedStyle(e).backgroundColor"
    kinds = {kind: tab.locator(f"td.{kind}").first.evaluate(colour) for kind in ("sensitive", "secondary")}
    assert kinds["sensitive"] != kinds["secondary"]
    left = "e => getComputedStyle(e).paddingLeft"
    assert tab.locator("tr.d2 > th").first.evaluate(left) != tab.locator("tr.d1 > th").first.evaluate(left)
    assert heard == []


# --- what is refused ----------------------------------------------------------------------------------------------


BAD: list[tuple[list[str], str]] = [
    (["--by", "region", "--value", "industry", *RULE], "'industry' is String, not a number"),
    (["--by", "region", "--value", "loss", "--round", "5"], "amounts that are never negative"),
    (["--by", "region", "--value", "turnover", *RULE, "--statistic", "maen"], "Did you mean 'mean'?"),
    (["--by", "region", "--value", "turnover", *RULE, "--statistic", "ratio"], "needs the column to divide by"),
    (["--by", "region", "--value", "turnover", *RULE, "--statistic", "ratio:emp"], "No column 'emp' in the data"),
    (["--by", "region", *RULE, "--statistic", "mean"], "A statistic needs the column that it is of"),
    (["--by", "region", "--value", "turnover", *RULE, "--statistic", "percentile:190"], "from 0 to 100"),
    (["--by", "region", *RULE, "--relation", "a = turnover"], "A relation is written"),
    (["--by", "regio", "--value", "turnover", *RULE], "Did you mean 'region'?"),
    (["--by", "region", "--value", "turnovr", *RULE], "Did you mean 'turnover'?"),
    (["--by", "region", "--value", "turnover", "--holding", "holdin", *RULE], "Did you mean 'holding'?"),
    (["--by", "region", "--value", "turnover", "--rule", "p-procent:10%"], "Did you mean 'p_percent'?"),
    (["--by", "region", "--value", "turnover", "--rule", "p-percent:10"], "p"),
    (["--by", "region", "--value", "turnover", "--rule", "p-percent:x"], "p"),
    (["--by", "region", "--value", "turnover", "--rule", "p-percent:10% |"], "No rule ''"),
    (["--by", "region", "--value", "turnover"], "--rule p-percent:10%"),
    (["--by", "region", *RULE], "largest contributions"),
    (["--by", "region", "--round", "5", "--cell-key"], "take one"),
    (["--by", "region", "--round", "5", "--cost", "cells"], "--cost is about suppressing"),
    (["--by", "region", "--round", "1"], "base must be"),
    (["--by", "region", "--value", "turnover", "--change", "cell-key"], "amounts"),
    (["--by", "region", "--change", "round:5", "--cell-key"], "take one"),
    (["--by", "region", "--value", "turnover", *RULE, "--round-published", "ten"], "whole number"),
    (["--by", "region", "--value", "turnover", *RULE, "--round-published", "5,up"], "'nearest'"),
    (["--by", "region", "--counts", "key", "--cell-key"], "0 or 1"),
    (["--by", "region", "--counts", "key", *RULE], "of its own"),
    (["--by", "region,industry", "--value", "turnover", *RULE, "--publish", "region=zz"], "no label 'zz'"),
    (["--by", "region,industry", "--value", "turnover", *RULE, "--publish", "regio=zz"], "Did you mean 'region'"),
    (["--by", "region,industry", "--value", "turnover", *RULE, "--apriori", "none.hst"], "There is no a-priori file"),
    (["--by", "region", "--value", "turnover", "--cell-key", "--suppress", "region=Total"], "does not heed"),
    (["--by", "region", "--key", "key", *RULE], "--key is for --cell-key"),
    (["--by", "region", "--value", "turnover", *RULE, "--method", "slow"], "'fast' or 'optimal'"),
    (["--by", "region", "--value", "turnover", *RULE, "--cost", "nothing"], "nothing"),
    (["--by", "region", "--value", "turnover", *RULE, "--hierarchy", "region=csv:SHORT"], "region"),
    (["--by", "region", "--value", "turnover", *RULE, "--hierarchy", "region=columns:industry"], "no hierarchy"),
    (["--value", "turnover", *RULE], "--by"),
]


@pytest.mark.parametrize(("args", "words"), BAD, ids=[" ".join(args)[:60] for args, _ in BAD])
def test_bad_input(run: Run, made: Path, tmp_path: Path, args: list[str], words: str) -> None:
    given = [text.replace("SHORT", str(made / "short.csv")) for text in args]
    said = run(made / "firms.csv", *given, "--out", tmp_path / "out", code=2)
    assert words in said
    assert CANARY not in said
    assert "internal error" not in said
    assert not (tmp_path / "out").exists()


def test_no_pattern_protects_it(run: Run, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no other cell may be suppressed there is no secondary cell: the place is named, by its labels."""
    monkeypatch.setattr(table, "Suppress", partial(eq.tables.Suppress, publish="contributors"))
    said = run(*firms(made, "--rule", "min-count:3", "--out", tmp_path / "out"), code=2)
    assert re.search(r"the cell region = \w+, industry = \w+", said)
    assert CANARY not in said
    assert not (tmp_path / "out").exists()


def test_a_failed_audit_writes_nothing(run: Run, made: Path, tmp_path: Path) -> None:
    said = run(*firms(made, *RULE, "--round", "2", "--out", tmp_path / "out"), code=1)
    assert "the audit failed" in said
    assert not (tmp_path / "out").exists()


def test_a_failed_audit_as_json(made: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    args = ["table", *firms(made, *RULE, "--round", "2", "--out", tmp_path / "out"), "--json"]
    assert main([str(arg) for arg in args]) == 1
    assert json.loads(capfd.readouterr().out)["exit_code"] == 1


def test_never_over_anything_else(run: Run, made: Path, tmp_path: Path) -> None:
    out = tmp_path / "mine"
    args = firms(made, *RULE, "--out", out)
    run(*args)
    before = (out / "public" / "table.csv").read_bytes()
    assert "exists already" in run(*args, code=2)
    assert (out / "public" / "table.csv").read_bytes() == before
    run(*args, "--overwrite")
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    assert "not a release" in run(*firms(made, *RULE, "--out", other, "--overwrite"), code=2)


def test_a_failure_leaves_nothing(run: Run, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(PAGES, "Tabulated", fail)
    assert "No space left" in run(*firms(made, *RULE, "--out", tmp_path / "new" / "place"), code=2)
    assert not (tmp_path / "new").exists()
