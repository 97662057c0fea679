"""Run the torture: `python -m torture --seed 1 --minutes 5`, or one case again: `--case files:17`."""

import argparse
import secrets
import sys
import tempfile
import time
from pathlib import Path

from torture.attempt import Outcome
from torture.runner import PARTS, Tally, run, run_one


def main() -> int:
    options = _options()
    if options.case:
        part, _, number = options.case.partition(":")
        with tempfile.TemporaryDirectory(prefix="torture-") as place:
            return _show(run_one(options.seed, part, int(number), Path(place)))
    parts = options.parts.split(",") if options.parts else list(PARTS)
    tallies = {part: Tally() for part in parts}
    deadline = time.monotonic() + 60 * options.minutes
    for part, number, outcome in run(options.seed, parts, deadline, options.count, options.workers, options.start):
        tallies[part].add(number, outcome)
        if outcome.faults and options.verbose:
            print(f"{part}:{number} {outcome.words[:200]} -> {outcome.faults} {outcome.answer[:150]}", flush=True)
    return _table(options.seed, tallies)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--seed", default="", help="the same seed makes the same cases; a new one when not given")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--count", type=int, help="attempts of each part; as many as the minutes allow when not given")
    parser.add_argument("--start", type=int, default=0, help="the number of the first attempt")
    parser.add_argument("--parts", default="", help=f"of {', '.join(PARTS)}")
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
