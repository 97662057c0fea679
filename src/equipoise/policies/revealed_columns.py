"""Columns that single people out, and what a policy says becomes of them."""

from collections.abc import Iterator, Sequence

import polars as pl

from equipoise.ground.errors import RefusedError
from equipoise.inspection.revealing import column_words, enough_columns, without
from equipoise.methods.method import Measure
from equipoise.policies.policy import Policy
from equipoise.presentation.numbers import listed
from equipoise.recipe.catalogue import family
from equipoise.risk import RevealingColumns

MAX_NAMED = 100
"""Columns that a refusal names."""


def undeclared(revealing: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The revealing columns of which a policy says nothing: neither a limit, nor that nobody knows them."""
    if _limit(policy) is not None:
        return revealing.clear()
    return without(revealing, {*policy.assume_unknown, *_attacked(policy)})


def assumed_unknown(policy: Policy) -> tuple[str, ...]:
    """The columns of which a policy says that nobody knows them: declared, or left out of its limit."""
    limit = _limit(policy)
    return tuple(dict.fromkeys((*policy.assume_unknown, *(limit.unknown if limit else ()))))


def stance(columns: Sequence[str | None], policy: Policy) -> str:
    """What a policy says of columns that single people out together."""
    if {*columns} & {*assumed_unknown(policy)}:
        return "assumes that nobody knows it"
    limited = _limit(policy) is not None or {*columns} & {*_attacked(policy)}
    return "limits the risk" if limited else "nothing: nobody may know it"


def refuse_undeclared(revealing: pl.DataFrame, policy: Policy) -> None:
    """Refuse a release with columns that single people out and of which the policy says nothing."""
    rest = undeclared(revealing, policy)
    if rest.height:
        columns, words = enough_columns(rest), column_words(rest)
        declared = ", ".join([f'"{column}"' for column in columns[:MAX_NAMED]] + ["..."] * (len(columns) > MAX_NAMED))
        if len(words) > MAX_NAMED:
            words = [*words[:MAX_NAMED], f"{len(words) - MAX_NAMED:,} more"]
        raise RefusedError(
            f"Nothing was released: whoever knows them is led to few people by {listed(words)}, and the "
            "policy does not say what becomes of them. Mask these columns, limit revealing_columns, or declare that "
            f"nobody knows them: assume_unknown = [{declared}]."
        )


def _limit(policy: Policy) -> RevealingColumns | None:
    """The limit on revealing columns, where there is one."""
    return next((m for m in map(_inner, policy.measures()) if isinstance(m, RevealingColumns)), None)


def _inner(measure: Measure) -> Measure:
    inner: Measure = getattr(measure, "inner", measure)
    return inner


def _attacked(policy: Policy) -> Iterator[str]:
    """The columns that a limited attack takes for known, or an intruder for whom a risk is limited."""
    for measure in policy.measures():
        inner, scenario = _inner(measure), getattr(measure, "scenario", None)
        if family(type(inner)) == "attacks":
            yield from getattr(inner, "known", None) or getattr(inner, "variables", None) or ()
        yield from scenario.known if scenario else ()
