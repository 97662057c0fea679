"""Probabilistic linkage by other packages, each in a process of its own: `python -m benchmarks.peers NAME FOLDER`.

Needs nothing of ours, so that it runs in any environment that has them. Their settings are those their guides advise
and, of the blocks tried on adult, those that find most pairs. Both files come with their rows shuffled and are linked
by row number, so that a tie is broken at random.
"""

import json
import logging
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.rows import measured

TRUTH = "person"
WIDE = (
    ("key2", "key8"),
    ("key2", "key5", "key1"),
    ("key2", "key4", "key7", "key3"),
    ("key8", "key5", "key4", "key1", "key7"),
)
SESSIONS = (
    ("key2", "key8", "key5"),
    ("key2", "key4", "key1", "key7", "key3"),
    ("key8", "key5", "key4", "key1", "key7", "key3"),
)
"""What splink blocks on to find candidates, and in each session of EM."""
PAIRS = 1e7
"""Pairs that splink draws to estimate u."""
SPILL = "2GB"
"""What DuckDB may write to disk."""


def splink(original: Any, released: Any, *, frequencies: bool = False) -> int:
    """DuckDB, u by sampling, m by EM in sessions that block on different keys, the best original of each released.

    Its one-to-one clustering is not used: on adult it wrote 30 GB and more to disk before it was stopped.
    """
    import duckdb
    import splink.comparison_library as compare
    from splink import Linker, SettingsCreator, block_on
    from splink.backends.duckdb import DuckDBAPI

    connection = duckdb.connect(config={"max_temp_directory_size": SPILL})
    engine = DuckDBAPI(connection)
    both = (("original", original), ("released", released))
    files = [engine.register(_numbered(table), dataset_display_name=name) for name, table in both]
    comparisons = [compare.ExactMatch(key).configure(term_frequency_adjustments=frequencies) for key in _keys(original)]
    settings = SettingsCreator(
        "link_only", comparisons, [block_on(*block) for block in WIDE],
        probability_two_random_records_match=1 / len(original), retain_matching_columns=False,
    )  # fmt: skip
    linker = Linker(files, settings, log_level=logging.ERROR)
    linker.training.estimate_u_using_random_sampling(max_pairs=PAIRS, seed=1)
    for block in SESSIONS:
        linker.training.estimate_parameters_using_expectation_maximisation(
            block_on(*block), estimate_without_term_frequencies=True
        )
    found = linker.inference.predict(threshold_match_probability=0.001)
    best = connection.sql(
        f"select unique_id_l, unique_id_r from {found.physical_name} "
        "qualify row_number() over (partition by unique_id_r order by match_weight desc, unique_id_l) = 1"
    ).fetchnumpy()
    return _right(original, released, best["unique_id_l"], best["unique_id_r"])


def recordlinkage(original: Any, released: Any, *, block: tuple[str, ...] = ("key2", "key8")) -> int:
    """One block, exact comparisons, ECM, then one to one from the most probable pair down."""
    import recordlinkage

    indexer = recordlinkage.Index()
    indexer.block(list(block))
    pairs = indexer.index(original, released)
    compare = recordlinkage.Compare()
    for key in _keys(original):
        compare.exact(key, key, label=key)
    patterns = compare.compute(pairs, original, released)
    model = recordlinkage.ECMClassifier()
    links = model.fit_predict(patterns)
    likely = model.prob(patterns)[links].sort_values(ascending=False, kind="stable")
    linked = recordlinkage.OneToOneLinking().compute(likely.index)
    return _right(original, released, linked.get_level_values(0), linked.get_level_values(1))


WAYS: dict[str, tuple[str, Callable[[Any, Any], int]]] = {
    "splink": ("splink", splink),
    "splink, term frequencies": ("splink", lambda a, b: splink(a, b, frequencies=True)),
    "recordlinkage": ("recordlinkage", recordlinkage),
    "recordlinkage, narrow blocks": (
        "recordlinkage",
        lambda a, b: recordlinkage(a, b, block=("key2", "key5", "key8")),
    ),
}
"""Each setting: the package it needs, and what links the two files and counts the right pairs."""


def _keys(table: Any) -> list[str]:
    return [column for column in table.columns if column != TRUTH]


def _numbered(table: Any) -> Any:
    return table.drop(columns=TRUTH).rename_axis("unique_id").reset_index()


def _right(original: Any, released: Any, ours: Any, theirs: Any) -> int:
    """How many of the pairs, given by row, are of one person."""
    return int((original[TRUTH].to_numpy()[ours] == released[TRUTH].to_numpy()[theirs]).sum())


def run(name: str, folder: Path) -> dict[str, float]:
    """One setting, in this process; what it costs beyond its imports, and in all."""
    package, link = WAYS[name]
    warnings.simplefilter("ignore")
    pandas = import_module("pandas")
    import_module(package)

    def work() -> int:
        return link(*(pandas.read_csv(folder / f"{file}.csv") for file in ("original", "released")))

    return measured(work)


if __name__ == "__main__":
    print("\n" + json.dumps(run(sys.argv[1], Path(sys.argv[2]))))
