"""Adult, nine keys, k = 5: the optima of ARX, proven by every node. The twin in tests/flow enumerates small files."""

import os
from pathlib import Path

import polars as pl
import pytest

import equipoise as eq

LOCATION = os.environ.get("EQUIPOISE_DATA")
real = pytest.mark.skipif(not LOCATION, reason="Adult was not tried: set EQUIPOISE_DATA.")
# Loss metric of ARX and records it suppresses, at each limit.
ARX = {0.0: (0.57315, 0), 0.02: (0.31371, 506), 0.05: (0.24193, 1346), 1.0: (0.22041, 2553)}


@pytest.fixture(scope="module")
def adult() -> eq.Records:
    folder = Path(LOCATION or "") / "arx"
    keys = pl.read_csv(folder / "adult.csv", separator=";", n_rows=1).columns
    trees = {key: eq.Hierarchy.csv(folder / "hierarchies" / f"adult_hierarchy_{key}.csv") for key in keys}
    return eq.read(folder / "adult.csv", eq.Roles(tuple(keys), hierarchies=trees))


@real
@pytest.mark.parametrize("limit", ARX)
def test_the_optima_of_arx(adult: eq.Records, limit: float) -> None:
    """Equal to five decimals, with the same number of records suppressed, proven among 12,960 nodes."""
    found = eq.best_coarsening(adult, eq.rules.MinCount(5), "granularity", limit)
    assert (round(found.loss, 5), found.suppressed) == ARX[limit]
    assert found.proven
    assert found.nodes == 12_960
    assert found.evaluated < 1_300


@real
def test_the_file_as_its_own_population(adult: eq.Records) -> None:
    """k-map with the file for a population is k-anonymity: the same optimum. Its twin is in tests/search."""
    best = eq.best_coarsening(adult, eq.rules.KMap(5, adult), "granularity", 0.02)
    assert (round(best.loss, 5), best.suppressed) == ARX[0.02]


@real
def test_every_node_proves_them(adult: eq.Records) -> None:
    """All 12,960 nodes counted once: the best of those within each limit is the optimum of ARX."""
    found = eq.best_coarsening(adult, eq.rules.MinCount(5), "granularity", 0.02, whole=True)
    nodes = found.lattice
    assert (nodes.height, found.evaluated) == (12_960, 12_960)
    for limit, answer in ARX.items():
        best = nodes.filter(pl.col("suppressed") <= limit * 30_162).sort("loss").row(0, named=True)
        assert (round(best["loss"], 5), best["suppressed"]) == answer


@real
def test_diversity_and_closeness_of_adult(adult: eq.Records) -> None:
    """Records in unsafe classes of sex, race and education, against plain Polars."""
    keys = ["sex", "race", "education"]
    cells = eq.count(adult, (*keys, "occupation"))
    counts = adult.collect().group_by(*keys, "occupation").agg(n=pl.len())
    share = (pl.col("n") / pl.col("n").sum().over(keys)).alias("p")
    whole = counts.group_by("occupation").agg(q=pl.col("n").sum() / counts["n"].sum())
    joined = counts.with_columns(share).join(whole, on="occupation")
    classes = joined.group_by(keys).agg(
        n=pl.col("n").sum(),
        kinds=pl.len(),
        entropy=-(pl.col("p") * pl.col("p").log()).sum(),
        far=(pl.col("p") - pl.col("q")).abs().sum() / 2 + (1 - pl.col("q").sum()) / 2,
    )
    wanted = {
        eq.rules.Diversity("occupation", 5): pl.col("kinds") < 5,
        eq.rules.Diversity("occupation", 5, kind="entropy"): pl.col("entropy").exp() < 5,
        eq.rules.Closeness("occupation", 0.3): pl.col("far") > 0.3,
    }
    for rule, unsafe in wanted.items():
        found = cells.table.filter(rule.flag(cells))["n"].sum()
        assert 0 < found == classes.filter(unsafe)["n"].sum() < 30_162
