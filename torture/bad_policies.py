"""Bad policies: a good one spoilt at one or two places, or in its text."""

import random
from pathlib import Path

from torture.attempt import Attempt
from torture.good import POLICIES, lay_out, shelf
from torture.odd import ODD_TEXTS, spoilt, spoilt_bytes


def attempt(rng: random.Random, place: Path, folder: Path) -> Attempt:
    import tomli_w

    lay_out(shelf(place), folder, "data.csv", "region.csv", "data.xlsx")
    name = rng.choice(tuple(POLICIES))
    policy, words = spoilt(POLICIES[name], rng)
    if rng.random() < 0.2:
        policy, more = spoilt(policy, rng)
        words += f", {more}"
    try:
        text = tomli_w.dumps(policy)
    except (TypeError, ValueError, RecursionError):
        text = tomli_w.dumps(POLICIES[name])
    if rng.random() < 0.1:
        text = f"extends = {_quoted(rng.choice((*ODD_TEXTS, 'policy.toml', 'ema', './policy.toml')))}\n{text}"
        words += ", extends"
    content = text.encode("utf-8", errors="replace")
    if rng.random() < 0.1:
        content, more = spoilt_bytes(content, rng)
        words = f"text {more}"
    (folder / "policy.toml").write_bytes(content)
    args = ["check", "policy.toml"] if rng.random() < 0.6 else ["balance", "policy.toml", "--out", "out"]
    return Attempt(
        f"{name} {words}: {args[0]}", args, writes=("out", "register.json", "register.json.tables", "policy-release")
    )


def _quoted(text: str) -> str:
    import json

    return json.dumps(text.encode("utf-8", errors="replace").decode())
