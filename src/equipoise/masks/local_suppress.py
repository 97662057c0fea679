"""Blank as few key values as make every class large enough."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from equipoise.data.records import Records
from equipoise.ground.randomness import Draws
from equipoise.masks._local_suppression.key_suppression import KeySuppression
from equipoise.methods.method import Rule


@dataclass(frozen=True, slots=True)
class LocalSuppress(KeySuppression):
    """Blank the fewest key values that leave every released row identical, on the keys, to at least k - 1 others.

    `rule` is `MinCount(k)`, `AnySubset(m, k)` (on every m of the keys) or several joined by `|`. What is made low is
    the sum over keys of importance x values blanked: `importance` maps keys to weights (1 unless given; larger:
    dearer). `max_per_key` is the most values blanked of a key, one number or a mapping. Mappings may be text:
    "age=2+sex=1". Which of several equal records is blanked is drawn at random.

    With `guard` "identical" a blank counts as a value: nobody can tell identical rows apart, however much they know of
    the method and of the person. Large classes lend records they can spare. Values that were missing before are never
    blanked and cost nothing; a record that has one may share a class with records blanked there. With a household role
    a key that is the same for all members of most households is blanked for all or for none: the others would show
    it. With the role `person` classes have k people, and a key that is the same in the records of most people is
    blanked in all records of a person or in none. The cheapest way is found exactly in files of up to about a hundred
    records; in larger ones the best of greedy ways is improved block by block, and the law's detail has `cost` beside a
    proven `bound`.

    With `guard` "wildcard" a blank matches anything, as sdcMicro counts: at least k records, as they were, fit what is
    left of each; values that came missing fit only each other. It takes fewer blanks, found exactly, and protects less:
    who knows a person's keys finds only the records that have these values or blanks, and the measured risks are still
    those of identical rows, unless the roles declare `missing="any"`. With `shared` the blanks of others count too:
    k - 1 records without any key satisfy everybody, and those who were unique still show all keys.

    Source: Willenborg and de Waal (2001), *Elements of Statistical Disclosure Control*, ch. 5, local suppression;
    Meyerson and Williams (2004), *On the complexity of optimal k-anonymity*. Does not guard against attribute
    disclosure within a class, nor against an intruder who knows several members of a household. Cost: a sort of the
    cells that are too small for each set of keys (up to ten keys; of more, similar cells are clustered): 1,000,000
    records by 7 keys in a second, 30,000 in one or two because more is tried.

    >>> table = pl.DataFrame({"sex": ["f", "f", "f", "m"], "age": [30, 30, 31, 31]})
    >>> records = eq.Records.of(table, eq.Roles(["sex", "age"]))
    >>> LocalSuppress(eq.rules.MinCount(2)).apply(records, Draws(1)).collect().rows()
    [('f', 30), ('f', 30), (None, 31), (None, 31)]
    """

    rule: Rule
    importance: Mapping[str, float] | tuple[Any, ...] | str | None = None
    max_per_key: int | Mapping[str, int] | tuple[Any, ...] | str | None = None
    shared: bool = False
    guard: Literal["identical", "wildcard"] = "identical"

    def apply(self, data: Records, draws: Draws) -> Records:
        return self.suppressed(data, draws)

    def words(self) -> str:
        return f"the fewest key values blanked so that {self.demand()}"
