"""Policy file: read, checked and turned into roles, candidates, limits and an output folder."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from equipoise.data.records import Records
from equipoise.data.roles import Roles, names, read_toml
from equipoise.files import FORMATS, read
from equipoise.ground import system
from equipoise.ground.errors import EquipoiseError, ParameterError, RolesError, hint
from equipoise.methods.method import Mask, Measure
from equipoise.policies import checks
from equipoise.policies.changed_columns import changed_columns
from equipoise.policies.checks import WAIVABLE_ATTACK
from equipoise.policies.checks_on_data import absent, estimate_misfits, misfits, role_misfits
from equipoise.policies.coarsenings import coarsenings
from equipoise.policies.policy import Policy
from equipoise.policies.presets import extended, presets, with_always
from equipoise.policies.sections import (
    Candidate,
    Choose,
    Data,
    EstimateTable,
    Intruder,
    Output,
    PolicyProblem,
    SearchSection,
    Section,
    refusal,
)
from equipoise.policies.table_checks_on_data import table_misfits
from equipoise.policies.table_section import Tabulation
from equipoise.policies.toml_lines import Lines, lines_of
from equipoise.provenance.seed_register import Register
from equipoise.recipe.catalogue import build, find, form, to_plain
from equipoise.recipe.recipe import Recipe, recipes, refuse_strangers, spread
from equipoise.tables import Exposed

INTERNAL_FIELDS = ("folder", "written")
"""Fields that are not keys of a policy file."""
DEFAULT_OBJECTIVE = "overlap"
"""The utility by which releases are chosen where a policy weighs none."""
FILE_FIELDS = ("like", "ptable", "ptables")
"""Parameters of methods for tables that name files: by their path, or as NAME=PATH."""
POLICY_FORMAT: Literal[1] = 1
"""Version of the policy format."""


@dataclass(frozen=True)
class Written:
    """The source file of a policy: its name, and the lines of its keys."""

    name: str = "policy.toml"
    lines: Lines = field(default_factory=dict)


@dataclass(frozen=True)
class Job(Section):
    """A policy file: data, roles, limits, candidates."""

    data: Data
    roles: dict[str, Any]
    limits: dict[str, Any] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = (Candidate(coarsenings=True),)
    always: tuple[dict[str, Any], ...] = ()
    measures: tuple[str, ...] = ()
    choose: Choose = Choose()
    output: Output = Output()
    draws: int = 1
    seed_file: str | None = None
    register: str | None = None
    asset: str | None = None
    allow: tuple[str, ...] = ()
    assume_unknown: tuple[str, ...] = ()
    title: str | None = None
    table: Tabulation | None = None
    scenarios: tuple[Intruder, ...] = ()
    estimates: tuple[EstimateTable, ...] = ()
    search: SearchSection = SearchSection()
    extends: str | None = None
    slots: dict[str, str | int | tuple[str, ...]] = field(default_factory=dict)
    waive: dict[str, str] = field(default_factory=dict)
    format: Literal[1] = POLICY_FORMAT
    folder: Path = field(default=Path(), kw_only=True)
    written: Written = field(default=Written(), kw_only=True, compare=False, repr=False)

    @classmethod
    def load(cls, path: str | Path) -> "Job":
        """Read a policy file; every problem found in it is listed at once, with its line."""
        plain = read_toml(path)
        return cls.from_plain(plain, Path(path), lines_of(Path(path).read_text(encoding="utf-8-sig")))

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], path: Path, lines: Lines | None = None) -> "Job":
        """From plain data, as a file at this path would have it."""
        source = Written(path.name, lines or {})
        problems: list[PolicyProblem] = []
        try:
            plain = extended(plain, path.parent)
        except EquipoiseError as error:
            problems.append(PolicyProblem(("extends",), str(error)))
        values, structural = checks.validated(cls, with_always(plain), INTERNAL_FIELDS)
        problems += structural
        needed = ("data",) if "table" in plain else ("data", "roles")
        problems += [PolicyProblem((name,), "is missing") for name in needed if name not in plain]
        safe = {"data": Data("."), "roles": {}, **values}
        if "candidates" in safe:
            safe["candidates"] = tuple(_with_paths(one, path.parent) for one in safe["candidates"])
        job = cls(**safe, folder=path.parent, written=source)
        problems += job._problems(failed={p.place[0] for p in problems})
        if problems:
            absent = job.absent() if lines else []
            raise refusal(path.name, [*problems, *absent, *job._data_problems()], source.lines)
        return job

    def _data_problems(self) -> list[PolicyProblem]:
        """Problems with the data, where it can be read, so that all problems are listed at once."""
        if self.absent():
            return []
        try:
            bare = self._records(Roles())
            fitting = replace(bare, roles=checks.readable(self.roles, self.folder, bare.schema()))
            return [*role_misfits(bare, self.roles), *self.misfits(fitting)]
        except EquipoiseError:
            return []

    def _problems(self, failed: set[str | int]) -> list[PolicyProblem]:
        """All problems that need no data; sections that failed already are skipped."""
        problems = [
            *checks.of_roles(self.roles, self.folder), *checks.of_scenarios(self.scenarios),
            *checks.of_limits(self.limits, self.scenarios), *checks.of_measures(self.measures, self.scenarios),
            *checks.of_weights(self.choose), *checks.of_candidates(self.candidates),
            *checks.of_estimates(self.estimates),
        ]  # fmt: skip
        problems += [
            PolicyProblem(("waive", name), f"Only {WAIVABLE_ATTACK!r} can be waived, and its reason must be told.")
            for name, why in self.waive.items()
            if name != WAIVABLE_ATTACK or not why.strip()
        ]
        if not problems and not failed & {"limits", "candidates", "table", "measures", "scenarios", "choose"}:
            problems += self._contradictions()
        lacking = {
            "set at least one, or name one candidate without alternatives.": (
                "limits", not self.limits and "limits" not in failed and self.searches
            ),
            "name at least one.": ("candidates", not self.candidates),
            "at least 1.": ("draws", self.draws < 1),
        }  # fmt: skip
        problems += [PolicyProblem((place,), words) for words, (place, wrong) in lacking.items() if wrong]
        if (kind := self.output.format) is not None and kind not in FORMATS:
            problems.append(PolicyProblem(("output", "format"), f"No format {kind!r}.{hint(kind, FORMATS)}"))
        return problems + (list(self._search_problems()) if "search" not in failed else [])

    def _search_problems(self) -> Iterator[PolicyProblem]:
        """Problems of [search], also settings that would be ignored."""
        how = self.search
        for name in ("budget", "seconds") if how.search == "grid" else ():
            if getattr(how, name) is not None:
                yield PolicyProblem(
                    ("search", name), 'A grid tries all candidates: say search = "adaptive" to stop before.'
                )
        if self.table is not None and how.processes not in (None, 1):
            yield PolicyProblem(("search", "processes"), "The methods for a table are tried in one process.")

    def _contradictions(self) -> Iterator[PolicyProblem]:
        """Problems of settings that contradict each other."""
        if (why := self.unattacked()) and WAIVABLE_ATTACK not in self.waive:
            yield PolicyProblem(("limits",), why)
        for column in self.assume_unknown:
            if column in names(self.roles.get("keys", ()), "keys"):
                yield PolicyProblem(("assume_unknown",), f"{column!r} is a key, which an intruder is taken to know.")
        if self.table is not None:
            of_records = {"scenarios": self.scenarios, "estimates": self.estimates}
            yield from (PolicyProblem((n,), "are of records, not of tables.") for n, some in of_records.items() if some)
            try:
                self._check_table()
            except EquipoiseError as error:
                place, _, words = str(error).partition(": ")
                in_section = place in ("candidates", "limits", "register")
                yield PolicyProblem((place,) if in_section else ("table",), words if in_section else str(error))

    def unattacked(self) -> str:
        """Why this policy must limit an attack; empty where it need not."""
        masks = (find(str(table["use"]), "mask") for c in self.candidates for table in (*c.masks, *c.then))
        return checks.unattacked(masks, self.policy().measures())

    def touched(self, records: Records) -> frozenset[str]:
        """The columns that a candidate may change: those its masks name, and those with a role that masks go by."""
        tables = [table for c in self.candidates for table in (*c.masks, *c.then)]
        return frozenset(records.roles.keys).union(*(changed_columns(table, records) for table in tables))

    @property
    def searches(self) -> bool:
        """Whether there is more than one recipe to choose from."""
        if len(self.candidates) != 1 or self.candidates[0].coarsenings:
            return True
        try:
            return any(len(step) != 1 for step in _alternatives(self.candidates[0]))
        except EquipoiseError:
            return False

    def _check_table(self) -> None:
        """Refuse a policy with [table] without methods and measures for tables."""
        if self.table is None:
            return
        if any(candidate.coarsenings for candidate in self.candidates):
            raise ParameterError("candidates: coarsenings are for records; name methods for the table, as masks.")
        steps = [recipes(*_alternatives(candidate)) for candidate in self.candidates]
        refuse_strangers([recipe for alternatives in steps for recipe in alternatives], self.scales())
        if not any(isinstance(measure, Exposed) for measure in self.scales()):
            raise ParameterError(
                'limits: say how many sensitive cells may be exposed, like "exposed(rule=\'p-percent:10%\')" = "<= 0".'
            )

    def read_roles(self) -> Roles:
        return Roles.from_plain(self.roles, self.folder)

    def policy(self) -> Policy:
        return Policy(
            self.limits, self.choose.prefer, self.allow, self.scenarios, self.objective, extends=self.extends,
            assume_unknown=self.assume_unknown, keep_order=self.output.keep_order,
            csv_formulas=self.output.csv_formulas, estimates=tuple(one.query for one in self.estimates),
        )  # fmt: skip

    @property
    def objective(self) -> dict[str, float]:
        """What the choice goes by: the weights, or the overlap of what users compute where records are searched."""
        default = self.table is None and self.searches and self.choose.prefer == "utility"
        return self.choose.weights or ({DEFAULT_OBJECTIVE: 1.0} if default or self.estimates else {})

    def scales(self) -> tuple[Measure, ...]:
        """The measures of the limits, then the others, each once."""
        policy = self.policy()
        return tuple(dict.fromkeys((*policy.measures(), *map(policy.measure_of, self.measures))))

    def read(self) -> Records:
        """The data with its roles; the path is relative to the policy file.

        What does not fit the columns is refused, every misfit with its line.
        """
        roles = self.read_roles()
        try:
            records = self._records(roles)
        except RolesError:
            if problems := self._data_problems():
                raise refusal(self.written.name, problems, self.written.lines) from None
            raise
        if problems := [*role_misfits(records, self.roles), *self.misfits(records)]:
            raise refusal(self.written.name, problems, self.written.lines)
        return records

    def _records(self, roles: Roles) -> Records:
        options = {f.name: getattr(self.data, f.name) for f in fields(self.data) if f.name != "path"}
        options["metadata"] = self.folder / self.data.metadata if self.data.metadata else None
        return read(self.folder / self.data.path, roles, **options)

    def misfits(self, records: Records) -> list[PolicyProblem]:
        """Problems of the policy with the columns of the data."""
        if self.table is not None:
            return list(table_misfits(records, self.table, self.folder))
        unknown = absent(self.assume_unknown, records.schema(), ("assume_unknown",))
        others = misfits(records, self.candidates, self.limits, self.measures, self.scenarios)
        return [*others, *estimate_misfits(records, self.estimates), *unknown]

    def absent(self) -> list[PolicyProblem]:
        """Problems of files that the policy names and that do not exist."""
        paths: dict[tuple[str, ...], str | None] = {
            ("data", "metadata"): self.data.metadata,
            ("seed_file",): self.seed_file,
            ("output", "sign"): self.output.sign,
        }
        pattern = any(sign in self.data.path for sign in "*?[")
        paths |= {} if pattern else {("data", "path"): self.data.path}
        return [
            PolicyProblem(place, f"No file at {name!r}.")
            for place, name in paths.items()
            if name and not (self.folder / name).exists()
        ]

    def recipes(self, records: Records) -> tuple[Recipe, ...]:
        """All recipes of the candidates."""
        candidates: list[Recipe] = []
        for candidate in self.candidates:
            after = recipes(*map(_masks, candidate.then))
            first = coarsenings(records) if candidate.coarsenings else ()
            candidates += (Recipe((*one.masks, *then.masks)) for one in first for then in after)
            candidates += recipes(*_alternatives(candidate)) if candidate.masks else ()
        seed = self.seed()
        return tuple(candidates if seed is None else (replace(recipe, seed=seed) for recipe in candidates))

    def seed(self) -> int | None:
        """The secret seed from its file, if any."""
        return read_seed(self.folder / self.seed_file) if self.seed_file else None

    def registered(self) -> Register | None:
        """The register of earlier releases, where one is named."""
        return Register(self.folder / self.register, self.asset) if self.register else None

    def target(self, path: Path) -> Path:
        """The release folder: as the policy says, or beside the policy file."""
        return self.folder / self.output.folder if self.output.folder else path.with_name(f"{path.stem}-release")

    def to_toml(self) -> str:
        """The policy as TOML that reproduces the release from the private folder."""
        import tomli_w

        return tomli_w.dumps(
            _as_toml({f.name: getattr(self, f.name) for f in fields(self) if f.name not in INTERNAL_FIELDS})
        )

    def again(self, records: Records) -> "Job":
        """The same job with the data by its full path, hierarchies written out, and the seed kept beside it."""
        data = replace(self.data, path=str(Path(records.source.path).resolve()) if records.source else self.data.path)
        return replace(
            self,
            data=data,
            roles=records.roles.to_plain(),
            seed_file="seed.json",
            register=None,
            asset=None,
            table=self.table.with_plain_trees(self.table.prepared(records), self.folder) if self.table else None,
            output=replace(Output(), **{f: getattr(self.output, f) for f in ("format", "keep_order", "csv_formulas")}),
            search=replace(self.search, journal=None),
            extends=self.extends if self.extends in presets() else None,
        )


def job_of(records: Records, recipe: Recipe, policy: Policy, format: str | None = None) -> Job:
    """The policy file that reproduces a release of one recipe."""
    masks = tuple(to_plain(mask) for mask in recipe.masks)
    job = Job(
        data=Data(records.source.path if records.source else "the original data"),
        roles=records.roles.to_plain(),
        limits=_as_tables(policy),
        candidates=(Candidate(masks=masks),),
        choose=Choose(policy.prefer, dict(policy.weights)),
        allow=policy.allow,
        assume_unknown=policy.assume_unknown,
        output=Output(format=format, keep_order=policy.keep_order, csv_formulas=policy.csv_formulas),
        scenarios=policy.scenarios,
        estimates=tuple(EstimateTable(query) for query in policy.estimates if isinstance(query, str)),
    )
    waive = {WAIVABLE_ATTACK: "One recipe, chosen by hand."} if job.unattacked() else {}
    return replace(job, waive=waive).again(records)


def _as_tables(policy: Policy) -> dict[str, Any]:
    """The limits by the names of their scores, as tables where they have a reason."""
    reasons = policy.reasons
    return {n: {"limit": t, "reason": reasons[n]} if n in reasons else t for n, t in policy.limits.items()}


def read_seed(path: Path) -> int:
    """The secret seed from its file."""
    try:
        return int(json.loads(system.stored(path).read_text(encoding="utf-8"))["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ParameterError(f"Cannot read a seed from {str(path)!r}.") from None


def _with_paths(candidate: Candidate, folder: Path) -> Candidate:
    """The candidate with files that its masks name by their full paths, where they are beside the policy."""
    masks = ({**mask, **{n: _full(mask[n], folder) for n in FILE_FIELDS if n in mask}} for mask in candidate.masks)
    return replace(candidate, masks=tuple(masks))


def _full(text: Any, folder: Path) -> Any:
    """A path, or the path in NAME=PATH, in full where that file is beside the policy; of a list each."""
    if isinstance(text, list | tuple):
        return [_full(one, folder) for one in text]
    if not isinstance(text, str) or not text:
        return text
    if (file := folder / text).exists():
        return str(file.resolve())
    name, sign, path = text.partition("=")
    return f"{name}={_full(path, folder)}" if sign else text


def _alternatives(candidate: Candidate) -> list[list[Mask]]:
    """The alternative masks of each step of a candidate."""
    return [_masks(table) for table in candidate.masks]


def _masks(mask: Mapping[str, Any]) -> list[Mask]:
    table = dict(mask)
    if "use" not in table:
        raise ParameterError('candidates: each mask needs use = "its name".')
    name = str(table.pop("use"))
    kinds = {f.name: f.kind for f in form(find(name, "mask"))}
    grids = {key: spread(value, "tuple" in kinds.get(key, "")) for key, value in table.items()}
    choices: list[dict[str, Any]] = [{}]
    for key, values in grids.items():
        choices = [{**mask, key: value} for mask in choices for value in values]
    return [build(name, "mask", mask) for mask in choices]


def _as_toml(value: Any) -> Any:
    """Plain TOML data without default values."""
    if isinstance(value, Mapping):
        return {k: _as_toml(v) for k, v in value.items() if v is not None and v != () and v != {}}
    if isinstance(value, Section):
        return _as_toml({f.name: getattr(value, f.name) for f in fields(value) if getattr(value, f.name) != f.default})
    return [_as_toml(v) for v in value] if isinstance(value, tuple | list) else value
