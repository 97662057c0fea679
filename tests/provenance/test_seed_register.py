"""Every release of a data asset and its draw, kept in a private file; what the folder of a release with Pram holds."""

import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Records
from equipoise.ground import system
from equipoise.provenance.fingerprint import keyed_hash
from equipoise.provenance.seed_register import Register
from equipoise.recipe.catalogue import to_plain
from equipoise.recipe.recipe import Recipe
from equipoise.releases.release import Release, release

Page = Callable[[Any, bool], str]
SEED = 271828182845904523536
LIMITS = eq.Policy({"match_probability": "<= 0.8"})
ROLES = eq.Roles(["area", "age"], id="person", hierarchies={"age": eq.Hierarchy.intervals([5, 20])})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    path = tmp_path / "people.parquet"
    pl.DataFrame(
        {
            "person": np.arange(500) + 7_000_000,
            "area": rng.choice(["a", "b", "c", "d"], 500),
            "age": rng.integers(16, 91, 500),
            "row": np.arange(500),
        }
    ).write_parquet(path)
    return path


@pytest.fixture
def records(source: Path) -> Records:
    return eq.read(source, ROLES)


@pytest.fixture
def publish(records: Records, tmp_path: Path, page: Page) -> Callable[..., Release]:
    """Release the file with Pram under a register; every release into a folder of its own."""
    made: list[int] = []

    def run(mask: Any = None, seed: int | None = None, policy: eq.Policy = LIMITS, **changes: Any) -> Release:
        made.append(1)
        recipe = Recipe((mask or eq.masks.Pram(0.8),), seed)
        given = {"records": records, "register": Register(tmp_path / "register.json")} | changes
        return release(recipe=recipe, policy=policy, out=tmp_path / f"out{len(made)}", **given)

    return run


def keep(register: Register, records: Records, **facts: Any) -> None:
    """Put a release that shows nothing of its people into the register."""
    view = register.view(records)
    register.keep(view, pl.DataFrame(view.tokens.all()), {"kind": "records", "title": "one", "keys": [], **facts})


def data(made: Release) -> pl.DataFrame:
    return pl.read_parquet(made.public / "data.parquet")


# --- the register -------------------------------------------------------------------------------------------------


def test_the_second_release_reuses_the_draw(publish: Callable[..., Release]) -> None:
    """BEYOND: two independent draws expose uniques almost surely; the same data and masks give the same keys."""
    first, second = publish(seed=SEED), publish(seed=5)
    assert first.trial.recipe.seed == second.trial.recipe.seed == SEED
    assert data(first).equals(data(second))
    assert data(first).sort("row").equals(data(publish()).sort("row"))


def test_without_a_register_the_draws_differ(publish: Callable[..., Release]) -> None:
    """The danger that the register guards against."""
    first, second = publish(register=None), publish(register=None)
    assert not data(first).sort("row").equals(data(second).sort("row"))


@pytest.mark.parametrize(
    "mask",
    [eq.masks.Pram(0.7), eq.masks.Pram(0.8, within="auto"), eq.masks.Pram(0.8, method="nayak")],
    ids=["xi", "within", "method"],
)
def test_another_mask_for_the_same_data_is_refused(publish: Callable[..., Release], mask: Any, tmp_path: Path) -> None:
    """Two releases with different parameters could be compared to find who moved."""
    publish()
    with pytest.raises(eq.RefusedError, match="released before with other masks"):
        publish(mask)
    assert not (tmp_path / "out2").exists()


@pytest.mark.parametrize(
    "roles",
    [
        replace(ROLES, keys=("age", "area")),
        replace(ROLES, keys=("age",)),
        replace(ROLES, id=None),
    ],
    ids=["order", "keys", "id"],
)
def test_other_roles_for_the_same_data_are_refused(
    publish: Callable[..., Release], source: Path, roles: eq.Roles
) -> None:
    """The same seed with other keys or ids moves records elsewhere: that is a second draw."""
    publish()
    with pytest.raises(eq.RefusedError, match="released before"):
        publish(records=eq.read(source, roles))


def test_roles_that_draw_the_same_values_are_not_refused(publish: Callable[..., Release], source: Path) -> None:
    """What counts is what the two releases show of a person, not how their recipes are written."""
    first = publish()
    second = publish(records=eq.read(source, replace(ROLES, hierarchies={})))
    assert data(first).sort("row").equals(data(second).sort("row"))


def test_an_asset_is_its_people(publish: Callable[..., Release], records: Records, tmp_path: Path) -> None:
    """Corrected values, another order or a file less a record: the same people, and the same draw."""
    first = publish()
    table = records.collect()
    fewer = table.sample(fraction=1, shuffle=True, seed=1).filter(pl.col("row") > 0)
    other = table.with_columns(pl.col("person") + 1_000_000)
    register = Register(tmp_path / "register.json")
    for changed, same in ((table.with_columns(pl.col("age") + 1), True), (fewer, True), (other, True)):
        sheet = eq.read(changed, ROLES)
        assert (register.seed(sheet, register.view(sheet)) == first.trial.recipe.seed) is same
    strangers = eq.read(other.with_columns(pl.col("row") + 1000), ROLES)
    narrow = eq.read(table.select("row", "area"), eq.Roles("area"))
    assert register.view(narrow).earlier[0].overlap == 500, "rows can be linked by what the release shows as it is"
    assert not register.view(strangers).earlier
    named = Register(tmp_path / "register.json", asset="survey 2025")
    assert not named.view(records).earlier, "a name goes before the people"


def test_a_named_asset_whose_records_cannot_be_told_is_refused(records: Records, tmp_path: Path) -> None:
    named = Register(tmp_path / "register.json", asset="survey 2025")
    keep(named, records)
    narrow = eq.read(records.collect().select("age", "area"), eq.Roles("age"))
    with pytest.raises(eq.RefusedError, match="Name an id or a person"):
        named.view(narrow)


def test_a_coarsening_is_kept_too(publish: Callable[..., Release], records: Records, tmp_path: Path) -> None:
    """Two coarsenings can be intersected: every release of records is kept, without a seed where nothing is drawn."""
    publish(eq.masks.Recode("age", 1), policy=eq.Policy({"uniques": "<= 1"}))
    (entry,) = Register(tmp_path / "register.json").releases()
    assert (entry["kind"], entry["seed"], entry["records"]) == ("records", None, 500)
    publish(eq.masks.Recode("age", 1), policy=eq.Policy({"uniques": "<= 1"}))
    assert len(Register(tmp_path / "register.json").releases()) == 1, "the same again is stored once"


def test_nothing_is_recorded_when_the_release_is_refused(publish: Callable[..., Release], tmp_path: Path) -> None:
    """A refused release made no draw public."""
    with pytest.raises(eq.RefusedError, match="outside"):
        publish(policy=eq.Policy({"match_probability": "<= 0.5"}))
    assert not (tmp_path / "register.json").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["people.parquet"], "no half-written folder either"


@pytest.mark.skipif(os.name != "posix", reason="Modes are a matter of POSIX.")
def test_the_register_is_private(publish: Callable[..., Release], tmp_path: Path) -> None:
    """Mode 600, whatever the umask; it holds the seed, and names data only by keyed hashes."""
    old = os.umask(0)
    try:
        publish(seed=SEED)
    finally:
        os.umask(old)
    path = tmp_path / "register.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    book = json.loads(path.read_text())
    assert [entry["seed"] for entry in book["releases"]] == [str(SEED)]
    assert all(len(entry["asset"]) == 64 for entry in book["releases"])
    assert not any(word in repr(Register(path)) for word in (str(SEED), book["key"]))
    assert not list(tmp_path.glob(".register*")), "no stage is left behind"
    shelf = Register(path).shelf
    assert stat.S_IMODE(shelf.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in shelf.rglob("*") if file.is_file()} == {0o600}


def test_the_tokens_hold_no_value(publish: Callable[..., Release], records: Records, tmp_path: Path) -> None:
    """Numbers of 64 bits under the key of the register: without it nobody can make them again."""
    publish()
    register = Register(tmp_path / "register.json")
    (entry,) = register.releases()
    table = pl.read_parquet(register.shelf / entry["people"] / "people.parquet")
    assert set(table.schema.values()) == {pl.UInt64}
    assert table.height == 500
    other = Register(tmp_path / "another.json").view(records).tokens.all()
    assert not any(np.isin(tokens, table.to_numpy()).any() for tokens in other.values())


def test_what_is_registered_meanwhile_refuses(records: Records, tmp_path: Path) -> None:
    """Two runs at once: the second to end has not been audited together with the first."""
    one, two = (Register(tmp_path / "register.json") for _ in range(2))
    view = two.view(records)
    keep(one, records)
    before = (tmp_path / "register.json").read_bytes()
    with pytest.raises(eq.RefusedError, match="while this one was made"):
        two.keep(view, pl.DataFrame(view.tokens.all()), {"kind": "records"})
    assert (tmp_path / "register.json").read_bytes() == before


@pytest.mark.parametrize("step", range(6))
def test_killed_while_it_is_kept(records: Records, tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it stops, the register can be read, every release that it names is whole, and the next one succeeds."""
    register, calls = Register(tmp_path / "register.json"), iter(range(100))
    keep(register, records)

    def stopping(act: Callable[..., None]) -> Callable[..., None]:
        def stop(*args: Any, **more: Any) -> None:
            if "register" in str(args[0]) and next(calls) == step:
                raise KeyboardInterrupt
            act(*args, **more)

        return stop

    with monkeypatch.context() as patch:
        for name in ("write", "move", "make_folder", "restrict"):
            patch.setattr(system, name, stopping(getattr(system, name)))
        with suppress(KeyboardInterrupt):
            keep(register, records, title="two")
    assert [one.overlap for one in register.view(records).earlier] in ([500], [500, 500])
    keep(register, records, title="three")
    assert register.releases()[-1]["title"] == "three"


def test_a_register_of_version_1_keeps_its_promise(records: Records, tmp_path: Path) -> None:
    """It knows the asset by its file: the same masks take the seed, others are refused."""
    path, recipe = tmp_path / "register.json", Recipe((eq.masks.Pram(0.8),))
    key = "ab" * 32
    roles = {"keys": ["area", "age"], "id": "person", "missing": "category"}
    trees = records.roles.to_plain()["hierarchies"]
    masks = [{**roles, "hierarchies": trees}, to_plain(recipe.masks[0])]
    name = keyed_hash(records, bytes.fromhex(key))
    book = {"format": 1, "key": key, "assets": {name: {"seed": str(SEED), "masks": masks}}}
    path.write_text(json.dumps(book, default=str))
    register = Register(path)
    assert register.settle(recipe, records, register.view(records)).seed == SEED
    with pytest.raises(eq.RefusedError, match="released before with other masks"):
        register.settle(Recipe((eq.masks.Pram(0.7),)), records, register.view(records))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 99, "key": "00", "assets": {}}', "not json"])
def test_a_file_that_is_no_register_is_refused(records: Records, tmp_path: Path, text: str) -> None:
    """Never overwritten, never taken for an empty register."""
    path = tmp_path / "register.json"
    path.write_text(text)
    with pytest.raises(eq.ParameterError, match="not a register"):
        Register(path).view(records)
    assert path.read_text() == text


def test_data_on_an_engine_needs_an_id(records: Records, tmp_path: Path) -> None:
    """Rows of DuckDB have no order: their content cannot be told record by record, their ids can."""
    duckdb = pytest.importorskip("duckdb")
    table = records.collect().to_arrow()
    register = Register(tmp_path / "r.json")
    with pytest.raises(eq.ParameterError, match="name an id"):
        register.view(eq.read(duckdb.from_arrow(table), replace(ROLES, id=None))).tokens.all()
    keep(register, records)
    assert register.view(eq.read(duckdb.from_arrow(table), ROLES)).earlier[0].overlap == 500


def test_the_python_door_passes_it_on(records: Records, tmp_path: Path) -> None:
    """`eq.protect(..., register=...)` keeps the draw as well."""
    made = [
        eq.protect(records, [eq.masks.Pram(0.8)], tmp_path / name, register=tmp_path / "r.json") for name in ("1", "2")
    ]
    assert made[0].trial.recipe.seed == made[1].trial.recipe.seed
    assert (tmp_path / "r.json").exists()


# --- a release after Pram -----------------------------------------------------------------------------------------


@pytest.fixture
def made(publish: Callable[..., Release]) -> Release:
    return publish(seed=SEED)


def test_the_order_of_the_records_is_drawn(made: Release, records: Records) -> None:
    """Row order reveals the original cell where files are sorted by keys: it is shuffled, by the secret seed."""
    rows = data(made)["row"].to_numpy()
    assert sorted(rows.tolist()) == list(range(500))
    assert abs(np.corrcoef(rows, np.arange(500))[0, 1]) < 0.2
    assert (rows != np.arange(500)).mean() > 0.9


def test_the_id_is_withheld(made: Release) -> None:
    assert "person" not in data(made).columns
    assert made.evidence["withheld"] == ["person"]
    assert all(b"7000123" not in p.read_bytes() for p in made.public.iterdir())


def test_evidence_states_the_guarantee(made: Release) -> None:
    """Public: xi, the method, the claim and what voids it; the worst match, rounded."""
    (mask,) = made.evidence["masks"]
    assert mask["mask"] == "pram"
    assert mask["parameters"]["xi"] == 0.8
    assert mask["parameters"]["method"] == "blocks"
    assert "No intruder" in mask["words"]
    assert "Void if" in mask["words"]
    assert 0.5 < made.evidence["scores"]["match_probability"]["value"] <= 0.8
    assert made.evidence["verdict"] == "accepted"


def test_the_seed_is_not_in_public(made: Release) -> None:
    """The seed is not in any public output: not in decimal, not in hexadecimal."""
    forms = [str(SEED).encode(), f"{SEED:x}".encode(), SEED.to_bytes(16, "little"), SEED.to_bytes(16, "big")]
    for path in made.public.rglob("*"):
        content = path.read_bytes()
        assert not any(form in content for form in forms), path.name
    assert json.loads((made.private / "seed.json").read_text())["seed"] == str(SEED)


def test_the_bound_is_measured_on_what_is_released(made: Release, records: Records) -> None:
    """The report's worst match is the audit of the law that made the file."""
    score = made.trial.scores["match_probability"]
    assert score.value == eq.risk.MatchProbability().measure(made.data, records).value <= 0.8
