"""Limits of a policy as the page edits them: each bound with its place in the policy, in percent or plain units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from equipoise.ground.errors import EquipoiseError, ParameterError
from equipoise.policies.limits import SIGN_WORDS, Limit, as_scored, expanded, is_share, limits_of, tables
from equipoise.policies.policy import Policy as LimitsPolicy
from equipoise.policies.presets import extended
from equipoise.policies.scoped_measures import scale
from equipoise.policies.sections import Intruder, LimitTable
from equipoise.presentation.numbers import title, value_text

Plain = dict[str, Any]
Policy = Mapping[str, Any]


@dataclass(frozen=True)
class Slot:
    """One bound in a policy: its measure, which of the measure's tables it is in, and which part of 'a and b'."""

    name: str
    item: int
    part: int
    limit: Limit
    table: LimitTable
    scores: tuple[str, ...]
    share: bool
    own: bool

    @property
    def value(self) -> str:
        """The bound as a user types it: shares in percent."""
        return f"{self.limit.bound * (100 if self.share else 1):.10g}"

    def words(self) -> str:
        bound = value_text(self.limit.bound, "share") if self.share else f"{self.limit.bound:g}"
        return f"{title(self.scores[0] if len(self.scores) == 1 else self.name)} {SIGN_WORDS[self.limit.sign]} {bound}"

    def to_plain(self, place: int) -> Plain:
        return {
            "place": place,
            "name": self.name,
            "item": self.item,
            "title": title(self.scores[0] if len(self.scores) == 1 else self.name),
            "sign": self.limit.sign,
            "words": self.words(),
            "value": self.value,
            "unit": "%" if self.share else "",
            "reason": self.table.reason,
            "scenario": self.table.scenario or ("every scenario" if len(self.scores) > 1 else ""),
            "own": self.own,
            "scores": list(self.scores),
        }


def with_preset(policy: Policy, folder: Path) -> Plain:
    """The policy extended by its preset; unchanged where the preset cannot be read."""
    try:
        return extended(policy, folder)
    except EquipoiseError:
        return dict(policy)


def slots(policy: Policy, folder: Path) -> list[Slot]:
    """Every readable bound, those of the preset included; `own` marks the bounds of the policy itself."""
    scenarios = known_scenarios(policy, folder)
    own = {as_scored(str(name)) for name in _section(policy.get("limits"))}
    bounds: list[Slot] = []
    plain = with_preset(policy, folder)
    declared = LimitsPolicy(assume_unknown=plain.get("assume_unknown", ()))
    for name, section in _section(plain.get("limits")).items():
        try:
            for item, table in enumerate(tables(section, str(name))):
                scores = tuple(map(declared.score_name, expanded(str(name), table, scenarios)))
                share = is_share(getattr(measure := scale(scores[0], scenarios), "inner", measure))
                for part, limit in enumerate(limits_of(scores[0], table.limit)):
                    mine = as_scored(str(name)) in own
                    bounds.append(Slot(str(name), item, part, limit, table, scores, share, mine))
        except EquipoiseError:
            continue
    return bounds


def known_scenarios(policy: Policy, folder: Path) -> tuple[Intruder, ...]:
    """The intruder scenarios that can be read."""
    intruders = []
    for one in with_preset(policy, folder).get("scenarios", ()):
        if isinstance(one, Mapping) and isinstance(one.get("name"), str) and isinstance(one.get("known"), list | tuple):
            sensitive = one.get("sensitive")
            intruders.append(Intruder(one["name"], tuple(one["known"]), tuple(sensitive) if sensitive else None))
    return tuple(intruders)


def _section(section: Any) -> Mapping[str, Any]:
    return section if isinstance(section, Mapping) else {}


def with_bounds(policy: Policy, folder: Path, values: Sequence[float]) -> Plain:
    """The limits of the policy with new bounds, in the order of `slots`; unchanged ones keep their text."""
    bounds = slots(policy, folder)
    if len(values) != len(bounds):
        raise ParameterError("The limits were changed since: load the page again.")
    if not all(isfinite(value) for value in values):
        raise ParameterError("A limit is a number.")
    limits: Plain = dict(_section(policy.get("limits")))
    every = _section(with_preset(policy, folder).get("limits"))
    for name in dict.fromkeys(slot.name for slot in bounds):
        its = [(slot, value) for slot, value in zip(bounds, values, strict=True) if slot.name == name]
        if any(slot.value != f"{value:.10g}" for slot, value in its):
            limits[name] = _replace_bounds(every[name], its)
    return limits


def _replace_bounds(section: Any, its: Sequence[tuple[Slot, float]]) -> Any:
    """The limits of one measure with their bounds replaced."""
    several = isinstance(section, list | tuple)
    items = []
    for item, old in enumerate(section if several else [section]):
        parts = [bound_text(slot.limit.sign, value, slot.share) for slot, value in its if slot.item == item]
        text = " and ".join(parts)
        items.append({**old, "limit": text} if isinstance(old, Mapping) else text)
    return items if several else items[0]


def bound_text(sign: str, value: float, share: bool) -> str:
    """The text of a bound in a policy.

    >>> bound_text("<", 2.0, True), bound_text(">", 7.5, False)
    ('< 2%', '> 7.5')
    """
    return f"{sign} {value:.10g}{'%' if share else ''}"


def with_limit(limits: Mapping[str, Any], name: str, table: Mapping[str, Any]) -> Plain:
    """The limits with one more; a second limit on the same measure is added to a list."""
    plain = {key: value for key, value in table.items() if value}
    new = plain["limit"] if set(plain) == {"limit"} else plain
    if name not in limits:
        return {**limits, name: new}
    old = limits[name]
    return {**limits, name: [*(old if isinstance(old, list | tuple) else [old]), new]}


def without_limit(limits: Mapping[str, Any], name: str, item: int) -> Plain:
    """The limits without one."""
    if name not in limits:
        raise ParameterError("There is no such limit any more.")
    old = limits[name]
    remaining = [one for place, one in enumerate(old if isinstance(old, list | tuple) else [old]) if place != item]
    rest = {key: value for key, value in limits.items() if key != name}
    return {**rest, name: remaining if len(remaining) > 1 else remaining[0]} if remaining else rest
