"""How a table was made, as its private folder keeps it, and the table once more from that and the original."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.data.tables.ready_table import Ready
from equipoise.files import read
from equipoise.ground.errors import DataError
from equipoise.ground.randomness import new_seed
from equipoise.methods.method import Rule, label
from equipoise.policies.policy_file import Job
from equipoise.provenance.recipe_file import RECIPE
from equipoise.recipe.catalogue import build, parse, to_plain
from equipoise.releases.tables.balance import found_table
from equipoise.releases.tables.tabulate import Tabulated, tabulate

FORMAT = 1


def table_text(records: Records, found: Tabulated, ready: bool | Ready, given: Mapping[str, Any]) -> str:
    """What makes the table again, as JSON; the seed is kept apart. `given` are the arguments that `tabulate` had."""
    trees: Mapping[str, Hierarchy] = given.get("hierarchies") or {}
    said = {name: value for name, value in given.items() if name != "hierarchies" and value is not None}
    plain = {
        "format": FORMAT,
        "path": str(Path(records.source.path).resolve()) if records.source else None,
        "roles": records.roles.to_plain(),
        "table": {"by": list(found.table.by), **said},
        "hierarchies": {column: tree.to_plain() for column, tree in trees.items()},
        "ready": asdict(ready) if isinstance(ready, Ready) else ready,
        "method": to_plain(found.method),
        "rule": label(found.rule) if isinstance(found.rule, Rule) else None,
    }
    return json.dumps(plain, indent=2, default=str) + "\n"


def table_again(private: Path, original: Records | str | Path | None = None) -> tuple[Tabulated, Records]:
    """Make, protect and audit the table once more, from the original that the folder names unless one is given."""
    if (private / "policy.toml").is_file():
        job = Job.load(private / "policy.toml")
        if isinstance(original, Records):
            raise DataError("A table of a policy is made again from a file, not from records in memory.")
        if original is not None:
            job = replace(job, data=replace(job.data, path=str(Path(original).resolve())))
        records, kept = job.read(), job.seed()
        return found_table(job, records, new_seed() if kept is None else kept).table, records
    plain = _plain(private / RECIPE)
    records = original if isinstance(original, Records) else _records(plain, original, private)
    trees = Roles.from_plain({"hierarchies": plain["hierarchies"]}).hierarchies
    step, seed = dict(plain["method"]), int(json.loads((private / "seed.json").read_text(encoding="utf-8"))["seed"])
    given = {name: value for name, value in plain["table"].items() if name != "by"}
    made = tabulate(
        records, tuple(plain["table"]["by"]), given.pop("value", None), hierarchies=trees or None, seed=seed,
        rule=parse(plain["rule"], "rule") if plain["rule"] else None, method=build(str(step.pop("use")), "mask", step),
        ready=_ready(plain["ready"]), **given,
    )  # fmt: skip
    return made, records


def _plain(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not {"table", "method", "rule", "hierarchies", "ready", "roles"} <= set(found):
            raise ValueError
    except (OSError, ValueError, TypeError):
        raise DataError(f"Cannot read {str(path)!r}: it does not say how the table was made.") from None
    return dict(found)


def _records(plain: Mapping[str, Any], original: str | Path | None, private: Path) -> Records:
    path = original or plain.get("path")
    if not path:
        raise DataError("The table was made from records in memory: give the original.")
    return read(path, Roles.from_plain(plain["roles"], private))


def _ready(given: bool | Mapping[str, Any]) -> bool | Ready:
    if isinstance(given, bool):
        return given
    named: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in given.items()}
    return Ready(**named)
