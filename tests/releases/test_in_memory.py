"""Releases without a folder: frames of the kind that came in, in secret order, refused as a folder would be."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq

CANARY = "zebra-canary"
ROLES = eq.Roles(
    ["sex", "age", "region"], id="person", hierarchies={"age": eq.Hierarchy.intervals([10, 20])}
)  # fmt: skip
MASKS = [eq.masks.Recode("age", 1)]


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(7)
    return pl.DataFrame(
        {
            "person": np.arange(600) + 10_000,
            "sex": rng.choice(["f", "m"], 600),
            "age": rng.integers(20, 60, 600),
            "region": rng.choice(["north", "south", CANARY], 600),
        }
    )


def frames() -> list[Any]:
    return [
        pytest.param(lambda table: table, pl.DataFrame, id="polars"),
        pytest.param(lambda table: table.lazy(), pl.LazyFrame, id="lazy"),
    ]


@pytest.mark.parametrize(("made", "kind"), frames())
def test_a_frame_comes_back_as_the_kind_it_was(table: pl.DataFrame, made: Any, kind: type) -> None:
    released = eq.protect(made(table), MASKS, roles=ROLES)
    assert isinstance(released, kind)
    rows = released.lazy().collect()
    assert rows.columns == ["sex", "age", "region"]
    assert rows.height == 600
    expected = table.with_columns(age=pl.format("{}-{}", pl.col("age") // 10 * 10, pl.col("age") // 10 * 10 + 9))
    assert rows.sort(rows.columns).equals(expected.drop("person").sort("sex", "age", "region"))


def test_pandas_has_a_fresh_index_and_no_absent_category(table: pl.DataFrame) -> None:
    pandas = pytest.importorskip("pandas")
    frame = table.to_pandas().set_index(pandas.Index(table["person"].to_list(), name="who"))
    frame["region"] = pandas.Categorical(frame["region"], categories=["north", "south", CANARY, "nobody-lives-here"])
    released = eq.protect(frame, MASKS, roles=ROLES)
    assert isinstance(released, pandas.DataFrame)
    assert released.index.equals(pandas.RangeIndex(600))
    assert released.index.name is None
    assert "nobody-lives-here" not in released["region"].cat.categories
    kept = eq.protect(frame, MASKS, roles=ROLES, keep_order=True)
    assert kept["sex"].to_list() == frame["sex"].to_list()
    assert released["sex"].to_list() != frame["sex"].to_list()


def test_the_order_is_drawn_from_the_seed_and_uniform(table: pl.DataFrame) -> None:
    """With the same seed the same order; over seeds, where the first record goes has the mean of a uniform place."""
    ten = table.head(10).with_columns(age=pl.int_range(20, 30), sex=pl.lit("f"), region=pl.lit("north"))
    roles = eq.Roles(["age"], id="person")
    first, again = (eq.protect(ten, [], roles=roles, seed=5)["age"].to_list() for _ in range(2))
    assert first == again
    places = [eq.protect(ten, [], roles=roles, seed=seed)["age"].to_list().index(20) for seed in range(200)]
    # Mean 4.5, standard deviation of a mean of 200 places sqrt(8.25 / 200) = 0.203: five of them.
    assert abs(float(np.mean(places)) - 4.5) < 1.02
    assert len(set(places)) == 10


def test_limits_and_identifiers_refuse_as_in_a_folder(table: pl.DataFrame, tmp_path: Path) -> None:
    policy = eq.Policy({"uniques": "<= 0", "k_anonymity(k=200)": "<= 0"})
    with pytest.raises(eq.RefusedError) as refused:
        eq.protect(table, MASKS, roles=ROLES, policy=policy)
    with pytest.raises(eq.RefusedError) as written:
        eq.protect(eq.read(table, ROLES), MASKS, tmp_path / "out", policy=policy)
    assert str(refused.value) == str(written.value)
    mail = table.with_columns(mail=pl.format("p{}@example.org", "person"))
    with pytest.raises(eq.RefusedError, match="mail"):
        eq.protect(mail, MASKS, roles=ROLES)


def test_columns_that_single_people_out_are_named_in_a_warning(table: pl.DataFrame) -> None:
    income = table.with_columns(income=np.random.default_rng(1).lognormal(8, 1, 600).round(2))
    with pytest.warns(eq.EquipoiseWarning, match="nobody knows income") as caught:
        eq.protect(income, MASKS, roles=ROLES)
    assert Path(caught[0].filename) == Path(__file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        eq.protect(income, MASKS, roles=ROLES, policy=eq.Policy(assume_unknown=("income",)))


@pytest.mark.parametrize("option", [{"format": "csv"}, {"overwrite": True}, {"register": "r"}, {"sign": "k"}])
def test_options_of_a_folder_need_one(table: pl.DataFrame, option: dict[str, Any]) -> None:
    with pytest.raises(eq.ParameterError, match="name the folder with out"):
        eq.protect(table, MASKS, roles=ROLES, **option)


def test_balance_of_a_frame_stays_inside_its_limits(table: pl.DataFrame) -> None:
    balanced = eq.balance(table, policy=eq.Policy({"k_anonymity(k=3)": "<= 0"}), roles=ROLES)
    classes = balanced.to_polars().group_by("sex", "age", "region").len()
    assert classes["len"].min() >= 3
    assert balanced.verdict
    assert len(balanced.frontier.trials) > 1
    assert CANARY not in repr(balanced) + balanced._repr_html_()


def test_balance_takes_the_frame_in_place_of_the_policys_data(table: pl.DataFrame, tmp_path: Path) -> None:
    """A policy file with a frame, a preset with a frame, and a folder give the classes that are asked for."""
    text = f'limits = {{ "k_anonymity(k=5)" = "<= 0" }}\n[data]\npath = "elsewhere.csv"\n[roles]\n{ROLES.to_toml()}'
    (tmp_path / "policy.toml").write_text(text.replace("[hierarchies", "[roles.hierarchies"), encoding="utf-8")
    balanced = eq.balance(table, policy=tmp_path / "policy.toml")
    assert balanced.to_polars().group_by("sex", "age", "region").len()["len"].min() >= 5
    ema = eq.balance(table, policy="ema", roles=ROLES)
    assert ema.to_polars().drop_nulls().group_by("sex", "age", "region").len()["len"].min() >= 12
    release = eq.balance(table, policy=tmp_path / "policy.toml", out=tmp_path / "out")
    written = pl.read_parquet(release.public / "data.parquet")
    assert release.to_polars().equals(written)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "policy.toml"]


def test_balance_of_nothing_is_refused() -> None:
    with pytest.raises(eq.ParameterError, match="policy file"):
        eq.balance()


def test_html_views_name_no_value(table: pl.DataFrame) -> None:
    """Columns, roles, limits and scores; neither a category (of an Enum type either) nor an id."""
    enum = table.with_columns(pl.col("region").cast(pl.Enum(["north", "south", CANARY])))
    records = eq.read(enum, ROLES)
    trials = eq.sweep(records, eq.coarsenings(records), [eq.risk.Uniques(), eq.utility.Entropy()])
    policy = eq.Policy({"uniques": {"limit": "< 0.1", "reason": "house rule"}}, assume_unknown=("x<y",))
    views = [records._repr_html_(), trials._repr_html_(), policy._repr_html_()]
    assert all(view.startswith("<div") for view in views)
    assert CANARY not in "".join(views)
    assert "10042" not in "".join(views)
    assert "house rule" in views[2]
    assert "x&lt;y" in views[2]
    assert "600 records" in views[0]
    assert f"{len(trials)} trials" in views[1]


def test_the_assessment_is_a_page_that_says_where_it_is(table: pl.DataFrame, tmp_path: Path) -> None:
    said: list[str] = []
    place = eq.report(table, out=tmp_path / "a.html", browser=False, show=said.append)
    text = place.read_text(encoding="utf-8")
    assert place == tmp_path / "a.html"
    assert str(place) in said[0]
    assert "The roles were proposed" in text
    assert CANARY not in text
    with pytest.raises(eq.DataError, match="exists already"):
        eq.report(table, ROLES, out=place, browser=False)
    again = eq.report(table, ROLES, out=place, overwrite=True, browser=False, show=said.append)
    assert "The roles were proposed" not in again.read_text(encoding="utf-8")


def test_the_assessment_opens_in_the_browser(table: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("equipoise.doors.api.show_page", lambda address: bool(opened.append(address)) or True)
    place = eq.report(table, ROLES, show=pytest.fail)
    assert opened == [place.as_uri()]
    place.unlink()
    place.parent.rmdir()


def test_a_policy_may_extend_a_preset_and_keep_the_order(table: pl.DataFrame) -> None:
    income = table.with_columns(income=np.random.default_rng(1).lognormal(8, 1, 600).round(2))
    policy = eq.Policy(extends="ema", assume_unknown=("income",), keep_order=True)
    balanced = eq.balance(income, policy=policy, roles=ROLES)
    assert balanced.to_polars()["income"].to_list() == income["income"].to_list()
    assert "prosecutor" in balanced.trial.scores.keys()  # noqa: SIM118
    assert "Assumes that nobody knows income." in balanced.assumptions
    assert "Assumes that nobody knows the order of the records, which was kept." in balanced.assumptions


def test_limits_of_scenarios_hold_in_memory(table: pl.DataFrame) -> None:
    """A neighbour who knows sex and age alone: the limit is on him, not on all keys."""
    from equipoise.policies.sections import Intruder

    neighbour = Intruder("neighbour", ("sex", "age"))
    policy = eq.Policy({"k_anonymity(k=60)": {"limit": "<= 0", "scenario": "neighbour"}}, scenarios=(neighbour,))
    balanced = eq.balance(table, policy=policy, roles=ROLES)
    assert balanced.to_polars().group_by("sex", "age").len()["len"].min() >= 60


@pytest.mark.parametrize("package", ["pyarrow", "duckdb"])
def test_other_engines_get_their_kind_back(table: pl.DataFrame, package: str) -> None:
    module = pytest.importorskip(package)
    frame = table.to_arrow() if package == "pyarrow" else module.from_arrow(table.to_arrow())
    released = eq.protect(frame, MASKS, roles=ROLES)
    assert type(released) is type(frame)
    assert sorted(eq.read(released).schema()) == ["age", "region", "sex"]
