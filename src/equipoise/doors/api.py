"""The Python door: flow functions with the report attached."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from equipoise.data.hierarchy import Hierarchy
from equipoise.data.records import Records
from equipoise.doors import decision_files
from equipoise.doors.report import render, render_attack, render_refused
from equipoise.doors.table_folder import balance_table
from equipoise.doors.write_page import put, refuse_inside, refuse_page
from equipoise.ground.errors import DataError, MissingExtraError, ParameterError, RefusedError
from equipoise.ground.progress import Progress
from equipoise.ground.system import relative, show_page
from equipoise.intrusion.attack import Attack
from equipoise.intrusion.attack import attack as try_to_break
from equipoise.methods.method import Mask, Measure
from equipoise.policies.explain import Explained, explain
from equipoise.policies.first_policy import initial
from equipoise.policies.policy import Policy
from equipoise.policies.policy_file import Job
from equipoise.policies.sections import refusal
from equipoise.publishing.alternatives import Ways
from equipoise.publishing.publish import Published
from equipoise.publishing.publish import publish as decide
from equipoise.recipe.recipe import Recipe
from equipoise.releases import balance as flow
from equipoise.releases.refusal import Refused
from equipoise.releases.release import Release
from equipoise.releases.release import release as write
from equipoise.releases.reopen import EVIDENCE
from equipoise.releases.replay import replay as make_again
from equipoise.releases.tables.balance import TableRelease


def release(
    records: Records,
    recipe: Recipe,
    policy: Policy,
    out: str | Path,
    *,
    format: str | None = None,
    overwrite: bool = False,
    sign: str | Path | None = None,
) -> Release:
    """Run a recipe, measure the released records, refuse if a limit is broken, and write the release folder.

    `out` is written whole or not at all: `public/` (data, codebook, report, evidence) and `private/` (seed, policy,
    recipe, replay.py, internal report, journal). An existing release is replaced only with `overwrite=True`. `format`
    is that of the input unless given: csv, parquet, arrow, xlsx, sav, dta and the like. `sign` is a private Ed25519 key
    (PEM) that signs the evidence.
    """
    return write(records, recipe, policy, out, render=render, format=format, overwrite=overwrite, sign=sign)


def replay(
    folder: str | Path, out: str | Path, *, original: Records | str | Path | None = None, overwrite: bool = False
) -> Release:
    """Make a release again in another folder, from its private part and the original file.

    The original is the file that the policy names unless one is given. With the same versions and engine the public
    data comes out byte for byte, else with the same content. `private/replay.py` calls this.
    """
    return make_again(folder, out, render=render, original=original, overwrite=overwrite)


def init(
    source: str | Path,
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    overwrite: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    sheet: str | None = None,
    metadata: str | Path | None = None,
) -> str:
    """Write a first policy by looking at the data, commented in plain words; nothing is done until you run it.

    The text is given back, and written where `out` says: `eq.check` explains it, `eq.balance` runs it. `preset` names
    the limits and methods of an agency ('ema'); the others are those of `eq.read`. Misleads when the roles are wrong:
    read them first.
    """
    import tomllib

    place = Path(out) if out is not None else None
    if place is not None:
        refuse_page(place, overwrite, "file", "policy.toml")
    path = relative(Path(source), place.parent) if place is not None else None
    text = initial(
        source, path=path, preset=preset, delimiter=delimiter, encoding=encoding, decimal=decimal, sheet=sheet,
        metadata=metadata,
    )  # fmt: skip
    Job.from_plain(tomllib.loads(text), place or Path("policy.toml"))
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="\n")
    return text


def check(policy: str | Path) -> Explained:
    """Say in plain words what a policy means: what is read, what must hold, what is tried, what is doubtful.

    A policy that cannot be used raises ParameterError, whose `problems` has everything that is wrong, with its line.
    """
    job = Job.load(policy)
    if missing := job.absent():
        raise refusal(Path(policy).name, missing, job.written.lines)
    return explain(job, job.read())


def balance(
    policy: str | Path,
    *,
    out: str | Path | None = None,
    report: str | Path | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Release | TableRelease:
    """The main job: read what a policy file names, try its candidates, choose the best inside limits, release it.

    A policy with a [table] section releases a table. `report` is a page to write, an internal one, also when the policy
    refuses: then `RefusedError` is raised, whose `about` has what was tried, and there is no release folder.
    """
    job = Job.load(policy)
    folder = Path(out) if out is not None else job.target(Path(policy))
    page = Path(report) if report is not None else None
    if page is not None:
        refuse_page(page, overwrite)
        refuse_inside(page, folder)
    with refusal_on(page):
        made = (
            balance_table(job, folder, overwrite, progress)
            if job.table is not None
            else flow.balance(policy, render=render, out=folder, overwrite=overwrite, progress=progress)
        )
    if page is not None:
        put(page, made.report.read_text(encoding="utf-8"))
    return made


@contextmanager
def refusal_on(page: Path | None) -> Iterator[None]:
    """Where a policy refuses, say it on a page as well."""
    try:
        yield
    except RefusedError as error:
        if page is None or not isinstance(error.about, Refused):
            raise
        put(page, render_refused(error.about))
        told = RefusedError(f"{error} Everything that was tried stands in {str(page)!r}.")
        told.about = error.about
        raise told from None


def protect(
    records: Records,
    masks: Iterable[Mask],
    out: str | Path,
    *,
    policy: Policy | None = None,
    seed: int | None = None,
    format: str | None = None,
    overwrite: bool = False,
    register: str | Path | None = None,
    sign: str | Path | None = None,
    progress: Progress | None = None,
) -> Release:
    """Apply masks in order and release the result with its report; limits are optional here.

    `register` is the private file in which the seeds of random masks are kept, one per data asset; `sign` a private
    Ed25519 key (PEM) that signs the evidence.
    """
    return flow.protect(
        records,
        masks,
        out,
        render=render,
        policy=policy,
        seed=seed,
        format=format,
        overwrite=overwrite,
        register=register,
        sign=sign,
        progress=progress,
    )


def attack(
    released: Records,
    original: Records,
    *,
    known: str | Iterable[str] | None = None,
    sensitive: str | Iterable[str] | None = None,
    size: int = 2,
    attacks: Iterable[Measure] | None = None,
    progress: Progress | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
) -> Attack:
    """Try to break a release, whatever made it: what an intruder could do who knows some columns of a person.

    `original` is what the intruder has: the original file, or a register of their own with other columns and other
    people; its roles apply. `known` are the columns they know (the keys unless given), `sensitive` those they want to
    learn. Every combination of up to `size` known columns is tried. `out` is the HTML page to write, an internal one.
    """
    for given in (released, original):
        if not isinstance(given, Records):
            raise ParameterError(f"Files are read first, eq.read(path, roles): got {type(given).__name__}.")
    place = Path(out) if out is not None else None
    if place is not None:
        refuse_page(place, overwrite)
    found = try_to_break(
        released, original, known=known, sensitive=sensitive, size=size, attacks=attacks, progress=progress
    )
    if place is not None:
        put(place, render_attack(found, _name(released, "the release"), _name(original, "the original file")))
    return found


def publish(
    source: Any,
    *,
    prior: Any = None,
    disclosure: Any = "uniques:10",
    nonpublication: Any = "y",
    domain: Any = None,
    target: Any = None,
    population: Any = None,
    covariates: Any = None,
    risk_at_most: float | None = None,
    publish_share: float | None = None,
    cutoff: float | None = None,
    compare: Iterable[Any] = (),
    merge: str | None = None,
    hierarchy: Hierarchy | None = None,
    ways: Ways | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    name: str | None = None,
) -> Published:
    """Decide which cells of a survey to publish, and write the decision where `out` says.

    The first arguments are those of `eq.publication`. One of `risk_at_most`, `publish_share` and `cutoff` says how far
    to go. `compare` names other losses to measure against; `merge` a column along whose `hierarchy` (that of the roles
    when not given) cells may also be told together, and `ways` what else can be done with a cell. `out` is a folder for
    decision.csv, decision.json and report.html, or one such file: they name cells, so they are internal.
    """
    place = Path(out) if out is not None else None
    if place is not None:
        decision_files.refuse(place, overwrite)
    found = decide(
        source, prior=prior, disclosure=disclosure, nonpublication=nonpublication, domain=domain, target=target,
        population=population, covariates=covariates, risk_at_most=risk_at_most, publish_share=publish_share,
        cutoff=cutoff, compare=compare, merge=merge, hierarchy=hierarchy, ways=ways,
    )  # fmt: skip
    if place is not None:
        told = name or (_name(source, "the survey") if isinstance(source, Records) else "the table")
        decision_files.write(found, place, overwrite, told)
    return found


def open(
    file: str | Path | None = None,
    *,
    folder: str | Path | None = None,
    port: int = 0,
    largest: int | None = None,
    browser: bool = True,
    show: Callable[[str], None] = print,
) -> None:
    """Open the workbench, a page on this machine on which a file goes from raw to released; it ends with Ctrl-C.

    `file` is data or a policy; the working folder is that of the file, or this one, and nothing outside it is read. The
    session is kept there. `show` is called with the address, which works once; `largest` is the size in bytes that an
    uploaded file may have. Needs the extra `web`.
    """
    path = Path(file) if file is not None else None
    if path is not None and not path.exists():
        raise DataError(f"No file at {str(path)!r}.")
    try:
        from equipoise.doors.web.server import serve
    except ImportError:
        raise MissingExtraError.for_package("fastapi", "web") from None
    place = Path(folder) if folder is not None else path.parent if path is not None else Path()

    def shown(address: str) -> None:
        show(address)
        if browser:
            show_page(address)

    serve(place, file=path, port=port, largest=largest, show=shown)


def _name(records: Records, otherwise: str) -> str:
    """A file by its name, a release by that of its folder."""
    if not records.source:
        return otherwise
    path = Path(records.source.path).resolve()
    return path.parent.parent.name if (path.parent / EVIDENCE).is_file() else path.name
