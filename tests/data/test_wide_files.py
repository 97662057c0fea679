"""Files of many columns and of long texts: what would grow with both is asked for once, or taken in pieces."""

import tracemalloc
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.data.records import Records
from equipoise.ground import randomness
from equipoise.ground.randomness import Draws
from equipoise.inspection.column_facts import facts_of
from equipoise.inspection.direct_identifiers import find_identifier
from equipoise.inspection.revealing import revealing
from equipoise.intrusion import agreeing_pairs
from equipoise.policies.revealed_columns import refuse_undeclared
from equipoise.risk._value_snoopers import best_rules, released_terms
from equipoise.utility._default_queries import default_queries


def test_long_keys_draw_as_short_ones_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, one long text had 32,768 others padded to its length; draws are the same in whatever pieces."""
    keys, draws = pl.Series(["a", "b" * 16, "c" * 40, "", "x" * 5_000] * 4 + ["long" * 3_000]), Draws(7).child(1)
    together = draws.uniform(keys)
    monkeypatch.setattr(randomness, "MAX_PADDED_BYTES", 1_000)
    assert draws.uniform(keys).tolist() == together.tolist()
    monkeypatch.setattr(randomness, "MAX_ROUNDS_PER_KEY", 1 << 40)
    assert draws.uniform(keys).tolist() == together.tolist()


def test_a_long_key_takes_little_memory() -> None:
    """Before, 10,000 keys beside one of a megabyte took ten gigabytes."""
    tracemalloc.start()
    Draws(7).uniform(pl.Series([str(i) for i in range(9_999)] + ["x" * 1_000_000]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * randomness.MAX_PADDED_BYTES


def test_equal_rows_are_numbered() -> None:
    records = eq.read(pl.DataFrame({"a": ["x", "y", "x", "z", "y", "x"]}))
    assert records.keys_of_rows().to_list() == ["x\x1e0", "y\x1e0", "x\x1e1", "z\x1e0", "y\x1e1", "x\x1e2"]


def test_regressions_by_pieces_and_with_more_terms_than_records(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(3)
    table = pl.DataFrame({"a": draw.choice(list("abc"), 600), "x": draw.normal(size=600)})
    originals = np.column_stack([table["x"] + draw.normal(size=600), draw.normal(size=600)])
    originals[::7, 1] = np.nan
    terms = released_terms.Terms.of(table, ["a", "x"]).curved
    whole = best_rules.best_fit_errors(terms, table, originals)
    monkeypatch.setattr(best_rules, "MAX_MATRIX_NUMBERS", 1_000)
    np.testing.assert_allclose(best_rules.best_fit_errors(terms, table, originals), whole, rtol=1e-9)
    x, y = draw.normal(size=(20, 50)), draw.normal(size=20)
    np.testing.assert_allclose(released_terms.coefficients(x, y), np.linalg.lstsq(x, y, rcond=None)[0], atol=1e-9)


def test_the_columns_are_asked_for_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before, release, codebook and measures asked an engine for the columns of a file hundreds of times."""
    asked: Counter[int] = Counter()
    schema = Records.schema

    def counted(records: Records) -> Mapping[str, Any]:
        asked[id(records)] += "schema" not in records.memo
        return schema(records)

    monkeypatch.setattr(Records, "schema", counted)
    records = eq.read(pl.DataFrame({f"c{i}": ["a", "b"] * 10 for i in range(30)}), eq.Roles(["c0", "c1"]))
    eq.protect(records, [], tmp_path / "out")
    assert sum(asked.values()) < 30


def test_pairs_are_borne_out_by_some_of_many_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, each column that made pairs asked all others, and all pairs of columns were listed: hours at 10,000."""
    draw, asked = np.random.default_rng(3), []
    agreement, monkey = agreeing_pairs.agreement, monkeypatch.setattr
    monkey(agreeing_pairs, "agreement", lambda *arguments: asked.append(1) or agreement(*arguments))
    monkey(agreeing_pairs, "MAX_HEARD_COLUMNS", 10)
    original = pl.DataFrame(draw.normal(size=(60, 40)).round(3), schema=[f"c{i}" for i in range(40)])
    pairs = agreeing_pairs.agreeing_pairs(original.reverse(), original)
    assert len(pairs) == 60
    assert (pairs.people + pairs.records == 59).all()
    assert len(asked) <= 10 * 10 + 40
    likely = agreeing_pairs._likeliest([*agreeing_pairs.columns_of_both(original, original)] * 5)
    assert len(likely) == agreeing_pairs.MAX_COLUMN_PAIRS


def test_the_distributions_of_some_of_many_columns_are_looked_at() -> None:
    records = eq.read(pl.DataFrame({f"c{i}": ["a", "b"] * 10 for i in range(300)}), eq.Roles("c299"))
    queries = default_queries(records)
    assert queries[0] == "table:c299"
    assert len(queries) < 230


def test_a_refusal_names_some_of_many_columns() -> None:
    many = {f"c{i}": [f"{i} {row}" for row in range(30)] for i in range(300)}
    records = eq.read(pl.DataFrame({"a": ["x", "y"] * 15, **many}), eq.Roles("a"))
    with pytest.raises(eq.RefusedError, match="more, and the policy does not say") as refusal:
        refuse_undeclared(revealing(records, records), eq.Policy())
    assert len(str(refusal.value)) < 4_000


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([f"person{i}@example.org" for i in range(30)], "email"),
        ([f"10.0.200.{i}" for i in range(30)], "ip"),
        (["agree strongly", "agree", "neither", "disagree", "disagree strongly"] * 6, None),
        ([*range(30)], None),
        ([79927398713 + i for i in range(30)], None),
    ],
)
def test_the_quick_look_loses_no_identifier(values: list[object], kind: str | None) -> None:
    finding = find_identifier(facts_of(pl.Series("v1", values)))
    assert (finding.kind if finding else None) == kind
