"""Run the torture: `python -m torture --seed 1 --minutes 5`, or one case again: `--case files:17`."""

import argparse
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from torture.attempt import Outcome
from torture.kills import cases
from torture.runner import PARTS, Tally, run, run_one

KILLS = "kills"


def main() -> int:
    options = _options()
    if options.case:
        part, _, number = options.case.partition(":")
        with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as place:
            return _show(
                next(_kills(options.seed, Path(place), range(int(number), int(number) + 1)))[1]
                if part == KILLS
                else run_one(options.seed, part, int(number), Path(place))
            )
    parts = options.parts.split(",") if options.parts else [*PARTS, KILLS]
    tallies = {part: Tally() for part in parts}
    with suppress(KeyboardInterrupt):  # what was tried so far is told
        for part, number, outcome in _outcomes(options, parts):
            tallies[part].add(number, outcome)
            if outcome.faults and options.verbose:
                print(f"{part}:{number} {outcome.words[:200]} -> {outcome.faults} {outcome.answer[:150]}", flush=True)
    return _table(options.seed, tallies)


def _outcomes(options: argparse.Namespace, parts: list[str]) -> Iterator[tuple[str, int, Outcome]]:
    """Bad input for two thirds of the time, where there are kills too; those for the rest."""
    bad = [part for part in parts if part != KILLS]
    begun, seconds = time.monotonic(), 60 * options.minutes
    if bad:
        until = begun + seconds * (2 / 3 if KILLS in parts else 1)
        yield from run(options.seed, bad, until, options.count, options.workers, options.start)
    if KILLS in parts:
        last = options.start + (options.kills or 1 << 40)
        with tempfile.TemporaryDirectory(prefix="torture-", ignore_cleanup_errors=True) as place:
            for number, outcome in _kills(options.seed, Path(place), range(options.start, last)):
                yield KILLS, number, outcome
                if options.kills is None and time.monotonic() > begun + seconds:
                    return


def _kills(seed: str, place: Path, numbers: range) -> Iterator[tuple[int, Outcome]]:
    for number, words, faults in cases(seed, place, numbers):
        yield number, Outcome(words, "", tuple(faults))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--seed", default="", help="the same seed makes the same cases; a new one when not given")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--count", type=int, help="attempts of each part; as many as the minutes allow when not given")
    parser.add_argument("--start", type=int, default=0, help="the number of the first attempt")
    parser.add_argument("--kills", type=int, help="how many runs are killed; as many as the minutes allow by default")
    parser.add_argument("--parts", default="", help=f"of {', '.join(PARTS)}, {KILLS}")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--case", help="one case again, PART:NUMBER, with its seed")
    parser.add_argument("--verbose", action="store_true", help="each fault as it comes")
    options = parser.parse_args()
    options.seed = options.seed or secrets.token_hex(4)
    return options


def _table(seed: str, tallies: dict[str, Tally]) -> int:
    print(f"{'part':10} {'tried':>8} {'answered':>9} {'faults':>7}")
    for part, tally in tallies.items():
        print(f"{part:10} {tally.tried:8,} {tally.answered:9,} {len(tally.faults):7,}")
    every = list(tallies.values())
    faults = sum(len(tally.faults) for tally in every)
    print(f"{'together':10} {sum(t.tried for t in every):8,} {sum(t.answered for t in every):9,} {faults:7,}")
    for part, tally in tallies.items():
        for number, outcome in tally.faults:
            print(f"\n{outcome.words[:300]}\n  {'; '.join(outcome.faults)[:300]}")
            print(f"  again: python -m torture --seed {seed} --case {part}:{number}")
    return 1 if faults else 0


def _show(outcome: Outcome) -> int:
    print(outcome.words, outcome.answer, *outcome.faults, sep="\n")
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
