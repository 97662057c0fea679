"""Somebody who has two public folders of the same people joins them: no one is alone more surely than reported.

The intruder is written here. He links the rows of both files by a column that both show as it is, looks up his target
in the classes of each, and keeps the rows that fit in both. He averages noise, solves it where only its size differs,
and counts rows to fill the suppressed cells of a table.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq

LAX = eq.Policy({"uniques": "<= 1"})
STRICT = eq.Policy({"k_anonymity(k=3)": "<= 0"})


def people(extra: int = 40, seed: int = 4) -> pl.DataFrame:
    """A man and a woman of each age from 30 to 89, and some more people; in random order."""
    rng = np.random.default_rng(seed)
    grid = pl.DataFrame({"sex": ["f", "m"]}).join(pl.DataFrame({"age": np.arange(30, 90)}), how="cross")
    more = {"sex": rng.choice(["f", "m"], extra), "age": rng.integers(30, 90, extra)}
    table = pl.concat([grid, pl.DataFrame(more)]).sample(fraction=1, shuffle=True, seed=seed)
    return table.with_columns(
        nr=pl.Series(rng.permutation(table.height) + 5_000), pay=pl.Series(rng.permutation(table.height) * 7 + 900)
    )


def bands(width: int, **roles: Any) -> eq.Roles:
    return eq.Roles(["sex", "age"], hierarchies={"age": eq.Hierarchy.intervals(width)}, **roles)


def publish(table: pl.DataFrame, out: Path, width: int, policy: eq.Policy = LAX, **roles: Any) -> pl.DataFrame:
    records = eq.read(table, bands(width, **{"id": "nr"} | roles))
    eq.protect(records, [eq.masks.Recode("age", 1)], out, policy=policy, register=out.parent / "register.json")
    return pl.read_parquet(out / "public/data.parquet")


def contains(label: str, age: int) -> bool:
    low, _, high = label.partition("-")
    return int(low) <= age <= int(high or low)


def successes(truth: pl.DataFrame, one: pl.DataFrame, two: pl.DataFrame, link: str = "pay") -> np.ndarray:
    """The chance that the intruder picks the right row for each person, from both files."""
    both = one.join(two, on=link, suffix="_two")
    rows = both.select("sex", "age", "age_two").rows()
    return np.array(
        [
            1 / sum(s == sex and contains(a, age) and contains(b, age) for s, a, b in rows)
            for sex, age in truth.select("sex", "age").rows()
        ]
    )


def sentences(folder: Path) -> list[str]:
    words: list[str] = json.loads((folder / "public/evidence.json").read_text())["several_releases"]
    return words


def reported_alone(folder: Path) -> float:
    """The share of people who are alone in all releases together, as the evidence says."""
    return float(sentences(folder)[0].split(": ")[1].split("%")[0]) / 100


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_bands_of_3_and_of_5_years_are_intersected(tmp_path: Path, full: Callable[..., Any]) -> None:
    """Each release alone leaves nobody alone; both together do, and the report says at least so."""
    for seed in range(full(1, 20, 4)):
        table, home = people(seed=seed), tmp_path / str(seed)
        home.mkdir()
        one, two = publish(table, home / "one", 3), publish(table, home / "two", 5)
        achieved = float((successes(table, one, two) > 0.999).mean())
        assert achieved > 0.05
        assert reported_alone(home / "two") >= achieved


@pytest.mark.parametrize("id_role", ["nr", None])
def test_what_breaks_a_limit_together_is_refused_before_anything_is_written(
    tmp_path: Path, id_role: str | None
) -> None:
    table = people() if id_role else people().drop("nr")
    publish(table, tmp_path / "one", 3, STRICT, id=id_role)
    before = contents(tmp_path)
    shuffled = table.sample(fraction=1, shuffle=True, seed=9)
    with pytest.raises(eq.RefusedError, match=r"earlier release 'Release' of .* k_anonymity is .* for \d+ records"):
        publish(shuffled, tmp_path / "two", 5, STRICT, id=id_role)
    assert not (tmp_path / "two").exists()
    assert contents(tmp_path) == before
    publish(shuffled, tmp_path / "three", 6, STRICT, id=id_role)
    assert reported_alone(tmp_path / "three") < 1e-9, "bands of 3 nest in those of 6"


def test_a_third_release_is_held_against_both(tmp_path: Path) -> None:
    """Bands of 4 and of 6 years leave pairs of years; with bands of 5 they leave single ones."""
    table, loose = people(), eq.Policy({"uniques": "<= 0"})
    publish(table, tmp_path / "one", 4, eq.Policy())
    publish(table, tmp_path / "two", 6, loose)
    with pytest.raises(eq.RefusedError, match=r"the earlier releases .*, .*uniques"):
        publish(table, tmp_path / "three", 5, loose)


def test_who_is_new_stands_out(tmp_path: Path) -> None:
    """One person joins: whoever knows it finds the row that the earlier release does not have."""
    table = people()
    one = publish(table.head(-1), tmp_path / "one", 6)
    with pytest.raises(eq.RefusedError, match="together with"):
        publish(table, tmp_path / "two", 6, STRICT)
    two = publish(table, tmp_path / "three", 6)
    assert two.join(one, on="pay", how="anti").height == 1
    assert reported_alone(tmp_path / "three") >= 1 / table.height


def noisy(table: pl.DataFrame, out: Path, register: bool, scale: float = 0.5) -> np.ndarray:
    records = eq.read(table, eq.Roles("sex", numeric="pay", id="nr"))
    book = out.parent / "register.json" if register else None
    eq.protect(records, [eq.masks.Noise("pay", scale)], out, register=book)
    return pl.read_parquet(out / "public/data.parquet").sort("age", "sex")["pay"].to_numpy()


def test_noise_is_drawn_once(tmp_path: Path) -> None:
    """Two draws averaged have 29 % less noise; with a register there is nothing to average.

    The ratio of the standard deviations of 120 records is 0.71 with a standard error of 0.052, and 1 for equal draws.
    """
    table = people(extra=0)
    truth = table.sort("age", "sex")["pay"].to_numpy()
    one, two = (noisy(table, tmp_path / name, register=False) for name in ("one", "two"))
    assert np.std((one + two) / 2 - truth) < 0.97 * np.std(one - truth)
    assert "29 %" in sentences(tmp_path / "one")[0]
    three, four = (noisy(table, tmp_path / name, register=True) for name in ("three", "four"))
    np.testing.assert_array_equal(three, four)


def test_noise_of_another_size_from_the_same_draw_is_refused(tmp_path: Path) -> None:
    """y = x + s z in two releases with another s gives x exactly: other records have another s, and so are refused."""
    table = people(extra=0)
    noisy(table, tmp_path / "one", register=True)
    for other, scale in ((table, 0.6), (table.filter(pl.col("pay") > 950), 0.5)):
        with pytest.raises(eq.RefusedError, match="'pay' was released before with other masks"):
            noisy(other, tmp_path / "two", register=True, scale=scale)
    with pytest.raises(eq.RefusedError, match="'pay' was released before"):
        publish(table, tmp_path / "two", 6)
    assert not (tmp_path / "two").exists()


def test_records_beside_a_table_are_counted(tmp_path: Path) -> None:
    """Whoever counts rows fills the suppressed cells of a table, whichever of the two came first."""
    rng = np.random.default_rng(1)
    table = pl.DataFrame({"town": rng.choice([*"abcdefgh"], 60), "sex": rng.choice(["f", "m"], 60), "x": range(60)})
    records = eq.read(table, eq.Roles(["town", "sex"]))
    book = tmp_path / "register.json"
    eq.tabulate(records, ["town", "sex"], rule="min-count:4", register=book, out=tmp_path / "table")
    public = pl.read_csv(tmp_path / "table/public/table.csv")
    hidden = public.filter(pl.col("status") == "suppressed", pl.col("sex").is_in(["f", "m"]))
    assert hidden.join(table.group_by("town", "sex").len(), on=["town", "sex"]).height > 0, "the count is the cell"
    before = contents(tmp_path)
    with pytest.raises(eq.RefusedError, match="suppressed cells of the earlier table"):
        eq.protect(records, [], tmp_path / "out", register=book)
    assert contents(tmp_path) == before
    blank = eq.masks.SuppressRecords(eq.rules.MinCount(61))
    coarse = eq.protect(records, [blank], tmp_path / "out", register=book)
    assert "No suppressed cell can be counted" in coarse.evidence["several_releases"][-1]

    other = tmp_path / "other.json"
    eq.protect(records, [], tmp_path / "first", register=other)
    with pytest.raises(eq.RefusedError, match="counts the records of the earlier release"):
        eq.tabulate(records, ["town", "sex"], rule="min-count:4", register=other, out=tmp_path / "second")
    assert not (tmp_path / "second").exists()


def test_changed_amounts_beside_a_table_are_added_up(tmp_path: Path) -> None:
    """Little noise on an amount tells suppressed sums more closely than 10 %, a lot of it does not."""
    rng, register = np.random.default_rng(11), tmp_path / "register.json"
    columns = {"town": rng.choice([*"abcdefgh"], 300, p=[0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])}
    table = pl.DataFrame(
        {**columns, "job": rng.choice([*"xyz"], 300), "nr": range(300), "pay": rng.lognormal(7, 1, 300)}
    )
    eq.tabulate(
        eq.read(table, eq.Roles(numeric="pay")), ["town", "job"], value="pay", rule="p-percent:10%", register=register,
        out=tmp_path / "table",
    )  # fmt: skip
    public = pl.read_csv(tmp_path / "table/public/table.csv").filter(pl.col("status") == "suppressed")
    records = eq.read(table, eq.Roles(["town", "job"], numeric="pay", id="nr"))
    little, much = (eq.masks.Noise("pay", scale) for scale in (0.01, 3.0))
    sums = [
        frame.group_by("town", "job").agg(pl.col("pay").sum()).join(public, on=["town", "job"], how="semi")
        for frame in (table, eq.Recipe([little], seed=1).run(records).collect())
    ]
    guesses = sums[0].join(sums[1], on=["town", "job"], suffix="_guess")
    assert guesses.filter((pl.col("pay_guess") / pl.col("pay") - 1).abs() < 0.1).height > 0
    with pytest.raises(eq.RefusedError, match="adds up 'pay', changed as it is, knows"):
        eq.protect(records, [little], tmp_path / "little", policy=LAX, register=register)
    release = eq.protect(records, [much], tmp_path / "much", policy=LAX, register=register)
    assert "No suppressed cell can be counted" in release.evidence["several_releases"][-1]


@pytest.mark.parametrize("id_role", ["nr", None])
def test_columns_under_other_names_are_known_again(id_role: str | None, tmp_path: Path) -> None:
    """The intruder joins 'pay' with 'wage': bands of 3 and 5 years are intersected, whatever columns are called."""
    table = people() if id_role else people().drop("nr")
    publish(table, tmp_path / "one", 3, id=id_role)
    other = table.rename({"pay": "wage", "age": "years"} | ({"nr": "person"} if id_role else {})).reverse()
    roles = eq.Roles(
        ["sex", "years"], id="person" if id_role else None, hierarchies={"years": eq.Hierarchy.intervals(5)}
    )
    register = tmp_path / "register.json"
    with pytest.raises(eq.RefusedError, match="their classes can be intersected"):
        eq.protect(
            eq.read(other, roles), [eq.masks.Recode("years", 1)], tmp_path / "two", policy=STRICT, register=register
        )
    assert not (tmp_path / "two").exists()


def test_noise_under_another_name_is_refused(tmp_path: Path) -> None:
    """Two draws of noise on one column, once called 'pay' and once 'wage', are averaged."""
    table, register = people(), tmp_path / "register.json"
    noise = eq.masks.Noise
    eq.protect(eq.read(table, eq.Roles("sex", id="nr")), [noise("pay", 0.5)], tmp_path / "one", register=register)
    other = eq.read(table.rename({"pay": "wage"}), eq.Roles("sex", id="nr"))
    with pytest.raises(eq.RefusedError, match="'wage' was released before"):
        eq.protect(other, [noise("wage", 0.5, "multiplicative")], tmp_path / "two", register=register)


def test_a_table_by_columns_under_other_names(tmp_path: Path) -> None:
    rng, register = np.random.default_rng(2), tmp_path / "register.json"
    table = people().with_columns(town=pl.Series(rng.choice(["a", "b", "c"], 160, p=[0.6, 0.35, 0.05])))
    eq.tabulate(eq.read(table, eq.Roles()), ["town", "sex"], rule="min-count:6", register=register, out=tmp_path / "1")
    other = eq.read(table.rename({"town": "place", "nr": "number"}).reverse(), bands(5))
    with pytest.raises(eq.RefusedError, match="suppressed cells of the earlier table"):
        eq.protect(other, [eq.masks.Recode("age", 1)], tmp_path / "2", policy=LAX, register=register)


def test_without_a_register_the_headline_says_so(tmp_path: Path) -> None:
    """What a second release would do: at most what the original keys give, and the intruder reaches no more."""
    table = people()
    records = eq.read(table, bands(3, id="nr"))
    release = eq.protect(records, [eq.masks.Recode("age", 1)], tmp_path / "one")
    (sentence,) = sentences(tmp_path / "one")
    one = pl.read_parquet(release.public / "data.parquet")
    two = one.drop("age").join(table.select("pay", pl.col("age").cast(pl.String)), on="pay")
    internal = (tmp_path / "one" / "private/report.html").read_text()
    bound = float(internal.split("could leave up to ")[1].split("%")[0]) / 100
    assert bound >= float((successes(table, one, two) > 0.999).mean())
    assert sentence.startswith("Assumes that this is the only release of these people")
    assert sentence in release.evidence["assumes"]
    for page in ("public/report.html", "private/report.html"):
        assert "only release of these people" in (tmp_path / "one" / page).read_text()
    for name in ("report.html", "evidence.json"):  # the public part says that it holds no score of the original
        assert "up to" not in (release.public / name).read_text().split("only release of these people")[1][:300]


def test_real_people_are_linked_by_all_that_is_shown(
    data_folder: Path, tmp_path: Path, full: Callable[..., Any]
) -> None:
    """Testdata without an id: the intruder joins both files by all columns but the age."""
    table = pl.read_csv(data_folder / "sdcmicro/testdata.csv").head(full(200, 4_580))
    table = table.select("sex", pl.col("age").cast(pl.Int64), "urbrur", "income", "expend", "savings")
    one = publish(table, tmp_path / "one", 5, id=None)
    two = publish(table.reverse(), tmp_path / "two", 7, id=None)
    links = ["sex", "urbrur", "income", "expend", "savings"]
    both = one.join(two, on=links, suffix="_two").filter(~pl.struct(links).is_duplicated())
    alone = both.filter(~pl.struct("sex", "age", "age_two").is_duplicated()).height
    assert alone > one.filter(~pl.struct("sex", "age").is_duplicated()).height
    assert reported_alone(tmp_path / "two") >= alone / table.height
