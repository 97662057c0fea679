"""Shape: how coarse each key is, and what that does to risk and information."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from equipoise.data.levels import ORIGINAL, Part
from equipoise.doors.web.app_state import Here, Office
from equipoise.doors.web.pages.open_file import with_policy
from equipoise.doors.web.render import page, part
from equipoise.doors.web.session import Draft, Session
from equipoise.doors.web.work import shape as work
from equipoise.ground.errors import EquipoiseError, ParameterError
from equipoise.policies.limits import Limit

router = APIRouter()
RUN = "coarsening"
Column = Annotated[str, Field(max_length=1000)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]
Numbers = Annotated[list[Number], Field(max_length=1000)]
Code = Annotated[int, Field(ge=0, lt=1 << 31)]
Codes = Annotated[list[Code], Field(max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
One = Field(min_length=1, max_length=1)
"""The editors make one level at a time."""


class Plain(BaseModel):
    """What the page sends, and nothing else."""

    model_config = ConfigDict(extra="forbid")


class OfLevel(Plain):
    """A level that there is."""

    kind: Literal["level"]
    level: Annotated[str, Field(max_length=1000)]


class OfIntervals(Plain):
    """Intervals of one width."""

    kind: Literal["intervals"]
    widths: Annotated[list[Annotated[float, Field(gt=0, allow_inf_nan=False, le=1e15)]], One]
    start: Number = 0
    top: Number | None = None
    bottom: Number | None = None
    closed: Literal["left", "right"] = "left"
    alone: Numbers = []


class OfBreaks(Plain):
    """Intervals between breaks."""

    kind: Literal["breaks"]
    breaks: Annotated[list[Annotated[list[Number], Field(min_length=1, max_length=1000)]], One]
    closed: Literal["left", "right"] = "left"
    alone: Numbers = []


class Merged(Plain):
    """A group of categories, by their places among the values of the column."""

    name: Name
    codes: Annotated[list[Code], Field(min_length=1, max_length=100_000)]


class OfMapping(Plain):
    """Groups; all others stay apart or, where `other` names it, become one group but for those `kept`."""

    kind: Literal["mapping"]
    groups: Annotated[list[Merged], Field(max_length=5_000)] = []
    kept: Codes = []
    other: Name | None = None
    of: int


class OfPrefix(Plain):
    """The first characters."""

    kind: Literal["prefix"]
    lengths: Annotated[list[Annotated[int, Field(ge=1, le=1000)]], One]


class OfDates(Plain):
    """A calendar period."""

    kind: Literal["dates"]
    parts: Annotated[list[Part], One]


Made = Annotated[OfIntervals | OfBreaks | OfMapping | OfPrefix | OfDates, Field(discriminator="kind")]
Change = Annotated[OfLevel | OfIntervals | OfBreaks | OfMapping | OfPrefix | OfDates, Field(discriminator="kind")]


class Asked(Plain):
    """A coarsening of one key to look at."""

    column: Column
    change: Change


class Keep(Plain):
    """A coarsening to keep: in the place of a level, or beside the others where none is named."""

    column: Column
    change: Made
    level: Annotated[str, Field(max_length=1000)] = ""
    name: Annotated[str, Field(max_length=200)] = ""


@router.get("/shape", response_class=HTMLResponse)
def show(request: Request, office: Here, key: Annotated[str, Query(max_length=1000)] = "") -> HTMLResponse:
    """The keys with their levels, and the editor of one."""
    return page(request, "shape.html", "shape", **_facts(office, key))


@router.post("/shape/preview")
def preview(office: Here, asked: Asked) -> dict[str, float]:
    """Risk and information of all keys, with one of them coarsened as asked; nothing is kept."""
    office.need_file()
    session, folder = office.session, office.workspace.folder
    change = asked.change.model_dump()
    given = (folder, session.policy["data"], session.version, asked.column, change)
    found: dict[str, float] | None = office.desk.ask(work.preview, *given)
    if found is None:
        office.desk.ask(work.ready, folder, session.policy, _chosen(session), asked.column, session.version)
        found = office.desk.ask(work.preview, *given)
    if found is None:
        raise ParameterError("The file has changed: load the page again.")
    return found


@router.post("/shape/keep", response_class=HTMLResponse)
def keep(request: Request, office: Here, asked: Keep) -> HTMLResponse:
    """Keep a coarsening as a level of the key."""
    change = asked.change.model_dump()
    tree, level = office.ask(work.hierarchy_with, asked.column, change, asked.level, asked.name)
    words = f"{asked.column}: {_words(change, asked.level)}"
    office.edit(request, words, "shape", lambda draft: _at(_with_tree(draft, asked.column, tree), asked.column, level))
    return _drawn(request, office, asked.column)


@router.post("/shape/level", response_class=HTMLResponse)
def choose(
    request: Request,
    office: Here,
    column: Annotated[str, Form(max_length=1000)],
    level: Annotated[str, Form(max_length=1000)],
) -> HTMLResponse:
    """Look at a key at one of its levels."""
    name = office.ask(work.level_of, column, level)
    words = f"{column}: {'as it came' if name == ORIGINAL else f'level {name}'}"
    office.edit(request, words, "shape", lambda draft: _at(draft, column, name))
    return _drawn(request, office, column)


@router.post("/shape/drop", response_class=HTMLResponse)
def drop(
    request: Request,
    office: Here,
    column: Annotated[str, Form(max_length=1000)],
    level: Annotated[str, Form(max_length=1000)],
) -> HTMLResponse:
    """Take a level away."""
    tree = office.ask(work.hierarchy_without, column, level)
    words = f"{column}: level {level} taken away"
    office.edit(request, words, "shape", lambda draft: _with_tree(draft, column, tree))
    return _drawn(request, office, column)


@router.get("/shape/categories", response_class=HTMLResponse)
def categories(
    request: Request,
    office: Here,
    key: Annotated[str, Query(max_length=1000)],
    search: Annotated[str, Query(max_length=200)] = "",
    rare: bool = False,
) -> HTMLResponse:
    """The categories of a key, most frequent first."""
    found = office.ask(work.categories, key, search, rare)
    return part(request, "shape_categories.html", listed=found)


@router.post("/shape/suggest", response_class=HTMLResponse)
def suggest(
    request: Request,
    office: Here,
    k: Annotated[int, Form(ge=2, le=1_000_000)] = 3,
    share: Annotated[float, Form(ge=0, le=100, allow_inf_nan=False)] = 2,
) -> HTMLResponse:
    """Begin to look for the least coarsening with classes of k records; `share` is in percent."""
    policy = office.need_file()
    about = {"k": k, "share": share, "version": office.session.version}
    office.runs.start(RUN, work.suggest_coarsening, office.workspace.folder, dict(policy), k, share / 100, about=about)
    return part(request, "shape_suggestion.html", run=office.runs.latest(RUN))


@router.get("/shape/suggestion", response_class=HTMLResponse)
def suggestion(request: Request, office: Here) -> HTMLResponse:
    """How far the search is, or what it has found."""
    return part(request, "shape_suggestion.html", run=office.runs.latest(RUN))


@router.post("/shape/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here) -> HTMLResponse:
    """Stop the search."""
    run = office.runs.latest(RUN)
    if run is not None:
        office.runs.stop(run.id)
    return part(request, "shape_suggestion.html", run=office.runs.latest(RUN))


@router.post("/shape/take", response_class=HTMLResponse)
def take(request: Request, office: Here, key: Annotated[str, Form(max_length=1000)] = "") -> HTMLResponse:
    """Look at all keys at the levels that were suggested."""
    run = office.runs.latest(RUN)
    if run is None or run.state != "done":
        raise ParameterError("There is no suggestion to take: ask for one first.")
    levels = dict(run.result["levels"])
    words = f"The levels suggested for classes of {run.result['k']}"
    office.edit(request, words, "shape", lambda draft: {**draft, "shape": levels})
    return _drawn(request, office, key)


def _drawn(request: Request, office: Office, column: str) -> HTMLResponse:
    return part(request, "shape_part.html", **_facts(office, column))


def _facts(office: Office, column: str) -> dict[str, Any]:
    """What the page shows; nothing where no file is open, or no column is a key."""
    session = office.session
    if not session.policy.get("roles", {}).get("keys") or not office.opened:
        return {"found": None, "run": None, "drawing": None}
    given = (office.workspace.folder, session.policy, _chosen(session), column, session.version)
    found = office.desk.ask(work.look, *given)
    drawing = {name: found[name] for name in ("column", "level", "shown", "records", "now", "original", "editor")}
    drawing |= {"levels": [level["name"] for level in found["levels"] if not level["problem"]]}
    drawing |= {"limits": _limits(session.policy)}
    return {"found": found, "run": office.runs.latest(RUN), "drawing": drawing}


def _chosen(session: Session) -> dict[str, str]:
    return dict(session.draft.get("shape", {}))


def _at(draft: Draft, column: str, level: str) -> Draft:
    return {**draft, "shape": {**draft.get("shape", {}), column: level}}


def _with_tree(draft: Draft, column: str, tree: list[dict[str, Any]]) -> Draft:
    """The draft with another hierarchy of a column; with none where it is empty."""
    roles: Mapping[str, Any] = draft["policy"].get("roles", {})
    trees = {name: other for name, other in roles.get("hierarchies", {}).items() if name != column}
    trees |= {column: tree} if tree else {}
    left = {name: value for name, value in roles.items() if name != "hierarchies"}
    return with_policy(draft, roles={**left, **({"hierarchies": trees} if trees else {})})


def _words(change: Mapping[str, Any], replaced: str) -> str:
    """A coarsening in the list of steps; no category is named."""
    kind = change["kind"]
    if kind == "breaks":
        return "breaks moved" if replaced and replaced != ORIGINAL else f"{len(set(change['breaks'][0])) + 1} bands"
    if kind == "intervals":
        top = f", top code {change['top']:g}" if change["top"] is not None else ""
        bottom = f", bottom code {change['bottom']:g}" if change["bottom"] is not None else ""
        return f"intervals of {change['widths'][0]:g}{top}{bottom}"
    if kind == "mapping":
        merged = sum(len(group["codes"]) for group in change["groups"])
        rest = "" if change["other"] is None else ", all others in one" if merged else "all but some in one"
        return f"{merged:,} categories merged{rest}" if merged else rest
    return f"first {change['lengths'][0]} characters" if kind == "prefix" else f"by {change['parts'][0]}"


def _limits(policy: Mapping[str, Any]) -> dict[str, float]:
    """The limits on the two axes of the map, where the policy has them for all keys."""
    found = {}
    for score, sign in (("uniques", "<"), ("entropy", ">")):
        given = policy.get("limits", {}).get(score)
        text = given.get("limit") if isinstance(given, Mapping) and not {"by", "scenario"} & set(given) else given
        try:
            limit = Limit.of(score, text) if isinstance(text, str) else None
        except EquipoiseError:
            continue
        if limit is not None and limit.sign.startswith(sign):
            found[score] = limit.bound
    return found
