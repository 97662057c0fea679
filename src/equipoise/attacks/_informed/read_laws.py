"""Read the laws of a release: what each says about the columns an intruder knows, and the guesses that follow."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from equipoise.attacks._informed import category_laws, number_laws
from equipoise.attacks._informed.all_at_once import assigned_guesses
from equipoise.attacks._informed.candidates import CandidateSpace
from equipoise.attacks._informed.knowledge import IntruderFiles, RecordGuess, alike, is_number
from equipoise.attacks._informed.other_columns import add_predictions
from equipoise.attacks._informed.uninformed import add_unread_column, has_labels
from equipoise.data.records import Law
from equipoise.data.released_terms import computable
from equipoise.ground.arrays import Integers
from equipoise.laws.column_transitions import Transition
from equipoise.laws.move_records import MovePlan

Kind = Literal[
    "exact",
    "label",
    "local",
    "grouped",
    "window",
    "groups",
    "centroid",
    "noise",
    "matrix",
    "moved",
    "swapped",
    "unread",
]
FACTORS: dict[str, Callable[[IntruderFiles, Law], category_laws.Factor]] = {
    "matrix": category_laws.matrix,
    "moved": category_laws.cell_transitions,
    "swapped": category_laws.swaps,
}
LAW_WORDS: dict[str, str] = {
    "exact": "left as they were",
    "label": "coarsened",
    "local": "blanked or coarsened record by record",
    "grouped": "groups made again",
    "window": "rank windows",
    "groups": "groups of single columns",
    "centroid": "nearest group means",
    "noise": "noise of known size",
    "matrix": "transition matrix",
    "moved": "transition law of cells",
    "swapped": "swap partners",
    "unread": "no law that is read",
}
AGREEING_KINDS: tuple[Kind, ...] = ("exact", "label", "local", "grouped")
"""Columns in which the released value must agree. Which values were blanked is taken to be known: rows that are
identical cannot be told apart by anybody, and whoever knows less finds fewer. So is the group of each person: whoever
has the true values of everybody makes the groups again, for nothing is drawn."""
LOCAL_MASKS = ("local_recode", "local_suppress", "suppress_records")
MASKED_KINDS = ("noise", "window", "groups", "centroid")
INTERVAL_KINDS = (*AGREEING_KINDS, "window", "groups")


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """The kind of knowledge an intruder has about each known column, and the law it comes from."""

    files: IntruderFiles
    kinds: dict[str, Kind]
    laws: dict[str, Law]

    @property
    def informed(self) -> bool:
        """Whether some law says something about a known column."""
        return any(kind not in ("unread", "centroid") for kind in self.kinds.values())

    def name(self) -> str:
        words = dict.fromkeys(LAW_WORDS[k] for k in self.kinds.values() if k not in ("exact", "label", "unread"))
        return " and ".join(words) or "columns left as they were"

    def columns(self, kind: Kind) -> tuple[str, ...]:
        return tuple(c for c, column_kind in self.kinds.items() if column_kind == kind)

    def describe(self) -> str:
        """Columns listed by what is known about them."""
        kinds = dict.fromkeys(self.kinds.values())
        return "; ".join(f"{LAW_WORDS[kind]}: {', '.join(self.columns(kind))}" for kind in kinds)

    def guesses(self) -> list[RecordGuess]:
        """Guesses of intruders who use all laws at once; where values were grouped, of one more who has the groups."""
        kinds: dict[str, Kind] = {c: "grouped" if k in ("groups", "centroid") else k for c, k in self.kinds.items()}
        again = replace(self, kinds=kinds)._guesses() if kinds != self.kinds else []
        return [*self._guesses(), *again, *self._in_units_of_changes()]

    def _in_units_of_changes(self) -> list[RecordGuess]:
        """Guesses by numbers that several masks changed, or one that is not read, in units of what they changed."""
        masked = {c for law in self.files.laws if not law.coarsens for c in law.columns}
        columns = tuple(c for c in self.columns("unread") if c in masked and is_number(self.files, c))
        guesses: list[RecordGuess] = []
        for scale in number_laws.SCALES if columns else ():
            name = f"{self.name()} and the size of all changes, by {scale}"
            plain, dense = (
                self._space(self._factors(), crowd=crowd, changed=columns, scale=scale) for crowd in (False, True)
            )
            guesses += plain.guesses(name, name) + dense.guesses(f"{name} and the density of the file", name)
            guesses += assigned_guesses(plain, name)
        return guesses

    def _guesses(self) -> list[RecordGuess]:
        if not self.informed:
            return []
        factors = self._factors()
        if factors and all(kind in (*AGREEING_KINDS, *FACTORS) for kind in self.kinds.values()):
            exact = [self._codes(c) for kind in AGREEING_KINDS for c in self.columns(kind)]
            weighed = category_laws.weigh(self.name(), self.files, exact, factors)
            if weighed:
                return weighed
        space = self._space(factors, crowd=False)
        guesses = space.guesses(self.name(), f"{self.name()}, any record they leave")
        if space.flat:
            guesses.append(space.least(f"{self.name()}, the record with fewest rivals", self._rivals()))
        if any(number_laws.has_density(self.laws[c]) for c in self.columns("noise")):
            guesses += self._space(factors, crowd=True).guesses(f"{self.name()} and the density of the file", "")
        return guesses + assigned_guesses(space, self.name()) + self._by_other_columns(factors)

    def _by_other_columns(self, factors: list[category_laws.Factor]) -> list[RecordGuess]:
        """Guesses of who links all at once, and reads in the other columns of a record what its masked numbers were."""
        masked = [c for c, k in self.kinds.items() if k in MASKED_KINDS and is_number(self.files, c)]
        space, name = self._space(factors, crowd=False), f"{self.name()} and what other columns say"
        space.flat = False
        return assigned_guesses(space, name) if masked and add_predictions(space, self.files, masked) else []

    def _rivals(self) -> Integers:
        """Number of rivals of each released record: records that could be its person's under the laws."""
        released = self.files.released
        return replace(self, files=replace(self.files, original=released.select(self.files.known))).around()

    def around(self) -> Integers:
        """Number of candidate records of each person under the laws."""
        return self._space([], crowd=False).possible()

    def _codes(self, column: str) -> tuple[Integers, Integers]:
        released = self.files.released[column]
        return alike(released, self.files.original[column] if self.kinds[column] == "exact" else released)

    def _factors(self) -> list[category_laws.Factor]:
        factors: dict[int, category_laws.Factor] = {}
        for column, law in self.laws.items():
            if self.kinds[column] in FACTORS and id(law) not in factors:
                factors[id(law)] = FACTORS[self.kinds[column]](self.files, law)
        return list(factors.values())

    def _space(
        self, factors: list[category_laws.Factor], *, crowd: bool, changed: tuple[str, ...] = (), scale: str = "values"
    ) -> CandidateSpace:
        """What is known as constraints and distances; the columns `changed` in units of their changes on a scale."""
        space = CandidateSpace(len(self.files), self.files.owner)
        hard = all(kind in INTERVAL_KINDS for kind in self.kinds.values())
        space.flat = hard and any(kind in ("window", "groups") for kind in self.kinds.values())
        for factor in factors:
            if factor.apart:
                space.agree(*factor.apart)
            space.differ(factor.what, factor.own, factor.penalty)
        for law in {id(self.laws[c]): self.laws[c] for c in self.columns("noise")}.values():
            columns = tuple(c for c in self.columns("noise") if self.laws[c] is law)
            number_laws.noise(space, self.files, columns, law, crowd=crowd)
        if changed:
            number_laws.changes(space, self.files, changed, scale, crowd=crowd)
        for column, kind in self.kinds.items():
            if column in changed:
                continue
            if kind in AGREEING_KINDS:
                space.agree(*self._codes(column))
            elif kind == "window":
                number_laws.window(space, self.files, column, self.laws[column], alone=hard)
            elif kind == "groups":
                number_laws.groups(space, self.files, column, self.laws[column])
            elif kind in ("centroid", "unread"):
                add_unread_column(space, self.files, column)
        return space


def read(files: IntruderFiles, *, households: bool) -> Reading:
    """Find the law of every known column: the only one that changes it, or none if there are several."""
    laws_by_column = {c: [law for law in files.laws if c in law.columns] for c in files.known}
    still = {c for c in files.known if files.laws and not laws_by_column[c]}
    laws = {c: ours[0] for c, ours in laws_by_column.items() if len(ours) == 1}
    kinds = {c: _kind(files, c, laws_by_column[c], still, households) for c in files.known}
    return Reading(files, kinds, laws)


def _kind(files: IntruderFiles, column: str, laws: list[Law], still: set[str], households: bool) -> Kind:
    if column in still:
        return "exact"
    if laws and all(law.coarsens for law in laws):
        return "label" if has_labels(files, column) else "unread"
    if laws and all(law.coarsens or law.mask in LOCAL_MASKS for law in laws):
        return "local"
    if len(laws) != 1:
        return "unread"
    law, parameters = laws[0], laws[0].parameters
    if computable(law):
        return "label" if set(parameters.get("columns", ())) <= set(files.known) else "unread"
    if law.mask == "rank_swap":
        return "window"
    if law.mask == "microaggregate":
        strata = set(parameters.get("strata") or ())
        return "groups" if parameters.get("method") == "univariate-optimal" and strata <= still else "centroid"
    if law.mask == "noise":
        sizes_public = all(parameters["noise_sd"].get(c, 0) > 0 and c in files.released.columns for c in law.columns)
        return "noise" if sizes_public else "unread"
    if law.mask == "pram_matrix" and isinstance(law.detail, Transition):
        return "matrix" if set(law.detail.strata.columns) <= still else "unread"
    if law.mask == "pram" and isinstance(law.detail, MovePlan) and law.detail.units.of_people:
        by = set(law.detail.units.cells.by)
        return "moved" if by <= set(files.known) and by - set(law.columns) <= still else "unread"
    if law.mask == "swap" and not households and not parameters.get("target"):
        alike_ = {*parameters["keys"], *parameters.get("within", ())}
        return "swapped" if alike_ <= still and set(law.columns) <= set(files.known) else "unread"
    return "unread"
