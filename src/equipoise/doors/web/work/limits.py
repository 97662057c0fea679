"""Limits as the page shows them: each where it is written, in the units people use, and moved."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from equipoise.ground.errors import EquipoiseError, ParameterError
from equipoise.policies.limits import Limit, as_scored, expanded, is_share, limits_of, tables
from equipoise.policies.presets import extended
from equipoise.policies.scoped_measures import scale
from equipoise.policies.sections import Intruder, LimitTable
from equipoise.presentation.numbers import said, title

SIGNS = {"<": "below", "<=": "at most", ">": "above", ">=": "at least"}
Plain = dict[str, Any]
Policy = Mapping[str, Any]


@dataclass(frozen=True)
class Slot:
    """One bound as it is written: under which measure, in which of its tables, and which part of 'a and b'."""

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
        """The bound as it is typed: shares in percent."""
        return f"{self.limit.bound * (100 if self.share else 1):.10g}"

    def words(self) -> str:
        bound = said(self.limit.bound, "share") if self.share else f"{self.limit.bound:g}"
        return f"{title(self.scores[0] if len(self.scores) == 1 else self.name)} {SIGNS[self.limit.sign]} {bound}"

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


def whole(policy: Policy, folder: Path) -> Plain:
    """A policy with what its preset says filled in; as it is where that cannot be."""
    try:
        return extended(policy, folder)
    except EquipoiseError:
        return dict(policy)


def slots(policy: Policy, folder: Path) -> list[Slot]:
    """Every bound that can be read, those of the preset too; `own` says that the policy itself has it."""
    scenarios = known_scenarios(policy, folder)
    own = {as_scored(str(name)) for name in _table(policy.get("limits"))}
    found: list[Slot] = []
    for name, given in _table(whole(policy, folder).get("limits")).items():
        try:
            for item, table in enumerate(tables(given, str(name))):
                scores = expanded(str(name), table, scenarios)
                share = is_share(getattr(made := scale(scores[0], scenarios), "inner", made))
                for part, limit in enumerate(limits_of(scores[0], table.limit)):
                    mine = as_scored(str(name)) in own
                    found.append(Slot(str(name), item, part, limit, table, scores, share, mine))
        except EquipoiseError:
            continue
    return found


def known_scenarios(policy: Policy, folder: Path) -> tuple[Intruder, ...]:
    """The scenarios that can be read."""
    found = []
    for one in whole(policy, folder).get("scenarios", ()):
        if isinstance(one, Mapping) and isinstance(one.get("name"), str) and isinstance(one.get("known"), list | tuple):
            told = one.get("sensitive")
            found.append(Intruder(one["name"], tuple(one["known"]), tuple(told) if told else None))
    return tuple(found)


def _table(given: Any) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def moved(policy: Policy, folder: Path, values: Sequence[float]) -> Plain:
    """The policy's own limits with every bound as typed, in the order of `slots`; those that stay are left alone."""
    known = slots(policy, folder)
    if len(values) != len(known):
        raise ParameterError("The limits were changed since: load the page again.")
    if not all(isfinite(value) for value in values):
        raise ParameterError("A limit is a number.")
    limits: Plain = dict(_table(policy.get("limits")))
    every = _table(whole(policy, folder).get("limits"))
    for name in dict.fromkeys(slot.name for slot in known):
        its = [(slot, value) for slot, value in zip(known, values, strict=True) if slot.name == name]
        if any(slot.value != f"{value:.10g}" for slot, value in its):
            limits[name] = _rewritten(every[name], its)
    return limits


def _rewritten(given: Any, its: Sequence[tuple[Slot, float]]) -> Any:
    """What is written for one measure, with its bounds replaced."""
    several = isinstance(given, list | tuple)
    found = []
    for item, old in enumerate(given if several else [given]):
        parts = [written(slot.limit.sign, value, slot.share) for slot, value in its if slot.item == item]
        text = " and ".join(parts)
        found.append({**old, "limit": text} if isinstance(old, Mapping) else text)
    return found if several else found[0]


def written(sign: str, value: float, share: bool) -> str:
    """A bound as a policy writes it.

    >>> written("<", 2.0, True), written(">", 7.5, False)
    ('< 2%', '> 7.5')
    """
    return f"{sign} {value:.10g}{'%' if share else ''}"


def added(limits: Mapping[str, Any], name: str, table: Mapping[str, Any]) -> Plain:
    """Limits with one more; a second one on the same measure stands beside the first."""
    plain = {key: value for key, value in table.items() if value}
    new = plain["limit"] if set(plain) == {"limit"} else plain
    if name not in limits:
        return {**limits, name: new}
    old = limits[name]
    return {**limits, name: [*(old if isinstance(old, list | tuple) else [old]), new]}


def removed(limits: Mapping[str, Any], name: str, item: int) -> Plain:
    """Limits without one."""
    if name not in limits:
        raise ParameterError("There is no such limit any more.")
    old = limits[name]
    left = [one for place, one in enumerate(old if isinstance(old, list | tuple) else [old]) if place != item]
    rest = {key: value for key, value in limits.items() if key != name}
    return {**rest, name: left if len(left) > 1 else left[0]} if left else rest
