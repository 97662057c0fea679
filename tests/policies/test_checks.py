"""Every problem of a policy at once, each with its line; and no value of the data in any of them."""

import copy
import random
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import equipoise as eq
from equipoise.policies.limits import Limit, at_odds, ends, is_share, never
from equipoise.policies.policy_file import Job
from equipoise.policies.toml_lines import lines_of
from equipoise.recipe.catalogue import parse

CANARY = "canary7319"
BASE = """\
format = 1
[data]
path = "people.csv"
[roles]
keys = ["sex", "age"]
[roles.hierarchies.age]
kind = "intervals"
widths = [5, 10]
"""


def table() -> pl.DataFrame:
    sexes = ["f", "m", CANARY, "f"]
    return pl.DataFrame({"sex": sexes * 25, "age": [*range(100)], "pay": [float(i % 7) for i in range(100)]})


def told(folder: Path, text: str, *, data: bool = True) -> list[tuple[int | None, str]]:
    """The line and the words of every problem."""
    if data:
        table().write_csv(folder / "people.csv")
    path = folder / "policy.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(eq.ParameterError) as caught:
        Job.load(path).read()
    assert CANARY not in str(caught.value)
    assert all(str(p).rstrip(".") in str(caught.value) for p in caught.value.problems)
    return [(p.line, str(p)) for p in caught.value.problems]


def test_all_kinds_of_problems_at_once_with_their_lines(tmp_path: Path) -> None:
    """Unknown keys, wrong types, contradictory limits, a method that does not fit a column: one list."""
    text = BASE.replace('keys = ["sex", "age"]', 'keys = ["sex", "age"]\nweigt = "pay"') + (
        "# What must hold.\n"
        "[limits]\n"
        'uniques = "< 1% and > 5%"\n'
        '"uniques(k=3)" = "< 2"\n'
        'entropi = "> 3"\n'
        "[choose]\n"
        'prefers = "risk"\n'
        "[output]\n"
        "folder = 3\n"
        "[[candidates]]\n"
        "masks = [\n"
        '    { use = "noise", columns = ["sex"], scale = 0.3 },\n'
        '    { use = "recode", column = "age", level = ["5", "7"] },\n'
        '    { use = "top-code", column = "agee", at = 90 },\n'
        '    { use = "top-code", column = "age", at = [], by = 3 },\n'
        '    { use = "recod" },\n'
        "]\n"
    )
    found = told(tmp_path, text)
    expected = [
        (6, "roles.weigt: No role 'weigt'. Did you mean 'weight'?"),
        (12, "limits.uniques: uniques < 0.01 and uniques > 0.05 cannot both hold."),
        (13, "is a share: the limit < 2 lies outside 0 to 1. Write 2 % as 0.02"),
        (14, "No measure 'entropi'. Did you mean 'entropy'?"),
        (16, "choose.prefers: is not known here. Did you mean 'prefer'?"),
        (18, "output.folder: input should be a valid string"),
        (21, "candidates[1].masks[1].columns: noise is for numbers, and the column 'sex' is String."),
        (22, "candidates[1].masks[2].level: No level '7'"),
        (23, "candidates[1].masks[3].column: No column 'agee' in the data. Did you mean 'age'?"),
        (24, "candidates[1].masks[4].at: An empty grid gives no recipe."),
        (24, "top-code has no parameter 'by'."),
        (25, "candidates[1].masks[5].use: No mask 'recod'. Did you mean 'recode'?"),
    ]
    assert [line for line, _ in found if line] == [line for line, _ in found]
    for line, words in expected:
        assert any(at == line and words in text for at, text in found), (line, words, found)


@pytest.mark.parametrize(
    ("more", "line", "words"),
    [
        ('[limits]\nuniques = "< -1%"\n', 10, "can never hold"),
        ('[limits]\nentropy = "< 0"\n', 10, "can never hold"),
        ('[limits]\nuniques = "< 2"\n', 10, "Write 2 % as 0.02"),
        ('[limits]\nuniques = ["< 2%", "> 3%"]\n', 10, "cannot both hold"),
        ('[limits]\nuniques = "> 5%"\n"uniques(k=3)" = "< 1%"\n', 10, "is never below uniques"),
        ('[limits]\nuniques = "> 5%"\n"k_anonymity(k=3)" = "< 1%"\n', 10, "is never below uniques"),
        ('[limits]\nuniques = 0.02\n', 10, "write it like '< 0.02'"),
        ('[limits]\nuniques = { limit = "< 2%", becase = "x" }\n', 10, "becase: is not known here"),
        ('[limits]\nuniques = { reason = "x" }\n', 10, "limit"),
        ('[limits]\nuniques = { limit = "< 2%", scenario = "spy" }\n', 10, "No scenario 'spy'"),
        ('[limits]\nentropy = { limit = "> 2", worst = true }\n', 10, "is no risk"),
        ('[limits]\nuniques = { limit = "< 2%", by = ["regio"] }\n', 10, "No column 'regio'"),
        ('[limits]\nuniques = []\n', 10, "limits nothing"),
        ('[limits]\nuniques = "< 2%"\n[[scenarios]]\nname = "a"\nknown = ["aeg"]\n', 13, "No column 'aeg'"),
        ('[limits]\nuniques = "< 2%"\n[[scenarios]]\nname = "keys"\nknown = ["age"]\n', 12, "cannot name a scenario"),
        ('[limits]\nuniques = "< 2%"\n[[scenarios]]\nname = "a"\nknown = []\n', 13, "Nothing is known"),
        ('[limits]\nuniques = "< 2%"\n[choose]\nweights = { uniques = 1 }\n', 12, "is a risk"),
        ('[limits]\nuniques = "< 2%"\n[choose]\nweights = { entropy = -1 }\n', 12, "0 or more"),
        ('[limits]\nuniques = "< 2%"\n[[candidates]]\n', 11, "gives no recipe"),
        ('[limits]\nuniques = "< 2%"\n[search]\nbudget = 0\n', 12, "above 0"),
        ('[limits]\nuniques = "< 2%"\n[search]\nprocesses = 0\n', 12, "above 0"),
        ('[limits]\nuniques = "< 2%"\n[waive]\nlimits = "no"\n', 12, "can be waived"),
        ('[limits]\nuniques = "< 2%"\n[[candidates]]\nmasks = [{ use = "sample", fraction = 5 }]\n', 12, "fraction"),
        ('[limits]\nuniques = "< 2%"\n[[candidates]]\nmasks = [{ use = "recode", column = "pay", level = 1 }]\n', 12,
         "has no hierarchy"),
        ('[limits]\nuniques = "< 2%"\n[[candidates]]\nmasks = [{ use = "rank_swap", columns = "sex", window = 0.1 }]\n'
         'coarsening = true\n', 12, "needs an order"),
    ],
)  # fmt: skip
def test_one_problem_and_its_line(tmp_path: Path, more: str, line: int, words: str) -> None:
    found = told(tmp_path, BASE + more)
    assert any(at == line and words in text for at, text in found), found


@pytest.mark.parametrize("mask", ['"noise", columns = "pay", scale = 0.3', '"rank_swap", columns = "pay", window = 0.1',
                                  '"synthesize", model = "bootstrap"', '"pram", xi = 0.5'])  # fmt: skip
def test_who_changes_values_must_limit_an_attack(tmp_path: Path, mask: str) -> None:
    """Uniques of a perturbed file may be somebody else: counting them alone is refused, unless waived with a reason."""
    table().write_csv(tmp_path / "people.csv")
    path = tmp_path / "policy.toml"
    candidate = f"\n[[candidates]]\nmasks = [{{ use = {mask} }}]\n"
    path.write_text(BASE + '[limits]\nuniques = "< 2%"\n' + candidate)
    with pytest.raises(eq.ParameterError, match=r"line 9, limits: .* limit an attack as well"):
        Job.load(path)
    for more in (
        'nearest = "< 50%"',
        'value_disclosure = "< 90%"',
        'match_probability = "< 50%"',
        '"interval" = "< 1"',
    ):
        path.write_text(BASE + f'[limits]\nuniques = "< 2%"\n{more}\n' + candidate)
        assert Job.load(path).unattacked() == ""
    path.write_text('waive = { attack = "a test file" }\n' + BASE + '[limits]\nuniques = "< 2%"\n' + candidate)
    assert "limit an attack" in Job.load(path).unattacked()


@pytest.mark.parametrize("mask", ['"top-code", column = "age", at = 80', '"suppress_records", rule = "min-count:3"',
                                  '"local_suppress", rule = "min-count:3"'])  # fmt: skip
def test_what_coarsens_or_leaves_out_needs_no_attack(tmp_path: Path, mask: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(BASE + f'[limits]\nuniques = "< 2%"\n[[candidates]]\nmasks = [{{ use = {mask} }}]\n')
    assert Job.load(path).unattacked() == ""


def test_files_that_are_not_there(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('seed_file = "seed.json"\n' + BASE + '[limits]\nuniques = "< 2%"\n[output]\nsign = "key.pem"\n')
    assert [p.on(Job.load(path).written.lines).line for p in Job.load(path).absent()] == [1, 13, 4]


def test_a_policy_that_fails_elsewhere_names_files_that_are_missing_and_does_not_read_them(tmp_path: Path) -> None:
    assert [line for line, _ in told(tmp_path, BASE + "[limits]\n", data=False)] == [3, 9]


@pytest.mark.parametrize(
    ("one", "other", "odd"),
    [("< 0.1", "> 0.1", True), ("<= 0.1", ">= 0.1", False), ("<= 0.1", "> 0.1", True), ("< 0.2", "> 0.1", False)],
)
def test_bounds_that_meet_or_do_not(one: str, other: str, odd: bool) -> None:
    assert bool([*at_odds([Limit.of("entropy", one), Limit.of("entropy", other)])]) is odd


def test_small_classes_are_nested() -> None:
    """Of at most 1 within of at most 2; k-anonymity counts classes below k."""
    low, high = Limit.of("uniques", "> 5%"), Limit.of("k_anonymity(k=2)", "< 4%")
    assert not [*at_odds([low, high])], "k = 2 counts the same records as uniques: no ladder between them"
    assert [*at_odds([low, Limit.of("k_anonymity", "< 4%")])]
    assert not [*at_odds([Limit.of("uniques", "< 5%"), Limit.of("uniques(k=2)", "> 10%")])]


def test_the_ends_of_a_measure() -> None:
    assert ends(parse("uniques", "measure")) == (0.0, 1.0)
    assert never(Limit.of("entropy", "> 2"), parse("entropy", "measure")) == ""
    assert never(Limit.of("uniques", ">= 0"), parse("uniques", "measure")) == ""
    assert never(Limit.of("estimate", "< 0"), parse("estimate(query='mean:pay')", "measure")) == ""


RECORDS = [
    "uniques", "k_anonymity", "prosecutor", "journalist", "marketer", "individual", "household", "special_uniques",
    "population_uniques(fraction=0.1)", "attribute_disclosure(sensitive='sex')", "log_linear(fraction=0.1)",
    "value_disclosure", "copies", "nearest", "linkage", "interval", "informed", "singling_out",
    "changed", "entropy", "marginals", "mean_square", "moments", "information_loss", "eigenvalues",
    "estimate(query='mean:pay')", "estimate(query='mean:pay', score='square')",
]  # fmt: skip


@pytest.mark.parametrize("name", RECORDS)
def test_every_score_lies_between_its_ends(name: str) -> None:
    """A share by its unit is a share before any data is read, and only then is 2 taken for 2 %."""
    frame = table().with_columns(home=pl.int_range(100) // 2, more=pl.col("pay") ** 2 + pl.col("age"))
    records = eq.read(frame, eq.Roles(["age", "sex"], numeric=["pay", "more"], household="home"))
    noisy = eq.Recipe([eq.masks.Noise(["pay", "more"], 0.4)], 3).run(records)
    measure = parse(name, "measure")
    if name == "journalist" or name == "marketer":
        measure = type(measure)(population=records)
    score = measure.measure(noisy, records)
    low, high = ends(measure)
    assert low <= score.value <= high
    assert score.unit.startswith(("share", "probability")) == is_share(measure), score.unit


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if at:
        yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*at, key))


ODD = [3, -1, 0.5, True, "x", "", [], {}, [1], [[1]], {"a": 1}, "< 2", {"from": 1}, [{}], [{"use": 3}], {"limit": 3}]


@pytest.mark.parametrize("name", ["survey", "business", "business-table", "hospital", "methods"])
def test_whatever_is_written_is_refused_in_words(name: str) -> None:
    """Any value put anywhere in a policy that is good: it loads, or says what is wrong; it never breaks."""
    text = (Path(__file__).parents[2] / f"src/equipoise/demo/{name}.toml").read_text(encoding="utf-8")
    rng = random.Random(name)
    for _ in range(40):
        plain = tomllib.loads(text)
        *way, last = rng.choice([*places(plain)])
        here: Any = plain
        for key in way:
            here = here[key]
        here[last] = copy.deepcopy(rng.choice(ODD))
        with suppress(eq.EquipoiseError):
            Job.from_plain(plain, Path("none") / "policy.toml", lines_of(text))
