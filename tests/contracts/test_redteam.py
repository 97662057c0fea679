"""Every mask has an attacker that shares no code with our measures, and what a release assumes is explained."""

import ast
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import equipoise as eq
from equipoise.provenance import findings
from equipoise.recipe import catalogue

ROOT = Path(__file__).parents[2]
ATTACKERS = sorted((ROOT / "tests" / "redteam").glob("test_*.py"))
MASKS = {
    name: method.__name__ for name, method in catalogue.methods("mask").items() if method.__name__ in eq.masks.__all__
}
LARGEST_LUCK = 0.05
"""How far luck may take what was reached above what is reported, as the tests of single masks allow."""


def attacks_table() -> ModuleType:
    """The tool that writes the table."""
    spec = importlib.util.spec_from_file_location("attacks_table", ROOT / "tools" / "attacks_table.py")
    assert spec
    assert spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    return tool


@pytest.mark.parametrize("name", sorted(MASKS.values()))
def test_every_mask_is_attacked(name: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in ATTACKERS]
    assert any(re.search(rf"\b{name}[(,]", text) for text in texts)


@pytest.mark.parametrize("path", ATTACKERS, ids=lambda path: path.stem)
def test_attackers_import_nothing_of_what_they_check(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.startswith(("equipoise.risk", "equipoise.attacks")) for name in names)


def test_every_mask_has_a_row_and_none_is_above_what_is_reported() -> None:
    tool = attacks_table()
    rows = tool.printed(tool.PAGE.read_text(encoding="utf-8"))
    assert set(MASKS) <= {row[0] for row in rows}, "rows of whole policies may stand beside them"
    assert all(len(row) == len(tool.HEAD) and float(row[4]) >= float(row[5]) - LARGEST_LUCK for row in rows)


def test_the_table_keeps_the_case_in_which_most_was_reached() -> None:
    tool = attacks_table()
    case = {"mask": "noise", "parameter": "1 sd", "file": "made", "measure": "linked"}
    rows = tool.table([{**case, "reported": 0.5, "reached": 0.4}, {**case, "reported": 0.5, "reached": 0.123}])
    page = f"before\n{tool.BEGIN}old\n{tool.END}\nafter\n"
    assert rows == [("noise", "1 sd", "made", "linked", "0.5", "0.4")]
    assert tool.printed(tool.with_table(page, rows)) == rows
    assert tool.with_table(page, rows).startswith("before\n")
    assert tool.with_table(page, rows).endswith("\nafter\n")


def sentences(path: Path) -> Iterator[tuple[str, ...]]:
    """The sentences of a module that state an assumption: their constant parts, in order."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        values = node.values if isinstance(node, ast.JoinedStr) else [node]
        parts = tuple(v.value for v in values if isinstance(v, ast.Constant) and isinstance(v.value, str))
        if parts and parts[0].startswith("Assumes that") and not parts[0].count("\n"):
            yield parts


def test_every_assumption_is_explained_in_the_guarantee() -> None:
    """Each sentence stands in a row of the page, whatever is put into its gaps."""
    page = (ROOT / "docs" / "guides" / "guarantee.md").read_text(encoding="utf-8")
    rooms = [ROOT / "src" / "equipoise" / room for room in ("releases", "provenance", "policies")]
    templates = {parts for room in rooms for path in room.glob("*.py") for parts in sentences(path)}
    assert len(templates) >= 10
    rows = [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| Assumes that")]
    for parts in templates:
        pattern = ".+".join(re.escape(part.removesuffix(": the reports say so.")) for part in parts)
        assert any(re.match(pattern, row) for row in rows), parts
    assert all(words in page for words in (findings.UNPROVEN, findings.ONLY_HERE, findings.UNSIGNED))
