"""The Python door: the verbs with the reports attached, a first policy, its check, and the workbench."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.ground.errors import DataError, MissingExtraError, ParameterError
from equipoise.ground.options import with_options
from equipoise.ground.system import relative, show_page
from equipoise.ground.whole_files import refuse_page, write_whole
from equipoise.inspection.assess import assess
from equipoise.inspection.direct_identifiers import without_direct
from equipoise.inspection.suggest_roles import suggest_roles
from equipoise.intrusion.attack import Attack, AttackOptions, attack_files
from equipoise.policies.explain import Explained, explain
from equipoise.policies.first_policy import initial
from equipoise.policies.policy_file import Job
from equipoise.policies.sections import refusal
from equipoise.presentation.numbers import listed
from equipoise.presentation.pages import page, source_name
from equipoise.publishing.publish import publish as publish
from equipoise.releases.balance import balance as balance
from equipoise.releases.balance import protect as protect
from equipoise.releases.in_memory import as_records
from equipoise.releases.release import Release
from equipoise.releases.release import release as release
from equipoise.releases.reopen import reopen
from equipoise.releases.replay import MADE_AGAIN, UntraceableRelease, true_pairs
from equipoise.releases.replay import replay as replay
from equipoise.releases.tabulate import tabulate as tabulate


def init(
    source: str | Path,
    out: str | Path | None = None,
    *,
    preset: str | None = None,
    overwrite: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    missing_codes: Sequence[str | float] | str | None = None,
    skip_rows: int | None = None,
    header_rows: int | None = None,
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
        refuse_page(place, overwrite, "file", "policy.toml", reads=(source,))
    path = relative(Path(source), place.parent) if place is not None else None
    text = initial(
        source, path=path, preset=preset, delimiter=delimiter, encoding=encoding, decimal=decimal,
        thousands=thousands, missing_codes=missing_codes, skip_rows=skip_rows, header_rows=header_rows, sheet=sheet,
        metadata=metadata,
    )  # fmt: skip
    Job.from_plain(tomllib.loads(text), place or Path("policy.toml"))
    if place is not None:
        write_whole(place, text, private=False, goal=True)
    return text


def check(policy: str | Path) -> Explained:
    """Say in plain words what a policy means: what is read, what must hold, what is tried, what is doubtful.

    A policy that cannot be used raises ParameterError, whose `problems` has everything that is wrong, with its line.
    """
    job = Job.load(policy)
    if missing := job.absent():
        raise refusal(Path(policy).name, missing, job.written.lines)
    return explain(job, job.read())


def report(
    data: Any, roles: Roles | None = None, *, out: str | Path | None = None, overwrite: bool = False,
    browser: bool = True, show: Callable[[str], None] = print,
) -> Path:  # fmt: skip
    """Assess a file or frame as it is and open the page in the browser; the path of the page is given back.

    Without `roles` those of `eq.suggest_roles` are taken, and the page says so first. The page is internal: it has no
    record and no category, but says how well people can be told apart. It stands where `out` says, or in a temporary
    file that only you can read; where no browser can be opened, `show` is called with where it is.
    """
    place = Path(out) if out is not None else Path(mkdtemp(prefix="equipoise-")) / "assessment.html"
    refuse_page(place, overwrite, reads=(data,))
    records = as_records(data, roles)
    guessed = not records.roles.named()
    records = replace(records, roles=suggest_roles(records).roles) if guessed else records
    words = (f"The roles were proposed, check them first: the keys are {listed(records.roles.keys)}.",)
    text = page(assess(without_direct(records)), source_name(records, "a frame"), *(words if guessed else ()))
    write_whole(place, text, goal=True)
    if not (browser and show_page(place.resolve().as_uri())):
        show(f"The assessment is in {str(place)!r}: open it in a browser.")
    return place


@with_options(AttackOptions)
def attack(
    released: Records | Release | str | Path, original: Records | None = None, *, options: AttackOptions
) -> Attack:
    """Try to break a release, whatever made it: what an intruder could do who knows some columns of a person.

    Given a release folder with its private part, the release is made again from the original and its secret seed, with
    the row of every record carried along: then everybody's own record is known and shares are exact. Given two files,
    records are the same by the id role; else by values that only one record of each file has, in columns that other
    columns show to be unchanged; else by row, where rows go together. Where some or all of the people cannot be told,
    shares are estimated and intervals allow for it; `truth` and the notes say which it was.

    Beside the intruder who knows `known` there is one who knows the one or two released columns on which a plain join
    finds most people, and, where `known` is not given, one who knows all numbers, and one who knows all keys and
    numbers. `strongest` is the largest of all.

    Parameters
    ----------
    released
        The release: its folder, what `eq.balance`, `eq.protect` and `eq.release` give back, a file, or records.
    original
        What an intruder has: the original file, or a register of their own with other columns and other people, whose
        roles apply. The file that the private policy names when not given.
    known
        The columns of which the intruder knows the values; the keys (or the numeric columns) when not given.
    sensitive
        The columns they want to learn; those with that role when not given.
    size
        Every combination of up to so many known columns is tried, larger ones by extending the best. Of very many
        columns or records fewer are, and the notes say so: at most 500, and 20 million records times combinations.
    attacks
        What to try instead of every attack there is; what they leave open is filled in from `known`.
    progress
        Called with (done, total, what).
    out, overwrite
        The HTML page to write, an internal one, and whether an earlier one is replaced.

    >>> import equipoise as eq
    >>> import polars as pl
    >>> table = pl.DataFrame({"age": [20, 30, 40, 60], "sex": ["f", "m", "f", "f"]})
    >>> file = eq.read(table, eq.Roles(["age", "sex"]))
    >>> attack(file, file).strongest.words.replace("\\xa0", " ")
    'Knowing age and sex, 100 % of people are linked correctly (51 to 100 %); guessing would give 25 %.'
    """
    if isinstance(released, Records):
        return attack_files(released, _intruders_file(original), options)
    folder = released.folder if isinstance(released, Release) else Path(released)
    if not folder.is_dir():
        return attack_files(reopen(folder), _intruders_file(original), options)
    try:
        return attack_files(*true_pairs(folder, original), options, again=MADE_AGAIN)
    except UntraceableRelease as reason:
        outcome = attack_files(reopen(folder), _intruders_file(original), options)
        return replace(outcome, notes=(str(reason), *outcome.notes))


def _intruders_file(original: Records | None) -> Records:
    if original is None:
        raise ParameterError("What does the intruder have? Give the original file, or a register.")
    return original


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

    def announce(address: str) -> None:
        show(address)
        if browser:
            show_page(address)

    serve(place, file=path, port=port, largest=largest, show=announce)
