"""What is kept between runs, edited by hand: registers, journals, releases, seeds, roles files."""

import json
import random
from pathlib import Path

from torture.attempt import Attempt
from torture.good import COMMANDS, lay_out, shelf
from torture.odd import spoilt, spoilt_bytes


def attempt(rng: random.Random, place: Path, folder: Path) -> Attempt:
    good = shelf(place)
    kind = rng.choice((_register, _register, _journal, _release, _release))
    return kind(rng, good, folder)


def _edited(path: Path, rng: random.Random) -> str:
    """One place of a JSON file changed, of one of its lines, or some of its bytes."""
    text = path.read_text("utf-8")
    if rng.random() < 0.25 or path.suffix not in (".json", ".jsonl"):
        content, words = spoilt_bytes(path.read_bytes(), rng)
        path.write_bytes(content)
        return words
    lines = text.splitlines() if path.suffix == ".jsonl" else [text]
    at = rng.randrange(len(lines))
    data, words = spoilt([json.loads(lines[at])], rng)
    lines[at] = json.dumps(data[0] if data and isinstance(data, list) else data, default=str)
    path.write_text("\n".join(lines), encoding="utf-8")
    return words


def _register(rng: random.Random, good: Path, folder: Path) -> Attempt:
    lay_out(good, folder, "data.csv", "register.json", "register.json.tables")
    words = _edited(folder / "register.json", rng)
    protect = [*COMMANDS["protect"], "--register", "register.json", *rng.choice(([], ["--asset", "people"]))]
    args = rng.choice((["register", "register.json"], ["register", "register.json", "--json"], protect))
    return Attempt(f"register {words}: {args[0]}", args, writes=("out", "register.json", "register.json.tables"))


def _journal(rng: random.Random, good: Path, folder: Path) -> Attempt:
    lay_out(good, folder, "data.csv", "region.csv", "policy.toml")
    journal = good / "balanced" / "private" / "journal.jsonl"
    (folder / "journal.jsonl").write_bytes(journal.read_bytes())
    words = _edited(folder / "journal.jsonl", rng)
    text = (folder / "policy.toml").read_text("utf-8")
    (folder / "policy.toml").write_text(
        text.replace("budget = 4", 'budget = 4\njournal = "journal.jsonl"'), encoding="utf-8"
    )
    return Attempt(f"journal {words}", ["balance", "policy.toml", "--out", "out"], writes=("out", "journal.jsonl"))


def _release(rng: random.Random, good: Path, folder: Path) -> Attempt:
    lay_out(good, folder, "data.csv", "release")
    files = sorted(path for path in (folder / "release").rglob("*") if path.is_file())
    path = rng.choice([path for path in files if path.suffix != ".html"])
    words = _edited(path, rng)
    args = rng.choice(
        (["verify", "release"], ["verify", "release", "--original", "data.csv"], ["attack", "release", "--out", "out"])
    )
    return Attempt(f"{path.relative_to(folder).as_posix()} {words}: {args[0]}", args, writes=("out",))
