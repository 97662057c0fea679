"""Direct identifiers: found by their shape, refused in a release, withheld by role, allowed by name."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.inspection.column_facts import facts_of
from equipoise.inspection.direct_identifiers import find_identifier
from equipoise.releases.release import release

SIZE = 300
Page = Callable[[Any, bool], str]


@pytest.fixture
def table() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "nr": range(SIZE),
            "sex": rng.choice(["f", "m"], SIZE),
            "age": rng.integers(20, 30, SIZE),
            "mail": [f"p{i}@example.org" for i in range(SIZE)],
        }
    )


def released(table: pl.DataFrame, roles: eq.Roles, policy: eq.Policy, out: Path, page: Page) -> eq.Release:
    return release(eq.read(table, roles), eq.Recipe([]), policy, out)


def test_a_release_is_refused_and_says_how_to_allow_it(table: pl.DataFrame, tmp_path: Path, page: Page) -> None:
    with pytest.raises(eq.RefusedError, match="'mail' looks like a direct identifier \\(e-mail addresses\\)") as caught:
        released(table, eq.Roles(["sex", "age"]), eq.Policy(), tmp_path / "out", page)
    assert "role direct" in str(caught.value)
    assert "allow" in str(caught.value)
    assert "example.org" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_allowed_by_name(table: pl.DataFrame, tmp_path: Path, page: Page) -> None:
    made = released(table, eq.Roles(["sex", "age"]), eq.Policy(allow=("mail",)), tmp_path / "out", page)
    assert "mail" in pl.read_parquet(made.public / "data.parquet").columns
    assert 'allow = [\n    "mail",\n]' in (made.private / "policy.toml").read_text(encoding="utf-8")


def test_the_role_direct_withholds(table: pl.DataFrame, tmp_path: Path, page: Page) -> None:
    """Neither the data nor the measures see the column; the evidence says that it was withheld."""
    roles = eq.Roles(["sex", "age"], id="nr", direct=["mail"])
    made = released(table, roles, eq.Policy(), tmp_path / "out", page)
    assert pl.read_parquet(made.public / "data.parquet").columns == ["sex", "age"]
    assert made.evidence["withheld"] == ["nr", "mail"]
    assert "mail" not in made.data.schema()
    assert 'direct = [\n    "mail",\n]' in (made.private / "policy.toml").read_text(encoding="utf-8")


def test_an_id_is_no_identifier_to_refuse(table: pl.DataFrame, tmp_path: Path, page: Page) -> None:
    made = released(table.drop("nr"), eq.Roles(["sex", "age"], id="mail"), eq.Policy(), tmp_path / "out", page)
    assert made.evidence["withheld"] == ["mail"]


def test_a_mask_may_take_the_identifier_away(table: pl.DataFrame, tmp_path: Path, page: Page) -> None:
    """What counts is what is released: a first letter is no address."""
    roles = eq.Roles(["sex", "mail"], hierarchies={"mail": eq.Hierarchy.prefix(1)})
    made = release(eq.read(table, roles), eq.Recipe([eq.masks.Recode("mail", 1)]), eq.Policy(), tmp_path / "out")
    assert pl.read_parquet(made.public / "data.parquet")["mail"].n_unique() == 1


def test_a_policy_file_allows_or_withholds(table: pl.DataFrame, tmp_path: Path) -> None:
    table.write_parquet(tmp_path / "people.parquet")
    policy = '[data]\npath = "people.parquet"\n[roles]\nkeys = ["sex", "age"]\n{}\n[limits]\nuniques = "< 0.9"\n'
    policy += '[roles.hierarchies.age]\nkind = "intervals"\nwidths = [5]\n'
    path = tmp_path / "policy.toml"
    path.write_text(policy.format(""), encoding="utf-8")
    with pytest.raises(eq.RefusedError, match="'mail'"):
        eq.balance(path)
    path.write_text('allow = ["mail"]\nassume_unknown = ["mail", "nr"]\n' + policy.format(""), encoding="utf-8")
    assert "mail" in eq.balance(path, overwrite=True).data.schema()
    path.write_text('assume_unknown = ["nr"]\n' + policy.format('direct = ["mail"]'), encoding="utf-8")
    made = eq.balance(path, overwrite=True)
    assert made.evidence["withheld"] == ["mail"]
    again = eq.balance(made.private / "policy.toml", out=tmp_path / "again")
    assert again.evidence["withheld"] == ["mail"]
    told = json.loads((again.public / "evidence.json").read_text(encoding="utf-8"))
    assert told["withheld"] == ["mail"]


def test_direct_cannot_be_anything_else() -> None:
    for other in ({"keys": ["a"]}, {"numeric": ["a"]}, {"id": "a"}, {"weight": "a"}, {"domain": ["a"]}):
        with pytest.raises(eq.RolesError, match="direct"):
            eq.Roles(**other, direct=["a"])  # type: ignore[arg-type]


def test_which_are_certain(planted: tuple[pl.DataFrame, set[str]]) -> None:
    """Refused in a release: all that were planted, none of the others."""
    seen = {c.name for c in planted[0].iter_columns() if (f := find_identifier(facts_of(c))) and f.certain}
    assert seen == planted[1]


@pytest.mark.parametrize("digits", [9, 10, 11, 13, 15, 16])
def test_random_numbers_are_no_identifiers(digits: int) -> None:
    """Check digits are right by accident once in ten times, not nine times in ten."""
    for seed in range(5):
        drawn = np.random.default_rng(seed).integers(10 ** (digits - 1), 10**digits, 500)
        for values in (pl.Series("v", drawn), pl.Series("v", drawn).cast(pl.String)):
            finding = find_identifier(facts_of(values))
            assert finding is None or not finding.certain


@pytest.mark.parametrize("name", ["survey", "business", "hospital"])
def test_no_false_alarm_on_the_demos(name: str) -> None:
    assert [c.name for c in getattr(eq.demo, name)().iter_columns() if find_identifier(facts_of(c))] == []


def test_lost_zeros_are_given_back() -> None:
    """A Dutch number that was read as a whole number."""
    stems = np.random.default_rng(0).integers(1_000_000, 99_999_999, 400)
    checks = [sum(int(d) * w for d, w in zip(f"{s:08d}", range(9, 1, -1), strict=True)) % 11 for s in stems]
    numbers = [int(f"{s:08d}{c}") for s, c in zip(stems, checks, strict=True) if c < 10]
    assert find_identifier(facts_of(pl.Series("v", numbers))) is not None


def test_few_values_identify_nobody() -> None:
    assert find_identifier(facts_of(pl.Series("surname", ["Smith", "Jones"] * 50))) is None
    assert find_identifier(facts_of(pl.Series("birth_date", [None, None], dtype=pl.Date))) is None
    assert find_identifier(facts_of(pl.Series("lat", [52.1, 52.2] * 50))) is None


def test_a_label_speaks_where_the_name_does_not() -> None:
    values = pl.Series("q17", [f"0{n}" for n in np.random.default_rng(1).integers(600_000_000, 699_999_999, 100)])
    finding = find_identifier(facts_of(values), "Numéro de téléphone")
    assert finding is not None
    assert finding.certain
    blind = find_identifier(facts_of(values))
    assert blind is None or not blind.certain


@pytest.mark.parametrize(
    ("shape", "values"),
    [
        ("phone", ["(555) 123-45{:02d}", "555-123-45{:02d}", "+49 (0)30 1234{:02d}", "0049-170-12345{:02d}"]),
        ("phone", ["06 12 34 56 {:02d}", "07700 9001{:02d}", "030/1234{:02d}", "612 345 7{:02d}"]),
        ("ip", ["192.168.0.{}", "10.0.{}.201", "2001:db8::{}", "fe80::1:{}"]),
        ("mac", ["00:1A:2B:3C:4D:{:02d}"]),
        ("coordinates", ["52.51{:02d}3, 13.40{:02d}1".replace("{:02d}1", "951"), "(48.85{:02d}, 2.3522)"]),
        ("nino", ["AB 12 34 {:02d} C", "jg1031{:02d}a"]),
        ("insurance number", ["65 1708{:02d} J 003"]),
        ("hetu", ["1310{:02d}-308T", "1310{:02d}A308T"]),
        ("url", ["https://example.org/{}", "www.example.org/{}"]),
    ],
)
def test_shapes_without_check_digits(shape: str, values: list[str]) -> None:
    drawn = [text.format(i) for text in values for i in range(10, 40)]
    finding = find_identifier(facts_of(pl.Series("v", drawn)))
    assert finding is not None
    assert (finding.kind, finding.certain) == (shape, True)


@pytest.mark.parametrize(
    "values",
    [
        [f"{h:02d}:{m:02d}:{(7 * m) % 60:02d}" for h in range(24) for m in range(60)],
        [f"{a:02d}.{b}.{c}.{d}" for a in range(1, 13) for b in range(1, 4) for c in range(1, 4) for d in range(1, 4)],
        [f"{a}-{b}" for a in range(10, 40) for b in range(10)],
        [f"{a}.{b}" for a in range(1, 30) for b in range(10)],
        [f"2024-{m:02d}" for m in range(1, 13)] * 9,
        [f"{a:03d}.{b:02d}" for a in range(40) for b in range(8)],
        [f"EQ{a}" for a in range(100, 400)],
        [f"10:{m:02d}" for m in range(60)] * 3,
        [f"{a} to {a + 5}" for a in range(0, 200, 5)] * 4,
        [f"0{a} {b}" for a in range(20) for b in range(15)],
    ],
    ids=["clock", "coicop", "ranges", "versions", "months", "codes", "regions", "times", "bands", "spaced"],
)
def test_codes_are_no_identifiers(values: list[str]) -> None:
    finding = find_identifier(facts_of(pl.Series("v", values)))
    assert finding is None or not finding.certain


def test_swedish_numbers_with_the_century() -> None:
    from stdnum import luhn

    days = [f"{1940 + i}{1 + i % 12:02d}{1 + i % 28:02d}{100 + 7 * i}" for i in range(60)]
    right = [day + str(next(c for c in range(10) if luhn.is_valid(f"{day[2:]}{c}"))) for day in days]
    finding = find_identifier(facts_of(pl.Series("v1", [f"{text[:8]}-{text[8:]}" for text in right])))
    assert finding is not None
    assert finding.words == "Swedish personal numbers"
