"""Notes on how each score is computed, from the docstring of its measure."""

import inspect
import re
from collections.abc import Iterable
from typing import Any

from equipoise.doors.report.page_parts import Facts
from equipoise.policies.scoped_measures import Wanted
from equipoise.presentation.numbers import title
from equipoise.recipe.catalogue import known_method

SECTION_PATTERN = re.compile(r"\s*(Source:|Misleads when|Does not guard against|Assumption:|Cost:)\s*")
FORMULA_PATTERN = re.compile(r"^[^.]{1,14} = ")
"""A sentence that begins with a symbol and an equals sign."""


def methods(names: Iterable[str]) -> list[Facts]:
    """The notes of the measures behind these scores, each measure once."""
    measures = {type(known_method(Wanted.of(name).measure, "measure")): name for name in names}
    measures.pop(type(None), None)
    return [method_note(kind, title(re.split(r"[(\[ ]", name)[0])) for kind, name in measures.items()]


def method_note(kind: Any, name: str) -> Facts:
    """The parts of a docstring without example and parameters: summary, lines, source, assumption and caveats.

    Each line says whether it is a formula and whether it is an item of a list.
    """
    text = re.split(r"\n+(?:>>>|Parameters\n-)", inspect.cleandoc(kind.__doc__ or ""))[0]
    parts = SECTION_PATTERN.split(text)
    sections = {label: _without_markup(part) for label, part in zip(parts[1::2], parts[2::2], strict=True)}
    lines = [line for block in _blocks(parts[0]) for line in _lines(*block)]
    return {
        "name": name,
        "what": lines[0]["text"] if lines else "",
        "lines": lines[1:],
        "source": sections.get("Source:"),
        "assumes": sections.get("Assumption:"),
        "misleads": sections.get("Misleads when"),
        "unguarded": sections.get("Does not guard against"),
    }


def _without_markup(text: str) -> str:
    """Text without markup characters."""
    return (
        re.sub(r"`|\*(?=\w[^*]*\*)|(?<=\w)\*(?!\w)", "", " ".join(text.split())).replace("<=", "≤").replace(">=", "≥")
    )


def _blocks(text: str) -> list[tuple[str, bool]]:
    """Paragraphs and list items, each with whether it is an item."""
    paragraphs = [part for part in re.split(r"\n\s*\n|\n(?=- )", text) if part.strip()]
    return [(_without_markup(part.removeprefix("- ")), part.startswith("- ")) for part in paragraphs]


def _lines(text: str, item: bool) -> list[Facts]:
    """The sentences of a block, without clauses meant for programmers; formulas are marked."""
    clauses = [c for c in re.split(r"(?<=[.;])\s+(?=\S)", text) if not re.search(r"\bdetail\b|\w\(\)", c)]
    whole = re.sub(r"(?<=\. )[a-z](?=[a-z]+ )", lambda first: first[0].upper(), " ".join(clauses).rstrip(";.") + ".")
    sentences = re.split(r"(?<=\.)\s+(?=[A-Z|(])", whole) if clauses else []
    if item:
        return [{"text": _capital(" ".join(sentences)), "formula": False, "item": True}] if sentences else []
    return [
        {"text": sentence if formula else _capital(sentence), "formula": formula, "item": False}
        for sentence in sentences
        for formula in [bool(FORMULA_PATTERN.match(sentence))]
    ]


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}"
