"""Checks of released records and tables: measured and audited again, and made again from the original."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import date
from html import unescape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from equipoise import risk
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read_table_csv
from equipoise.ground.errors import EquipoiseError
from equipoise.methods.score import Score, Scores
from equipoise.presentation.missing_both_ways import both_ways
from equipoise.presentation.pages import page
from equipoise.provenance.findings import Check, failing
from equipoise.provenance.fingerprint import content_hash, content_of, hash_of
from equipoise.provenance.recipe_file import as_made
from equipoise.provenance.registered_tables import CELLS, cells_of
from equipoise.recipe.catalogue import known_method
from equipoise.releases.codebook import codebook
from equipoise.releases.evidence import SIGNATURE, finite, public_law, rounded, same_versions
from equipoise.releases.release import public_report, write_data
from equipoise.releases.reopen import reopen
from equipoise.releases.replay import Again, again, another_input, data_format, order_seed, table_again
from equipoise.releases.tabulated import Tabulated
from equipoise.tables import audit
from equipoise.trials.trial import Trial

RELEASE_ONLY_MEASURES = (
    risk.Uniques, risk.KAnonymity, risk.Individual, risk.Household, risk.Composition, risk.Prosecutor,
    risk.SpecialUniques, risk.PopulationUniques, risk.AttributeDisclosure,
)  # fmt: skip
"""Measures that look at the released data alone."""
TABLE_FILE = "table.csv"
OLD_STATUS, STATUS = "withheld", "suppressed"
OLD_LAW, LAW = (f"{word} for records in unsafe classes" for word in (OLD_STATUS, STATUS))
"""Words of version 0.1 in tables and in laws of records, and those of this one: a release may have either."""
INTERVAL_TOLERANCE = 1e-6
"""How far the ends of an interval may differ, as a share."""
PAGE_TITLE, PAGE_DAY = re.compile(r"<h1>(.*?)</h1>"), re.compile(r"Made on \d+ \w+ \d+ by")
Evidence = dict[str, Any]
Original = Records | str | Path | None


def records_checks(
    public: Path, private: Path | None, evidence: Evidence, *, original: Original, intact: bool
) -> Iterator[Check]:
    """Scores measured again; the release made again where its private part and its files are there."""
    yield _alone(public, evidence)
    if private is None or not intact:
        reason = "private/ is not here" if private is None else "its files are not those that were released"
        yield _not_made("release", reason)
        return
    yield from _made_again(public.parent, evidence, original)


def table_checks(
    public: Path, private: Path | None, evidence: Evidence, *, original: Original, intact: bool
) -> Iterator[Check]:
    """What can be checked of a table beyond hashes and signature. Cost: that of its audit, and of making it again."""
    yield _alike(public)
    if private is None:
        yield _not_made("table", "private/ is not here")
        return
    yield _numbers(public, private)
    yield _audited(private, evidence)
    yield from _table_again(public, private, evidence, original)


def _not_made(what: str, reason: str) -> Check:
    return Check("again", None, f"The {what} was not made again: {reason}.")


def _alone(public: Path, evidence: Evidence) -> Check:
    """The scores that need only the released data, measured again: not where what is true of people counts too."""
    roles_of_columns = evidence.get("roles", {})
    changed = {c for law in evidence.get("masks", ()) if not law.get("coarsens") for c in law.get("columns", ())}
    told = roles_of_columns.get("household") and changed & {*roles_of_columns.get("keys", ())}
    exchanged = any(law.get("mask") == "local_swap" for law in evidence.get("masks", ()))
    of_pairs = told or exchanged or roles_of_columns.get("person") or roles_of_columns.get("missing") == "any"
    names = () if of_pairs else evidence["scores"]
    measures = {name: m for name in names if isinstance(m := known_method(name, "measure"), RELEASE_ONLY_MEASURES)}
    if not measures:
        return Check("scores", None, "No score can be measured on the released data alone.")
    try:
        roles = Roles.from_plain(evidence["roles"])
        released = reopen(public, roles)
        scores = Scores(measure.measure(released, released) for measure in measures.values())
    except (EquipoiseError, KeyError, TypeError, OSError):
        return Check("scores", None, "The released data could not be measured on its own.")
    many = f"{len(scores)} {'score' if len(scores) == 1 else 'scores'}"
    return failing("scores", _different(scores, evidence), f"Measured again on the released data, {many} as told.")


def _different(scores: Iterable[Score], evidence: Evidence) -> Iterator[str]:
    """Scores that are not as the evidence has them, by their names."""
    for score in scores:
        recorded = evidence["scores"].get(score.name, {}).get("value")
        if finite(rounded(score.value, score.unit)) != recorded:
            yield f"{score.name} is {rounded(score.value, score.unit):g}, not {recorded}."


def _made_again(place: Path, evidence: Evidence, original: Original) -> list[Check]:
    """Run the recipe once more on the original, and compare data, laws, scores, limits, codebook and public report."""
    try:
        first = again(place, original)
        records = first.records
    except EquipoiseError as error:
        return [_not_made("release", str(error).rstrip("."))]
    if another_input(records, evidence, place / "private"):
        return [Check("original", False, "The original is not the file that was released.")]
    try:
        released = first.recipe.run(records, first.draw)
        checks = [_same_data(place, evidence, released, first)]
        scores = Scores(both_ways(measure, released, records) for measure in first.measures)
        checks.append(_same_scores(evidence, scores, first))
        checks.append(_same_words(place, evidence, released, records))
        checks.append(_same_report(place, evidence, released, scores, first))
    except EquipoiseError as error:
        return [Check("again", False, f"The release cannot be made again: {error}")]
    return checks


def _same_data(place: Path, evidence: Evidence, released: Records, again: Again) -> Check:
    """The data written once more: byte for byte, or with the same content."""
    name, kind = str(evidence["output"]["file"]), data_format(place)
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / f"data.{kind}"
        order, formulas = order_seed(evidence, released, again), again.job.output.csv_formulas
        write_data(released, path, kind, tuple(evidence["withheld"]), order, formulas)
        if hash_of(path) == hash_of(place / "public" / Path(name).name):
            return Check("again", True, "Made again from the original, the data is the same byte for byte.", proof=True)
        content = content_hash(path)
    if content is not None and content == content_hash(place / "public" / Path(name).name):
        return Check("again", True, "Made again from the original, the data has the same content.", proof=True)
    other = "" if same_versions(evidence["versions"]) else " The versions differ from those of the release."
    return Check("again", False, f"Made again from the original, the data is another one.{other}")


def _same_scores(evidence: Evidence, scores: Scores, again: Again) -> Check:
    """Every score measured once more, and judged by the limits of the policy."""
    policy = again.job.policy()
    faults = list(_different(scores, evidence))
    if dict(policy.limits) != evidence["limits"]:
        faults.append("The limits are not those of the policy.")
    elif {s.name for s in scores} >= {limit.score for limit in policy.parsed}:
        faults += [r + "." for r in policy.judge(Trial(again.recipe, scores)).reasons if "outside" in r]
    lacking = [name for name in evidence["scores"] if name not in scores.keys()]  # noqa: SIM118
    gap = f" Not measured: {', '.join(lacking)}." if lacking else ""
    return failing("limits", faults, f"Measured again, {len(scores)} scores are as told and within the limits.{gap}")


def _same_words(place: Path, evidence: Evidence, released: Records, records: Records) -> Check:
    """The laws of the masks and the codebook, as the same versions write them."""
    if not same_versions(evidence["versions"]):
        return Check("codebook", None, "Codebook and laws were not compared: the versions differ.")
    laws = json.loads(json.dumps([public_law(law) for law in released.history]))
    stored = json.loads(json.dumps(evidence["masks"]).replace(OLD_LAW, LAW))
    stored = [{**law, "parameters": as_made(law["mask"], law["parameters"])} for law in stored]
    faults = [] if laws == stored else ["The masks are not those of the release."]
    pages = [place / "public" / name for name in ("codebook.json", "codebook.md")]
    texts = [page.read_text(encoding="utf-8").replace(OLD_LAW, LAW) if page.is_file() else "" for page in pages]
    title = str(_title(texts[0]))
    book = codebook(released, records, title=title, file=str(evidence["output"]["file"]), withheld=evidence["withheld"])
    if [book.to_json(), book.to_markdown()] != texts:
        faults.append("The codebook is another one.")
    return failing("codebook", faults, "The laws of the masks and the codebook are as made again.")


def _same_report(place: Path, evidence: Evidence, released: Records, scores: Scores, again: Again) -> Check:
    """The public report, as the same versions write it on the day of the evidence."""
    if not same_versions(evidence["versions"]) or [*scores.keys()] != [*evidence["scores"]]:
        return Check("report", None, "The report was not made again: the versions or the measures differ.")
    public = place / "public"
    title = str(_title((public / "codebook.json").read_text(encoding="utf-8")))
    text = public_report(
        again.records, released, Trial(again.recipe, scores), again.job.policy(), measures=again.measures, title=title,
        made=date.fromisoformat(evidence["made"]), withheld=evidence["withheld"], signed=(public / SIGNATURE).is_file(),
        several=evidence.get("several_releases", ()),
    )  # fmt: skip
    path = public / "report.html"
    return _same_page(path.read_text(encoding="utf-8") if path.is_file() else "", text)


def _same_page(stored: str, text: str) -> Check:
    same = stored == text
    return failing(
        "report", [] if same else ["The public report is another one."], "The public report is as made again."
    )


def _title(text: str) -> Any:
    try:
        return json.loads(text)["title"]
    except (ValueError, KeyError, TypeError):
        return ""


def _alike(public: Path) -> Check:
    """The same table in both formats."""
    try:
        one, two = _csv_table(public), pl.read_parquet(public / "table.parquet")
    except (OSError, pl.exceptions.PolarsError):
        return Check("formats", False, "The released table cannot be read.")
    same = content_of(one) == content_of(two)
    return failing("formats", [] if same else ["table.csv and table.parquet differ."], "Both formats hold one table.")


def _csv_table(public: Path) -> pl.DataFrame:
    """The table in CSV: as it is where formulas were kept, so that it is that of Parquet; else without marks."""
    with suppress(OSError, pl.exceptions.PolarsError):
        kept = pl.read_csv(public / TABLE_FILE, infer_schema_length=None, glob=False)
        if content_of(kept) == content_of(pl.read_parquet(public / "table.parquet")):
            return kept
    return read_table_csv(public / TABLE_FILE)


def _released_cells(public: Path) -> pl.DataFrame:
    cells = _csv_table(public)
    return cells.with_columns(pl.col("^status$").cast(pl.String).replace(OLD_STATUS, STATUS))


def _numbers(public: Path, private: Path) -> Check:
    """Whether the published numbers are those of the private table."""
    try:
        published = _released_cells(public)
        inside = read_table_csv(private / TABLE_FILE)
        inner = inside.select(c for c in published.columns if c != "status")
        same = content_of(published.drop("status")) == content_of(inner)
        faults = [] if same else ["The numbers are not those of private/."]
        numbered = published.filter(pl.col("status") != "empty")
        hidden = numbered.filter((pl.col("status") == STATUS) != pl.col("published").is_null()).height
    except (OSError, pl.exceptions.PolarsError):
        return Check("numbers", False, "The private table cannot be read, or has other columns.")
    faults += ["A suppressed cell has a number, or a published one has none."] if hidden else []
    return failing("numbers", faults, "Every number is that of the private table.")


def _audited(private: Path, evidence: Evidence) -> Check:
    """No suppressed cell can be computed, and the intervals are those of the audit that was written."""
    if evidence.get("method") != "suppress":
        return Check("audit", None, "Numbers were changed: they are audited when the table is made again.")
    if evidence["table"].get("signed") or "statistic" in evidence["table"]:
        return Check("audit", None, "The table is not one of plain sums: it is audited when it is made again.")
    try:
        table = cells_of(private)
        intervals = audit(table, against="outsider")
        recorded = read_table_csv(private / "audit.csv")
    except (EquipoiseError, OSError, pl.exceptions.PolarsError):
        return Check("audit", None, f"{CELLS} could not be read back.")
    recorded = recorded.filter(pl.col("against") == "outsider") if "against" in recorded.columns else recorded
    faults = ["An outsider can compute a suppressed cell exactly."] if intervals["exact"].any() else []
    if recorded.height != intervals.height:
        faults.append("Other cells are suppressed than were audited.")
    elif recorded.height and not _close(intervals, recorded, table.by):
        faults.append("The intervals of suppressed cells are not those of the audit.")
    return failing("audit", faults, "Audited again, an outsider can compute no suppressed cell exactly.")


def _close(intervals: pl.DataFrame, recorded: pl.DataFrame, by: tuple[str, ...]) -> bool:
    names = dict.fromkeys(by, pl.String)
    one, two = (frame.cast(names).sort(by).select(*by, "lower", "upper") for frame in (intervals, recorded))  # type: ignore[arg-type]
    if not one.select(by).equals(two.select(by)):
        return False
    gaps = [(one[end] - two[end]).abs() <= INTERVAL_TOLERANCE * (1 + two[end].abs()) for end in ("lower", "upper")]
    return all(bool(gap.fill_null(value=True).all()) for gap in gaps)


def _table_again(public: Path, private: Path, evidence: Evidence, original: Original) -> Iterator[Check]:
    try:
        table, records = table_again(private, original)
    except EquipoiseError as error:
        yield _not_made("table", str(error).rstrip("."))
        return
    if another_input(records, evidence, private):
        yield Check("original", False, "The original is not the file that the table was made from.")
        return
    if content_of(table.public) != content_of(_released_cells(public)):
        yield Check("again", False, "Made again from the original, the table is another one.")
        return
    yield Check("again", True, "Made again from the original and audited, the table is the same.", proof=True)
    yield _same_table_report(public, evidence, table)


def _same_table_report(public: Path, evidence: Evidence, table: Tabulated) -> Check:
    """The public page of the table but for its day, as the same versions write it under its own title."""
    if not same_versions(evidence["versions"]):
        return Check("report", None, "The report was not made again: the versions differ.")
    path = public / "report.html"
    stored = path.read_text(encoding="utf-8") if path.is_file() else ""
    title = unescape(heading[1]) if (heading := PAGE_TITLE.search(stored)) else None
    audit = evidence["audit"]
    if isinstance(audit, dict):
        attackers = table.attackers.as_stated(audit.get("against", ()), audit.get("not_against", ()))
        table = replace(table, attackers=attackers)
    text = page(table, "", public=True, title=title, signed=(public / SIGNATURE).is_file())
    return _same_page(PAGE_DAY.sub("", stored), PAGE_DAY.sub("", text))
