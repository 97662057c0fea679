"""A released table: verified by making it again, its audit repeated, and held against the tables before it."""

import json
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.policies.sections import Candidate, Data
from equipoise.policies.table_section import Tabulation
from equipoise.provenance.seed_register import Register
from equipoise.releases.evidence import hashes, sealed
from equipoise.releases.verify import verify
from equipoise.tables.audits.attacker_intervals import too_close

RULE = "min-count:3"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(12)
    path = tmp_path_factory.mktemp("firms") / "firms.csv"
    pl.DataFrame(
        {
            "region": rng.choice(["n1", "n2", "s1", "s2"], 60),
            "trade": rng.choice(["food", "wood", "iron"], 60, p=[0.6, 0.3, 0.1]),
            "size": rng.choice(["big", "small"], 60),
            "turnover": rng.integers(10, 1000, 60),
        }
    ).write_csv(path)
    return path


TREE = {"region": eq.Hierarchy.mapping({"n1": "North", "n2": "North", "s1": "South", "s2": "South"})}


@pytest.fixture(scope="module")
def done(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("tables") / "out"
    eq.tabulate(eq.read(source), ["region", "trade"], rule=RULE, hierarchies=TREE, out=out)
    return out


@pytest.fixture
def folder(done: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(done, tmp_path / "out"))


def write_hashes_anew(folder: Path) -> None:
    public = folder / "public"
    evidence = json.loads((public / "evidence.json").read_text())
    evidence["files"] = hashes(public)
    evidence["output"] = [{"file": o["file"], "sha256": evidence["files"][o["file"]]} for o in evidence["output"]]
    text = json.dumps(evidence)
    (public / "evidence.json").write_text(text)
    secret = json.loads((folder / "private" / "seed.json").read_text())
    secret["seal"] = sealed(text.encode(), bytes.fromhex(secret["hash_key"]))
    (folder / "private" / "seed.json").write_text(json.dumps(secret))


def change(path: Path, more: int = 5) -> None:
    """The first published number becomes another one, in each format."""
    table = pl.read_csv(path)
    first = next(i for i, n in enumerate(table["published"].to_list()) if n is not None)
    values = [n + more if i == first else n for i, n in enumerate(table["published"].to_list())]
    table = table.with_columns(pl.Series("published", values))
    table.write_csv(path)
    if path.with_suffix(".parquet").exists():
        table.write_parquet(path.with_suffix(".parquet"))


def test_a_table_is_verified(folder: Path) -> None:
    found = verify(folder)
    assert found.outcome == "verified", found.words
    assert {c.name for c in found.checks if c.holds} >= {"files", "formats", "numbers", "audit", "again", "seal"}


def test_a_table_in_the_words_of_version_0_1(folder: Path) -> None:
    """Suppressed cells were withheld, secondary ones helpers: read as such, while a wrong word is still refused."""
    for place, old in (("public", {"suppressed": "withheld"}), ("private", {"secondary": "helper"})):
        path = folder / place / "table.csv"
        table = pl.read_csv(path)
        assert set(old) <= set(table["status"])
        table = table.with_columns(pl.col("status").replace(old))
        table.write_csv(path)
        if place == "public":
            table.write_parquet(path.with_suffix(".parquet"))
    evidence = folder / "public" / "evidence.json"
    evidence.write_text(evidence.read_text().replace("suppressed", "withheld"))
    write_hashes_anew(folder)
    found = verify(folder)
    assert found.outcome == "verified", found.words
    table = pl.read_csv(folder / "public" / "table.csv").with_columns(pl.col("status").replace("withheld", "published"))
    table.write_csv(folder / "public" / "table.csv")
    table.write_parquet(folder / "public" / "table.parquet")
    write_hashes_anew(folder)
    assert "A suppressed cell has a number, or a published one has none." in verify(folder).words


@pytest.mark.parametrize("method", [eq.tables.Round(5), eq.tables.CellKey()])
def test_changed_numbers_too(source: Path, tmp_path: Path, method: object) -> None:
    eq.tabulate(eq.read(source), ["region", "trade"], method=method, out=tmp_path / "out")
    assert verify(tmp_path / "out").outcome == "verified"


def test_one_number_and_every_hash_anew(folder: Path) -> None:
    change(folder / "public" / "table.csv")
    assert verify(folder).outcome == "refused"
    write_hashes_anew(folder)
    found = verify(folder)
    assert "The numbers are not those of private/" in found.words
    assert "the table is another one" in found.words


def test_one_number_in_both_folders(folder: Path) -> None:
    """Whoever also changes the private table is seen when it is made again."""
    change(folder / "public" / "table.csv")
    change(folder / "private" / "table.csv")
    write_hashes_anew(folder)
    found = verify(folder)
    assert "Made again from the original, the table is another one." in found.words


def test_a_suppressed_cell_that_is_filled_in(folder: Path) -> None:
    """The truth, written into the public table: no hash need be wrong for it to be refused."""
    table, truth = (pl.read_csv(folder / name / "table.csv") for name in ("public", "private"))
    shown = table.with_columns(published=truth["value"].cast(table.schema["published"]), status=pl.lit("published"))
    shown.write_csv(folder / "public" / "table.csv")
    shown.write_parquet(folder / "public" / "table.parquet")
    write_hashes_anew(folder)
    assert verify(folder).outcome == "refused"


def test_without_the_original(folder: Path, tmp_path: Path) -> None:
    recipe = folder / "private" / "recipe.json"
    recipe.write_text(recipe.read_text().replace("firms.csv", "gone.csv"))
    found = verify(folder)
    assert found.outcome == "unproven"
    assert "audit" in {c.name for c in found.checks if c.holds}
    shutil.copytree(folder / "public", tmp_path / "received")
    assert verify(tmp_path / "received").outcome == "unproven"


def test_a_table_of_a_policy(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(
        f"""
[data]
path = "{source}"
[table]
by = ["region", "trade"]
[limits]
"exposed(rule='{RULE}')" = "<= 0"
[[candidates]]
masks = [{{use = "suppress", rule = "{RULE}"}}]
"""
    )
    made = eq.balance(path, out=tmp_path / "out")
    assert verify(made.folder).outcome == "verified"
    change(made.public / "table.csv")
    write_hashes_anew(made.folder)
    assert verify(made.folder).outcome == "refused"


# --- the tables before it -----------------------------------------------------------------------------------------


def overlapping() -> pl.DataFrame:
    """By region 2 + 4 + 9 records, by region and sex: the one suppressed with its secondary cell in the first follows
    from the second, which suppresses others."""
    rows = [("a", "f")] * 1 + [("a", "m")] * 1 + [("b", "f")] * 2 + [("b", "m")] * 2 + [("c", "f")] * 5
    rows += [("c", "m")] * 4 + [("d", "f")] * 6 + [("d", "m")] * 8
    return pl.DataFrame({"k": [k for k, _ in rows], "s": [s for _, s in rows]})


@pytest.fixture
def people(tmp_path: Path) -> eq.Records:
    overlapping().write_csv(tmp_path / "people.csv")
    return eq.read(tmp_path / "people.csv")


def test_the_same_table_again_is_no_danger(people: eq.Records, tmp_path: Path) -> None:
    book = tmp_path / "register.json"
    for name in ("one", "two"):
        eq.tabulate(people, "k", rule=RULE, register=book, out=tmp_path / name)
    assert len(Register(book).tables(people)) == 1


def test_what_two_tables_give_away_together(people: eq.Records, tmp_path: Path) -> None:
    """A coarser rule suppresses less: together with the stricter table before it cells could be computed. With the
    register what was suppressed stays so; a stricter rule for what was published before is refused."""
    book, strict = tmp_path / "register.json", "min-count:6"
    first = eq.tabulate(people, ["k", "s"], rule=strict, register=book, out=tmp_path / "one")
    assert first.counts["suppressed"]
    alone = eq.tabulate(people, ["k", "s"], rule="min-count:2", out=tmp_path / "alone")
    assert alone.counts["exact"] == 0
    told = eq.tables.difference(first.table, alone.table)
    assert told["exact"].any(), "the two together give something away"
    second = eq.tabulate(people, ["k", "s"], rule="min-count:2", register=book, out=tmp_path / "two")
    assert not eq.tables.difference(first.table, second.table)["exact"].any()
    assert verify(tmp_path / "two").outcome == "verified"
    with pytest.raises(eq.RefusedError, match="beside the tables that were published before"):
        eq.tabulate(people, ["k", "s"], rule="min-count:8", register=book, out=tmp_path / "three")
    assert not (tmp_path / "three").exists()
    assert len(Register(book).tables(people)) == 1, "the second is the first"


def test_other_data_and_other_quantities_do_not_meet(people: eq.Records, source: Path, tmp_path: Path) -> None:
    book = tmp_path / "register.json"
    eq.tabulate(people, ["k", "s"], rule="min-count:6", register=book, out=tmp_path / "one")
    firms = eq.read(source)
    eq.tabulate(firms, "trade", rule=RULE, register=book, out=tmp_path / "two")
    eq.tabulate(firms, "trade", "turnover", rule="p-percent:1%", register=book, out=tmp_path / "three")
    assert [len(Register(book).tables(records)) for records in (people, firms)] == [1, 2]


def test_the_register_is_private_and_keeps_what_it_needs(people: eq.Records, tmp_path: Path) -> None:
    """The release may be moved or replaced: the cells stand beside the register. If they go, nothing is passed."""
    book = tmp_path / "register.json"
    eq.tabulate(people, ["k", "s"], rule="min-count:6", register=book, out=tmp_path / "one")
    shutil.rmtree(tmp_path / "one")
    shelf = Register(book).shelf
    assert shelf.stat().st_mode & 0o077 == 0
    with pytest.raises(eq.RefusedError):
        eq.tabulate(people, ["k", "s"], rule="min-count:8", register=book)
    shutil.rmtree(shelf)
    with pytest.raises(eq.DataError, match="not beside it any more"):
        eq.tabulate(people, ["k", "s"], rule="min-count:2", register=book)


def test_on_the_command_line(people: eq.Records, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from equipoise.doors.cli import main

    assert people.source is not None
    args = ["table", people.source.path, "--by", "k,s", "--register", str(tmp_path / "register.json")]
    assert main([*args, "--rule", "min-count:6", "--out", str(tmp_path / "one")]) == 0
    assert main([*args, "--rule", "min-count:8", "--out", str(tmp_path / "two")]) == 1
    assert "beside the tables that were published before" in capfd.readouterr().err
    assert main(["verify", str(tmp_path / "one")]) == 0


def test_earlier_cells_known_too_closely() -> None:
    """Values 100 with levels of 10 both ways: 90 to 110 is wide enough, one step less on either side is not."""
    ends = [(90.0, 110.0), (90.1, 120.0), (50.0, 109.9), (0.0, 200.0)]
    low, high = np.array(ends).T
    values, levels = np.full(4, 100.0), np.array([10.0, 10.0, 10.0, 0.0])
    assert too_close(values, low, high, levels, levels).tolist() == [False, True, True, False]
    assert not too_close(values, low, high, 0 * levels, 0 * levels).any()


def test_cells_are_changed_alike_in_every_table(people: eq.Records, tmp_path: Path) -> None:
    """A total that stands in two tables is changed in the same way, in later releases too: nothing averages out."""
    book, method = tmp_path / "register.json", eq.tables.CellKey()
    one = eq.tabulate(people, ["k", "s"], method=method, register=book, out=tmp_path / "one")
    two = eq.tabulate(people, "k", method=method, register=book, seed=5, out=tmp_path / "two")
    assert one.seed == two.seed != 5
    total = one.public.filter(pl.col("s") == "Total").select("k", "published").sort("k")
    assert total.equals(two.public.select("k", "published").sort("k"))
    assert verify(tmp_path / "two").outcome == "verified"


def test_a_policy_s_tables_are_registered_too(people: eq.Records, tmp_path: Path) -> None:
    from equipoise.policies.policy_file import Job
    from equipoise.releases.balance import balanced

    def job(rule: str) -> Job:
        masks = ({"use": "suppress", "rule": rule},)
        return Job(
            Data("people.csv"), {}, {f"exposed(rule='{rule}')": "<= 0"}, (Candidate(masks=masks),),
            table=Tabulation(by=("k", "s")), register="register.json", folder=tmp_path,
        )  # fmt: skip

    balanced(job("min-count:6"), tmp_path / "one")
    assert len(Register(tmp_path / "register.json").tables(people)) == 1
    two = balanced(job("min-count:2"), tmp_path / "two")
    assert verify(tmp_path / "two").outcome == "verified"
    assert "Audited together with 1 earlier table of this data." in two.table.notes


@pytest.mark.parametrize("formulas", ["keep", "escape"])
def test_a_table_of_a_policy_whose_categories_look_like_formulas_or_levels(tmp_path: Path, formulas: str) -> None:
    """A category that begins with @ was taken for a level of a hierarchy, and the private table not read back."""
    groups = {"=1+1": 2, "@a": 9, "@@b": 3, "n": 12}
    rows = [(sex, group) for group, many in groups.items() for sex in ("f",) * many + ("m",) * 8]
    pl.DataFrame(rows, schema=["sex", "group"], orient="row").write_csv(tmp_path / "d.csv")
    policy = tmp_path / "t.toml"
    policy.write_text(
        f"""format = 1
[data]
path = "d.csv"
[table]
by = ["sex", "group"]
[limits]
"exposed(rule='min-count:3')" = "<= 0"
[[candidates]]
masks = [{{ use = "suppress", rule = "min-count:3" }}]
[output]
csv_formulas = "{formulas}"
""",
        encoding="utf-8",
    )
    eq.balance(policy, out=tmp_path / "out")
    text = (tmp_path / "out" / "public" / "table.csv").read_text(encoding="utf-8")
    assert ("f,=1+1," in text) == (formulas == "keep")
    assert ("f,'=1+1," in text) == (formulas == "escape")
    result = verify(tmp_path / "out")
    assert [check.words for check in result.checks if check.name in ("audit", "again")] == [
        "Audited again, an outsider can compute no suppressed cell exactly.",
        "Made again from the original and audited, the table is the same.",
    ]
