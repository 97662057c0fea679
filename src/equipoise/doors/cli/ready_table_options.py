"""Options for ready tables: the meaning of the columns of a file with a row for each cell."""

from collections.abc import Mapping
from typing import Annotated, Any

from equipoise.data.tables.ready_table import Ready
from equipoise.doors.cli.declared_options import option, switch
from equipoise.doors.cli.method_options import split
from equipoise.ground.errors import ParameterError

PANEL = "A table that is ready"
FIELD_NAMES = {"count": "n", "marks": "sensitive", "status": "status"}
"""The field of `Ready` for each parameter of the command that fills exactly one."""
READY = "FILE is a table already: a row for each cell, with its margins or without."
WORDS = {
    "count": ("COLUMN", "How many contribute to each cell (n where not given)."),
    "top": ("COLUMNS", "The largest contributions, the largest first: max1,max2; none to leave them out."),
    "total": ("CODE", "The code of the totals, found where not given: Total, or region=FR,size=All."),
    "marks": ("COLUMN", "Marks the sensitive cells, for the rule marked."),
    "levels": ("COLUMNS", "How far marked cells must stay uncertain, down and up: lower,upper."),
    "status": ("COLUMN", "Statuses: s, u, x, z or numbers of tau-ARGUS."),
}
OPTION_NAMES = {name: "--sensitive" if name == "marks" else f"--{name}" for name in WORDS}
READY_OPTIONS: dict[str, Any] = {"ready": Annotated[bool, switch("--ready", READY, PANEL)]} | {
    name: Annotated[str | None, option(words, metavar, PANEL, OPTION_NAMES[name])]
    for name, (metavar, words) in WORDS.items()
}


def asked_ready(options: Mapping[str, Any]) -> Ready | None:
    """The options of a ready table; None where the file has records.

    >>> asked_ready({"ready": True, "count": "obs", "total": "region=FR,size="}) == Ready(
    ...     n="obs", total={"region": "FR", "size": None}
    ... )
    True
    """
    values = {name: options[name] for name in OPTION_NAMES if options.get(name)}
    if not options["ready"]:
        if values:
            raise ParameterError(f"{OPTION_NAMES[next(iter(values))]} is about a table that is ready: add --ready.")
        return None
    fields: dict[str, Any] = {field: values[name] for name, field in FIELD_NAMES.items() if name in values}
    tops = values.get("top", "")
    fields |= {"top": () if tops == "none" else tuple(split(tops))} if tops else {}
    fields |= {"total": _total(values["total"])} if "total" in values else {}
    if "levels" in values:
        levels = split(values["levels"])
        if len(levels) != 2:
            raise ParameterError("--levels names two columns: how far down, and how far up.")
        fields |= dict(zip(("lower", "upper"), levels, strict=True))
    return Ready(**fields)


def _total(text: str) -> str | dict[str, str | None]:
    """One code for all columns, or column=code for each; `column=` says that there is no total."""
    if "=" not in text:
        return text
    pairs = [part.partition("=") for part in split(text)]
    return {column.strip(): code.strip() or None for column, _, code in pairs}
