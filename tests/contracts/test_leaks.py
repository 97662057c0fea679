"""No data value leaves in words: a canary is planted in the data and looked for everywhere."""

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals as nw
import polars as pl
import pytest

import equipoise as eq
from equipoise.ground.randomness import Draws

CANARY = "Quetzalcoatlus"
NUMBER = 8_675_309
SEED = 271_828_182_845_904


def silent(call: Callable[[], Any], error: type[Exception] = eq.EquipoiseError, *canaries: str) -> str:
    """The call fails in our own words: no canary in the text, nor in any traceback a person would see."""
    with pytest.raises(error) as caught:
        call()
    shown = "".join(traceback.format_exception(caught.value, limit=0))
    for canary in canaries or (CANARY, str(NUMBER)):
        assert canary not in str(caught.value)
        assert canary not in shown, "raised from None"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


# --- errors while reading -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"a,b\n1,2\n{CANARY}\n",
        f"a,b\n1,2\n3,{CANARY},5\n",
        f'a,b\n1,"{CANARY}\n3,4\n',
        f'a,b\n1,2\n"x"{CANARY}"y,4\n',
        f"{CANARY},{CANARY}\n1,2\n",
        f"a,b\n1,2\n3,{CANARY}\x00\n",
    ],
    ids=["short row", "long row", "open quote", "quote inside", "headless twins", "zero byte"],
)
def test_malformed_csv(tmp_path: Path, text: str) -> None:
    """Parsers quote what they stumble over; we do not."""
    path = tmp_path / "file.csv"
    path.write_text(text, encoding="utf-8")
    roles = eq.Roles(["a"], numeric=["b"])
    silent(lambda: eq.count(eq.read(path, roles), ["a", "b"]))


def test_a_late_row_that_does_not_fit(tmp_path: Path) -> None:
    """After twelve thousand rows of numbers comes a word; types are then taken from all rows, or refused in silence."""
    path = tmp_path / "file.csv"
    path.write_text("a,b\n" + "1,2\n" * 12_000 + f"1,{CANARY}\n", encoding="utf-8")
    silent(lambda: eq.read(path, eq.Roles(["a"], numeric=["b"])))
    path.write_text("a,b\n" + "1,2\n" * 70_000 + f"1,2,{CANARY}\n", encoding="utf-8")
    silent(lambda: eq.read(path, eq.Roles(["a"])))


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(b"a,b\n1," + CANARY.encode() + b"\xff\xfe\n")
    silent(lambda: eq.read(path, eq.Roles(["a"]), encoding="utf-8"))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_damaged_files(tmp_path: Path, suffix: str) -> None:
    """Cut off, or something else under that name."""
    whole = tmp_path / f"whole{suffix}"
    table = pl.DataFrame({"a": [CANARY] * 1000, "b": range(1000)})
    table.write_parquet(whole, compression="uncompressed") if suffix == ".parquet" else table.write_ipc(whole)
    for name, data in (("cut", whole.read_bytes()[:-200]), ("other", CANARY.encode() * 100)):
        path = tmp_path / f"{name}{suffix}"
        path.write_bytes(data)
        silent(lambda path=path: eq.count(eq.read(path, eq.Roles(["a"]))))  # type: ignore[misc]


def test_damaged_inside(tmp_path: Path) -> None:
    """Header and footer are whole, the data between is not: the error comes late, and is still silent."""
    path = tmp_path / "inside.parquet"
    pl.DataFrame({"a": [f"{CANARY}{i}" for i in range(5000)]}).write_parquet(path, compression="zstd", statistics=False)
    data = bytearray(path.read_bytes())
    data[100:2000] = b"\xff" * 1900
    path.write_bytes(bytes(data))
    silent(lambda: eq.count(eq.read(path, eq.Roles(["a"]))))


# --- errors of roles, hierarchies and masks -----------------------------------------------------------------------


def frame(**changes: Any) -> pl.DataFrame:
    table = pl.DataFrame({"id": [1, 2, 3], "a": ["x", CANARY, "y"], "b": [1, 2, NUMBER], "w": [1.0, 2.0, 3.0]})
    return table.with_columns(**changes)


CASES: dict[str, Callable[[], Any]] = {
    "text as weight": lambda: eq.read(frame(), eq.Roles(["b"], weight="a")),
    "text as number": lambda: eq.read(frame(), eq.Roles(["b"], numeric=["a"])),
    "negative weight": lambda: eq.read(frame(w=pl.lit(-NUMBER)), eq.Roles(["a"], weight="w")),
    "no such key": lambda: eq.read(frame(), eq.Roles(["c"])),
    "value not in the hierarchy": lambda: run("a", eq.Hierarchy.mapping({"x": "1", "y": "1"})),
    "number not in the hierarchy": lambda: run("b", eq.Hierarchy.mapping({1: "1", 2: "1"})),
    "intervals of text": lambda: run("a", eq.Hierarchy.intervals(5)),
    "dates of text": lambda: run("a", eq.Hierarchy.dates("month")),
    "too many bands": lambda: run("b", eq.Hierarchy.intervals(0.001)),
    "top code of text": lambda: eq.masks.TopCode("a", 5).apply(eq.read(frame()), Draws(1)),
    "range of text": lambda: measured(eq.risk.AttributeDisclosure("a", range=1.0)),
    "repeated ids": lambda: eq.read(frame(id=pl.lit(NUMBER)), eq.Roles(["a"], id="id")).keys_of_rows(),
    "missing ids": lambda: eq.read(frame(id=pl.lit(None)), eq.Roles(["a"], id="id")).keys_of_rows(),
    "a frame that is none": lambda: eq.read([CANARY, NUMBER], eq.Roles(["a"])),
    "a lazy cast that fails": lambda: eq.count(
        eq.read(frame().lazy().with_columns(pl.col("a").cast(pl.Int64)), eq.Roles(["a"]))
    ),
    "a lazy date that fails": lambda: eq.count(
        eq.read(frame().lazy().with_columns(pl.col("a").str.to_date("%Y-%m-%d")), eq.Roles(["a"]))
    ),
    "a lazy cast that fails in a mask": lambda: (
        eq.masks.TopCode("b", 1)
        .apply(eq.read(frame().lazy().with_columns(pl.col("a").cast(pl.Int64)), eq.Roles(["b"])), Draws(1))
        .to_native()
        .pipe(lambda native: eq.count(eq.read(native, eq.Roles(["a"]))))
    ),
}


def run(column: str, tree: eq.Hierarchy) -> eq.Records:
    records = eq.read(frame(), eq.Roles([column], hierarchies={column: tree}))
    return eq.Recipe([eq.masks.Recode(column, 1)]).run(records)


def measured(measure: Any) -> eq.Score:
    records = eq.read(frame(), eq.Roles(["b"], ["a"]))
    score: eq.Score = measure.measure(records, records)
    return score


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_errors_name_columns_and_numbers_only(case: Callable[[], Any]) -> None:
    """Every way a value can get in the way: the message names the column, never the value."""
    silent(case)


def test_pandas_of_mixed_types() -> None:
    """An object column cannot become a column of one type; the value that broke it is not shown."""
    pandas = pytest.importorskip("pandas")
    mixed = pandas.DataFrame({"a": [1, CANARY, 2.5, [NUMBER]]})
    silent(lambda: eq.count(eq.read(mixed, eq.Roles(["a"]))))


def test_duckdb_casts_that_fail() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql(f"select cast(x as integer) as a from (values ('1'), ('{CANARY}')) t(x)")
    silent(lambda: eq.count(eq.read(relation, eq.Roles(["a"]))))


@pytest.mark.xdist_group("spark")
def test_spark_casts_that_fail(spark: Any) -> None:
    """ANSI mode raises with the value in the text."""
    table = spark.createDataFrame([("1",), (CANARY,)], ["x"]).selectExpr("cast(x as int) as a")
    silent(lambda: eq.count(eq.read(table, eq.Roles(["a"]))))


# --- reprs --------------------------------------------------------------------------------------------------------


@pytest.fixture
def marked(people: pl.DataFrame) -> pl.DataFrame:
    """A file in which one record carries the canary in every column of text, and a number of its own."""
    first = pl.col("person") == 1
    return people.with_columns(
        *(pl.when(first).then(pl.lit(CANARY)).otherwise(pl.col(c)).alias(c) for c in ("sex", "area", "ill")),
        salary=pl.when(first).then(NUMBER).otherwise(pl.col("salary")),
    )


@pytest.mark.parametrize("style", [repr, str, "{}".format])
def test_reprs_hold_no_data(marked: pl.DataFrame, people_roles: eq.Roles, style: Callable[[Any], str]) -> None:
    """Names, counts and parameters; the nouns are printed in notebooks and logs every day."""
    records = eq.read(marked, people_roles)
    recipe = eq.Recipe([eq.masks.Recode("age", 1), eq.masks.TopCode("salary", 50_000)], seed=SEED)
    released, cells = recipe.run(records), eq.count(records)
    score = eq.risk.Uniques().measure(released, records)
    listed = eq.Hierarchy.mapping({CANARY: "a", "x": "b"})
    trials = eq.sweep(records, [recipe], [eq.risk.Uniques()], details=True)
    nouns = [
        records,
        released,
        released.history,
        cells,
        score,
        eq.Scores([score]),
        recipe,
        trials[0],
        eq.frontier(trials),
        listed,
        listed.levels,
        eq.Roles(["area"], hierarchies={"area": listed}),
        eq.assess(records, [eq.risk.Uniques()]),
        Draws(SEED).child(1),
    ]
    for noun in nouns:
        for canary in (CANARY, str(NUMBER), str(SEED)):
            assert canary not in style(noun), type(noun).__name__


def test_holdouts_are_not_printed(marked: pl.DataFrame, people_roles: eq.Roles) -> None:
    from equipoise.search.sweep import reserve

    assert CANARY not in repr(reserve(eq.read(marked, people_roles), 0.3, seed=SEED))


def test_narwhals_frames_are_not_in_the_repr(marked: pl.DataFrame, people_roles: eq.Roles) -> None:
    """A LazyFrame's own repr shows the plan, which may hold literals."""
    records = eq.read(marked.lazy().filter(pl.col("sex") != CANARY), people_roles)
    assert CANARY not in repr(records)
    assert isinstance(records.frame, nw.LazyFrame)


# --- releases -----------------------------------------------------------------------------------------------------


def test_what_the_public_sees_beside_the_data(marked: pl.DataFrame, people_roles: eq.Roles, tmp_path: Path) -> None:
    """Seed nowhere in public/; no value or category in the public report or evidence; the data is the release."""
    recipe = eq.Recipe([eq.masks.Recode("age", "10"), eq.masks.TopCode("salary", 40_000)], seed=SEED)
    made = eq.release(eq.read(marked, people_roles), recipe, eq.Policy({"uniques": "< 0.9"}), tmp_path / "out")
    for path in made.public.rglob("*"):
        if path.is_file():
            assert str(SEED).encode() not in path.read_bytes(), path.name
            assert hex(SEED)[2:].encode() not in path.read_bytes(), path.name
    for name in ("report.html", "evidence.json", "codebook.md", "codebook.json"):
        text = (made.public / name).read_text(encoding="utf-8")
        assert CANARY not in text, name
        assert str(NUMBER) not in text, name
        assert f"{NUMBER:,}" not in text, name
    assert CANARY not in repr(made)
    assert str(SEED) not in repr(made) + json.dumps(made.evidence)
    holding = {
        path.name for path in made.folder.rglob("*") if path.is_file() and str(SEED).encode() in path.read_bytes()
    }
    assert holding == {"seed.json"}, "the seed is in one private file"


def test_verifying_says_nothing_of_data(marked: pl.DataFrame, people_roles: eq.Roles, tmp_path: Path) -> None:
    """Verified, refused or unproven: neither a value nor the seed in the words, on the terminal or in errors."""
    from equipoise.doors.cli import main

    marked.write_csv(tmp_path / "people.csv")
    recipe = eq.Recipe([eq.masks.Recode("age", "10"), eq.masks.Noise("salary", 0.2)], seed=SEED)
    records = eq.read(tmp_path / "people.csv", people_roles)
    made = eq.release(records, recipe, eq.Policy({"uniques": "< 0.9"}), tmp_path / "out")
    shown = [eq.verify(made.folder, canaries=[CANARY])]
    (tmp_path / "people.csv").write_text(f"{CANARY},b\n1,{CANARY}\n", encoding="utf-8")
    shown.append(eq.verify(made.folder))
    (made.public / "data.csv").write_text(f"sex\n{CANARY}\n", encoding="utf-8")
    shown.append(eq.verify(made.folder))
    assert [found.outcome for found in shown] == ["verified", "unproven", "refused"]
    for found in shown:
        for canary in (CANARY, str(NUMBER), str(SEED), f"{SEED:x}"):
            assert canary not in json.dumps(found.to_plain()) + repr(found)
    assert main(["verify", str(made.folder)]) == 1


def test_a_refusal_shows_no_data(marked: pl.DataFrame, people_roles: eq.Roles, tmp_path: Path) -> None:
    records = eq.read(marked, people_roles)
    silent(lambda: eq.release(records, eq.Recipe(seed=SEED), eq.Policy({"uniques": "< 0.01"}), tmp_path / "o"))


def test_a_page_that_fails_while_writing_says_nothing_of_data(
    people_roles: eq.Roles, marked: pl.DataFrame, tmp_path: Path
) -> None:
    """A lazy frame may fail only when the released data is written."""
    broken = marked.lazy().with_columns(extra=pl.col("ill").cast(pl.Int64))
    recipe = eq.Recipe([eq.masks.Recode("age", "10")])
    silent(lambda: eq.release(eq.read(broken, people_roles), recipe, eq.Policy({"uniques": "< 0.9"}), tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_policy_errors_quote_no_values(tmp_path: Path) -> None:
    """What a policy file says of data (leaves of a hierarchy) is data."""
    path = tmp_path / "policy.toml"
    path.write_text(
        f"""
[data]
path = "x.csv"
[limits]
uniques = "< 0.1"
[roles]
keys = ["a"]
[roles.hierarchies.a]
kind = "mapping"
groups = [["{CANARY}", "g", "p"], ["x", "g", "{CANARY}"]]
""",
        encoding="utf-8",
    )
    assert "not a function" in silent(lambda: eq.balance(path))
