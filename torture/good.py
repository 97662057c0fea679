"""Good input to be spoilt: one small table with planted values, in every format, and good policies and command lines."""

import random
import shutil
from contextlib import redirect_stdout
from datetime import date, timedelta
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl

from torture.attempt import CANARY, CANARY_NUMBER
from torture.sas_data_set import Variable, library, write_data_set

TEXT_FORMATS = ("csv", "csv.gz", "csv.bz2", "csv.xz", "csv.zst", "zip", "tsv")


def table(rows: int = 60) -> pl.DataFrame:
    """People with keys, amounts, weights and planted values, which are not in the first records."""
    numbers = range(rows)
    return pl.DataFrame(
        {
            "age": [20 + 7 * i % 50 for i in numbers],
            "sex": ["fm"[i % 2] for i in numbers],
            "region": [CANARY if i == 9 else ("north", "south", "east")[i % 3] for i in numbers],
            "joined": [date(1950, 1, 1) + timedelta(days=397 * i % 20_000) for i in numbers],
            "salary": [CANARY_NUMBER if i == 11 else 1000.5 + 13 * i for i in numbers],
            "w": [1.5 + i % 4 for i in numbers],
            "hh": [i // 3 for i in numbers],
            "id": list(numbers),
            "note": [f"{CANARY} {i}" if i > 6 else f"note {i}" for i in numbers],
        }
    )


ROLES = {
    "keys": ["age", "sex", "region"],
    "numeric": ["salary"],
    "weight": "w",
    "id": "id",
    "direct": ["note"],
    "hierarchies": {"age": {"kind": "intervals", "widths": [10, 20]}, "region": {"kind": "csv", "path": "region.csv"}},
}
POLICIES: dict[str, dict[str, Any]] = {
    "coarsen": {
        "format": 1,
        "title": "A test",
        "measures": ["uniques(k=2)"],
        "assume_unknown": ["joined", "salary", "hh"],
        "data": {"path": "data.csv", "encoding": "utf-8", "delimiter": ","},
        "roles": ROLES,
        "limits": {"uniques": "< 0.9", "entropy": {"limit": "> 0.1", "reason": "useful"}},
        "choose": {"prefer": "utility", "weights": {"entropy": 1.0}},
        "candidates": [{"coarsenings": True, "then": [{"use": "top_code", "column": "salary", "at": 2000}]}],
        "search": {"search": "adaptive", "budget": 4},
        "output": {"folder": "out", "format": "csv"},
    },
    "masks": {
        "data": {"path": "data.csv"},
        "draws": 2,
        "roles": {**ROLES, "household": "hh", "sensitive": ["salary"]},
        "limits": {"uniques(k=1)": {"limit": "<= 1", "by": ["sex"]}, "value_disclosure": "<= 1"},
        "scenarios": [{"name": "neighbour", "known": ["age", "sex"], "sensitive": ["salary"], "reason": "near"}],
        "candidates": [{"masks": [{"use": "recode", "column": "age", "level": ["10", "20"]}]},
                       {"masks": [{"use": "noise", "columns": ["salary"], "scale": {"from": 0.1, "to": 0.2, "steps": 2}}]}],
        "always": [{"use": "coarsen_weights"}],
        "waive": {"attack": "A test."},
        "register": "register.json",
        "asset": "people",
        "output": {"folder": "out", "keep_order": True},
    },
    "table": {
        "data": {"path": "data.csv"},
        "roles": {"keys": ["sex", "region"], "numeric": ["salary"], "id": "id",
                  "hierarchies": {"region": {"kind": "csv", "path": "region.csv"}}},
        "table": {"by": ["sex", "region"], "value": "salary"},
        "limits": {"exposed(rule='p-percent:10%')": "<= 0"},
        "candidates": [{"masks": [{"use": "suppress", "rule": "p-percent:10% | min-count:3"}]}],
        "output": {"folder": "out"},
    },
}  # fmt: skip
COMMANDS: dict[str, list[str]] = {
    "assess": ["assess", "data.csv", "--keys", "age,sex", "--weight", "w", "--measure", "uniques:2"],
    "roles": ["roles", "data.csv", "--out", "out"],
    "init": ["init", "data.csv", "--out", "out"],
    "check": ["check", "policy.toml"],
    "presets": ["presets", "ema"],
    "methods": ["methods", "uniques"],
    "register": ["register", "register.json", "--asset", "people"],
    "verify": ["verify", "release", "--original", "data.csv"],
    "protect": ["protect", "data.csv", "--keys", "age,sex", "--id", "id", "--direct", "note", "--hierarchy",
                "age=intervals:5,10", "--mask", "recode:age,10", "--limit", "uniques < 1", "--out", "out"],
    "balance": ["balance", "policy.toml", "--out", "out"],
    "attack": ["attack", "data.csv", "--against", "data.csv", "--known", "age,sex", "--out", "out"],
    "coarsen": ["coarsen", "data.csv", "--keys", "age,sex", "--hierarchy", "age=intervals:5,10", "--rule", "min-count:2"],
    "publish": ["publish", "data.csv", "--domain", "region", "--target", "sex", "--weight", "w", "--out", "out"],
    "table": ["table", "data.csv", "--by", "sex,region", "--value", "salary", "--rule", "p-percent:10%", "--out", "out"],
}  # fmt: skip
CHEAP = ("assess", "assess", "assess", "roles", "init", "protect", "protect", "table", "coarsen", "publish", "attack")
"""Verbs that read a file, in the proportion in which they are tried."""


@cache
def shelf(place: Path) -> Path:
    """The good files, made once: the table in every format, hierarchies, and a release with its register and journal."""
    import tomli_w

    from equipoise import files
    from equipoise.doors.cli import main

    good = place / "good"
    good.mkdir(parents=True)
    frame = table()
    for format in files.FORMATS:
        try:
            files.save(frame.lazy(), good / f"data.{format}", format)
        except files.DataError as error:
            raise SystemExit(f"torture: no good file in the format {format}: {error}") from None
    _r_files(good, frame)
    _sas_file(good, frame)
    _packed(good)
    (good / "region.csv").write_text(f"north;up\nsouth;down\neast;down\n{CANARY};up\n", encoding="utf-8")
    (good / "region.hrc").write_text(f"up\n@north\n@{CANARY}\ndown\n@south\n@east\n", encoding="utf-8")
    (good / "data.hst").write_text('1 "" 1 "" 1 ""\n', encoding="utf-8")
    for name, policy in POLICIES.items():
        (good / f"{name}.toml").write_text(tomli_w.dumps(policy), encoding="utf-8")
    release = [*COMMANDS["protect"][:-2], "--register", str(good / "register.json"), "--asset", "people"]
    release[1] = str(good / "data.csv")
    shutil.copy(good / "coarsen.toml", good / "policy.toml")
    with redirect_stdout(StringIO()):
        code = main([*release, "--out", str(good / "release")])
        code += main(["balance", str(good / "policy.toml"), "--out", str(good / "balanced")])
    if code:
        raise SystemExit("torture: a good release was refused")
    return good


def _r_files(good: Path, frame: pl.DataFrame) -> None:
    try:
        import rdata
    except ImportError:
        return
    small = frame.drop("joined").to_pandas()
    rdata.write_rds(good / "data.rds", small)
    rdata.write_rda(good / "people.rda", {"people": small})


def _sas_file(good: Path, frame: pl.DataFrame) -> None:
    if library() is None:
        return
    columns: list[Variable] = []
    for name in frame.drop("joined").columns:
        width = 40 if frame[name].dtype == pl.String else 0
        columns.append((name, name, "", width, frame[name].to_list()))
    write_data_set(good / "data.sas7bdat", columns, "people")


def _packed(good: Path) -> None:
    import bz2
    import gzip
    import lzma
    import zipfile

    text = (good / "data.csv").read_bytes()
    (good / "data.csv.gz").write_bytes(gzip.compress(text))
    (good / "data.csv.bz2").write_bytes(bz2.compress(text))
    (good / "data.csv.xz").write_bytes(lzma.compress(text))
    (good / "data.tsv").write_bytes(text.replace(b",", b"\t"))
    with zipfile.ZipFile(good / "data.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(good / "data.csv", "data.csv")


def lay_out(good: Path, folder: Path, *names: str) -> None:
    """Copies of good files in the folder of an attempt."""
    for name in names:
        source = good / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)


def stream(seed: str, part: str, number: int) -> random.Random:
    """The random stream of one attempt."""
    return random.Random(f"{seed}:{part}:{number}")
