"""Policy files with [table]: from records to a released table, the same again, and what is refused."""

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import tomli_w

import equipoise as eq
from equipoise.policies.policy import Policy
from equipoise.policies.policy_file import Job
from equipoise.releases import table_release
from equipoise.releases.table_release import TableRelease, audited_by, table_measures
from equipoise.tables import Distance, Exposed, Round, Suppress

CANARY = "Canary-4471"
EXPOSED = "exposed(rule='p-percent:10%')"
SUPPRESS = {"use": "suppress", "rule": ["p-percent:10%", "dominance:1,60%", "min-count:3"]}


def frame(many: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    region = rng.choice(["n1", "n2", "s1", "s2"], many, p=[0.5, 0.3, 0.15, 0.05])
    return pl.DataFrame(
        {
            "firm": [f"{CANARY}-{i}" for i in range(many)],
            "region": region,
            "country": ["North" if code[0] == "n" else "South" for code in region],
            "trade": rng.choice(["A1", "A2", "B1", "B2", "C1"], many, p=[0.45, 0.3, 0.15, 0.07, 0.03]),
            "turnover": np.ceil(rng.lognormal(3, 1.6, many)).astype(np.int64),
            "holding": np.arange(many) // 2,
        }
    )


def write(folder: Path, **changes: Any) -> Path:
    plain: dict[str, Any] = {
        "format": 1,
        "title": "Turnover of firms",
        "data": {"path": "firms.csv"},
        "table": {"by": ["region", "trade"], "value": "turnover", "hierarchies": {"region": ["country"]}},
        "limits": {EXPOSED: "<= 0", "distance": "< 20%"},
        "measures": ["suppressed"],
        "candidates": [{"masks": [SUPPRESS]}, {"masks": [{"use": "round", "base": [20, 500]}]}],
    }
    path = folder / "policy.toml"
    path.write_text(tomli_w.dumps({k: v for k, v in (plain | changes).items() if v is not None}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    frame().write_csv(folder / "firms.csv")
    (folder / "regions.hrc").write_text("North\n@n1\n@n2\nSouth\n@s1\n@s2\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def made(here: Path) -> TableRelease:
    found = eq.balance(write(here), out=here / "made")
    assert isinstance(found, TableRelease)
    return found


def test_the_best_inside_the_limits(made: TableRelease) -> None:
    """The chosen one is what the policy prefers among the trials, and the table is that of the method itself."""
    assert made.verdict
    assert len(made.comparison.trials) == 5
    assert made.policy.choose(made.comparison.trials).words() == made.trial.words() == "suppress by p-percent:10%"
    assert made.original.scores["exposed"].value == 1
    assert "South" not in repr(made)
    tree = eq.Hierarchy.mapping({"n1": "North", "n2": "North", "s1": "South", "s2": "South"})
    records = eq.Records.of(frame(), eq.Roles())
    alone = eq.tabulate(records, ["region", "trade"], "turnover", rule="p-percent:10%", hierarchies={"region": tree})
    assert made.table.public.equals(alone.public)
    assert made.table.audit.equals(alone.audit)
    assert (made.table.counts["exact"], made.table.counts["exposed"]) == (0, 0)


def test_the_folder(made: TableRelease) -> None:
    public = {"table.csv", "table.parquet", "report.html", "evidence.json"}
    assert {f.name for f in made.public.iterdir()} == public
    private = {f.name for f in made.private.iterdir()}
    assert {
        "table.csv",
        "table.sbs",
        "audit.csv",
        "report.html",
        "seed.json",
        "policy.toml",
        "journal.jsonl",
    } <= private
    assert stat.S_IMODE(made.private.stat().st_mode) == 0o700
    lines = [json.loads(line) for line in (made.private / "journal.jsonl").read_text().splitlines()]
    assert lines[0]["scores"] == list(made.trial.scores.keys())
    assert [line["masks"][0]["use"] for line in lines[1:]] == ["suppress"] * 3 + ["round"] * 2
    assert pl.read_csv(made.public / "table.csv").equals(made.table.public)


def test_made_again_byte_for_byte(made: TableRelease, tmp_path: Path) -> None:
    again = eq.balance(made.private / "policy.toml", out=tmp_path / "again")
    for name in ("public/table.csv", "public/table.parquet", "public/evidence.json", "private/table.csv",
                 "private/audit.csv", "private/policy.toml", "private/seed.json"):  # fmt: skip
        assert (made.folder / name).read_bytes() == (again.folder / name).read_bytes(), name


def test_random_methods_are_made_again_too(here: Path, tmp_path: Path) -> None:
    """Keys and rounding are drawn from the seed that is kept."""
    table = {"by": ["region", "trade"]}
    masks = [
        {"masks": [{"use": "cell_key", "most": [3, 5]}]},
        {"masks": [{"use": "round", "base": 7, "aim": "random"}]},
    ]
    limits = {"exposed(rule='min-count:2')": "<= 0.9", "distance": "< 80%"}
    path = write(here, table=table, candidates=masks, limits=limits, draws=2)
    one = eq.balance(path, out=tmp_path / "one")
    two = eq.balance(one.private / "policy.toml", out=tmp_path / "two")
    for name in ("public/table.csv", "private/seed.json"):
        assert (one.folder / name).read_bytes() == (two.folder / name).read_bytes()
    assert isinstance(one, TableRelease)
    assert not one.table.suppresses


def test_the_dominance_warning(made: TableRelease) -> None:
    """Any dominance in the policy is held against the table; the example is internal."""
    (warning,) = made.table.warnings
    assert warning.rule == "dominance:1,60%"
    assert "Dominance calls" in warning.words
    page = (made.private / "report.html").read_text(encoding="utf-8")
    public = (made.public / "report.html").read_text(encoding="utf-8")
    assert warning.example is not None
    assert warning.example in page
    assert "ominance" not in public
    assert "second largest" not in public


def test_dominance_in_a_limit_is_warned_of_too(here: Path, tmp_path: Path) -> None:
    limits = {"exposed(rule='dominance:1,60%')": "<= 0", "distance": "< 90%"}
    masks = [{"masks": [{"use": "suppress", "rule": "p-percent:10% | dominance:1,60%"}]}]
    found = eq.balance(write(here, limits=limits, candidates=masks), out=tmp_path / "out")
    assert isinstance(found, TableRelease)
    assert [w.rule for w in found.table.warnings] == ["p-percent:10% | dominance:1,60%", "dominance:1,60%"]


def test_the_pages(made: TableRelease) -> None:
    page = (made.private / "report.html").read_text(encoding="utf-8")
    words = ["Turnover of firms", "The rule needs a second look", "Risk-utility map", "1. suppress by p-percent:10%",
             "5. round to 500", ">Limits<", ">The table<", "Audit certificate", "What was done"]  # fmt: skip
    places = [page.index(word) for word in words]
    assert places == sorted(places)
    public = (made.public / "report.html").read_text(encoding="utf-8")
    assert "Turnover of firms" in public
    for word in ("Risk-utility", "10%", "round to", "Inside the limits", "p = 0", CANARY):
        assert word not in public.partition("<style>")[0] + public.partition("</style>")[2], word
    assert "p_percent(" not in (made.public / "evidence.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("tree", [["country"], "regions.hrc", {"kind": "prefix", "lengths": [1]}])
def test_hierarchies_from_everywhere(here: Path, tree: Any) -> None:
    job = Job.load(write(here, table={"by": ["region"], "value": "turnover", "hierarchies": {"region": tree}}))
    assert job.table is not None
    records = job.table.prepared(job.read())
    assert len(job.table.made(records, here, [], [], 1)) == 7
    assert job.again(records).table == job.table.with_plain_trees(records, here)


def test_coarser_columns_holdings_and_weights(here: Path) -> None:
    roles = {"hierarchies": {"trade": {"kind": "prefix", "lengths": [1]}}}
    job = Job.load(write(here, roles=roles, table={"by": ["trade"], "value": "turnover", "holding": "holding",
                                                  "weight": "turnover", "coarsen": {"trade": "1"}}))  # fmt: skip
    assert job.table is not None
    found = job.table.made(job.table.prepared(job.read()), here, [], [eq.rules.Dominance(5, 0.9)], 1)
    assert sorted(found.table["trade"]) == ["A", "B", "C", "Total"]
    assert found.numbers("value").max() == (frame()["turnover"] ** 2).sum()
    assert "top5" in found.more.columns


def test_a_ready_table(tmp_path: Path) -> None:
    made = eq.table(eq.Records.of(frame(), eq.Roles()), ["region", "trade"], "turnover")
    made.table.select("region", "trade", "n", "value", "top1", "top2").write_csv(tmp_path / "ready.csv")
    table = {"by": ["region", "trade"], "value": "value", "ready": {"n": "n", "top": ["top1", "top2"]}}
    found = eq.balance(write(tmp_path, data={"path": "ready.csv"}, table=table), out=tmp_path / "out")
    assert isinstance(found, TableRelease)
    alone = eq.tabulate(eq.Records.of(frame(), eq.Roles()), ["region", "trade"], "turnover", rule="p-percent:10%")
    assert found.trial.words() == "suppress by p-percent:10%"
    assert found.table.counts["sensitive"] == alone.counts["sensitive"]


# --- what is refused ----------------------------------------------------------------------------------------------


def test_no_candidate_is_inside(here: Path, tmp_path: Path) -> None:
    with pytest.raises(eq.RefusedError, match=r"None of 5 candidates meets the limits. Nearest is"):
        eq.balance(write(here, limits={EXPOSED: "<= 0", "distance": "< 0.1%"}), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_failed_audit_releases_nothing(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where every limit holds: a suppressed cell that can be computed is not published."""

    def refused(*args: Any) -> Any:
        raise eq.RefusedError("Nothing was published, the audit failed.")

    monkeypatch.setattr(table_release, "certified", refused)
    with pytest.raises(eq.RefusedError, match="the audit failed"):
        eq.balance(write(here), out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_the_final_audit_goes_by() -> None:
    strict, lax = Policy({EXPOSED: "<= 0"}), Policy({EXPOSED: "< 5%"})
    assert audited_by(eq.Recipe([Suppress(eq.rules.MinCount(3))]), strict) == eq.rules.MinCount(3)
    assert audited_by(eq.Recipe([Round(5)]), strict) == eq.rules.PPercent(0.1)
    assert audited_by(eq.Recipe([Round(5)]), lax) is None
    both = Policy({EXPOSED: "<= 0", "exposed:min-count:3": "<= 0"})
    assert audited_by(eq.Recipe([Round(5)]), both) == eq.rules.PPercent(0.1) | eq.rules.MinCount(3)


def test_a_policy_without_utility_measures_the_distance(here: Path) -> None:
    job = Job.load(write(here, limits={EXPOSED: "<= 0"}, measures=[]))
    assert table_measures(job) == (Exposed(eq.rules.PPercent(0.1)), Distance())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"table": {"by": []}}, "names no column"),
        ({"table": {"by": ["region"], "valeu": "turnover"}}, "table.valeu: is not known here"),
        ({"table": {"by": ["status"]}}, "rename that column"),
        ({"table": {"by": ["region"], "hierarchies": {"trade": ["x"]}}}, "does not go by 'trade'"),
        ({"table": {"by": ["region"], "ready": {"count": "n"}}}, "table.ready has no 'count'"),
        ({"table": {"by": ["region"], "ready": True, "coarsen": {"region": 1}}}, "cells already"),
        ({"limits": {"suppressed": "< 20%"}}, "say how many sensitive cells may be exposed"),
        ({"limits": {"exposed(rule='p-procent:10%')": "<= 0"}}, "Did you mean 'p_percent'"),
        ({"limits": {EXPOSED: "<= 0", "uniques": "< 1"}}, "Uniques measures records, not tables"),
        ({"candidates": [{"coarsenings": True}]}, "coarsenings are for records"),
        ({"candidates": None}, "coarsenings are for records"),
        ({"candidates": [{"masks": [{"use": "top_code", "column": "turnover", "at": 9}]}]}, "TopCode changes records"),
        ({"candidates": [{"masks": [{"use": "suppress", "rule": "min-cont:3"}]}]}, "Did you mean 'min_count'"),
        ({"candidates": [{"masks": [{"use": "suppress"}]}]}, "suppress needs rule"),
    ],
)
def test_policies_that_cannot_be_used(here: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(eq.ParameterError, match="cannot be used") as caught:
        Job.load(write(here, **changes))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"table": {"by": ["regio"], "value": "turnover"}}, eq.ParameterError, "Did you mean 'region'"),
        ({"table": {"by": ["firm"]}, "roles": {"id": "firm"}}, eq.ParameterError, "names records"),
        ({"table": {"by": ["region"], "hierarchies": {"region": "tree.txt"}}}, eq.ParameterError, ".hrc file"),
        ({"table": {"by": ["region"]}}, eq.DataError, "largest contributions"),
    ],
)
def test_data_that_does_not_fit(here: Path, tmp_path: Path, changes: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        eq.balance(write(here, **changes), out=tmp_path / "out")
    assert CANARY not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("statistic", ["mean", "ratio:holding", "share:region"])
def test_a_statistic_is_that_of_the_library(here: Path, tmp_path: Path, statistic: str) -> None:
    """[table] statistic publishes what `tabulate` does, is judged by its own pattern, and verifies."""
    frame().write_csv(tmp_path / "firms.csv")
    rule, layout = "p-percent:10%", {"by": ["region", "trade"], "value": "turnover", "statistic": statistic}
    masks = [{"masks": [{"use": "suppress", "rule": rule}]}]
    released = eq.balance(write(tmp_path, table=layout, limits={EXPOSED: "<= 0"}, candidates=masks))
    assert isinstance(released, TableRelease)
    expected = eq.tabulate(
        eq.read(tmp_path / "firms.csv"), ("region", "trade"), "turnover", rule=rule, statistic=statistic
    )
    assert released.table.public.equals(expected.public)
    hidden = np.isnan(expected.table.published_values)[expected.table.n > 0]
    assert released.trial.scores["suppressed"].value == pytest.approx(hidden.mean())
    assert eq.verify(released.folder).outcome == "verified"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"statistic": "meen"}, "There is no statistic 'meen'"),
        ({"statistic": "ratio:turnovr"}, "No column 'turnovr'"),
        ({"statistic": "median"}, "make a table of percentiles with"),
        ({"statistic": "share:country"}, "does not go by 'country'"),
        ({"components": True}, "name one"),
        ({"statistic": "mean"}, "protected by suppressing cells"),
    ],
)
def test_a_statistic_that_does_not_fit_is_one_sentence(here: Path, changes: dict[str, Any], words: str) -> None:
    with pytest.raises(eq.EquipoiseError, match=words):
        eq.balance(write(here, table={"by": ["region", "trade"], "value": "turnover", **changes}))
