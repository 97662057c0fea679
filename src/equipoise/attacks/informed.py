"""Record linkage by an intruder who knows the public laws of the masks."""

from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl

from equipoise.attacks._informed.average_releases import samples
from equipoise.attacks._informed.knowledge import IntruderFiles, RecordGuess
from equipoise.attacks._informed.read_laws import Reading, read
from equipoise.attacks._informed.uninformed import nearest
from equipoise.data.aligned_files import aligned, released_people
from equipoise.data.blanked_keys import with_blanks
from equipoise.data.records import Records
from equipoise.data.released_terms import rows
from equipoise.ground.arrays import Integers
from equipoise.ground.errors import ParameterError, RolesError, require_columns
from equipoise.ground.packed_keys import code
from equipoise.methods.method import label
from equipoise.methods.parameters import check_fields
from equipoise.methods.score import Score, not_applicable
from equipoise.methods.share_interval import wilson


@dataclass(frozen=True, slots=True)
class Informed:
    """Share of people whose released record is found by the strongest intruder who knows the public laws of the masks.

    The laws are read from the history of the released file; the intruder has a person's original values of `known` (all
    `variables` unless given; the keys and numeric columns unless those are). Every law narrows down which records can
    be the person's, or says how likely each is:

    - left as it was, or coarsened: the released value is known, and must agree; blanked or coarsened record by record:
      so is which values were, for nobody can tell identical rows apart (a bound: who knows less finds fewer);
    - rank swap: a value of places a to b among n stands where a - k to b + k stood, k = floor(window n), all places
      being equally likely. Possible is the intersection over columns; of it the intruder takes any record, the nearest
      in ranks, or the one with the fewest rivals: records that lie within the windows around it;
    - microaggregation of single columns: the group whose mean is next below or next above, so at most two a column
      (three where a mean equals the value); then as for rank windows, nearness as a share of the gap of both means.
      Groups of several columns: the records of the nearest mean. And, as nothing is drawn, by one who has the values of
      everybody and makes the groups again: the records of the person's own;
    - noise: distances in units of the noise (Mahalanobis if it is correlated, relative if it is multiplicative;
      restored moments are undone, or the mask drawn again; kept zeros and signs must agree): the nearest record is the
      likeliest. And once more with the likelihood divided by the density of the released file, taken as normal;
    - transition matrix, Pram: the released cell with the largest P(original cell -> released cell), alone, per record
      in it, or per record that is expected in it;
    - a matrix on columns, weights in groups: the released value follows from the true ones, and must agree;
    - swap: a candidate with K possible partners stays with probability 1 - rate and is each of the K with rate / K;
      the better of both is guessed;
    - any other law, several laws on one column, or no history: numbers in units of the original's standard deviation,
      categories equal or not; and, where there are laws, numbers in units of their changes (whoever has everybody's
      values draws the masks again), as they are, by logarithms and by ranks.

    What the laws say about several columns is used together, for one person after the other and, where numbers were
    changed and at most 5,000 records agree in what stayed, for all at once: every record is somebody's, and nobody has
    two (the likeliest assignment up to 2,000 records, the probability of each pair over all assignments). And what
    masked numbers were is read in the other columns of each record (least squares). Next to it stands the intruder who
    has read nothing and takes the nearest record. With t equally good records a link is right with probability 1/t;
    with the role `person` any record of theirs is right. value = the largest of the shares right: a maximum over few
    intruders on the same people, a worst case and not an average. It comes with a 95 % Wilson interval; the baseline is
    a guess among all records. The detail has a row per record: `candidates`, the records that the laws leave possible
    (or among which the search went), and `risk`. A file of several partly synthetic samples is averaged person by
    person first; for several releases, see `averaged`. People who were withheld are asked about by nobody.

    Source: Nin, Herranz and Torra (2008), *Rethinking rank swapping to decrease disclosure risk*; Nin and Torra (2009),
    *Analysis of the univariate microaggregation disclosure risk*; Winkler (2004), *Re-identification methods for masked
    microdata*; the rule of fewest rivals is Bayes', P(person's | record) = P(record | person's) / P(record). Misleads
    when the intruder knows less than the original values themselves, when a law is not read (the notes say which), and
    in larger files, where links are made one person at a time. Exact. Cost: that of a nearest search without intervals;
    with them O(n^(2 - 1/d)) at worst for d columns, a few minutes for a million records and a window of 0.05 in 3 to 6
    columns; all links at once five seconds for 5,000 records.

    >>> people = eq.Records.of(pl.DataFrame({"age": [20, 30, 40, 60]}), eq.Roles("age"))
    >>> Informed().measure(people, people).value
    1.0
    """

    variables: tuple[str, ...] | None = None
    known: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        for field in ("variables", "known"):
            if getattr(self, field) == ():
                raise ParameterError(f"{field} names no column: leave it out, or name one.")
        extra = set(self.known or ()) - set(self.variables or self.known or ())
        if extra:
            raise ParameterError(f"{sorted(extra)[0]!r} is known, but not one of the variables.")

    def measure(self, released: Records, original: Records) -> Score:
        if released.synthetic:
            return not_applicable(label(self), "lower")
        copies = _copies(released)
        original = released_people(released, original)
        reading, guesses = self._guesses(released, original, copies)
        return self._score(reading, guesses, original if copies > 1 else released, copies)

    def intruders(self, released: Records, original: Records) -> pl.DataFrame:
        """Every intruder tried, the strongest first: `intruder`, and the share `right`."""
        _, guesses = self._guesses(released, released_people(released, original), _copies(released))
        shares = [(guess.name, float(guess.risk.mean())) for guess in guesses]
        return pl.DataFrame(shares, ["intruder", "right"], orient="row").sort(
            "right", "intruder", descending=[True, False]
        )

    def _guesses(self, released: Records, original: Records, copies: int) -> tuple[Reading, list[RecordGuess]]:
        """The laws as read, and the guesses of each intruder; the one who knows no law comes last."""
        pooled = samples(released, original) if copies > 1 else with_blanks(released)
        reading = read(self._files(pooled, original), households=original.roles.household is not None)
        return reading, [*reading.guesses(), nearest(reading.files)]

    def _files(self, released: Records, original: Records) -> IntruderFiles:
        roles = original.roles
        known_columns = self.known or self.variables or tuple(dict.fromkeys((*roles.keys, *roles.numeric)))
        if not known_columns:
            raise RolesError("No variables were named, and no column is a key or numeric.")
        schemas = [records.schema() for records in (released, original)]
        for schema in schemas:
            require_columns(known_columns, schema)
        named = [c for law in released.history for c in (*law.columns, *law.parameters.get("once_per", {}).values())]
        spoken = [c for c in named if all(c in schema for schema in schemas)]
        apart = {roles.id, roles.household, roles.person, *roles.direct}
        others = [c for c, kind in schemas[0].items() if c in schemas[1] and c not in apart and _is_readable(kind)]
        columns = tuple(dict.fromkeys((*known_columns, *spoken, *others)))
        released_table, original_table = aligned(released, original, columns)
        laws, owner = released.history, _owners(original)
        return IntruderFiles(released_table, original_table.select(known_columns), known_columns, laws, owner)

    def _score(self, reading: Reading, guesses: list[RecordGuess], records: Records, copies: int) -> Score:
        best = max(guesses, key=lambda guess: float(guess.risk.mean()))
        n, value = len(best.risk), float(best.risk.mean())
        columns = {"candidates": pl.Series(guesses[0].candidates, dtype=pl.Int64), "risk": pl.Series(best.risk)}
        return Score(
            label(self),
            value,
            interval=wilson(value, n),
            baseline=1.0 / n,
            number=float(best.risk.sum()),
            unit="share of records",
            notes=_notes(reading, guesses, best, copies),
            cells=lambda: rows(records, **columns),
            records=lambda: rows(records, risk=best.risk),
        )


def _is_readable(kind: nw.dtypes.DType) -> bool:
    return kind.is_numeric() or kind.is_temporal() or kind in (nw.String, nw.Categorical, nw.Enum, nw.Boolean)


def _owners(original: Records) -> Integers | None:
    """The person of each record, in the order in which files are aligned; None where nobody has several."""
    if (person := original.roles.person) is None:
        return None
    return code(aligned(original, original, (person,))[0][person]).codes.astype(np.int64)


def _copies(released: Records) -> int:
    """Number of samples of the same people in the file."""
    name = released.roles.sample
    return 1 if name is None else int(released.collect(name)[name].n_unique())


def _notes(reading: Reading, guesses: list[RecordGuess], best: RecordGuess, copies: int) -> tuple[str, ...]:
    shares = ", ".join(f"{guess.name} {float(guess.risk.mean()):.4g}" for guess in guesses)
    many = (f"{copies} samples of the same people were averaged first.",) if copies > 1 else ()
    return (
        f"Strongest of {len(guesses)}: the intruder by {best.name}." if len(guesses) > 1 else f"By {best.name} alone.",
        f"Shares right: {shares}.",
        f"What is known of the columns: {reading.describe()}." if reading.files.laws else "No law of a mask is known.",
        *many,
    )
