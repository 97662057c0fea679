"""Bad options: good command lines of every verb with values changed, taken away or added."""

import random
from functools import cache
from pathlib import Path
from typing import Any

from torture.attempt import Attempt
from torture.good import COMMANDS, lay_out, shelf
from torture.odd import HUGE, ODD_TEXTS

FILES = (
    "data.csv",
    "region.csv",
    "region.hrc",
    "data.xlsx",
    "data.parquet",
    "policy.toml",
    "register.json",
    "register.json.tables",
)


def attempt(rng: random.Random, place: Path, folder: Path) -> Attempt:
    good = shelf(place)
    lay_out(good, folder, *FILES)
    verb = rng.choice([v for v in COMMANDS if v != "balance" or rng.random() < 0.3])
    if verb in ("verify", "attack"):
        lay_out(good, folder, "release")
    args = list(COMMANDS[verb])
    for _ in range(rng.choice((1, 1, 2))):
        how = rng.choice(("value", "value", "add", "add", "gone", "method"))
        if how == "gone":
            args.pop(rng.randrange(len(args)))
        elif how == "value" and len(args) > 1:
            args[rng.randrange(1, len(args))] = odd_text(rng)
        elif how == "method":
            args += [rng.choice(("--mask", "--measure", "--rule", "--limit", "--attack")), _method(rng)]
        elif names := switches(verb):
            args += [rng.choice(names), odd_text(rng)]
    args = [arg.replace("\x00", "\\0") for arg in args]
    if "open" in args[:1] or "demo" in args[:1]:
        args = ["methods"]
    return Attempt(
        f"options: {' '.join(map(repr, args))[:300]}",
        args,
        writes=("out", "register.json", "register.json.tables", "policy-release"),
    )


def odd_text(rng: random.Random) -> str:
    word = rng.choice((*ODD_TEXTS, *map(str, HUGE[:-1]), *FILES, "release", "out", "region", "salary,w", "id", "note"))
    return word.encode("utf-8", errors="replace").decode()


@cache
def switches(verb: str) -> list[str]:
    """The options of a verb, from the command itself; those that print data values on purpose are left out."""
    from equipoise.doors.cli.command import command

    names = [name for option in command().commands[verb].params for name in getattr(option, "opts", ())]
    return sorted(name for name in names if name.startswith("--") and not name.startswith("--show"))


def _method(rng: random.Random) -> str:
    """A method by name with odd fields."""
    from equipoise.recipe.catalogue import form, methods

    verb: Any = rng.choice(("mask", "measure", "rule"))
    name, method = rng.choice(sorted(methods(verb).items()))
    fields = [field.name for field in form(method)] or ["x"]
    values = ",".join(
        f"{rng.choice(fields)}={rng.choice(('age', 'salary', 'sex', odd_text(rng), '2', '0.5'))}"
        for _ in range(rng.choice((0, 1, 2)))
    )
    return f"{name.replace('_', '-')}:{values}"
