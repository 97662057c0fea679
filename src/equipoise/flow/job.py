"""Job: a policy file, checked and turned into roles, candidates, limits and a place to write to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from equipoise.core.errors import EquipoiseError, ParameterError
from equipoise.core.method import Mask, Measure
from equipoise.core.records import Records
from equipoise.core.roles import Roles, read_toml
from equipoise.files import read
from equipoise.flow.catalogue import build, find, form, parse, to_plain
from equipoise.flow.lattice import coarsenings
from equipoise.flow.policy import Policy
from equipoise.flow.recipe import Recipe, recipes, spread
from equipoise.flow.register import Register
from equipoise.flow.table_job import Tabulation, plain_of
from equipoise.flow.table_sweep import refuse_strangers
from equipoise.tables import Exposed

FORMAT: Literal[1] = 1
"""Version of the policy format."""
FORBID = {"extra": "forbid"}


@dataclass(frozen=True)
class Data:
    """[data]: where the file is, and how to read it when detection is not enough."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID
    path: str
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    sheet: str | None = None
    metadata: str | None = None


@dataclass(frozen=True)
class Choose:
    """[choose]: which side to favour among the releases inside the limits."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID
    prefer: Literal["utility", "risk"] = "utility"


@dataclass(frozen=True)
class Output:
    """[output]: the release folder and the format of the data."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID
    folder: str | None = None
    format: str | None = None


@dataclass(frozen=True)
class Candidate:
    """[[candidates]]: all coarsenings, or masks in order, each with a parameter or a grid of them."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID
    coarsenings: bool = False
    masks: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Job:
    """A policy file: data, roles, limits, candidates."""

    __pydantic_config__: ClassVar[dict[str, str]] = FORBID
    data: Data
    roles: dict[str, Any]
    limits: dict[str, str] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = (Candidate(coarsenings=True),)
    measures: tuple[str, ...] = ()
    choose: Choose = Choose()
    output: Output = Output()
    draws: int = 1
    seed_file: str | None = None
    register: str | None = None
    allow: tuple[str, ...] = ()
    title: str | None = None
    table: Tabulation | None = None
    format: Literal[1] = FORMAT
    folder: Path = field(default=Path(), kw_only=True)

    @classmethod
    def load(cls, path: str | Path) -> "Job":
        """Read a policy file; every problem found in it is listed at once."""
        plain = read_toml(path)
        return cls.from_plain(plain, Path(path))

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any], path: Path) -> "Job":
        from pydantic import TypeAdapter, ValidationError

        try:
            job = TypeAdapter(cls).validate_python({**plain_of(plain), "folder": path.parent})
        except ValidationError as error:
            found = [".".join(map(str, e["loc"])) + ": " + _said(e) for e in error.errors(include_input=False)]
            raise ParameterError(f"The policy {path.name!r} cannot be used. " + "; ".join(found) + ".") from None
        job._check(path)
        return job

    def _check(self, path: Path) -> None:
        """Everything that can be wrong before data is read."""
        problems = []
        for check in (
            self.read_roles,
            self.policy,
            self.scales,
            self._check_table,
            *(lambda c=c: _alternatives(c) for c in self.candidates),
        ):
            try:
                check()
            except EquipoiseError as error:
                problems.append(str(error))
        lacking = {
            "limits: set at least one, or name one candidate without alternatives.": not self.limits and self.searches,
            "candidates: name at least one.": not self.candidates,
            "draws: at least 1.": self.draws < 1,
        }
        problems += [problem for problem, found in lacking.items() if found]
        if problems:
            raise ParameterError(f"The policy {path.name!r} cannot be used. " + " ".join(dict.fromkeys(problems)))

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
        """A policy with [table] holds methods and measures of tables."""
        if self.table is None:
            return
        if any(candidate.coarsenings for candidate in self.candidates):
            raise ParameterError("candidates: coarsenings are for records; name methods for the table, as masks.")
        steps = [recipes(*_alternatives(candidate)) for candidate in self.candidates]
        refuse_strangers([recipe for found in steps for recipe in found], self.scales())
        if not any(isinstance(measure, Exposed) for measure in self.scales()):
            raise ParameterError(
                'limits: say how many sensitive cells may be exposed, like "exposed(rule=\'p-percent:10%\')" = "<= 0".'
            )
        if self.register:
            raise ParameterError("register: seeds of tables are not registered; leave it out.")

    def read_roles(self) -> Roles:
        return Roles.from_plain(self.roles, self.folder)

    def policy(self) -> Policy:
        return Policy(self.limits, self.choose.prefer, self.allow)

    def scales(self) -> tuple[Measure, ...]:
        """The measures of the limits, then the others, each once."""
        found = [*self.policy().measures(), *(parse(text, "measure") for text in self.measures)]
        return tuple(dict.fromkeys(found))

    def read(self) -> Records:
        """The data with its roles; the path is relative to the policy file."""
        options = {f.name: getattr(self.data, f.name) for f in fields(self.data) if f.name != "path"}
        options["metadata"] = self.folder / self.data.metadata if self.data.metadata else None
        return read(self.folder / self.data.path, self.read_roles(), **options)

    def recipes(self, records: Records) -> tuple[Recipe, ...]:
        """Every recipe the candidates stand for."""
        found: list[Recipe] = []
        for candidate in self.candidates:
            found += coarsenings(records) if candidate.coarsenings else ()
            found += recipes(*_alternatives(candidate)) if candidate.masks else ()
        seed = self.seed()
        return tuple(found if seed is None else (replace(recipe, seed=seed) for recipe in found))

    def seed(self) -> int | None:
        """The secret seed, where a file has it."""
        return read_seed(self.folder / self.seed_file) if self.seed_file else None

    def registered(self) -> Register | None:
        """The register of earlier releases, where one is named."""
        return Register(self.folder / self.register) if self.register else None

    def target(self, path: Path) -> Path:
        """The release folder: as the policy says, or beside the policy file."""
        return self.folder / self.output.folder if self.output.folder else path.with_name(f"{path.stem}-release")

    def to_toml(self) -> str:
        """The policy as it makes the same release again from the private folder."""
        import tomli_w

        return tomli_w.dumps(_told({**{f.name: getattr(self, f.name) for f in fields(self) if f.name != "folder"}}))

    def again(self, records: Records) -> "Job":
        """The same job with the data by its full path, hierarchies written out, and the seed kept beside it."""
        data = replace(self.data, path=str(Path(records.source.path).resolve()) if records.source else self.data.path)
        return replace(
            self,
            data=data,
            roles=records.roles.to_plain(),
            seed_file="seed.json",
            register=None,
            table=self.table.written(self.table.prepared(records), self.folder) if self.table else None,
            output=Output(format=self.output.format),
        )


def job_of(records: Records, recipe: Recipe, policy: Policy, format: str | None = None) -> Job:
    """The policy file that makes a release of one recipe again."""
    masks = tuple(to_plain(mask) for mask in recipe.masks)
    job = Job(
        data=Data(records.source.path if records.source else "the original data"),
        roles=records.roles.to_plain(),
        limits=dict(policy.limits),
        candidates=(Candidate(masks=masks),),
        choose=Choose(policy.prefer),
        allow=policy.allow,
        output=Output(format=format),
    )
    return job.again(records)


def read_seed(path: Path) -> int:
    """The secret seed from its file."""
    try:
        return int(json.loads(path.read_text(encoding="utf-8"))["seed"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ParameterError(f"Cannot read a seed from {str(path)!r}.") from None


def _alternatives(candidate: Candidate) -> list[list[Mask]]:
    """For each step of a candidate, the masks it may be."""
    return [_masks(dict(table)) for table in candidate.masks]


def _masks(table: dict[str, Any]) -> list[Mask]:
    if "use" not in table:
        raise ParameterError('candidates: each mask needs use = "its name".')
    name = str(table.pop("use"))
    kinds = {f.name: f.kind for f in form(find(name, "mask"))}
    grids = {key: spread(value, "tuple" in kinds.get(key, "")) for key, value in table.items()}
    choices: list[dict[str, Any]] = [{}]
    for key, values in grids.items():
        choices = [{**given, key: value} for given in choices for value in values]
    return [build(name, "mask", given) for given in choices]


def _said(error: Any) -> str:
    return (
        "is not known here"
        if error["type"] in ("unexpected_keyword_argument", "extra_forbidden")
        else str(error["msg"]).lower()
    )


def _told(value: Any) -> Any:
    """Plain TOML data without what was not given."""
    if isinstance(value, Mapping):
        return {k: _told(v) for k, v in value.items() if v is not None and v != () and v != {}}
    if isinstance(value, Data | Choose | Output | Candidate | Tabulation):
        return _told({f.name: getattr(value, f.name) for f in fields(value) if getattr(value, f.name) != f.default})
    return [_told(v) for v in value] if isinstance(value, tuple | list) else value
