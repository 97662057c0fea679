"""The first ten minutes on eleven files that nobody here made: init, balance, verify without an edit.

    python -m benchmarks.first_ten_minutes [--work DIR] [--markdown FILE] [NAME ...]

A row per file: how it ended, what was done, risk before and after, mean interval overlap, blanks, minutes of CPU.
"""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from equipoise.data.records import Records
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.policies.policy_file import Job
from equipoise.releases.reopen import evidence_of_folder, reopen
from equipoise.utility import Overlap
from equipoise.utility._user_view import UserView

FILES = (
    "arx/adult", "arx/creditcard_int", "arx/mach2019_int", "sdcmicro/CASCrefmicrodata", "sdcmicro/EIA",
    "sdcmicro/Tarragona", "sdcmicro/testdata", "sdcmicro/francdat", "sdcmicro/free1", "tables/rtauargus/indiv_dt",
    "tables/tauargus/enterprise/example_enterprise",
)  # fmt: skip
MAX_SECONDS = 3600
MAX_NAMED = 4
"""Columns of a mask that are named."""
STRENGTHS = ("level", "scale", "kind", "window", "rule", "groups", "size")
"""Parameters of masks that say how strong they are."""
MIN_DISTINCT_AMOUNTS = 50
"""Distinct numbers from which on the mean of a column is shown."""


@dataclass(frozen=True)
class Outcome:
    """What became of one file."""

    name: str
    exit_code: int
    words: str
    minutes: float
    masks: tuple[str, ...] = ()
    before: dict[str, float] = field(default_factory=dict)
    after: dict[str, float] = field(default_factory=dict)
    overlap: float = float("nan")
    blank: float = float("nan")
    withheld: int = 0
    means: dict[str, tuple[float, float]] = field(default_factory=dict)


def first_ten_minutes(file: Path, work: Path, preset: str | None = None) -> Outcome:
    """Propose, balance and verify one file in a fresh folder, and look at the release as its users would."""
    name = file.stem + (f" ({preset})" if preset else "")
    folder = work / name.replace(" ", "_")
    folder.mkdir(parents=True)
    start = _cpu_seconds()
    steps = [
        ["init", str(file), "--out", str(folder / "policy.toml"), *(["--preset", preset] if preset else [])],
        ["balance", str(folder / "policy.toml"), "--out", str(folder / "release")],
        ["verify", str(folder / "release")],
    ]
    for step in steps:
        exit_code, words = _equipoise(step)
        if exit_code:
            return Outcome(name, exit_code, f"{step[0]}: {words}", (_cpu_seconds() - start) / 60)
    return _seen(Outcome(name, 0, "released", (_cpu_seconds() - start) / 60), folder)


def _equipoise(arguments: list[str]) -> tuple[int, str]:
    """The exit code of a command, and the last lines it says where it fails."""
    command = [sys.executable, "-c", "from equipoise.doors.cli import main; raise SystemExit(main())", *arguments]
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=MAX_SECONDS, env={**os.environ, "COLUMNS": "400"},
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return 124, f"took more than {MAX_SECONDS} seconds"
    return run.returncode, " ".join((run.stderr or run.stdout).split())


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _seen(outcome: Outcome, folder: Path) -> Outcome:
    """The outcome with what the release is worth and what is left of the risk."""
    job = Job.load(folder / "policy.toml")
    original, evidence = job.read(), evidence_of_folder(folder / "release")
    released = reopen(folder / "release", roles=_roles(original, folder / "release"))
    before, after = _risks(job, original, evidence)
    return Outcome(
        outcome.name, 0, outcome.words, outcome.minutes, tuple(_mask_words(evidence["masks"])), before, after,
        Overlap().measure(released, original).value, _blank(released, original),
        original.height() - released.height(), _means(released, original),
    )  # fmt: skip


def _roles(original: Records, release: Path) -> Any:
    """The roles of the original, as far as their columns are released."""
    columns = set(reopen(release).schema())
    roles = original.roles

    def kept(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(c for c in names if c in columns)

    def one(name: str | None) -> str | None:
        return name if name in columns else None

    return replace(
        roles, keys=kept(roles.keys), sensitive=kept(roles.sensitive), numeric=kept(roles.numeric), direct=(),
        domain=kept(roles.domain), id=None, weight=one(roles.weight), household=one(roles.household),
        person=one(roles.person), hierarchies={},
    )  # fmt: skip


def _risks(job: Job, original: Records, evidence: dict[str, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """The limited risks of the original and of the release."""
    after = {name: score["value"] for name, score in evidence["scores"].items()}
    masking_input = without_direct(original)
    before = {
        score.name: score.value
        for measure in job.policy().measures()
        if (score := measure.measure(masking_input, masking_input)).side == "risk"
    }
    return before, {name: after[name] for name in before if name in after}


def _mask_words(masks: list[dict[str, Any]]) -> Iterator[str]:
    """Each mask with its columns and what says how strong it is."""
    for mask in masks:
        strength = {k: v for k, v in mask.get("parameters", {}).items() if k in STRENGTHS}
        columns = mask.get("columns") or []
        names = ", ".join([*columns[:MAX_NAMED], *(["..."] if len(columns) > MAX_NAMED else [])])
        yield f"{mask['mask']}({'; '.join([names, *(f'{k} {v}' for k, v in strength.items())])})"


def _blank(released: Records, original: Records) -> float:
    """The share of key values that are blank in the release and were not in the original; a withheld key is blank."""
    keys = original.roles.keys
    if not keys:
        return 0.0
    old, new = original.collect(*keys), released.collect(*(k for k in keys if k in released.schema()))
    gone = 0
    for key in keys:
        values = new[key] if key in new.columns else None
        blank = old.height if values is None else old.height - new.height + int(
            (values.is_null() | (values.cast(pl.String) == "*").fill_null(False)).sum()
        )  # fmt: skip
        gone += max(0, blank - old[key].null_count())
    return gone / (old.height * len(keys))


def _means(released: Records, original: Records) -> dict[str, tuple[float, float]]:
    """The mean of each amount or age as collected and as a user of the release finds it."""
    table = original.collect()
    columns = tuple(
        c for c in table.columns
        if table.schema[c].is_numeric() and table[c].n_unique() >= MIN_DISTINCT_AMOUNTS
        and c in released.schema() and c not in (original.roles.household, original.roles.person, original.roles.id)
    )  # fmt: skip
    view = UserView.of(released, original, columns)
    return {
        c: (_mean(table[c]), _mean(view.new[c])) for c in columns
        if view.new.schema[c].is_numeric()
    }  # fmt: skip


def _mean(values: pl.Series) -> float:
    mean: Any = values.cast(pl.Float64).fill_nan(None).mean()
    return float("nan") if mean is None else float(mean)


def shown(outcome: Outcome) -> Iterator[str]:
    """An outcome in lines."""
    yield f"== {outcome.name}: exit {outcome.exit_code}, {outcome.minutes:.1f} CPU minutes"
    if outcome.exit_code:
        yield f"   {outcome.words[:900]}"
        return
    yield f"   overlap {outcome.overlap:.3f}, blank {outcome.blank:.1%}, withheld {outcome.withheld:,}"
    risks = (f"{name} {outcome.before[name]:.4g} -> {value:.4g}" for name, value in outcome.after.items())
    yield f"   risk {', '.join(risks)}"
    yield f"   {'; '.join(outcome.masks) or 'nothing was changed'}"
    yield f"   means {', '.join(f'{c} {old:.6g} -> {new:.6g}' for c, (old, new) in outcome.means.items())}"


def row(outcome: Outcome) -> str:
    """An outcome as a row of the table in docs/first-ten-minutes.md."""
    if outcome.exit_code:
        return f"| {outcome.name} | {outcome.words} | | | | {outcome.minutes:.1f} |"
    risks = "; ".join(
        f"{name.split('(')[0]} {outcome.before[name]:.2g} to {v:.2g}" for name, v in outcome.after.items()
    )
    return (
        f"| {outcome.name} | {'; '.join(outcome.masks) or 'nothing was changed'} | {risks} | {outcome.overlap:.2f} | "
        f"{outcome.blank:.1%} | {outcome.minutes:.1f} |"
    )


def main(arguments: list[str] | None = None) -> None:
    """Run the files named, or all, and print what became of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="files by their stem; all without")
    parser.add_argument("--work", type=Path, required=True, help="a folder for policies and releases")
    parser.add_argument("--preset", help="limits and methods of an agency")
    parser.add_argument("--table", action="store_true", help="rows of a Markdown table instead of lines")
    options = parser.parse_args(arguments)
    data = Path(os.environ["EQUIPOISE_DATA"])
    for file in [data / f"{f}.csv" for f in FILES if not options.names or Path(f).name in options.names]:
        outcome = first_ten_minutes(file, options.work, options.preset)
        print(row(outcome) if options.table else "\n".join(shown(outcome)), flush=True)


if __name__ == "__main__":
    main()
