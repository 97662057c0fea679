"""Screens of `assess`, `protect`, `balance` and `methods`. Names are shown as they are, never read as markup."""

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
from equipoise.doors.cli.screen_parts import (
    MAX_WIDTH,
    best_of,
    flat,
    indented,
    listed,
    places,
    say,
    screen,
    table,
    title,
)
from equipoise.ground.errors import ParameterError, hint
from equipoise.ground.system import privacy
from equipoise.inspection.revealing import column_words
from equipoise.inspection.worst_records import mildest
from equipoise.methods.score import Score, Scores
from equipoise.policies.policy import Limit, Policy
from equipoise.presentation.numbers import value_text
from equipoise.recipe.catalogue import VERBS, Field, Verb, family, form, methods, own, summary

if TYPE_CHECKING:
    from equipoise.data.records import Records
    from equipoise.inspection.assess import Assessment
    from equipoise.releases.release import Release

ROW_FACTS = ("record", "risk", "alike")
MAX_ROWS = 15
"""Rows listed at most; --json has them all."""
MAX_COARSENING_ROWS = 5
"""Coarsenings shown at most; --json lists all."""
MIN_NAME_WIDTH = 24
"""Terminal columns kept for the name of a score, if it is so long."""
SIDES = {"risk": "Risk", "utility": "Utility"}


def assessment(file: Path, records: Records, result: Assessment, show_values: bool) -> None:
    out = screen()
    keys = ", ".join(records.roles.keys)
    say(out, one_line(file.name), f"{result.records:,} records, keys {one_line(keys)}")
    _score_tables(out, result.scores)
    _notes(out, result.scores)
    _by_key(out, result)
    _best_coarsenings(out, result)
    _worst(out, result, show_values)
    _revealing(out, result)
    if show_values:
        _by_category(out, result)
    else:
        out.print("\nAdd --show-values to name rare categories and ids (they are data values).", style="dim")


def _by_key(out: Console, result: Assessment) -> None:
    """The uniques that remain without each key, the most identifying key first."""
    title(out, f"Uniques that would be left without a key (now {result.keys['uniques'][0]:,})")
    rows = table("Key", "Categories", "Left")
    for row in result.keys.sort("without").iter_rows(named=True):
        rows.add_row(one_line(row["key"]), f"{row['categories']:,}", f"{row['without']:,}")
    out.print(indented(rows))


def _best_coarsenings(out: Console, result: Assessment) -> None:
    """The coarsenings of one key that remove most uniques."""
    best = mildest(result.helps)
    if best.is_empty():
        return
    rows = best.head(MAX_COARSENING_ROWS).iter_rows(named=True)
    sentences = [f"{r['key']} {r['words']} removes {value_text(r['removed'], 'share')} of the uniques" for r in rows]
    listed(out, "What would help most, one key at a time", map(one_line, map(flat, sentences)))


def _worst(out: Console, result: Assessment, show_values: bool) -> None:
    """The records most at risk, by row; by id, which is a data value, only where values are asked for."""
    if result.worst.is_empty():
        return
    key = next((name for name in result.worst.columns if name not in ROW_FACTS and show_values), "record")
    records = ", ".join(one_line(str(value)) for value in result.worst[key].to_list())
    risk = value_text(float(result.worst["risk"][0]), "share")
    what = "row" if key == "record" else one_line(key)
    title(out, f"Most at risk, by {what} (the first with {flat(risk)})")
    out.print(indented(Text(records)))


def _revealing(out: Console, result: Assessment) -> None:
    """Columns beside the keys that single people out."""
    sentences = [f"{words} of the people" for words in column_words(result.revealing.head(MAX_ROWS))]
    if sentences:
        listed(out, "Other columns that single people out, if somebody knows them", map(one_line, sentences))


def _by_category(out: Console, result: Assessment) -> None:
    """The categories with most uniques."""
    rare = result.categories.filter(result.categories["uniques"] > 0)
    more = f", the first {MAX_ROWS} of {rare.height:,}: --json lists all" if rare.height > MAX_ROWS else ""
    title(out, f"Categories with most uniques{more}")
    rows = table("Key = category", "Records", "Uniques", "Share")
    for row in rare.head(MAX_ROWS).iter_rows(named=True):
        name = one_line(f"{row['key']} = {row['category']}")
        rows.add_row(name, f"{row['records']:,}", f"{row['uniques']:,}", f"{row['share']:.3f}")
    out.print(indented(rows))


def release(result: Release, *, searched: bool) -> None:
    out = screen()
    say(out, "Released", _choice_words(result, searched), "bold green")
    for sentence in result.evidence["assumes"]:
        out.print(sentence, style="bold yellow")
    listed(out, "What was done to the data", _changes(result))
    _score_tables(out, result.trial.scores, Policy(result.evidence["limits"]).parsed, result.original.scores)
    _notes(out, result.trial.scores)
    places(out, {"Your report": result.report, "To hand out": result.public, "To keep secret": result.private})
    if note := privacy():
        out.print(note, style="dim")


def _choice_words(result: Release, searched: bool) -> str:
    if searched:
        return best_of(candidates(result))
    return "inside every limit" if result.evidence["limits"] else "no limits were set"


def _changes(result: Release) -> list[str]:
    """What each mask did, the keys left unchanged, and the columns withheld."""
    changed = {column for law in result.data.history for column in law.columns}
    unchanged = [key for key in result.data.roles.keys if key not in changed]
    same = [f"{', '.join(unchanged)} left as {'they are' if len(unchanged) > 1 else 'it is'}"] if unchanged else []
    own = result.data.roles.id
    reasons = {name: "is the id" if name == own else "says who it is" for name in result.evidence["withheld"]}
    withheld = [f"{name} withheld: it {reason}" for name, reason in reasons.items()]
    return [*(law.words for law in result.data.history), *same, *withheld]


def steps(*commands: tuple[str, str]) -> None:
    """What to do next, each step in words and as a command."""
    out = screen()
    title(out, "What to do next")
    for words, command in commands:
        out.print(f"  {words}:", soft_wrap=True)
        out.print(f"    {command}", style="cyan", soft_wrap=True)


def catalogue() -> None:
    out = screen()
    for verb in VERBS:
        out.print(method_table(verb))
    if problems := own().problems:
        listed(out, "Packages whose methods cannot be used", map(str, problems))
        out.print()
    out.print("equipoise methods NAME describes one in full.", style="dim")


def method_table(verb: Verb, of: str | None = None) -> Table:
    """A table of all methods of a kind or family: the name and the first sentence of each."""
    heading = of.capitalize() if of else f"{verb.capitalize()}s"
    rows = Table(box=None, padding=(0, 2, 0, 0), title=heading, title_justify="left", title_style="bold")
    rows.show_header = False
    rows.add_column(no_wrap=True, style="cyan")
    rows.add_column()
    packages = {one.method: f" ({one.package} {one.version})" for one in own().methods.values()}
    for method in methods(verb, of).values():
        rows.add_row("  " + kebab(method), summary(method) + packages.get(method, ""))
    rows.add_row("", "")
    return rows


def method_named(name: str) -> tuple[type, Verb]:
    """Find a method of any kind by name."""
    word = name.replace("-", "_").lower()
    every = {method_name: (method, verb) for verb in VERBS for method_name, method in methods(verb).items()}
    if word in every:
        return every[word]
    if problem := own().clashes.get(word) or next(iter(own().faults), None):
        raise problem
    raise ParameterError(f"No method {name!r}.{hint(word, [k.replace('_', '-') for k in every])}")


def card(method: type, verb: Verb, flag: str | None = None) -> None:
    """Show one method in full: what it does, its fields, its syntax, its source."""
    out = screen()
    kind = f"a {verb}" + (f" of {family(method)}" if verb == "measure" else "")
    say(out, kebab(method), kind)
    for paragraph in prose(method):
        out.print(Padding(Text(paragraph), (1, 0, 0, 0), expand=False))
    _fields(out, method)
    listed(out, "How to write it", _syntax(method, verb, flag or f"--{verb}"))


def _fields(out: Console, method: type) -> None:
    title(out, "Fields" if form(method) else "It has no fields")
    rows = Table(box=None, padding=(0, 3, 0, 0), show_header=False)
    for parameter in form(method):
        optional = "optional" if parameter.default is None else f"default {parameter.default!r}"
        default = "required" if parameter.required else optional
        rows.add_row(option_of(parameter), parameter.words, default)
    if form(method):
        out.print(indented(rows))


def _syntax(method: type, verb: Verb, flag: str) -> list[str]:
    fields, name = form(method), kebab(method)
    if verb == "rule":
        return [f"{method.__name__}({', '.join(f.name for f in fields)})"]
    options = [f"{option_of(f)} {_slot(f, ',')}" for f in fields]
    long = [option if f.required else f"[{option}]" for f, option in zip(fields, options, strict=True)]
    return list(dict.fromkeys((f"{flag} {name}{_places_of(fields)}", " ".join([f"{flag} {name}", *long]))))


def _places_of(fields: Sequence[Field]) -> str:
    """Fields by position, optional ones in brackets: ':COLUMN,AT[,REPLACE_BY]'."""
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


def _score_tables(out: Console, scores: Scores, limits: Sequence[Limit] = (), before: Scores | None = None) -> None:
    """Tables of risk and utility: one row per score, without columns that would be empty."""
    bounds = {scores.named(limit.score).name: "" for limit in limits}
    for limit in limits:
        name = scores.named(limit.score).name
        bounds[name] = f"{bounds[name]} {limit.sign} {limit.bound:g}".strip()
    columns: dict[str, Callable[[Score], str]] = {}
    if before is not None:
        columns["Before"] = lambda s: four_figures(before.named(s.name).value)
    columns["Released" if limits or before is not None else "Score"] = lambda s: four_figures(s.value)
    if any(s.interval for s in scores):
        columns["Interval"] = lambda s: f"{s.interval[0]:.3g} to {s.interval[1]:.3g}" if s.interval else ""
    columns["Records"] = lambda s: _number(s.number)
    if any(s.baseline for s in scores):
        columns["Baseline"] = lambda s: _number(s.baseline)
    if limits:
        columns["Limit"] = lambda s: bounds.get(s.name, "")
    _drop_columns(columns, scores, screen().width)
    for side, words in SIDES.items():
        rows = [s for s in scores if s.side == side]
        if rows:
            _rows(out, words, rows, columns)


def _drop_columns(columns: dict[str, Callable[[Score], str]], scores: Sequence[Score], width: int) -> None:
    """Drop columns that do not fit a narrow terminal; --json has them."""
    longest = min(MIN_NAME_WIDTH, max((len(s.name) for s in scores), default=0))
    for spare in ("Baseline", "Records", "Interval"):
        used = sum(2 + max(8, len(name), *(len(cell(s)) for s in scores)) for name, cell in columns.items())
        if spare in columns and longest + used > min(width, MAX_WIDTH):
            del columns[spare]


def _rows(out: Console, words: str, scores: Sequence[Score], columns: Mapping[str, Callable[[Score], str]]) -> None:
    """Scores of one side; a unit or direction they share is in the title, otherwise beside each name."""
    facts = {s.name: (s.unit, f"{s.better} is better") for s in scores}
    shared = [fact[0] for fact in zip(*facts.values(), strict=True) if len(set(fact)) == 1 and fact[0]]
    title(out, f"{words}: {', '.join(shared)}" if shared else words)
    rows = table("Measure", *columns)
    for s in scores:
        own = ", ".join(fact for fact in facts[s.name] if fact and fact not in shared)
        rows.add_row(one_line(f"{s.name} ({own})" if own else s.name), *(cell(s) for cell in columns.values()))
    out.print(indented(rows))


def _notes(out: Console, scores: Scores) -> None:
    lines = [f"{score.name}: {note}" for score in scores for note in score.notes]
    if lines:
        listed(out, "Notes", lines)


def four_figures(value: float) -> str:
    """A number to four significant figures.

    >>> four_figures(0.016587), four_figures(9.95), four_figures(0.0), four_figures(float("nan"))
    ('0.01659', '9.950', '0', 'n/a')
    """
    if isnan(value):
        return "n/a"
    return f"{value:#.4g}" if value else "0"


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or float(value).is_integer() else f"{value:,.3g}"
