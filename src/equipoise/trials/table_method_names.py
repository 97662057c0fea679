"""Methods and rules for tables, as short as people write them."""

from dataclasses import fields
from typing import Any

from equipoise.methods.method import Rule, name_of
from equipoise.recipe.recipe import Recipe

PARAMETER_LEADS = {"rule": "by ", "base": "to "}
"""What stands before the parameters that make the name of a method."""


def rule_text(rule: Any) -> str:
    """A rule as the command line takes it, what is left at its default left out.

    >>> from equipoise.rules import Dominance, MinCount, PPercent
    >>> rule_text(PPercent(0.1) | MinCount(3)), rule_text(Dominance(2, 0.85))
    ('p-percent:10% | min-count:3', 'dominance:2,85%')
    """
    if hasattr(rule, "mark"):
        return f" {rule.mark} ".join(rule_text(part) for part in rule.rules)
    parts = [(f.name, getattr(rule, f.name), f.default) for f in fields(rule) if f.init]
    texts = [_plain(value) for name, value, _ in parts[:2] if name in ("n", "k", "p", "q")]
    texts += [f"{name}={_plain(value)}" for name, value, default in parts if name not in "nkpq" and value != default]
    return name_of(type(rule)).replace("_", "-") + (f":{','.join(texts)}" if texts else "")


def _plain(value: Any) -> str:
    share = isinstance(value, float) and 0 < value <= 1
    return f"{100 * value:.10g}%" if share else f"{value:g}" if isinstance(value, float) else str(value)


def method_text(method: Any) -> str:
    """What a method for tables does, in a few words: its rule or base, and what is not as usual.

    >>> from equipoise.rules import PPercent
    >>> from equipoise.tables import CellKey, Round, Suppress
    >>> method_text(Suppress(PPercent(0.1), cost="cells")), method_text(Round(3, small=True)), method_text(CellKey())
    ('suppress by p-percent:10%, cost cells', 'round to 3, small', 'cell key')
    """
    name, more = name_of(type(method)).replace("_", " "), []
    for f in fields(method):
        value = getattr(method, f.name)
        if f.name in PARAMETER_LEADS:
            name += " " + PARAMETER_LEADS[f.name] + (rule_text(value) if isinstance(value, Rule) else _plain(value))
        elif isinstance(value, bool) and value != f.default:
            more.append(f.name if value else f"not {f.name}")
        elif value != f.default:
            more.append(f"{f.name} {f'{value:g}' if isinstance(value, float) else value}")
    return ", ".join((name, *more))


def recipe_text(recipe: Recipe) -> str:
    """What is done to a table, in a few words."""
    return ", then ".join(method_text(mask) for mask in recipe.masks) or "original"
