"""Shape page: the levels of each key, and their effect on risk and information."""

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
Text = Annotated[str, Form(max_length=1000)]
RUN = "coarsening"
Column = Annotated[str, Field(max_length=1000)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]
Numbers = Annotated[list[Number], Field(max_length=1000)]
Code = Annotated[int, Field(ge=0, lt=1 << 31)]
Codes = Annotated[list[Code], Field(max_length=100_000)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
ONE_ITEM = Field(min_length=1, max_length=1)
"""Lists with one item: the editors make one level at a time."""


class RequestBody(BaseModel):
    """Request body of the page; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class LevelChange(RequestBody):
    """A change to an existing level."""

    kind: Literal["level"]
    level: Annotated[str, Field(max_length=1000)]


class IntervalsChange(RequestBody):
    """A change to intervals of one width."""

    kind: Literal["intervals"]
    widths: Annotated[list[Annotated[float, Field(gt=0, allow_inf_nan=False, le=1e15)]], ONE_ITEM]
    start: Number = 0
    top: Number | None = None
    bottom: Number | None = None
    closed: Literal["left", "right"] = "left"
    alone: Numbers = []


class BreaksChange(RequestBody):
    """A change to intervals between breaks."""

    kind: Literal["breaks"]
    breaks: Annotated[list[Annotated[list[Number], Field(min_length=1, max_length=1000)]], ONE_ITEM]
    closed: Literal["left", "right"] = "left"
    alone: Numbers = []


class CategoryGroup(RequestBody):
    """A group of categories, by their positions among the values of the column."""

    name: Name
    codes: Annotated[list[Code], Field(min_length=1, max_length=100_000)]


class MappingChange(RequestBody):
    """A change to groups; all others stay separate or, if `other` names it, form one group except those `kept`."""

    kind: Literal["mapping"]
    groups: Annotated[list[CategoryGroup], Field(max_length=5_000)] = []
    kept: Codes = []
    other: Name | None = None
    of: int


class PrefixChange(RequestBody):
    """A change to the first characters of codes."""

    kind: Literal["prefix"]
    lengths: Annotated[list[Annotated[int, Field(ge=1, le=1000)]], ONE_ITEM]


class DatesChange(RequestBody):
    """A change to a calendar period."""

    kind: Literal["dates"]
    parts: Annotated[list[Part], ONE_ITEM]


NewKinds = IntervalsChange | BreaksChange | MappingChange | PrefixChange | DatesChange
NewLevel = Annotated[NewKinds, Field(discriminator="kind")]
Change = Annotated[LevelChange | NewKinds, Field(discriminator="kind")]


class PreviewRequest(RequestBody):
    """Request for the preview of a coarsening of one key."""

    column: Column
    change: Change


class KeepRequest(RequestBody):
    """Request to save a coarsening as a level: in place of an existing one, or as a new one."""

    column: Column
    change: NewLevel
    level: Annotated[str, Field(max_length=1000)] = ""
    name: Annotated[str, Field(max_length=200)] = ""


@router.get("/shape", response_class=HTMLResponse)
def show(request: Request, office: Here, key: Annotated[str, Query(max_length=1000)] = "") -> HTMLResponse:
    """The page: the keys with their levels, and the editor of one key."""
    return page(request, "shape.html", "shape", **_facts(office, key))


@router.post("/shape/preview")
def preview(office: Here, question: PreviewRequest) -> dict[str, float]:
    """Risk and information of all keys after a coarsening of one; nothing is saved."""
    office.need_file()
    session, folder = office.session, office.workspace.folder
    change = question.change.model_dump()
    arguments = (folder, session.policy["data"], session.version, question.column, change)
    numbers: dict[str, float] | None = office.desk.ask(work.preview, *arguments)
    if numbers is None:
        office.desk.ask(work.ready, folder, session.policy, _chosen_levels(session), question.column, session.version)
        numbers = office.desk.ask(work.preview, *arguments)
    if numbers is None:
        raise ParameterError("The file has changed: load the page again.")
    return numbers


@router.post("/shape/keep", response_class=HTMLResponse)
def keep(request: Request, office: Here, level_request: KeepRequest) -> HTMLResponse:
    """Save a coarsening as a level of the key."""
    change, column = level_request.change.model_dump(), level_request.column
    tree, level = office.ask(work.hierarchy_with, column, change, level_request.level, level_request.name)
    words = f"{column}: {_change_words(change, level_request.level)}"
    office.edit(request, words, "shape", lambda draft: _with_level(_with_tree(draft, column, tree), column, level))
    return _draw(request, office, column)


@router.post("/shape/level", response_class=HTMLResponse)
def choose(request: Request, office: Here, column: Text, level: Text) -> HTMLResponse:
    """Set the current level of a key."""
    name = office.ask(work.level_of, column, level)
    words = f"{column}: {'as it came' if name == ORIGINAL else f'level {name}'}"
    office.edit(request, words, "shape", lambda draft: _with_level(draft, column, name))
    return _draw(request, office, column)


@router.post("/shape/drop", response_class=HTMLResponse)
def drop(request: Request, office: Here, column: Text, level: Text) -> HTMLResponse:
    """Remove a level."""
    tree = office.ask(work.hierarchy_without, column, level)
    words = f"{column}: level {level} taken away"
    office.edit(request, words, "shape", lambda draft: _with_tree(draft, column, tree))
    return _draw(request, office, column)


@router.get("/shape/categories", response_class=HTMLResponse)
def categories(
    request: Request,
    office: Here,
    key: Annotated[str, Query(max_length=1000)],
    search: Annotated[str, Query(max_length=200)] = "",
    rare: bool = False,
) -> HTMLResponse:
    """The categories of a key, most frequent first."""
    listing = office.ask(work.categories, key, search, rare)
    return part(request, "shape_categories.html", listed=listing)


@router.post("/shape/suggest", response_class=HTMLResponse)
def suggest(
    request: Request,
    office: Here,
    k: Annotated[int, Form(ge=2, le=1_000_000)] = 3,
    share: Annotated[float, Form(ge=0, le=100, allow_inf_nan=False)] = 2,
) -> HTMLResponse:
    """Start the search for the least coarsening with classes of k records; `share` is in percent."""
    policy = office.need_file()
    about = {"k": k, "share": share, "version": office.session.version}
    office.runs.start(RUN, work.suggest_coarsening, office.workspace.folder, dict(policy), k, share / 100, about=about)
    return part(request, "shape_suggestion.html", run=office.runs.latest(RUN))


@router.get("/shape/suggestion", response_class=HTMLResponse)
def suggestion(request: Request, office: Here) -> HTMLResponse:
    """The progress of the search, or its result."""
    return part(request, "shape_suggestion.html", run=office.runs.latest(RUN))


@router.post("/shape/stop", response_class=HTMLResponse)
def stop(request: Request, office: Here) -> HTMLResponse:
    """Stop the search."""
    office.runs.stop_latest(RUN)
    return part(request, "shape_suggestion.html", run=office.runs.latest(RUN))


@router.post("/shape/take", response_class=HTMLResponse)
def take(request: Request, office: Here, key: Text = "") -> HTMLResponse:
    """Set all keys to the suggested levels."""
    run = office.runs.latest(RUN)
    if run is None or run.state != "done":
        raise ParameterError("There is no suggestion to take: ask for one first.")
    levels = dict(run.result["levels"])
    words = f"The levels suggested for classes of {run.result['k']}"
    office.edit(request, words, "shape", lambda draft: {**draft, "shape": levels})
    return _draw(request, office, key)


def _draw(request: Request, office: Office, column: str) -> HTMLResponse:
    return part(request, "shape_part.html", **_facts(office, column))


def _facts(office: Office, column: str) -> dict[str, Any]:
    """Facts for the page; empty where no file is open or no column is a key."""
    session = office.session
    if not session.policy.get("roles", {}).get("keys") or not office.opened:
        return {"found": None, "run": None, "drawing": None}
    arguments = (office.workspace.folder, session.policy, _chosen_levels(session), column, session.version)
    facts = office.desk.ask(work.look, *arguments)
    drawing = {name: facts[name] for name in ("column", "level", "shown", "records", "now", "original", "editor")}
    drawing |= {"levels": [level["name"] for level in facts["levels"] if not level["problem"]]}
    drawing |= {"limits": _limits(session.policy)}
    return {"found": facts, "run": office.runs.latest(RUN), "drawing": drawing}


def _chosen_levels(session: Session) -> dict[str, str]:
    return dict(session.draft.get("shape", {}))


def _with_level(draft: Draft, column: str, level: str) -> Draft:
    return {**draft, "shape": {**draft.get("shape", {}), column: level}}


def _with_tree(draft: Draft, column: str, tree: list[dict[str, Any]]) -> Draft:
    """The draft with another hierarchy of a column, or none where it is empty."""
    roles: Mapping[str, Any] = draft["policy"].get("roles", {})
    trees = {name: other for name, other in roles.get("hierarchies", {}).items() if name != column}
    trees |= {column: tree} if tree else {}
    others = {name: value for name, value in roles.items() if name != "hierarchies"}
    return with_policy(draft, roles={**others, **({"hierarchies": trees} if trees else {})})


def _change_words(change: Mapping[str, Any], replaced: str) -> str:
    """The words of a coarsening in the list of steps; no category is named."""
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
    """The limits on uniques and entropy, where the policy has them for all keys."""
    bounds = {}
    for score, sign in (("uniques", "<"), ("entropy", ">")):
        entry = policy.get("limits", {}).get(score)
        text = entry.get("limit") if isinstance(entry, Mapping) and not {"by", "scenario"} & set(entry) else entry
        try:
            limit = Limit.of(score, text) if isinstance(text, str) else None
        except EquipoiseError:
            continue
        if limit is not None and limit.sign.startswith(sign):
            bounds[score] = limit.bound
    return bounds
