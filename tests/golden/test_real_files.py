"""Real files where they can be had, and a generated twin of each check that never skips."""

from collections import Counter
from math import log2
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import equipoise as eq

ADULT = [
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
]
TESTDATA = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]


def by_hand(path: Path, keys: list[str], mark: str) -> Counter[tuple[str, ...]]:
    """Count lines of text with the standard library: no dataframe, no types."""
    import csv

    with path.open(encoding="utf-8", newline="") as file:
        return Counter(tuple(row[k] for k in keys) for row in csv.DictReader(file, delimiter=mark))


def check(path: Path, keys: list[str], mark: str) -> eq.Cells:
    """Counts, uniques (k = 1, 2) and entropy of a file against `by_hand`; counts exact, bits to 1e-9."""
    expected = by_hand(path, keys, mark)
    records = eq.read(path, eq.Roles(keys))
    cells = eq.count(records)
    found = {tuple(str(v) for v in row[:-2]): row[-2] for row in cells.table.iter_rows()}
    assert found == dict(expected)
    n = expected.total()
    for k in (1, 2):
        score = eq.risk.Uniques(k).measure(records, records)
        assert score.number == sum(c for c in expected.values() if c <= k)
        assert score.value == pytest.approx(sum(c for c in expected.values() if c <= k) / n, abs=1e-15)
    bits = -sum(c / n * log2(c / n) for c in expected.values())
    assert eq.utility.Entropy().measure(records, records).value == pytest.approx(bits, abs=1e-9)
    return cells


def violations(cells: eq.Cells) -> list[float | None]:
    return [eq.risk.Uniques(k).measure(cells, cells).number for k in (1, 2, 4)]


# --- adult (ARX) --------------------------------------------------------------------------------------------------


def test_adult(data_folder: Path) -> None:
    """30,162 records of the UCI census extract as ARX ships it (';', commit aacd487)."""
    assert check(data_folder / "arx" / "adult.csv", ADULT, ";").records == 30_162


def test_adult_lattice(data_folder: Path) -> None:
    """data/arx/README.md: heights 2,5,2,3,4,3,3,3,2 with all nine as keys make 12,960 nodes. Exact."""
    arx = data_folder / "arx"
    trees = {key: eq.Hierarchy.csv(arx / "hierarchies" / f"adult_hierarchy_{key}.csv") for key in ADULT}
    records = eq.read(arx / "adult.csv", eq.Roles(ADULT, hierarchies=trees))
    recipes = eq.coarsenings(records)
    assert len(recipes) == 12_960
    some = [recipes[i] for i in (0, 1, 777, 6_480, 12_001, 12_959)]
    table = pl.read_csv(arx / "adult.csv", separator=";", infer_schema=False)
    for trial in eq.sweep(records, some, [eq.risk.Uniques(), eq.utility.Entropy()]):
        columns = [table[key] for key in ADULT]
        for mask in trial.recipe.masks:
            path = arx / "hierarchies" / f"adult_hierarchy_{mask.column}.csv"
            rows = [line.split(";") for line in path.read_text(encoding="utf-8").splitlines() if line]
            place = ADULT.index(mask.column)
            columns[place] = columns[place].replace_strict({row[0]: row[int(mask.level)] for row in rows})
        counts = Counter(zip(*columns, strict=True))
        n = counts.total()
        assert trial.scores["uniques"].number == sum(c == 1 for c in counts.values())
        assert trial.scores["entropy"].value == pytest.approx(
            -sum(c / n * log2(c / n) for c in counts.values()), abs=1e-9
        )


# --- testdata (sdcMicro) ------------------------------------------------------------------------------------------


def test_testdata(data_folder: Path) -> None:
    """sdcMicro 5.8 with these seven keys: 157, 281 and 458 records violate 2-, 3- and 5-anonymity. Exact."""
    cells = check(data_folder / "sdcmicro" / "testdata.csv", TESTDATA, ",")
    assert cells.records == 4_580
    assert violations(cells) == [157, 281, 458]


def test_testdata_by_pandas(data_folder: Path) -> None:
    """The same by another package: pandas groupby, sizes of classes."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(data_folder / "sdcmicro" / "testdata.csv")
    sizes = frame.groupby(TESTDATA, dropna=False).size()
    cells = eq.count(eq.read(frame, eq.Roles(TESTDATA)))
    assert sorted(cells.n.tolist()) == sorted(sizes.tolist())
    assert violations(cells) == [int(sizes[sizes <= k].sum()) for k in (1, 2, 4)]


# --- twins, on files made here ------------------------------------------------------------------------------------


@pytest.fixture
def adult_twin(tmp_path: Path) -> tuple[Path, dict[str, Path]]:
    """A file of the same shape: ';', text and numbers, leaf-to-root hierarchies of the same heights."""
    rng = np.random.default_rng(1994)
    heights = dict(zip(ADULT, (2, 5, 2, 3, 4, 3, 3, 3, 2), strict=True))
    sizes = dict(zip(ADULT, (2, 74, 5, 7, 16, 41, 7, 14, 2), strict=True))
    columns, paths = {}, {}
    for key, size in sizes.items():
        leaves = [str(17 + i) if key == "age" else f"{key} {i}" for i in range(size)]
        chances = rng.dirichlet(np.full(size, 0.5))
        columns[key] = rng.choice(leaves, 3_000, p=chances)
        steps = [
            ["*" if up == heights[key] - 1 else f"{key}/{up}/{i // 4**up}" for up in range(1, heights[key])]
            for i in range(size)
        ]
        paths[key] = tmp_path / f"{key}.csv"
        rows = [";".join([leaf, *step]) for leaf, step in zip(leaves, steps, strict=True)]
        paths[key].write_text("\n".join(rows) + "\n", encoding="utf-8")
    path = tmp_path / "adult.csv"
    pl.DataFrame(columns).write_csv(path, separator=";")
    return path, paths


def test_adult_twin(adult_twin: tuple[Path, dict[str, Path]]) -> None:
    """Twin of `test_adult`: counts, uniques and entropy of a generated file."""
    check(adult_twin[0], ADULT, ";")


def test_adult_lattice_twin(adult_twin: tuple[Path, dict[str, Path]]) -> None:
    """Twin of `test_adult_lattice`: hierarchy files of the same heights span the same lattice."""
    path, hierarchies = adult_twin
    trees = {key: eq.Hierarchy.csv(h) for key, h in hierarchies.items()}
    assert [len(tree.levels) for tree in trees.values()] == [2, 5, 2, 3, 4, 3, 3, 3, 2]
    records = eq.read(path, eq.Roles(ADULT, hierarchies=trees))
    recipes = eq.coarsenings(records)
    assert len(recipes) == len(set(recipes)) == 12_960
    assert recipes[0] == eq.Recipe()


def test_testdata_twin(tmp_path: Path) -> None:
    """Twin of `test_testdata`: whole-number keys, quoted header, classes below 2, 3 and 5."""
    rng = np.random.default_rng(2008)
    shape = (2, 5, 3, 9, 2, 9, 2)
    table = pl.DataFrame(
        {k: rng.choice(s, 4_580, p=rng.dirichlet(np.full(s, 0.3))) + 1 for k, s in zip(TESTDATA, shape, strict=True)}
    )
    path = tmp_path / "testdata.csv"
    table.write_csv(path, quote_style="non_numeric")
    cells = check(path, TESTDATA, ",")
    sizes = Counter(Counter(table.rows()).values())
    assert violations(cells) == [sum(s * m for s, m in sizes.items() if s <= k) for k in (1, 2, 4)]
    assert 0 < violations(cells)[0] < violations(cells)[2]  # type: ignore[operator]
