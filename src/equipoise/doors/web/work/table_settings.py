"""Settings of a table on the page, and the rule, method and policy with [table] made from them."""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from operator import and_, or_
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from equipoise.data.tables.statistic import statistic_of
from equipoise.ground.errors import ParameterError, hint
from equipoise.ground.system import packaged
from equipoise.inspection.propose_hierarchies import merges_by_frequency
from equipoise.policies.dominance_check import parts_of
from equipoise.policies.presets import presets
from equipoise.presentation.numbers import listed, title
from equipoise.recipe.catalogue import Field, build, find, form, parse, summary, to_plain
from equipoise.trials.table_method_names import rule_text

Plain = dict[str, Any]
RULES = ("p_percent", "min_count", "dominance", "prior_posterior", "zero", "group_disclosure")
LARGEST = ("p_percent", "dominance", "prior_posterior")
"""Rules that need the largest contributions, which counts of records do not have."""
METHODS = ("suppress", "round", "cell_key", "cell_key_amounts", "adjust")
NONE = "none"
HIDDEN_FIELDS = (
    "rule",
    "publish",
    "withhold",
    "limits",
    "ptable",
    "seconds",
    "epsilons",
    "point",
    "q",
    "step",
    "extra",
    "rounding",
)
"""Fields of methods that the page does not show: it sets them itself, or they name columns and files."""
SUPPRESSION_COSTS = ("value", "count", "cells")
STATISTICS = {
    "": "the sum", "mean": "the mean", "ratio": "the ratio to", "index": "the index (100 =)",
    "share": "the share along", "sd": "the standard deviation",
}  # fmt: skip
OF_COLUMN = ("ratio", "index", "share")
"""What a cell can have of a column, and which of it needs a further one."""
JOINS: Mapping[str, Callable[[Any, Any], Any]] = {"|": or_, "&": and_}
FOR_AMOUNTS: list[Plain] = [{"use": "p_percent", "p": 0.1, "coalition": 1}]
FOR_COUNTS: list[Plain] = [{"use": "min_count", "n": 3, "margin": 0.2}]
WORDS = packaged("doors/web/work/table_words.toml")
TITLES, METHOD_SUMMARIES = WORDS["titles"], WORDS["summaries"]
"""Titles of rules and methods on the page, and what the methods do."""


def rule_of(settings: Mapping[str, Any]) -> Any:
    """The combined rule of the settings.

    >>> rule_of({"rules": [{"use": "min_count", "n": 3}, {"use": "zero"}], "join": "|"})
    Either(rules=(MinCount(n=3, margin=0.2, holdings=None), Zero(empty=None)))
    """
    parts = [_build(step, "rule") for step in settings["rules"]]
    if not parts:
        raise ParameterError("Add a rule: it says which cells are sensitive.")
    return reduce(JOINS[settings["join"]], parts)


def method_of(settings: Mapping[str, Any]) -> Any:
    """The method of the settings, with its rule where it has one; None where there is no method."""
    step = dict(settings["method"])
    if step["use"] == NONE:
        return None
    if "rule" in _names(step["use"], "mask"):
        step["rule"] = rule_text(rule_of(settings))
    return _build(step, "mask")


def _build(step: Mapping[str, Any], verb: Any) -> Any:
    return build(step["use"], verb, {name: value for name, value in step.items() if name != "use"})


def _names(name: str, verb: Any) -> list[str]:
    return [field.name for field in form(find(name, verb))]


def plain_rules(rule: Any) -> list[Plain]:
    """The parts of a rule, as settings."""
    return [to_plain(part) for part in parts_of(rule)]


def plain_method(method: Any) -> Plain:
    """A method as settings, without hidden fields."""
    return {name: value for name, value in to_plain(method).items() if name not in HIDDEN_FIELDS}


def with_rule(settings: Mapping[str, Any], name: str) -> Plain:
    """The settings with one more rule."""
    if name not in RULES:
        raise ParameterError(f"No rule {name!r} for tables.{hint(name, list(RULES))}")
    rules = [*settings["rules"], to_plain(build(name, "rule", {}))]
    return {**settings, "rules": rules}


def without_rule(settings: Mapping[str, Any], place: int) -> Plain:
    """The settings without one rule; the last one cannot be removed."""
    _refuse_place(settings, place)
    if len(settings["rules"]) == 1:
        raise ParameterError("Keep one rule: without it no cell is sensitive. Add another before you take this away.")
    return {**settings, "rules": [step for i, step in enumerate(settings["rules"]) if i != place]}


def with_field(settings: Mapping[str, Any], place: int, name: str, text: str) -> Plain:
    """The settings with a field of a rule changed."""
    _refuse_place(settings, place)
    rules = list(settings["rules"])
    rules[place] = _with_value(rules[place], "rule", name, text)
    return {**settings, "rules": rules}


def with_option(settings: Mapping[str, Any], name: str, text: str) -> Plain:
    """The settings with a field of the method changed."""
    step = settings["method"]
    if step["use"] == NONE or name in HIDDEN_FIELDS:
        raise ParameterError(f"{title(step['use'])} has no parameter {name!r}.")
    if name == "cost" and text not in SUPPRESSION_COSTS:
        raise ParameterError(f"cost must be one of {', '.join(SUPPRESSION_COSTS)}.")
    changed = {**settings, "method": _with_value(step, "mask", name, text, settings)}
    method_of(changed)
    return changed


def _with_value(step: Mapping[str, Any], verb: Any, name: str, text: str, settings: Any = None) -> Plain:
    if name not in _names(step["use"], verb):
        raise ParameterError(f"{title(step['use'])} has no parameter {name!r}.")
    more = {"rule": rule_text(rule_of(settings))} if "rule" in _names(step["use"], verb) else {}
    kind = next(field.type for field in form(find(step["use"], verb)) if field.name == name)
    value = text.strip() or (None if NoneType in get_args(kind) else "false" if kind is bool else "")
    method = _build({**step, **more, name: value}, verb)
    return plain_method(method)


def _refuse_place(settings: Mapping[str, Any], place: int) -> None:
    if not 0 <= place < len(settings["rules"]):
        raise ParameterError("That rule is gone: load the page again.")


def with_method(settings: Mapping[str, Any], name: str) -> Plain:
    """The settings with another method and its default parameters."""
    if name == NONE:
        return {**settings, "method": {"use": NONE}}
    if name not in METHODS:
        raise ParameterError(f"No method {name!r} for tables.{hint(name, [*METHODS, NONE])}")
    more = {"rule": rule_text(rule_of(settings))} if "rule" in _names(name, "mask") else {}
    return {**settings, "method": plain_method(build(name, "mask", more))}


def with_statistic(settings: Mapping[str, Any], name: str, column: str) -> Plain:
    """The settings with what each cell has in place of the sum, which may be about a further column."""
    text = f"{name}:{column}" if column and name in OF_COLUMN else name
    statistic_of(text or None)
    return {**settings, "statistic": text}


def with_join(settings: Mapping[str, Any], join: str) -> Plain:
    """The settings with the rules joined by | (any rule) or & (all rules)."""
    if join not in JOINS:
        raise ParameterError("Rules are joined by | (either) or & (all).")
    return {**settings, "join": join}


def with_preset(settings: Mapping[str, Any], name: str) -> Plain:
    """The settings with the rule and the method of a preset; for counts only rules that apply to counts."""
    table_presets = {p.name: p for p in presets().values() if p.about == "table"}
    if name not in table_presets:
        raise ParameterError(f"No preset {name!r} for tables.{hint(name, list(table_presets))}")
    plain = table_presets[name].plain
    rule = next(parse(score, "measure").rule for score in plain["limits"] if score.startswith("exposed"))
    rules = fitting(plain_rules(rule), settings)
    method = build_mask(plain["candidates"][0]["masks"][0], rule)
    return {**settings, "rules": rules, "join": "|", "method": plain_method(method)}


def build_mask(step: Mapping[str, Any], rule: Any) -> Any:
    """The method of a policy's step; of alternative values the first is taken."""
    parameters = {name: value[0] if isinstance(value, list) else value for name, value in step.items()}
    if "rule" in _names(str(parameters["use"]), "mask"):
        parameters["rule"] = rule_text(rule)
    return _build(parameters, "mask")


def fitting(rules: Iterable[Mapping[str, Any]], settings: Mapping[str, Any]) -> list[Plain]:
    """The rules that apply to this table; the default rule where none does."""
    counts = not settings["value"] and not settings["holding"]
    suitable = [dict(step) for step in rules if not counts or step["use"] not in LARGEST]
    return suitable or list(FOR_COUNTS)


def rules_to_compare(settings: Mapping[str, Any]) -> list[str]:
    """Rules to compare with the current one."""
    counts = not settings["value"] and not settings["holding"]
    usual = (
        ("min-count:3", "min-count:5", "min-count:10")
        if counts
        else ("p-percent:10%", "dominance:2,85%", "min-count:3")
    )
    return list(dict.fromkeys((rule_words(settings), *usual)))


def refuse_rule(text: str) -> None:
    """Refuse a rule that does not apply to tables of records."""
    classes = {find(name, "rule") for name in RULES}
    if any(type(part) not in classes for part in parts_of(parse(text, "rule"))):
        raise ParameterError(f"Rules for tables are {listed(name.replace('_', '-') for name in RULES)}.")


def rule_forms(settings: Mapping[str, Any]) -> list[Plain]:
    """The forms of all rules, made from their fields."""
    return [_form(step, "rule") for step in settings["rules"]]


def method_form(settings: Mapping[str, Any]) -> Plain | None:
    """The form of the method; None where there is no method."""
    return None if settings["method"]["use"] == NONE else _form(settings["method"], "mask")


def _form(step: Mapping[str, Any], verb: Any) -> Plain:
    kind = find(step["use"], verb)
    fields = [_field(step, field) for field in form(kind) if _shown(field)]
    return {"use": step["use"], "title": TITLES[step["use"]], "about": summary(kind).replace("`", ""), "fields": fields}


def _shown(field: Field) -> bool:
    """Whether the page has room for a field: not for those it sets itself, for lists and for most that is optional."""
    optional = NoneType in get_args(field.type) and field.name != "like"
    return field.name not in HIDDEN_FIELDS and get_origin(field.type) is not tuple and not optional


def _field(step: Mapping[str, Any], field: Field) -> Plain:
    named = get_args(field.type) if get_origin(field.type) is Literal else ()
    choices = SUPPRESSION_COSTS if field.name == "cost" else tuple(map(str, named))
    kind = "switch" if field.type is bool else "choice" if choices else "number"
    value = step.get(field.name, field.default)
    return {
        "name": field.name,
        "label": WORDS["fields"].get(step["use"], {}).get(field.name, field.name),
        "kind": kind,
        "choices": list(choices),
        "value": value if kind == "switch" else "" if value is None else _text(value, field),
    }


def _text(value: Any, field: Field) -> str:
    """The text of a number as a user types it: shares in percent."""
    share = field.type is float and isinstance(field.default, float) and 0 < field.default <= 1
    return f"{100 * float(value):.10g}%" if share else f"{value:g}" if isinstance(value, float) else str(value)


def preset_list() -> list[Plain]:
    """The presets for tables."""
    table_presets = [p for p in presets().values() if p.about == "table"]
    return [{"name": p.name, "words": p.words, "source": p.source} for p in table_presets]


def table_title(settings: Mapping[str, Any]) -> str:
    """The title of the table.

    >>> table_title({"value": "turnover", "by": ["region", "industry"]})
    'Turnover by region and industry'
    """
    statistic, what = statistic_of(settings.get("statistic") or None), settings["value"] or "records"
    what = what if statistic is None else statistic.words(what)
    return f"{what[:1].upper()}{what[1:]} by {listed(settings['by'])}"


def policy_of(policy: Mapping[str, Any], settings: Mapping[str, Any], trees: Mapping[str, Any]) -> Plain:
    """The policy with [table] for the protected table: one method, and a limit of zero exposed cells."""
    method, rule = method_of(settings), rule_of(settings)
    table: Plain = {"by": list(settings["by"]), "coarsen": dict(settings["levels"]), "hierarchies": dict(trees)}
    table |= {name: settings.get(name) for name in ("value", "holding", "weight", "statistic", "apriori")}
    step = {**to_plain(method), **({"rule": rule_text(rule)} if hasattr(method, "rule") else {})}
    return {
        "format": 1,
        "title": table_title(settings),
        "data": dict(policy["data"]),
        "roles": roles_of(policy, settings),
        "table": {name: value for name, value in table.items() if value},
        "limits": {f"exposed(rule='{rule_text(rule)}')": "<= 0"},
        "candidates": [{"masks": [step]}],
    }


def groupings(policy: Mapping[str, Any]) -> Plain:
    """The hierarchies whose levels are groups of a table: not those that only merge rare categories."""
    trees = policy.get("roles", {}).get("hierarchies", {})
    return {column: tree for column, tree in trees.items() if not merges_by_frequency(tree)}


def roles_of(policy: Mapping[str, Any], settings: Mapping[str, Any]) -> Plain:
    """The roles that matter to a table: identifiers, weight, and the hierarchies of its columns."""
    roles = policy.get("roles", {})
    relevant: Plain = {name: roles[name] for name in ("id", "direct") if roles.get(name)}
    if settings["weight"]:
        relevant["weight"] = settings["weight"]
    trees = groupings(policy)
    nested = [c for c in settings["by"] if c in trees and (c in settings["levels"] or settings["subtotals"])]
    return relevant | ({"hierarchies": {c: trees[c] for c in nested}} if nested else {})


def rule_words(settings: Mapping[str, Any]) -> str:
    """The rule in the syntax of the command line."""
    return rule_text(rule_of(settings))
