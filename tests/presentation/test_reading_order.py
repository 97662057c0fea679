"""Categories stand as people read them, whatever order they come in."""

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.data.labels import Column, Labels
from equipoise.data.tables.table import Table
from equipoise.presentation.reading_order import nodes_in_order, reading_key, row_order, titles

NUMBERS = st.integers(-10_000, 10_000)
LABELS = st.one_of(
    st.text(max_size=6),
    st.builds("{}-{}".format, NUMBERS, NUMBERS),
    st.builds("{}{}".format, st.sampled_from(["<", "under ", "over ", "EQ", "", "Q", "May "]), NUMBERS),
    st.builds("{}{}".format, NUMBERS, st.sampled_from(["+", " and over", " or less", "A", ". Mining", "²"])),
)
ORDERS = [
    ["1-9", "10-49", "50-249", "250+", "not stated"],
    ["under 5", "5-9", "10 and over"],
    ["0", "<10", "10-19", "20 or more"],
    ["under €1,000", "€1,000 - €4,999", "€5,000+"],
    ["[0,5)", "[5,10)", "[100,200)", "(200, inf)"],
    ["not more than 5", "6 to 10", "at least 11"],
    ["aged under 5", "aged 5-14", "aged 65 and over"],
    ["January", "February", "April", "December"],
    ["Q4 2023", "Q1 2024", "Q2 2024"],
    ["2023-12", "2024-01", "2024-10"],
    ["EQ2", "EQ11", "EQ11 north", "(missing)"],
    ["1. Agriculture", "2. Mining", "10. Services"],
]


@given(st.lists(LABELS, unique=True, max_size=12), st.randoms(use_true_random=False))
def test_a_total_order_whatever_the_order_of_the_labels(labels: list[str], chance: object) -> None:
    keys = sorted(map(reading_key, labels))
    assert len(set(keys)) == len(labels), "different labels have different keys, which all compare"
    mixed = labels.copy()
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert sorted(mixed, key=reading_key) == sorted(labels, key=reading_key)


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=8, unique=True), st.sampled_from(["-", " to ", "–"]))
def test_bands_stand_by_their_ends(breaks: list[int], dash: str) -> None:
    ends = sorted(breaks)
    bands = [f"{low:,}{dash}{high - 1:,}" for low, high in pairwise(ends)]
    labels = [f"under {ends[0]:,}", *bands, f"{ends[-1]:,}+"]
    assert sorted(set(labels), key=reading_key) == labels


@pytest.mark.parametrize("labels", ORDERS, ids=lambda labels: labels[0])
def test_orders_people_know(labels: list[str]) -> None:
    assert sorted(set(labels), key=reading_key) == labels


def _read(table: Table, place: int = 0) -> list[tuple[str, int]]:
    axis = table.axes[place]
    return [(axis.nodes[node], depth) for node, depth in nodes_in_order(axis)]


def test_declared_orders_come_first_and_totals_last() -> None:
    frame = pl.DataFrame({
        "rank": pl.Series(["low", "high", "mid"], dtype=pl.Enum(["low", "mid", "high"])),
        "town": ["z", "a", "m"], "age": [3, 70, 30],
    })  # fmt: skip
    trees = {
        "town": eq.Hierarchy.mapping({"z": "west", "m": "west", "a": "east"}),
        "age": eq.Hierarchy.breaks([18, 65], labels=[["young", "middle", "ancient"]]),
    }
    table = eq.table(eq.Records.of(frame, eq.Roles()), ["rank", "town", "age"], hierarchies=trees)
    assert [name for name, _ in _read(table)] == ["low", "mid", "high", "Total"]
    assert _read(table, 1) == [("west", 1), ("z", 2), ("m", 2), ("east", 1), ("a", 2), ("Total", 0)]
    assert [name for name, _ in _read(table, 2)] == ["young", "3", "middle", "30", "ancient", "70", "Total"]
    rows = table.table[row_order(table)].select(table.by).rows()
    assert rows[0] == ("low", "west", "young")
    assert rows[-1] == ("Total", "Total", "Total")


def test_an_order_that_is_only_that_of_the_text_is_none() -> None:
    tree = eq.Hierarchy.mapping({"1-9": "few", "10-49": "some", "250+": "many", "50-249": "many"})
    frame = pl.DataFrame({"size": ["50-249", "1-9", "250+", "10-49"]})
    table = eq.table(eq.Records.of(frame, eq.Roles()), "size", hierarchies={"size": tree})
    assert [n for n, _ in _read(table)] == ["few", "1-9", "some", "10-49", "many", "50-249", "250+", "Total"]


def test_value_labels_name_the_categories() -> None:
    labels = Labels({"sex": Column("Sex", ((1.0, "man"), (2.0, "woman"))), "nace": Column(values=(("C", "Making"),))})
    frame = pl.DataFrame({"sex": [1, 2, 9], "nace": ["C", "D", "C"]})
    table = eq.table(eq.Records.of(frame, eq.Roles(), labels=labels), ["sex", "nace"])
    assert titles(table.axes[0], table.labels.of("sex")) == ["man", "woman", "9", "Total"]
    assert titles(table.axes[1], table.labels.of("nace")) == ["C Making", "D", "Total"]


def test_an_open_band_stands_last_among_declared_groups() -> None:
    """A leaf that is its own group (75+, 70-74) has the place of a leaf, and the other groups had those after all."""
    rows = [
        ("60-64", "60-69", "60-74"),
        ("65-69", "60-69", "60-74"),
        ("70-74", "70-74", "60-74"),
        ("75+", "75+", "75+"),
    ]
    ages = pl.DataFrame({"age": [row[0] for row in rows] * 5})
    table = eq.table(eq.read(ages, eq.Roles("age", hierarchies={"age": eq.Hierarchy.mapping(rows)})), ["age"])
    order = [table.axes[0].nodes[node] for node, _ in nodes_in_order(table.axes[0])]
    assert order == ["60-74", "60-69", "60-64", "65-69", "70-74", "75+", "Total"]
