"""What each mask leaves valid for a user of the data, what it spoils, and the formulas that put it right.

Every entry is made from the public law of the mask. s^2, r and b stand for a variance, a correlation and a slope
computed from the released data. Sources: Kim (1986) and Fuller (1993) for noise; Gouweleeuw et al. (1998) for
post-randomization; Raghunathan, Reiter and Rubin (2003) and Reiter (2003) for synthesis; Sheppard (1898) for grouped
numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from equipoise.data.records import Law


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


def effect_of(law: Law, column: str, comparison: Comparison = Comparison()) -> Effect:
    """What one mask means for one column it touched; only its own words are known of a mask without an entry here.

    >>> law = Law("noise", ("income",), "noise", {"noise_sd": {"income": 3.0}, "kind": "additive"})
    >>> effect_of(law, "income").added
    9.0
    """
    effect_for = ENTRIES.get(law.mask)
    return Effect() if effect_for is None else effect_for({"words": law.words, **law.parameters}, column, comparison)


def _noise(fields: Any, column: str, comparison: Comparison) -> Effect:
    sd = float(fields.get("noise_sd", {}).get(column, 0.0))
    if fields.get("preserve"):
        return Effect(
            ("means, variances, covariances and linear regressions",),
            ("quantiles, extremes and means of small groups",),
        )
    added = _digits(sd**2)
    if "bounds" in fields or fields.get("keep_zero"):
        note = (
            "noise was held within bounds: the effects under the mask's parameters say what the mean and variance are"
        )
        return Effect((), ("means and variances, a little", "quantiles and extremes"), (note,), sd**2)
    valid: tuple[str, ...] = ("means and totals, of groups too",)
    valid += (
        ("correlations and slopes between the columns masked together",) if fields.get("kind") == "correlated" else ()
    )
    return Effect(
        valid,
        ("variances (too large)", "correlations and slopes (too small)", "quantiles and extremes"),
        (
            f"variance = s^2 - {added}; whole numbers were rounded: 1/12 less still",
            f"correlation with a column that was not masked = r * sqrt(s^2 / (s^2 - {added}))",
            f"slope on this column alone = b * s^2 / (s^2 - {added})",
        ),
        sd**2,
    )


def _tail(side: str) -> Callable[[Any, str, Comparison], Effect]:
    def effect(fields: Any, column: str, comparison: Comparison) -> Effect:
        at, by = f"{float(fields.get('at', 0)):,.10g}", fields.get("replace_by")
        valid = (f"everything about values not {side} {at}: shares, quantiles on that side",)
        spoiled = ("variances (too small)", f"whatever happens {side} {at}")
        if by == "mean":
            return Effect((*valid, "the mean and the total of the whole column"), spoiled)
        low = "small" if side == "above" else "large"
        wrong = f"the mean (too {low})" if by == "threshold" else "the mean"
        return Effect(valid, (wrong, *spoiled), (f"treat values {side} {at} as censored: tobit, or medians",))

    return effect


def _recode(fields: Any, column: str, comparison: Comparison) -> Effect:
    width = str(fields.get("level", ""))
    banded = "intervals of" in fields.get("words", "") and width.replace(".", "", 1).isdecimal()
    rule = f"mean from the midpoints of the bands; variance = s^2 of the midpoints - {width}^2 / 12"
    return Effect(
        ("counts, shares and tables by these groups or coarser ones, exactly",),
        ("differences within a group",),
        (rule,) if banded else (),
    )


def _renumber(fields: Any, column: str, comparison: Comparison) -> Effect:
    return Effect(
        ("which records belong together, and everything counted by it",),
        ("the order of the numbers, and links by them to other files",),
    )


def _local_recode(fields: Any, column: str, comparison: Comparison) -> Effect:
    return Effect(
        ("counts and tables by groups that no released category cuts across",),
        ("tables by the categories as released: they overlap, a value may stand under a narrow and a wide one",),
        ("bring all records to the widest category in which they meet before counting, or share wide ones out evenly",),
    )


def _pram(fields: Any, column: str, comparison: Comparison) -> Effect:
    what = "weighted totals" if fields.get("invariant") == "weights" else "counts"
    return Effect(
        (f"{what} of the combinations of {_and(fields.get('keys', (column,)))}: unbiased as they are",),
        ("relations between these columns and others (weaker)", "variances of counts (a little larger)"),
        ("counts need no adjustment: the law keeps their expectation; its own variance adds to their standard error",),
    )


def _pram_matrix(fields: Any, column: str, comparison: Comparison) -> Effect:
    spoiled = ("tables with other columns (differences are levelled)",)
    strata = f", within each {_and(fields['strata'])}" if fields.get("strata") else ""
    if fields.get("invariant"):
        return Effect((f"counts and shares of {column}: unbiased as they are{strata}",), spoiled)
    alpha = float(fields.get("alpha", 1.0))
    if "diagonal" in fields:
        moving = alpha * (1 - float(fields["diagonal"]))
        law = f"p = {_digits(1 - moving)}, q = {_digits(moving)} / (K - 1), K categories, n records"
        rule = f"unbiased count of a category{strata} = (S - n q) / (p - q), S its released count, {law}"
    else:
        rule = f"unbiased counts{strata} = inverse of P' times the released counts, P = {_digits(alpha)} x matrix + "
        rule += f"{_digits(1 - alpha)} x identity"
    return Effect((), ("counts and shares (drawn together)", *spoiled),
                  (f"{rule}; utility.pram_adjust does it with standard errors",))  # fmt: skip


def _microaggregate(fields: Any, column: str, comparison: Comparison) -> Effect:
    ratio = comparison.variance_ratio
    lack = f" ({_digits(1 - ratio)} of it was within the groups and is lost)" if ratio is not None else ""
    within = f", also within {_and(fields['strata'])}" if fields.get("strata") else ""
    return Effect(
        (f"means and totals{within}",),
        (f"variances (too small{lack})", "correlations with columns that were not grouped", "quantiles and extremes"),
        (f"variance = s^2 / {_digits(ratio)}",) if ratio else (),
    )


def _rank_swap(fields: Any, column: str, comparison: Comparison) -> Effect:
    return Effect(
        ("everything about this column alone: mean, variance, quantiles, exactly",),
        ("correlations and regressions with other columns (weaker)", "means of groups (drawn to the overall mean)"),
        _attenuated(comparison),
    )


def _shuffle(fields: Any, column: str, comparison: Comparison) -> Effect:
    conditions = fields.get("given") or ()
    valid: tuple[str, ...] = ("everything about this column alone: mean, variance, quantiles, exactly",)
    valid += (f"rank correlations with {_and(conditions)}, nearly",) if conditions else ()
    return Effect(valid, ("relations with all other columns",), ())


def _swap(fields: Any, column: str, comparison: Comparison) -> Effect:
    area, keys = fields.get("attribute"), _and(fields.get("keys", ()))
    return Effect(
        (f"everything about this column alone, and {keys} by {area}",),
        (f"tables of the swapped columns by {area} (levelled: at most a share {fields.get('rate')} of records moved)",),
    )


def _sample(fields: Any, column: str, comparison: Comparison) -> Effect:
    fraction = float(fields.get("kept", fields.get("fraction", 1.0)))
    return Effect(
        ("means, shares and relations, with the standard errors of a sample",),
        ("counts and totals, without weights",),
        (f"totals = sample totals / {_digits(fraction)}; where there is a weight it was divided by that already",),
    )


def _blanked(fields: Any, column: str, comparison: Comparison) -> Effect:
    return Effect(
        ("tables by groups that are common",),
        ("shares and means of rare groups: their values were emptied more often",),
        (
            "what is missing is not missing at random: it depends on the key values themselves; count it as a category "
            "of its own, or impute from all keys, and do not leave these records out",
        ),
    )


def _synthesize(fields: Any, column: str, comparison: Comparison) -> Effect:
    kind = "partial" if fields.get("partial") else "full"
    rule = "T = b / m + u" if kind == "partial" else "T = (1 + 1 / m) b - u"
    m = int(fields.get("samples", 1))
    many = (
        f"estimate = mean over the {m} samples; its variance {rule}, with m = {m}, b the variance between the samples' "
        f"estimates and u the mean of their variances: utility.combine(kind='{kind}')",
    )
    one = ("one sample: standard errors from it are too small, and cannot be put right from it alone; for a full "
           "synthesis whose model fits, utility.combine(kind='model')",)  # fmt: skip
    relations = fields.get("relations") or ()
    valid = (f"relations that the model has: {_and(relations)}",) if relations else ("relations that the model has",)
    return Effect(valid, ("whatever the model does not have", "records one by one: they are nobody's"),
                  many if m > 1 else one)  # fmt: skip


def _matrix(fields: Any, column: str, comparison: Comparison) -> Effect:
    return Effect(
        (), ("what A, B and C do not keep",), ("the released columns are A X B + C, with A, B and C as told",)
    )


def _attenuated(comparison: Comparison) -> tuple[str, ...]:
    """What weakens a relation with a column that was left alone."""
    if not comparison.correlation:
        return ()
    return (f"correlation with a column that was not swapped = r / {_digits(comparison.correlation)}, about",)


def _digits(value: float) -> str:
    """Six significant digits, without an exponent where the number is not huge."""
    return f"{float(f'{value:.6g}'):.12g}"


def _and(names: Any) -> str:
    listed = [str(name) for name in ((names,) if isinstance(names, str) else names)]
    return " and ".join(filter(None, (", ".join(listed[:-1]), listed[-1]))) if listed else "nothing"


ENTRIES: dict[str, Callable[[Any, str, Comparison], Effect]] = {
    "noise": _noise,
    "top_code": _tail("above"),
    "bottom_code": _tail("below"),
    "recode": _recode,
    "renumber": _renumber,
    "local_recode": _local_recode,
    "pram": _pram,
    "pram_matrix": _pram_matrix,
    "microaggregate": _microaggregate,
    "rank_swap": _rank_swap,
    "shuffle": _shuffle,
    "swap": _swap,
    "sample": _sample,
    "local_suppress": _blanked,
    "suppress_records": _blanked,
    "synthesize": _synthesize,
    "matrix": _matrix,
}
"""One entry for each mask; a mask that is not here is told by its law alone."""
