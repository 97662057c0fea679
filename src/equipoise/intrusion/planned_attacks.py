"""Which attacks are tried on a release: every one that fits the files, in the ways it can be tried."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from equipoise.data.aligned_files import aligned
from equipoise.intrusion.plain_join import best_join, join_finds_most, unchanged_columns
from equipoise.intrusion.scenario import Known, known_to
from equipoise.intrusion.who_is_who import Pair
from equipoise.methods.method import Measure
from equipoise.recipe.catalogue import find, methods

Variants = dict[str, tuple[dict[str, Any], ...]]
VARIANTS: Variants = {
    "nearest": tuple(
        {"metric": metric, "links": links}
        for links in ("nearest", "one-to-one")
        for metric in ("euclidean", "mahalanobis", "rank", "log")
    ),
    "linkage": ({}, {"knows": "values"}, {"knows": "truth"}),
    "singling_out": ({}, {"mode": "multivariate"}),
}
"""The attacks that are tried in several ways."""
REPORT_VARIANTS: Variants = {"nearest": VARIANTS["nearest"], "inference": ({"snoopers": ("match", "class")},)}
"""Those of a report that comes with every release: without what learns long."""
UNALIGNED = ("nearest", "inference", "singling_out")
"""Attacks on files in which nobody knows whose record is whose; linkage, which estimates, takes equal rows for equal
people where there are as many."""


@dataclass(frozen=True)
class Aim:
    """What intruders know, which columns they want to learn, and which numbers."""

    known: Known
    sensitive: Known
    numbers: Known

    @classmethod
    def of(cls, files: Pair, columns: Known, sensitive: Known) -> "Aim":
        return cls(columns, sensitive, _numbers(files, columns, sensitive))

    def columns(self, has: set[str]) -> Known:
        """The columns of an attack: numbers where it has a width around them, else all that matter."""
        every = (*self.known, *self.sensitive, *self.numbers)
        return self.numbers if "width" in has else tuple(dict.fromkeys(every))


def every_attack(files: Pair, aim: Aim, variants: Variants = VARIANTS) -> list[Measure]:
    """Every attack there is that fits the files, in the ways it is tried."""
    every = methods("measure", "attacks")
    blind = files.truth == "unknown" and not files.released.synthetic
    possible = UNALIGNED if files.released.height() == files.original.height() else (*UNALIGNED, "linkage")
    attacks: list[Measure] = []
    for name, kind in every.items():
        if not blind or name in possible:
            attacks += _variants(kind, files, aim, variants.get(name, ({},)))
    return attacks


def _variants(kind: type, files: Pair, aim: Aim, variants: tuple[dict[str, Any], ...]) -> Iterator[Measure]:
    """One attack in the ways it is tried: for each column to be learnt, with each metric."""
    has = field_names(kind)
    if "columns" in has and not aim.columns(has):
        return
    for variant in variants:
        if not _worthwhile(variant, files, len(_numeric(files, aim.known))):
            continue
        for column in aim.sensitive if "sensitive" in has else (None,):
            rest = replace(aim, known=tuple(c for c in aim.known if c != column))
            if rest.known:
                yield filled_in(kind(**({"sensitive": column} if column else {}), **variant), files, rest)


def _worthwhile(variant: dict[str, Any], files: Pair, numbers: int) -> bool:
    """Whether a way to search for the nearest record differs from the plain one on these files."""
    if variant.get("metric") == "mahalanobis" and numbers < 2:
        return False
    assigned = variant.get("links") == "one-to-one"
    if assigned and files.truth == "unknown":
        return False
    return numbers > 0 or not (assigned or variant.get("metric") in ("rank", "log"))


def filled_in(method: Measure, files: Pair, aim: Aim) -> Measure:
    """An attack that knows what is known, unless it says so itself."""
    has, values = field_names(type(method)), dict[str, Any]()
    own = {name: getattr(method, name) for name in has}
    if "known" in has and own["known"] is None and own.get("variables") is None:
        values["known"] = aim.known
    elif "known" not in has and "variables" in has and own["variables"] is None:
        values["variables"] = aim.known
    if "columns" in has and own["columns"] is None:
        values["columns"] = aim.columns(has) or None
    if "truth" in has and files.truth == "unknown":
        values["truth"] = "nearest"
        values["variables"] = own.get("variables") or own["known"] or aim.known
    filled: Measure = replace(method, **values)  # type: ignore[type-var]
    return filled


def field_names(kind: type) -> set[str]:
    return {f.name for f in fields(kind)}


def _everything(files: Pair) -> Known:
    """Every column that both files hold, but the id, and numbers given anew: nobody knows which is whose."""
    schema, laws = files.released.schema(), files.released.history
    apart = {files.original.roles.id, *(c for law in laws if law.mask == "renumber" for c in law.columns)}
    return tuple(c for c in files.original.schema() if c in schema and c not in apart)


def _numeric(files: Pair, columns: Iterable[str]) -> Known:
    sides = (files.released.schema(), files.original.schema())
    return tuple(c for c in columns if all(c in side and side[c].is_numeric() for side in sides))


def _numbers(files: Pair, columns: Known, sensitive: Known) -> Known:
    """The numbers whose values an intruder wants: by their role, else those that the release changed."""
    by_role = _numeric(files, dict.fromkeys((*files.original.roles.numeric, *sensitive)))
    rest = _numeric(files, (c for c in _everything(files) if c not in columns))
    if by_role or not rest or files.truth == "unknown" or files.both is not None:
        return by_role
    released, original = aligned(files.released, files.original, rest)
    return tuple(c for c in rest if not released[c].equals(original[c], null_equal=True))


def wider_knowledge(files: Pair, columns: Known, *, whole: bool) -> list[Measure]:
    """Intruders who know something else: the one or two columns that tell most, by exact agreement and by distance.

    Where these do not find everybody, and nobody said what is known, also those who know all numbers, all keys and
    numbers, and all columns: by exact agreement in what was left unchanged, every distance in the rest, and the laws.
    """
    if files.released.synthetic:
        return []
    nearest, informed, every = find("nearest", "measure"), find("informed", "measure"), _everything(files)
    join, share = best_join(files, every) if files.truth != "unknown" else ((), 0.0)
    attacks = [nearest(known=join), nearest(known=join, nominal=join)] if join and set(join) != set(columns) else []
    numbers, keys = (tuple(c for c in getattr(files.original.roles, role) if c) for role in ("numeric", "keys"))
    wider = [known for known in (numbers, (*keys, *numbers), every) if known and set(known) != set(columns)]
    everybody = share == 1.0 and (files.rest is None or files.rest.certain)
    for known in dict.fromkeys(wider) if whole and not everybody else ():
        by_distance = list(_variants(nearest, files, *_aimed(files, known)))
        by_law = [informed(known=known_to(by_distance[0], known))] if by_distance and files.truth != "unknown" else []
        attacks += [*by_distance, *by_law]
    return attacks


def _aimed(files: Pair, known: Known) -> tuple["Aim", tuple[dict[str, Any], ...]]:
    """How somebody who knows these columns searches: which are compared by distance, and in which ways."""
    if files.truth == "unknown":
        return Aim(known, (), ()), ({},)
    blocks = unchanged_columns(files, known)
    rest = tuple(column for column in known if column not in blocks)
    if not rest or join_finds_most(files, known):
        return Aim(known, (), ()), ({"nominal": known},)
    within = {"blocks": blocks} if blocks else {}
    return Aim(rest, (), ()), tuple(variant | within for variant in VARIANTS["nearest"])
