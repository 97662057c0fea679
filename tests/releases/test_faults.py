"""Faults that users ran into, each kept from coming back."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.attacks._nearest import neighbours
from equipoise.attacks._nearest.points import Cloud
from equipoise.doors.cli import main
from equipoise.policies.policy_file import Job
from equipoise.recipe.recipe import spread

POLICY = """\
format = 1
[data]
path = "d.csv"
[roles]
keys = ["sex", "yeers", "areaa"]
numeric = ["pay", "sex"]
[[roles.hierarchies.sex]]
kind = "intervals"
widths = [5]
[limits]
uniques = [
    { limit = "< 20%" },
    { limit = "< 30%", by = ["areaa"] },
    { limit = "< 30%", worst = "yes" },
]
[search]
search = "adaptive"
budget = 0
[output]
format = "docx"
[[candidates]]
coarsenings = "yes"
[[candidates]]
masks = [
    { use = "noise", columns = ["pay"], scale = { from = 0.3, to = 0.1, steps = 2 } },
    { use = "noise", columns = ["pay"], scale = { from = 0.1, to = 0.3, step = 2 } },
]
"""


def people(size: int = 200) -> pl.DataFrame:
    draw = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "sex": draw.choice(["f", "m"], size),
            "age": draw.integers(20, 60, size),
            "area": draw.choice(["n", "s"], size),
            "pay": draw.lognormal(7, 0.5, size).round(2),
        }
    )


def told(folder: Path, text: str) -> dict[int | None, str]:
    """What is said of each line."""
    people().write_csv(folder / "d.csv")
    (folder / "p.toml").write_text(text, encoding="utf-8")
    with pytest.raises(eq.ParameterError) as caught:
        Job.load(folder / "p.toml").read()
    found: dict[int | None, str] = {}
    for problem in caught.value.problems:
        found[problem.line] = f"{found.get(problem.line, '')} {problem}"
    return found


def test_columns_types_ranges_and_formats_are_all_told_with_their_lines(tmp_path: Path) -> None:
    found = told(tmp_path, POLICY)
    wanted = {
        5: "roles.keys[2]: No column 'yeers'", 6: "roles.numeric[2]", 7: "intervals cannot be made",
        13: "No column 'areaa'", 14: "true or false", 18: "search.budget", 20: "No format 'docx'",
        22: "valid boolean", 25: "from must not be above to", 26: "A range has from, to and steps",
    }  # fmt: skip
    assert set(found) == set(wanted)
    assert all(words in found[line] for line, words in wanted.items()), found
    assert "No column 'areaa'" in found[5]


def test_role_columns_alone_have_their_lines(tmp_path: Path) -> None:
    text = POLICY[: POLICY.index("[[roles")] + '[limits]\nuniques = "< 20%"\n'
    assert set(told(tmp_path, text)) == {5, 6}


def test_a_value_of_a_wrong_type_does_not_hide_the_others_of_its_section(tmp_path: Path) -> None:
    text = POLICY[: POLICY.index("keys")] + (
        'keys = ["sex"]\n[limits]\nuniques = "< 20%"\n[choose.weights]\nentropy = "a"\nfoo = 1\nmoments = -1\n'
    )
    assert {9, 10, 11} <= set(told(tmp_path, text))
    assert "draws" in told(tmp_path, 'draws = "3"\n' + text)[1]


def test_lost_files_stand_beside_the_other_problems(tmp_path: Path) -> None:
    found = told(tmp_path, POLICY.replace("d.csv", "lost.csv").replace("format = 1", 'seed_file = "lost.json"'))
    assert "No file" in found[1]
    assert "No file" in found[3]


def test_a_folder_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(eq.ParameterError, match="is a folder"):
        Job.load(tmp_path)


def test_a_range_is_finite() -> None:
    with pytest.raises(eq.ParameterError, match="must be numbers"):
        spread({"from": float("nan"), "to": 1.0, "steps": 2}, False)
    with pytest.raises(eq.ParameterError, match="not too large"):
        spread({"from": 0, "to": 10**400, "steps": 2}, False)
    with pytest.raises(eq.ParameterError, match="from 1 to 100,000"):
        spread({"from": 0, "to": 1, "steps": 10**9}, False)
    assert spread({"from": 0, "to": 10**30, "steps": 2}, False) == [0.0, 1e30]


NULL_POLICY = """
[data]
path = "a.csv"
[roles]
keys = ["sex", "age"]
hierarchies = { age = { kind = "intervals", widths = [5, 10] } }
[limits]
uniques = "< 1"
[[candidates]]
coarsenings = true
"""


@pytest.mark.parametrize("where", ["[output]\nfolder", "[search]\njournal", "register"])
def test_a_path_with_a_null_character_is_refused(
    tmp_path: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pl.DataFrame({"sex": ["f", "m"] * 30, "age": [30, 40] * 30}).write_csv(tmp_path / "a.csv")
    entry = f'{where} = "a\\u0000b"\n'
    text = f"{NULL_POLICY}{entry}" if where.startswith("[") else f"{entry}{NULL_POLICY}"
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    out = [] if "folder" in where else ["--out", str(tmp_path / "out")]
    assert main(["balance", str(tmp_path / "a.toml"), *out]) == 2
    assert "no null character" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.toml"]
    with pytest.raises(eq.DataError, match="null character"):
        eq.protect(eq.read(tmp_path / "a.csv", eq.Roles(["sex"])), [], str(tmp_path / "a\0b"))


def test_a_number_larger_than_any_float_is_refused() -> None:
    for number in (10**400, -(10**400)):
        with pytest.raises(eq.ParameterError, match="must be above 0"):
            eq.masks.Noise(["pay"], number)


def test_free_text_alone_gives_no_policy(tmp_path: Path) -> None:
    pl.DataFrame({"note": [f"free text number {i} of many" for i in range(300)]}).write_csv(tmp_path / "f.csv")
    with pytest.raises(eq.DataError, match="write the roles by hand"):
        eq.init(tmp_path / "f.csv", tmp_path / "f.toml")


@pytest.mark.parametrize("seed", range(6))
def test_pairs_and_visits_find_the_same_neighbours(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(seed)
    sizes, columns, places = draw.integers(5, 60, 2), int(draw.integers(0, 3)), int(draw.integers(1, 9))
    here, there = (
        Cloud(draw.integers(0, 4, (n, columns)).astype(float), draw.integers(0, 3, (n, places))) for n in sizes
    )
    penalties = draw.choice([0.5, 1.0, 1.7], places)
    penalties[0] = np.inf if seed % 2 else 1.0
    own = draw.integers(0, sizes[0], sizes[1])

    def found() -> tuple[list[float], list[int], list[int], list[float], list[tuple[int, int]]]:
        counted, pairs = neighbours.count(here, there, penalties, own), neighbours.nearest(here, there, penalties)
        far = neighbours.others(here, there, penalties, own)
        ties = np.where(counted.closer < neighbours.EXACT_TIE_RANKS, counted.tied, 0)
        met = sorted(zip(pairs.query.tolist(), pairs.row.tolist(), strict=True))
        return counted.distance.tolist(), counted.closer.tolist(), ties.tolist(), far.round(9).tolist(), met

    monkeypatch.setattr(neighbours, "MIN_PAIRS_FOR_SWITCH", 1 << 60)
    visited = found()
    monkeypatch.setattr(neighbours, "MIN_PAIRS_FOR_SWITCH", 0)
    monkeypatch.setattr(neighbours, "prod", lambda _: 0)
    again = found()
    np.testing.assert_allclose(again[0], visited[0])
    assert again[1:] == visited[1:]


def test_many_keys_that_were_suppressed_are_attacked_in_time() -> None:
    """2 to the power of 28 combinations of categories, and 90,000 pairs of records."""
    codes = np.random.default_rng(0).integers(0, 4, (300, 28))
    blank = codes.copy()
    blank[10:] = 9
    nothing = np.zeros((300, 0))
    found = neighbours.count(Cloud(nothing, blank), Cloud(nothing, codes), np.ones(28), np.arange(300))
    assert found.closer[:10].tolist() == [0] * 10
    assert found.distance[50] == pytest.approx(28**0.5)


def test_a_second_run_with_a_register_chooses_as_the_first(tmp_path: Path) -> None:
    """The search draws by the seed of the register, so that it ends in the masks of the first release."""
    people().write_csv(tmp_path / "d.csv")
    (tmp_path / "p.toml").write_text(
        'format = 1\nregister = "r.json"\nassume_unknown = ["age", "pay"]\n'
        '[data]\npath = "d.csv"\n[roles]\nkeys = ["sex"]\nnumeric = ["pay"]\n'
        '[limits]\nvalue_disclosure = "< 0.999"\n[choose.weights]\nmoments = 1\n'
        "[[candidates]]\n"
        'masks = [{ use = "noise", columns = ["pay"], scale = [0.1, 0.101, 0.102, 0.103, 0.104, 0.105] }]\n',
        encoding="utf-8",
    )
    first = eq.balance(tmp_path / "p.toml", out=tmp_path / "first")
    for i in range(3):
        again = eq.balance(tmp_path / "p.toml", out=tmp_path / f"again{i}")
        assert again.trial.recipe == first.trial.recipe
    assert (tmp_path / "again0/public/data.csv").read_bytes() == (tmp_path / "first/public/data.csv").read_bytes()


def test_an_original_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(eq.ParameterError, match=r"No file at .*nope.csv"):
        eq.verify(tmp_path, original=tmp_path / "nope.csv")


@pytest.mark.parametrize(
    ("preset", "words"),
    [("eurostat-magnitude", "about amounts"), ("hipaa-safe-harbor", "age, zip, dates")],
)
def test_a_preset_that_does_not_fit_is_refused_in_one_sentence(tmp_path: Path, preset: str, words: str) -> None:
    draw = np.random.default_rng(1)
    pl.DataFrame({f"q{i}": draw.choice(["yes", "no", "maybe"], 200) for i in range(3)}).write_csv(tmp_path / "t.csv")
    with pytest.raises(eq.DataError, match=words):
        eq.init(tmp_path / "t.csv", tmp_path / "t.toml", preset=preset)
    assert not (tmp_path / "t.toml").exists()
