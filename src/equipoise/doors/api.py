"""The Python door: the verbs with the reports attached, a first policy, its check, and the workbench."""

from collections.abc import Callable
from pathlib import Path

from equipoise.ground.errors import DataError, MissingExtraError
from equipoise.ground.system import relative, show_page
from equipoise.ground.whole_files import refuse_page
from equipoise.intrusion.attack import attack as attack
from equipoise.policies.explain import Explained, explain
from equipoise.policies.first_policy import initial
from equipoise.policies.policy_file import Job
from equipoise.policies.sections import refusal
from equipoise.publishing.publish import publish as publish
from equipoise.releases.balance import balance as balance
from equipoise.releases.balance import protect as protect
from equipoise.releases.release import release as release
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
