"""How each score is computed, told from the docstring of its measure."""

import inspect
import re
from collections.abc import Iterable
from typing import Any

from equipoise.core.errors import EquipoiseError
from equipoise.flow.catalogue import parse
from equipoise.flow.wording import title

Facts = dict[str, Any]


def methods(names: Iterable[str]) -> list[Facts]:
    """How each score is computed, from the docstring of its measure; each measure once."""
    found = {kind: name for name in names for kind in _kinds(name)}
    return [described(kind, title(name.partition("(")[0])) for kind, name in found.items()]


def _kinds(name: str) -> list[type]:
    try:
        return [type(parse(name, "measure"))]
    except EquipoiseError:
        return []


def described(kind: Any, name: str) -> Facts:
    """The parts of a docstring, without its example and its parameters."""
    text = re.split(r"\n+(?:>>>|Parameters\n-)", inspect.cleandoc(kind.__doc__ or ""))[0]
    plain = re.sub(r"`|\*(?=\w[^*]*\*)|(?<=\w)\*(?!\w)", "", " ".join(text.split()))
    parts = re.split(r"\s*(Source:|Misleads when|Assumption:|Cost:)\s*", plain)
    told = dict(zip(parts[1::2], parts[2::2], strict=True))
    return {
        "name": name,
        "what": _for_readers(parts[0]),
        "source": told.get("Source:"),
        "assumes": told.get("Assumption:"),
        "misleads": told.get("Misleads when"),
    }


def _for_readers(text: str) -> str:
    """Without the clauses that tell a programmer where the detail is."""
    clauses = re.split(r"(?<=[.;])\s+", text)
    kept = " ".join(clause for clause in clauses if not re.search(r"\bdetail\b|\w\(\)", clause)).rstrip(";.") + "."
    return re.sub(r"(?<=\. )[a-z](?=[a-z]+ )", lambda first: first[0].upper(), kept).replace("<=", "≤")
