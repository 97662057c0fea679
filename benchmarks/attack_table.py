"""The attacks by method and parameter, as a table: `python -m benchmarks.attack_table` writes docs/attacks.md.

Everything is drawn from one public seed, so that the numbers can be made again. The public files are read from the
folder named by `EQUIPOISE_DATA`; the table of a file that is not there stays as it is.
"""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args, get_type_hints

import polars as pl

import equipoise as eq
from equipoise.methods.method import Mask, Measure

PAGE = Path(__file__).parents[1] / "docs" / "attacks.md"
SEED = 2001
WIDTH = 0.1
NEAR = (0.1, 0.3)
"""Numbers so many standard deviations apart count as near in probabilistic linkage: both are tried."""
CASC = ("AGI", "EMCONTRB", "FEDTAX", "PTOTVAL", "TAXINC", "POTHVAL", "INTVAL")
TARRAGONA = ("FIXED.ASSETS", "CURRENT.ASSETS", "TREASURY", "PAID.UP.CAPITAL", "SALES", "LABOR.COSTS", "NET.PROFIT")
EIA = ("RESREVENUE", "RESSALES", "COMREVENUE", "COMSALES", "INDREVENUE", "INDSALES")
SURVEY = ("age", "salary", "housing_cost", "rooms")
Trials = dict[str, tuple[Mask, ...]]
HEAD = ("mask", "nearest", "distance", "one-to-one", "probabilistic", "informed", "interval", "by chance")


@dataclass(frozen=True)
class File:
    """A file to attack: what an intruder knows, where it lies under the data folder, and the masks that are tried."""

    name: str
    known: tuple[str, ...]
    path: str | None
    masks: Callable[[tuple[str, ...]], Trials]

    def records(self, folder: Path | None) -> eq.Records | None:
        """The file, or nothing where it is not there."""
        if self.path is None:
            return eq.read(eq.demo.survey().gather_every(80).select(self.known), eq.Roles(numeric=self.known))
        if folder is None or not (folder / self.path).exists():
            return None
        table = pl.read_csv(folder / self.path, separator=";" if self.path.startswith("arx") else ",")
        numbers = tuple(column for column in self.known if table.schema[column].is_numeric())
        keys = self.known if len(numbers) < len(self.known) else ()
        return eq.read(table.select(self.known), eq.Roles(keys, numeric=numbers))


def numeric_masks(columns: tuple[str, ...]) -> Trials:
    """Noise, microaggregation and rank swapping of all columns, weak to strong."""
    masks = eq.masks
    kinds: dict[str, Literal["independent", "correlated"]] = {"": "independent", ", correlated": "correlated"}
    noise: Trials = {
        f"noise {scale:g} sd{said}": (masks.Noise(columns, scale, kind),)
        for said, kind in kinds.items()
        for scale in (0.05, 0.1, 0.15, 0.2)
    }
    single: Trials = {
        f"microaggregation of single columns, groups of {k}": tuple(
            masks.Microaggregate((column,), k, "univariate-optimal") for column in columns
        )
        for k in (3, 5, 10)
    }
    groups: Trials = {f"microaggregation, groups of {k}": (masks.Microaggregate(columns, k),) for k in (3, 5, 10)}
    swaps: Trials = {f"rank swap, window {w:g}": (masks.RankSwap(columns, w),) for w in (0.01, 0.05, 0.1, 0.15)}
    return {"none": ()} | noise | single | groups | swaps


def key_masks(columns: tuple[str, ...]) -> Trials:
    """Post-randomization of single keys and of whole cells, swapping between countries, rank swapping of age."""
    masks = eq.masks
    area, equal = "native-country", ("sex", "age")
    others = tuple(column for column in columns if column not in (area, *equal))
    each: Trials = {
        f"transition matrices, diagonal {kept:g}": tuple(masks.PramMatrix(c, diagonal=kept) for c in columns)
        for kept in (0.95, 0.9, 0.8)
    }
    cells: Trials = {f"post-randomization, xi {xi:g}": (masks.Pram(xi),) for xi in (0.9, 0.8, 0.5)}
    swaps: Trials = {f"swap between countries, rate {r:g}": (masks.Swap(equal, area, others, r),) for r in (0.2, 0.5)}
    ranks: Trials = {f"rank swap of age, window {w:g}": (masks.RankSwap(("age",), w),) for w in (0.05, 0.15)}
    return {"none": ()} | each | cells | swaps | ranks


ADULT = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)
FILES = (
    File("Demo survey", SURVEY, None, numeric_masks),
    File("CASCrefmicrodata", CASC, "sdcmicro/CASCrefmicrodata.csv", numeric_masks),
    File("Tarragona", TARRAGONA, "sdcmicro/Tarragona.csv", numeric_masks),
    File("EIA", EIA, "sdcmicro/EIA.csv", numeric_masks),
    File("Adult", ADULT, "arx/adult.csv", key_masks),
)


@dataclass(frozen=True)
class Found:
    """One row: the shares linked right, and the share of values in the interval, against chance."""

    mask: str
    nearest: float
    distance: str
    one_to_one: float | None
    probabilistic: float
    informed: float | None
    interval: float
    chance: float

    def cells(self) -> tuple[str, ...]:
        assigned, informed = ("" if s is None else _percent(s) for s in (self.one_to_one, self.informed))
        shares = assigned, _percent(self.probabilistic), informed, _percent(self.interval), _percent(self.chance)
        return self.mask, _percent(self.nearest), self.distance, *shares


def attacked(original: eq.Records, name: str, masks: tuple[Mask, ...]) -> Found:
    """Every attack on the original under these masks."""
    released = eq.Recipe(masks, seed=SEED).run(original) if masks else original
    known = original.roles.keys or original.roles.numeric
    several = len(original.roles.numeric) > 1
    distances = get_args(get_type_hints(eq.attacks.Nearest)["metric"]) if several else ("euclidean",)
    attacks = {distance: eq.attacks.Nearest(known, metric=distance) for distance in distances}
    nearest = {distance: _value(attack, released, original) for distance, attack in attacks.items()}
    ways = [replace(attack, links="one-to-one") for attack in attacks.values() if several]
    assigned = [_value(attack, released, original) for attack in ways]
    best = max(nearest, key=nearest.__getitem__)
    inside = eq.attacks.Interval(WIDTH).measure(released, original)
    informed = _value(eq.attacks.Informed(known), released, original) if hasattr(eq.attacks, "Informed") else None
    agree = max(_value(linkage, released, original) for linkage in linkages(original))
    shares = max(assigned, default=None), agree, informed, inside.value, inside.baseline or 0.0
    return Found(name, nearest[best], best.title(), *shares)


def linkages(original: eq.Records) -> list[eq.attacks.Linkage]:
    """Keys agree or not, by EM or by how rare the values are; numbers may be near as well."""
    if original.roles.keys:
        return [eq.attacks.Linkage(original.roles.keys, knows=knows) for knows in ("patterns", "values")]
    columns = original.roles.numeric
    spread = original.collect(*columns).select(pl.all().cast(pl.Float64).std()).row(0, named=True)
    return [eq.attacks.Linkage(columns, near=tuple(f"{c}:{part * spread[c]:.6g}" for c in columns)) for part in NEAR]


def _value(attack: Measure, released: eq.Records, original: eq.Records) -> float:
    return attack.measure(released, original).value


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def table(file: File, original: eq.Records) -> str:
    """The table of a file, in Markdown."""
    n = original.collect(file.known[0]).height
    rows = [attacked(original, name, masks).cells() for name, masks in file.masks(file.known).items()]
    lines = [HEAD, ("---", *["---:" if place != 1 else "---" for place in range(len(HEAD) - 1)]), *rows]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{n:,} records; known: {', '.join(file.known)}. A guess is right for {100 / n:.3f} %.\n\n{text}"


def written(page: str, folder: Path | None) -> Iterator[tuple[str, str]]:
    """The name and the page after each file whose table can be made here."""
    for file in FILES:
        original = file.records(folder)
        if original is None:
            continue
        start, end = f"<!-- {file.name} -->", f"<!-- end of {file.name} -->"
        before, rest = page.split(start)
        page = f"{before}{start}\n{table(file, original)}\n{end}{rest.split(end)[1]}"
        yield file.name, page


def main() -> None:
    named = os.environ.get("EQUIPOISE_DATA")
    page = PAGE.read_text(encoding="utf-8")
    for name, made in written(page, Path(named) if named else None):
        print(f"made the table of {name}", file=sys.stderr, flush=True)
        PAGE.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
