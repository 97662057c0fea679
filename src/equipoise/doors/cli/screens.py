"""What people see: a few words, a table, where things are. Names are shown as they are, never read as markup."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from equipoise.doors.cli.exit_codes import one_line
from equipoise.doors.cli.json_answers import candidates
from equipoise.doors.cli.method_options import kebab, option_of, plural
from equipoise.doors.cli.screen_parts import WIDEST as WIDEST
from equipoise.doors.cli.screen_parts import best_of
from equipoise.doors.cli.screen_parts import flat as _flat
from equipoise.doors.cli.screen_parts import indented as _indented
from equipoise.doors.cli.screen_parts import listed as _listed
from equipoise.doors.cli.screen_parts import say as _say
from equipoise.doors.cli.screen_parts import screen as screen
from equipoise.doors.cli.screen_parts import table as _table
from equipoise.doors.cli.screen_parts import title as _title
from equipoise.ground.errors import ParameterError, hint
from equipoise.ground.system import privacy
from equipoise.inspection.worst_records import mildest
from equipoise.methods.score import Score, Scores
from equipoise.policies.policy import Limit, Policy
from equipoise.presentation.numbers import said
from equipoise.recipe.catalogue import VERBS, Field, Verb, family, form, methods, own, summary

if TYPE_CHECKING:
    from equipoise.data.records import Records
    from equipoise.inspection.assess import Assessment
    from equipoise.releases.release import Release

MOST_SHOWN = 15
"""Categories listed at most with --show-values; --json has them all."""
HELPFUL = 5
"""Ways of coarsening shown at most; --json lists all."""
LEGIBLE = 24
"""Columns that the name of a score needs, if it is so long."""
SIDES = {"risk": "Risk", "utility": "Utility"}


def assessment(file: Path, records: Records, found: Assessment, show_values: bool) -> None:
    out = screen()
    keys = ", ".join(records.roles.keys)
    _say(out, one_line(file.name), f"{found.records:,} records, keys {one_line(keys)}")
    _scored(out, found.scores)
    _notes(out, found.scores)
    _by_key(out, found)
    _helps(out, found)
    _worst(out, found)
    if show_values:
        _by_category(out, found)
    else:
        out.print("\nAdd --show-values to name the rare categories (they are data values).", style="dim")


def _by_key(out: Console, found: Assessment) -> None:
    """The keys, the one that makes most records unique first."""
    _title(out, f"Uniques that would be left without a key (now {found.keys['uniques'][0]:,})")
    table = _table("Key", "Categories", "Left")
    for row in found.keys.sort("without").iter_rows(named=True):
        table.add_row(one_line(row["key"]), f"{row['categories']:,}", f"{row['without']:,}")
    out.print(_indented(table))


def _helps(out: Console, found: Assessment) -> None:
    """Which coarsening would remove most uniques."""
    best = mildest(found.helps)
    if best.is_empty():
        return
    rows = best.head(HELPFUL).iter_rows(named=True)
    told = [f"{row['key']} {row['words']} removes {said(row['removed'], 'share')} of the uniques" for row in rows]
    _listed(out, "What would help most, one key at a time", map(one_line, map(_flat, told)))


def _worst(out: Console, found: Assessment) -> None:
    """The records most at risk, never by their values."""
    if found.worst.is_empty():
        return
    key = found.worst.columns[0]
    named = ", ".join(one_line(str(value)) for value in found.worst[key].to_list())
    risk = said(float(found.worst["risk"][0]), "share")
    what = "row" if key == "record" else one_line(key)
    _title(out, f"Most at risk, by {what} (the first with {_flat(risk)})")
    out.print(_indented(Text(named)))


def _by_category(out: Console, found: Assessment) -> None:
    """The categories with most uniques."""
    rare = found.categories.filter(found.categories["uniques"] > 0)
    more = f", the first {MOST_SHOWN} of {rare.height:,}: --json lists all" if rare.height > MOST_SHOWN else ""
    _title(out, f"Categories with most uniques{more}")
    table = _table("Key = category", "Records", "Uniques", "Share")
    for row in rare.head(MOST_SHOWN).iter_rows(named=True):
        name = one_line(f"{row['key']} = {row['category']}")
        table.add_row(name, f"{row['records']:,}", f"{row['uniques']:,}", f"{row['share']:.3f}")
    out.print(_indented(table))


def release(made: Release, *, searched: bool) -> None:
    out = screen()
    _say(out, "Released", _chosen(made, searched), "bold green")
    _listed(out, "What was done to the data", _done(made))
    _scored(out, made.trial.scores, Policy(made.evidence["limits"]).parsed, made.original.scores)
    _notes(out, made.trial.scores)
    out.print()
    for name, path in _places(made):
        out.print(Text(f"{name:<15}", "bold"), str(path), sep="", soft_wrap=True)
    if note := privacy():
        out.print(note, style="dim")


def _chosen(made: Release, searched: bool) -> str:
    if searched:
        return best_of(candidates(made))
    return "inside every limit" if made.evidence["limits"] else "no limits were set"


def _done(made: Release) -> list[str]:
    """What each mask did, then what was left alone."""
    changed = {column for law in made.data.history for column in law.columns}
    left = [key for key in made.data.roles.keys if key not in changed]
    same = [f"{', '.join(left)} left as {'they are' if len(left) > 1 else 'it is'}"] if left else []
    own = made.data.roles.id
    withheld = [
        f"{name} withheld: it {'is the id' if name == own else 'says who it is'}" for name in made.evidence["withheld"]
    ]
    return [*(law.words for law in made.data.history), *same, *withheld]


def _places(made: Release) -> list[tuple[str, Path]]:
    return [("Your report", made.report), ("To hand out", made.public), ("To keep secret", made.private)]


def steps(title: str, told: Sequence[tuple[str, str]]) -> None:
    """What to do next: in words, and as a command."""
    out = screen()
    _title(out, title)
    for words, command in told:
        out.print(f"  {words}:", soft_wrap=True)
        out.print(f"    {command}", style="cyan", soft_wrap=True)


def catalogue() -> None:
    out = screen()
    for verb in VERBS:
        out.print(listed(verb))
    if problems := own().problems:
        _listed(out, "Packages whose methods cannot be used", map(str, problems))
        out.print()
    out.print("equipoise methods NAME tells all about one.", style="dim")


def listed(verb: Verb, of: str | None = None) -> Table:
    """The names and first sentences of every method of a kind, or of a family."""
    title = of.capitalize() if of else f"{verb.capitalize()}s"
    table = Table(box=None, padding=(0, 2, 0, 0), title=title, title_justify="left", title_style="bold")
    table.show_header = False
    table.add_column(no_wrap=True, style="cyan")
    table.add_column()
    packages = {one.method: f" ({one.package} {one.version})" for one in own().methods.values()}
    for method in methods(verb, of).values():
        table.add_row("  " + kebab(method), summary(method) + packages.get(method, ""))
    table.add_row("", "")
    return table


def method_named(name: str) -> tuple[type, Verb]:
    """A method of any kind."""
    word = name.replace("-", "_").lower()
    every = {method_name: (method, verb) for verb in VERBS for method_name, method in methods(verb).items()}
    if word in every:
        return every[word]
    if problem := own().clashes.get(word) or next(iter(own().faults), None):
        raise problem
    raise ParameterError(f"No method {name!r}.{hint(word, [k.replace('_', '-') for k in every])}")


def card(method: type, verb: Verb, flag: str | None = None) -> None:
    """One method in full: what it does, its fields, how it is written, its source."""
    out = screen()
    kind = f"a {verb}" + (f" of {family(method)}" if verb == "measure" else "")
    _say(out, kebab(method), kind)
    for paragraph in prose(method):
        out.print(Padding(Text(paragraph), (1, 0, 0, 0), expand=False))
    _fields(out, method)
    _listed(out, "How to write it", _written(method, verb, flag or f"--{verb}"))


def _fields(out: Console, method: type) -> None:
    _title(out, "Fields" if form(method) else "It has no fields")
    table = Table(box=None, padding=(0, 3, 0, 0), show_header=False)
    for parameter in form(method):
        default = "required" if parameter.required else f"default {parameter.default!r}"
        table.add_row(option_of(parameter), parameter.kind, default)
    if form(method):
        out.print(_indented(table))


def _written(method: type, verb: Verb, flag: str) -> list[str]:
    fields, name = form(method), kebab(method)
    if verb == "rule":
        return [f"{method.__name__}({', '.join(f.name for f in fields)})"]
    options = [f"{option_of(f)} {_slot(f, ',')}" for f in fields]
    long = [option if f.required else f"[{option}]" for f, option in zip(fields, options, strict=True)]
    return list(dict.fromkeys((f"{flag} {name}{_places_of(fields)}", " ".join([f"{flag} {name}", *long]))))


def _places_of(fields: Sequence[Field]) -> str:
    """Fields by their place, what may be left out in brackets: ':COLUMN,AT[,REPLACE_BY]'."""
    needed, other = (",".join(_slot(f) for f in fields if f.required is side) for side in (True, False))
    if needed:
        return f":{needed}" + (f"[,{other}]" if other else "")
    return f"[:{other}]" if other else ""


def _slot(parameter: Field, mark: str = "+") -> str:
    name = parameter.name.upper()
    return f"{name}{mark}{name}" if plural(parameter) else name


def prose(method: type) -> list[str]:
    """The paragraphs of a docstring without its examples; source and caveats start a line."""
    text = inspect.cleandoc(method.__doc__ or "").partition(">>>")[0]
    paragraphs = [" ".join(p.split()) for p in text.split("\n\n") if p.strip()]
    marks = r" (?=(?:Source:|Misleads when|Does not guard against|Cost:))"
    return [re.sub(marks, "\n", p) for p in paragraphs]


def _scored(out: Console, scores: Scores, limits: Sequence[Limit] = (), before: Scores | None = None) -> None:
    """Risk, then utility: one row per score, with only the columns that say something."""
    bounds = {scores.named(limit.score).name: "" for limit in limits}
    for limit in limits:
        name = scores.named(limit.score).name
        bounds[name] = f"{bounds[name]} {limit.sign} {limit.bound:g}".strip()
    columns: dict[str, Callable[[Score], str]] = {}
    if before is not None:
        columns["Before"] = lambda s: four_figures(before.named(s.name).value)
    columns["Released" if limits or before is not None else "Score"] = lambda s: four_figures(s.value)
    if any(s.interval for s in scores):
        columns["Interval"] = _interval
    columns["Records"] = lambda s: _number(s.number)
    if any(s.baseline for s in scores):
        columns["Baseline"] = lambda s: _number(s.baseline)
    if limits:
        columns["Limit"] = lambda s: bounds.get(s.name, "")
    _fit(columns, scores, screen().width)
    for side, words in SIDES.items():
        rows = [s for s in scores if s.side == side]
        if rows:
            _rows(out, words, rows, columns)


def _fit(columns: dict[str, Callable[[Score], str]], scores: Sequence[Score], width: int) -> None:
    """Leave out what a narrow terminal has no room for beside the names; --json has it."""
    longest = min(LEGIBLE, max((len(s.name) for s in scores), default=0))
    for spare in ("Baseline", "Records", "Interval"):
        taken = sum(2 + max(8, len(name), *(len(cell(s)) for s in scores)) for name, cell in columns.items())
        if spare in columns and longest + taken > min(width, WIDEST):
            del columns[spare]


def _rows(out: Console, words: str, scores: Sequence[Score], columns: Mapping[str, Callable[[Score], str]]) -> None:
    """Scores of one side; what they share stands in the title, what they do not beside each name."""
    facts = {s.name: (s.unit, f"{s.better} is better") for s in scores}
    shared = [fact[0] for fact in zip(*facts.values(), strict=True) if len(set(fact)) == 1 and fact[0]]
    _title(out, f"{words}: {', '.join(shared)}" if shared else words)
    table = _table("Measure", *columns)
    for s in scores:
        own = ", ".join(fact for fact in facts[s.name] if fact and fact not in shared)
        table.add_row(one_line(f"{s.name} ({own})" if own else s.name), *(cell(s) for cell in columns.values()))
    out.print(_indented(table))


def _notes(out: Console, scores: Scores) -> None:
    found = [f"{score.name}: {note}" for score in scores for note in score.notes]
    if found:
        _listed(out, "Notes", found)


def four_figures(value: float) -> str:
    """Four figures.

    >>> four_figures(0.016587), four_figures(9.95), four_figures(0.0), four_figures(float("nan"))
    ('0.01659', '9.950', '0', 'n/a')
    """
    if isnan(value):
        return "n/a"
    return f"{value:#.4g}" if value else "0"


def _interval(score: Score) -> str:
    return f"{score.interval[0]:.3g} to {score.interval[1]:.3g}" if score.interval else ""


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:,.3g}"
