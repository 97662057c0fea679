"""The reference: a page for each family of methods and one for the front door, made from signatures and docstrings."""

import inspect
import textwrap
import types
import typing
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import docstrings

import equipoise as eq
from equipoise.methods.method import name_of
from equipoise.recipe.catalogue import VERBS

ABOUT = {
    "risk": "Scores from 0 (nobody) to 1: who could be found in a release, and what could be learnt. Made from cells.",
    "attacks": "Scores of a release that is attacked: each has the share found, an interval, and what guessing gives.",
    "utility": "Scores of what a user of the release still has.",
    "masks": "What can be done to records. Random masks draw from the secret seed of the recipe.",
    "rules": "Which cells of a table are unsafe. Rules are joined by `|` (either) and `&` (both).",
    "tables": "What can be done to tables, how far that goes, and what an attacker can compute of the result.",
    "losses": "What a disclosure and what silence cost, for the decision to publish a cell or to withhold it.",
    "theory": "Risk and utility in closed form: where a method should land on the map.",
    "demo": "Invented files with a realistic structure, from public seeds: the same on every machine.",
}
NAMES_OF_EXAMPLES = "Examples take `import equipoise as eq`, `numpy as np` and `polars as pl` for granted."
WIDTH = 100


def pages() -> dict[str, str]:
    """Every page of the reference, by its path."""
    made = {f"reference/{family}.md": _family(family) for family in ABOUT}
    return made | {"reference/methods.md": _methods(), "reference/front-door.md": _front_door()}


def listed(family: str) -> dict[str, Any]:
    """The public names of a family."""
    module = getattr(eq, family)
    return {name: getattr(module, name) for name in module.__all__}


def front() -> dict[str, Any]:
    """The names of the front door that are no families."""
    return {name: getattr(eq, name) for name in eq.__all__ if name not in eq.FAMILIES}


def link_from(page: str) -> Callable[[str], str | None]:
    """Where a name is described, seen from a page of the reference; names of its own page come first."""

    def link(name: str) -> str | None:
        family, _, bare = name.removeprefix("eq.").rpartition(".")
        if family or name.startswith("eq."):
            places = [family or "front-door"]
        else:
            places = [page, *(["front-door", *ABOUT] if bare[:1].isupper() else [])]
        there = next((place for place in places if bare in _names(place)), None)
        return there and (f"#{bare}" if there == page else f"{there}.md#{bare}")

    return link


@cache
def _names(page: str) -> frozenset[str]:
    return frozenset(front() if page == "front-door" else listed(page) if page in ABOUT else ())


def _family(family: str) -> str:
    link = link_from(family)
    rows = [f"| [`{name}`](#{name}) | {_brief(it, link)} |" for name, it in listed(family).items()]
    table = ["| name | what it is |", "|---|---|", *rows]
    parts = [_part(f"{family}.{name}", name, it, link) for name, it in listed(family).items()]
    return (
        "\n\n".join([f"# {family.capitalize()}", f"{ABOUT[family]} {NAMES_OF_EXAMPLES}", "\n".join(table), *parts])
        + "\n"
    )


def _methods() -> str:
    """The table of all methods, a part for each family."""
    parts = [
        "# All methods",
        "Every method with what it computes and where it comes from. The second name is the one that policy files and "
        "the command line use. `equipoise methods` prints the same list, `equipoise methods NAME` all about one.",
    ]
    for family in (name for name in ABOUT if name != "demo"):
        rows = [_method(family, name, it) for name, it in listed(family).items()]
        table = [f"| {family} | what it is | source |", "|---|---|---|", *rows]
        parts += [f"## {family.capitalize()}", ABOUT[family], "\n".join(table)]
    return "\n\n".join(parts) + "\n"


def _method(family: str, name: str, it: Any) -> str:
    """A row of the table of all methods."""
    at = link_from(family)
    link = lambda name: _elsewhere(at(name), family)
    source = _cell(docstrings.prose(docstrings.source(it.__doc__ or ""), link))
    return f"| [`{name}`]({family}.md#{name}) {_written(it)} | {_brief(it, link)} | {source} |"


def _elsewhere(target: str | None, page: str) -> str | None:
    return f"{page}.md{target}" if target and target.startswith("#") else target


def _written(it: Any) -> str:
    verb = isinstance(it, type) and any(hasattr(it, verb) for verb in VERBS.values())
    return f"`{name_of(it).replace('_', '-')}`" if verb else ""


def _front_door() -> str:
    link = link_from("front-door")
    families = ", ".join(f"[`eq.{family}`]({family}.md)" for family in ABOUT if family != "demo")
    parts = [
        "# The front door",
        "What `import equipoise as eq` gives: the verbs, the nouns they take and give, and the errors. The families of "
        f"methods are {families}; [`eq.demo`](demo.md) makes the demo files. {NAMES_OF_EXAMPLES}",
    ]
    for title, kept in {"Verbs": inspect.isfunction, "Nouns": _noun}.items():
        names = {name: it for name, it in front().items() if kept(it)}
        parts += [f"## {title}", " · ".join(f"[`{name}`](#{name})" for name in names)]
        parts += [_part(f"eq.{name}", name, it, link, "###") for name, it in names.items()]
    rows = [
        f"| <span id='{name}'></span>`eq.{name}` | {getattr(it, 'exit_code', '')} | {_brief(it, link)} |"
        for name, it in front().items()
        if isinstance(it, type) and not _noun(it)
    ]
    table = "\n".join(["| error | exit code | when |", "|---|---:|---|", *rows])
    return "\n\n".join([*parts, "## Errors", table]) + "\n"


def _noun(it: Any) -> bool:
    return isinstance(it, type) and not issubclass(it, Exception)


def _part(full: str, name: str, it: Any, link: docstrings.Link, mark: str = "##") -> str:
    """One name: its signature, its docstring and its members."""
    doc = inspect.getdoc(it) or ""
    told = [f"{mark} {name} {{ #{name} }}", f"```python\n{signature(full, it)}\n```"]
    if _written(it):
        told.append(f"In policy files and on the command line: {_written(it)}.")
    told.append(docstrings.page_part(doc, link))
    if isinstance(it, type) and (inside := list(_members(it))):
        told.append("**Members**")
        told += [f"`{member}`\n:   {docstrings.prose(docstrings.summary(doc), link)}" for member, doc in inside]
    return "\n\n".join(told)


def _members(kind: type) -> Iterable[tuple[str, str]]:
    """The documented public members of a class, each as it is called."""
    for name, raw in vars(kind).items():
        it = getattr(raw, "__func__", getattr(raw, "fget", getattr(raw, "func", raw)))
        if name.startswith("_") or not inspect.isfunction(it) or not it.__doc__:
            continue
        takes = [p for p in inspect.signature(it).parameters.values() if p.name not in ("self", "cls")]
        called = isinstance(raw, types.FunctionType | classmethod | staticmethod)
        yield (f"{name}({', '.join(_short(p) for p in takes)})" if called else name), inspect.cleandoc(it.__doc__)


def _short(parameter: inspect.Parameter) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
    return stars + parameter.name + default


def signature(full: str, it: Any) -> str:
    """How a name is called, with types; a parameter a line where that is long."""
    found = inspect.signature(it)
    hints = typing.get_type_hints(it.__init__ if isinstance(it, type) else it)
    parts, starred = [], False
    for parameter in found.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        starred = starred or parameter.kind.name in ("KEYWORD_ONLY", "VAR_POSITIONAL")
        parts.append(_parameter(parameter, hints))
    gives = "" if isinstance(it, type) or "return" not in hints else f" -> {kind(hints['return'])}"
    line = f"{full}({', '.join(parts)}){gives}"
    if len(line) <= WIDTH:
        return line
    return f"{full}(\n" + textwrap.indent(",\n".join(parts), "    ") + f",\n){gives}"


def _parameter(parameter: inspect.Parameter, hints: dict[str, Any]) -> str:
    stars = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
    typed = f": {kind(hints[parameter.name])}" if parameter.name in hints else ""
    default = "" if parameter.default is parameter.empty else f" = {_default(parameter.default)}"
    return stars + parameter.name + typed + (default if typed else default.replace(" ", ""))


def _default(value: Any) -> str:
    return "..." if type(value).__name__ == "_HAS_DEFAULT_FACTORY_CLASS" else repr(value)


def kind(hint: Any) -> str:
    """A type in few words: `str | None`, `'mean' | 'median'`, `DataFrame`."""
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if hint is type(None):
        return "None"
    if hint is Ellipsis:
        return "..."
    if origin is typing.Literal:
        return " | ".join(map(repr, inside))
    if origin in (typing.Union, types.UnionType):
        return " | ".join(kind(one) for one in inside)
    if origin is typing.Annotated:
        return kind(inside[0])
    if isinstance(hint, list):
        return "[" + ", ".join(map(kind, hint)) + "]"
    name = getattr(origin or hint, "__name__", str(hint).rpartition(".")[2])
    return "array" if name == "ndarray" else f"{name}[{', '.join(map(kind, inside))}]" if inside else name


def _brief(it: Any, link: docstrings.Link) -> str:
    """The first paragraph of a docstring, in a cell of a table."""
    return _cell(docstrings.prose(docstrings.summary(inspect.getdoc(it) or ""), link))


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "&#124;")
