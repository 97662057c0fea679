"""What each mask leaves valid for a user of the data, what it spoils, and the formulas that put it right.

Every entry is made from the public law of the mask; its sentences are in valid_uses.toml. Sources: Kim (1986) and
Fuller (1993) for noise; Gouweleeuw et al. (1998) for post-randomization; Raghunathan, Reiter and Rubin (2003) and
Reiter (2003) for synthesis; Sheppard (1898) for grouped numbers.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from equipoise.data.records import Law
from equipoise.ground.system import packaged
from equipoise.presentation.numbers import listed

CONDITION = re.compile(r"\[(not )?(\w+)\] ")
Facts = Mapping[str, Any]
"""What the sentences about a mask may say, as texts and truths; what is not known is empty."""


@dataclass(frozen=True)
class Effect:
    """What a mask means for estimates from one column.

    `added` is the variance that was added to it, where there is one number for it.
    """

    valid: tuple[str, ...] = ()
    spoiled: tuple[str, ...] = ()
    adjust: tuple[str, ...] = ()
    added: float | None = None


@dataclass(frozen=True)
class Comparison:
    """A released column against the original: rounded to two decimals, None where not known.

    `variance_ratio` is the released variance over the original one, `correlation` that of the two columns.
    """

    variance_ratio: float | None = None
    correlation: float | None = None


def entries() -> dict[str, Any]:
    """The sentences on each mask: valid, spoiled and adjust."""
    return packaged("releases/valid_uses.toml")


def effect_of(law: Law, column: str, comparison: Comparison = Comparison()) -> Effect:
    """What one mask means for one column it touched; only its own words are known of a mask without an entry here.

    >>> law = Law("noise", ("income",), "noise", {"noise_sd": {"income": 3.0}, "kind": "additive"})
    >>> effect_of(law, "income").added
    9.0
    """
    entry = entries().get(law.mask, {})
    facts_of, fields = FACTS.get(law.mask), {"words": law.words, **law.parameters}
    facts = {"column": column, **_compared(comparison), **(facts_of(fields, column) if facts_of else {})}
    valid, spoiled, adjust = (
        tuple(_sentences(entries().get(entry.get("like"), entry).get(part, ()), facts))
        for part in ("valid", "spoiled", "adjust")
    )
    if law.private:
        return Effect(valid, spoiled, ("the size of the change is kept private: nothing can be corrected for it",))
    return Effect(valid, spoiled, adjust, facts.get("variance"))


def _sentences(texts: list[str], facts: Facts) -> Iterator[str]:
    """The sentences whose conditions hold, with the facts they name."""
    for text in texts:
        condition = CONDITION.match(text)
        if condition is None or bool(facts.get(condition[2])) is not bool(condition[1]):
            yield CONDITION.sub("", text, count=1).format(**facts)


def _compared(comparison: Comparison) -> Facts:
    ratio, correlation = comparison.variance_ratio, comparison.correlation
    return {
        "ratio": _digits(ratio) if ratio else "",
        "lost": _digits(1 - ratio) if ratio is not None else "",
        "correlation": _digits(correlation) if correlation else "",
    }


def _noise(fields: Any, column: str) -> Facts:
    sd = float(fields.get("noise_sd", {}).get(column, 0.0))
    preserved = bool(fields.get("preserve"))
    bounded = not preserved and bool("bounds" in fields or fields.get("keep_zero"))
    free = not preserved and not bounded
    correlated = free and fields.get("kind") == "correlated"
    dealt = fields.get("preserve") == "distributions"
    widening = _digits((2 - (1 + float(fields.get("scale", 0.0)) ** 2) ** -2) ** 0.5)  # by the delta method, if normal
    facts = {"preserved": preserved and not dealt, "dealt": dealt, "restored": preserved, "widening": widening}
    facts |= {"once": fields.get("once_per", {}).get(column, "")}
    facts |= {"noisy": not preserved, "bounded": bounded, "free": free, "correlated": correlated}
    return facts | {"added": _digits(sd**2), "variance": None if preserved else sd**2}


def _tail(side: str, bias: str) -> Callable[[Any, str], Facts]:
    def facts(fields: Any, column: str) -> Facts:
        at, by = f"{float(fields.get('at', 0)):,.10g}", fields.get("replace_by")
        kinds = {"mean": by == "mean", "threshold": by == "threshold", "other": by not in ("mean", "threshold")}
        return {"side": side, "bias": bias, "at": at, **kinds}

    return facts


def _recode(fields: Any, column: str) -> Facts:
    width = str(fields.get("level", ""))
    banded = "intervals of" in fields.get("words", "") and width.replace(".", "", 1).isdecimal()
    return {"width": width if banded else ""}


def _pram(fields: Any, column: str) -> Facts:
    what = "weighted totals" if fields.get("invariant") == "weights" else "counts"
    return {"what": what, "keys": _and(fields.get("keys", (column,)))}


def _pram_matrix(fields: Any, column: str) -> Facts:
    strata = f", within each {_and(fields['strata'])}" if fields.get("strata") else ""
    if fields.get("invariant"):
        return {"strata": strata, "invariant": True}
    alpha = float(fields.get("alpha", 1.0))
    if "diagonal" in fields:
        moving = alpha * (1 - float(fields["diagonal"]))
        return {"strata": strata, "staying": _digits(1 - moving), "moving": _digits(moving)}
    return {"strata": strata, "alpha": _digits(alpha), "rest": _digits(1 - alpha)}


def _synthesize(fields: Any, column: str) -> Facts:
    kind, m = "partial" if fields.get("partial") else "full", int(fields.get("samples", 1))
    rule = "T = b / m + u" if kind == "partial" else "T = (1 + 1 / m) b - u"
    relations = fields.get("relations") or ()
    return {"kind": kind, "rule": rule, "m": m, "several": m > 1, "relations": _and(relations) if relations else ""}


def _digits(value: float) -> str:
    """Six significant digits, without an exponent where the number is not huge."""
    return f"{float(f'{value:.6g}'):.12g}"


def _and(names: Any) -> str:
    texts = [names] if isinstance(names, str) else [str(name) for name in names]
    return listed(texts) if texts else "nothing"


FACTS: dict[str, Callable[[Any, str], Facts]] = {
    "noise": _noise, "top_code": _tail("above", "small"), "bottom_code": _tail("below", "large"), "recode": _recode,
    "pram": _pram, "pram_matrix": _pram_matrix, "synthesize": _synthesize,
    "microaggregate": lambda f, _: {"within": f", also within {_and(f['strata'])}" if f.get("strata") else ""},
    "shuffle": lambda f, _: {"given": _and(f["given"]) if f.get("given") else ""},
    "swap": lambda f, _: {"area": f.get("attribute"), "keys": _and(f.get("keys", ())), "rate": f.get("rate")},
    "local_swap": lambda f, column: {"share": f"{f.get('exchanged', {}).get(column, 0.0):.0%}"},
    "sample": lambda f, _: {"fraction": _digits(float(f.get("kept", f.get("fraction", 1.0))))},
}  # fmt: skip
"""What the sentences of a mask name, beside the column and its comparison."""
