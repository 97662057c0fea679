"""The sections of a policy file, as dataclasses; each field is a key that a file may have."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from equipoise.ground.errors import ParameterError, shortened, shown
from equipoise.policies.toml_lines import Lines, Place, line_at, place_text


@dataclass(frozen=True)
class Section:
    """A table of a policy file: keys that are no field are refused."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


@dataclass(frozen=True)
class Data(Section):
    """[data]: where the file is, and how to read it when detection is not enough."""

    path: str
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    missing_codes: tuple[str, ...] = ()
    skip_rows: int | None = None
    header_rows: int | None = None
    sheet: str | None = None
    metadata: str | None = None


@dataclass(frozen=True)
class Choose(Section):
    """[choose]: which side to favour among the releases inside the limits, and how much each utility matters."""

    prefer: Literal["utility", "risk"] = "utility"
    weights: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Output(Section):
    """[output]: the release folder, the format of the data, the key file that signs the evidence, and the row order.

    `csv_formulas` says whether text in CSV files that begins like a formula is marked with an apostrophe, or kept.
    """

    folder: str | None = None
    format: str | None = None
    sign: str | None = None
    keep_order: bool = False
    csv_formulas: Literal["escape", "keep"] = "escape"


@dataclass(frozen=True)
class SearchSection(Section):
    """[search]: how candidates are tried: all of them, or from coarse to fine until trials or seconds are used up."""

    search: Literal["grid", "adaptive"] = "grid"
    budget: int | None = None
    seconds: float | None = None
    processes: int | None = None
    journal: str | None = None

    def __post_init__(self) -> None:
        numbers = {name: getattr(self, name) for name in ("budget", "seconds", "processes")}
        wrong = {name: value for name, value in numbers.items() if value is not None and not value > 0}
        if wrong:
            raise ParameterError(
                " and ".join(f"{name} must be above 0, got {shown(wrong[name])}" for name in wrong) + "."
            )


@dataclass(frozen=True)
class Candidate(Section):
    """[[candidates]]: all coarsenings, and what is done then; or masks in order, each parameter a value or a grid."""

    coarsenings: bool = False
    masks: tuple[dict[str, Any], ...] = ()
    then: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Intruder(Section):
    """[[scenarios]]: somebody who knows some columns of a person and wants to learn others."""

    name: str
    known: tuple[str, ...]
    sensitive: tuple[str, ...] | None = None
    reason: str = ""


@dataclass(frozen=True)
class EstimateTable(Section):
    """[[estimates]]: an analysis that users of the data make, and why; `overlap` says how well releases keep it."""

    query: str
    reason: str = ""


@dataclass(frozen=True)
class LimitTable(Section):
    """A limit with more than its bound: why, for which scenario, within which groups, for the worst record."""

    limit: str
    reason: str = ""
    scenario: str | None = None
    by: tuple[str, ...] = ()
    worst: bool = False


@dataclass(frozen=True)
class PolicyProblem:
    """A problem of a policy file, and its place."""

    place: Place
    words: str
    line: int | None = None

    def on(self, lines: Lines) -> "PolicyProblem":
        """The problem with its line."""
        return PolicyProblem(self.place, self.words, line_at(lines, self.place))

    def __str__(self) -> str:
        where = f"line {self.line}, " if self.line else ""
        return shortened(f"{where}{place_text(self.place)}: {self.words}")

    def to_plain(self) -> dict[str, Any]:
        return {"line": self.line, "place": place_text(self.place), "problem": shortened(self.words)}


def refusal(name: str, problems: list[PolicyProblem], lines: Lines) -> ParameterError:
    """One error with all problems, in the order of the lines."""
    ordered = sorted(dict.fromkeys(p.on(lines) for p in problems), key=lambda p: p.line or 0)
    error = ParameterError(
        f"The policy {name!r} cannot be used. " + "; ".join(str(p).rstrip(".") for p in ordered) + "."
    )
    error.problems = tuple(ordered)
    return error
