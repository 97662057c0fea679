"""`equipoise table --ready`: a table that is ready, from a file to what is published; plain refusals."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.cli import main

Run = Callable[..., str]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*args: str | Path, code: int = 0) -> str:
        assert main(["table", *(str(a) for a in args)]) == code
        out, err = capfd.readouterr()
        assert bool(err) == bool(code), err
        assert err.count("\n") <= 1
        return err if code else out

    return call


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of firms as a file: codes, N_OBS, MAX, a mark and two levels; and its microdata."""
    folder = tmp_path_factory.mktemp("ready")
    random = np.random.default_rng(8)
    firms = pl.DataFrame(
        {
            "region": random.choice(["n1", "n2", "s1", "s2"], 300, p=[0.5, 0.3, 0.17, 0.03]),
            "industry": random.choice(["A", "B", "C"], 300, p=[0.6, 0.3, 0.1]),
            "turnover": np.ceil(random.lognormal(3, 1.6, 300)),
        }
    )
    firms.write_csv(folder / "firms.csv")
    (folder / "regions.hrc").write_text("North\n@n1\n@n2\nSouth\n@s1\n@s2\n", encoding="utf-8")
    tree = eq.Hierarchy.hrc(folder / "regions.hrc")
    rule = eq.rules.PPercent(0.1)
    table = eq.table(eq.read(folder / "firms.csv"), ["region", "industry"], "turnover", hierarchies={"region": tree})
    levels = rule.levels(table).rename({"lower": "down", "upper": "up"})
    told = table.table.rename({"n": "N_OBS", "top1": "MAX", "top2": "MAX2", "value": "TOT"})
    told = told.drop("total", "contributors", "top3").with_columns(rule.flag(table).alias("secret"), *levels)
    told.filter(pl.col("N_OBS") > 0).write_csv(folder / "table.csv")
    return folder


def ready(folder: Path, *more: str | Path) -> list[str | Path]:
    tree = f"region=hrc:{folder / 'regions.hrc'}"
    return [folder / "table.csv", "--ready", "--by", "region,industry", "--value", "TOT", "--hierarchy", tree, *more]


def test_the_same_table_from_microdata(run: Run, made: Path, tmp_path: Path) -> None:
    rule = ("--rule", "p-percent:10% | min-count:3")
    tree = f"region=hrc:{made / 'regions.hrc'}"
    micro = [made / "firms.csv", "--by", "region,industry", "--value", "turnover", "--hierarchy", tree, *rule]
    one = json.loads(run(*micro, "--out", tmp_path / "micro", "--json"))
    two = json.loads(run(*ready(made, "--count", "N_OBS", "--top", "MAX,MAX2", "--total", "Total", *rule),
                         "--out", tmp_path / "ready", "--json"))  # fmt: skip
    assert one["counts"] == two["counts"]
    for name in ("public/table.csv", "private/table.sbs"):
        assert (tmp_path / "micro" / name).read_bytes() == (tmp_path / "ready" / name).read_bytes()


def test_marked_cells_with_their_levels(run: Run, made: Path) -> None:
    """Without a rule the marks are it; by name it is the same, and the same as in Python."""
    marks = ("--count", "N_OBS", "--sensitive", "secret", "--levels", "down,up")
    told = json.loads(run(*ready(made, *marks, "--json")))
    assert told["counts"] == json.loads(run(*ready(made, *marks, "--rule", "marked", "--json")))["counts"]
    secret = pl.read_csv(made / "table.csv")["secret"].sum()
    assert told["counts"]["sensitive"] == secret > 0
    found = eq.tabulate(
        eq.read(made / "table.csv"), ["region", "industry"], "TOT", rule=eq.rules.Marked(),
        hierarchies={"region": eq.Hierarchy.hrc(made / "regions.hrc")},
        ready=eq.tables.Ready(n="N_OBS", sensitive="secret", lower="down", upper="up"),
    )  # fmt: skip
    assert found.counts == told["counts"]


def test_what_was_written_is_read_without_options(run: Run, made: Path, tmp_path: Path) -> None:
    run(*ready(made, "--count", "N_OBS", "--sensitive", "secret", "--out", tmp_path / "out"))
    again = json.loads(run(tmp_path / "out" / "private" / "table.sbs", "--ready", "--json"))
    assert again["by"] == ["region", "industry"]
    assert again["value"] == "value"
    assert again["counts"]["sensitive"] > 0


def test_rounding_a_ready_table(run: Run, made: Path) -> None:
    told = json.loads(run(made / "table.csv", "--ready", "--by", "region,industry", "--count", "N_OBS", "--round", "5",
                          "--hierarchy", f"region=hrc:{made / 'regions.hrc'}", "--json"))  # fmt: skip
    assert told["method"] == "round"


def test_costs_and_wishes_from_columns(run: Run, made: Path, tmp_path: Path) -> None:
    """A column of costs, one that marks cells to be published, and one to be kept when others are rounded."""
    table = pl.read_csv(made / "table.csv")
    secondary = ("--count", "N_OBS", "--sensitive", "secret", "--levels", "down,up", "--outsiders-only")
    run(*ready(made, *secondary, "--out", tmp_path / "plain"))
    plain = pl.read_csv(tmp_path / "plain" / "private" / "table.csv")
    chosen = plain.filter(status="secondary").select("region", "industry").row(0)
    here = (pl.col("region") == chosen[0]) & (pl.col("industry") == chosen[1])
    marked = table.with_columns(dear=pl.when(here).then(10**9).otherwise("TOT"), fixed=here)
    marked.write_csv(tmp_path / "table.csv")
    (tmp_path / "regions.hrc").write_text((made / "regions.hrc").read_text(encoding="utf-8"), encoding="utf-8")
    for wish in (("--cost", "dear"), ("--publish", "fixed")):
        run(*ready(tmp_path, *secondary, *wish, "--out", tmp_path / wish[1]))
        told = pl.read_csv(tmp_path / wish[1] / "private" / "table.csv").filter(here)
        assert told["status"].item() == "published"
    kept = (
        "--count",
        "N_OBS",
        "--change",
        "round(base=50, controlled=False, keep='fixed')",
        "--out",
        tmp_path / "kept",
    )
    run(*ready(tmp_path, *kept))
    rounded = pl.read_csv(tmp_path / "kept" / "private" / "table.csv")
    assert rounded.filter(here)["published"].item() == rounded.filter(here)["value"].item()
    assert (rounded.filter(~here)["published"] % 50 == 0).all()


def test_help(run: Run) -> None:
    text = run("--help")
    assert all(option in text for option in ("--ready", "--count", "--top", "--total", "--sensitive", "--levels"))


BAD: list[tuple[list[str], str]] = [
    (["--count", "N_OBS", "--rule", "min-count:3"], "--count is about a table that is ready: add --ready"),
    (["--ready", "--count", "N_OB", "--rule", "min-count:3"], "Did you mean 'N_OBS'?"),
    (["--ready", "--count", "N_OBS"], "no column 'sensitive' that marks sensitive cells"),
    (["--ready", "--rule", "min-count:3"], "does not say how many contribute"),
    (["--ready", "--count", "N_OBS", "--rule", "p-percent:10%"], "largest contributions"),
    (["--ready", "--count", "N_OBS", "--levels", "down"], "--levels names two columns"),
    (["--ready", "--count", "N_OBS", "--total", "region=Sum"], "Column 'region' has no code 'Sum'"),
    (["--ready", "--cell-key"], "a ready table has none"),
    (["--ready", "--holding", "MAX", "--rule", "min-count:3"], "holding is about records"),
    (["--ready", "--weight", "MAX", "--rule", "min-count:3"], "weight is about records"),
]


@pytest.mark.parametrize(("args", "words"), BAD, ids=[" ".join(args)[:60] for args, _ in BAD])
def test_bad_input(run: Run, made: Path, tmp_path: Path, args: list[str], words: str) -> None:
    tree = f"region=hrc:{made / 'regions.hrc'}"
    given = [made / "table.csv", "--by", "region,industry", "--value", "TOT", "--hierarchy", tree]
    said = run(*given, *args, "--out", tmp_path / "out", code=2)
    assert words in said
    assert "internal error" not in said
    assert not (tmp_path / "out").exists()


def test_a_table_that_does_not_add_up(run: Run, made: Path, tmp_path: Path) -> None:
    rows = pl.read_csv(made / "table.csv")
    wrong = rows.with_columns(
        pl.when(pl.col("region") == "North").then(pl.col("TOT") + 1).otherwise("TOT").alias("TOT")
    )
    wrong.write_csv(tmp_path / "wrong.csv")
    tree = f"region=hrc:{made / 'regions.hrc'}"
    said = run(tmp_path / "wrong.csv", "--ready", "--by", "region,industry", "--value", "TOT", "--count", "N_OBS",
               "--hierarchy", tree, "--rule", "min-count:3", code=2)  # fmt: skip
    assert "is not the sum of its parts along 'region'" in said
    missing = run(made / "firms.csv", "--rule", "min-count:3", code=2)
    assert "--by" in missing
