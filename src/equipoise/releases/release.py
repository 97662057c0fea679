"""Release: run, measure again, judge, and write the folder whole or not at all."""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from equipoise.data import engines
from equipoise.data.records import Records
from equipoise.files import FORMATS, becomes, save, with_codes
from equipoise.ground import system
from equipoise.ground.errors import DataError, EquipoiseError, ParameterError
from equipoise.ground.progress import Progress
from equipoise.ground.randomness import Draws, new_seed
from equipoise.inspection.assess import profile, refuse_unfit, standard
from equipoise.inspection.direct_identifiers import refuse_identifiers, without_direct
from equipoise.intrusion.attack import try_out
from equipoise.methods.method import Measure
from equipoise.methods.score import Scores
from equipoise.policies.policy import Policy, Verdict, refused
from equipoise.policies.policy_file import job_of
from equipoise.presentation.missing_both_ways import both_ways
from equipoise.presentation.notebook import release_html
from equipoise.provenance.recipe_file import RECIPE, SCRIPT, SCRIPT_NAME, recipe_text
from equipoise.provenance.seed_register import Register
from equipoise.recipe.catalogue import to_plain
from equipoise.recipe.recipe import Recipe
from equipoise.releases.codebook import codebook
from equipoise.releases.evidence import EVIDENCE, KEY, SIGNATURE, Signer, sealed, written
from equipoise.releases.evidence import FORMAT as FORMAT
from equipoise.releases.evidence import evidence as evidence_of
from equipoise.releases.evidence import finite as finite
from equipoise.releases.evidence import rounded as rounded
from equipoise.releases.report_facts import Render, Report, completed, ends
from equipoise.search.frontier import Frontier, frontier
from equipoise.trials.trial import Trial

FRESH = 1 << 20
"""The draw that is released: none that a sweep has looked at, so it cannot have been picked for its scores."""
ORDER = 1 << 20
"""The step of the seed's draws that orders the released records, beyond any mask's."""


@dataclass(frozen=True)
class Release:
    """What was released: the data, the trial measured on it, the verdict, where it stands, and what it was before."""

    data: Records
    trial: Trial
    verdict: Verdict
    folder: Path
    evidence: dict[str, Any] = field(repr=False)
    frontier: Frontier = field(repr=False)
    original: Trial = field(repr=False)

    @property
    def public(self) -> Path:
        return self.folder / "public"

    @property
    def private(self) -> Path:
        return self.folder / "private"

    @property
    def report(self) -> Path:
        """The internal report; the one for the public is `public/report.html`."""
        return self.private / "report.html"

    def _repr_html_(self) -> str:
        return release_html(self)


def release(
    records: Records,
    recipe: Recipe,
    policy: Policy,
    out: str | Path,
    *,
    render: Render,
    format: str | None = None,
    overwrite: bool = False,
    trials: Sequence[Trial] = (),
    measures: Sequence[Measure] = (),
    title: str | None = None,
    policy_text: str | None = None,
    register: Register | None = None,
    draw: int = FRESH,
    sign: str | Path | None = None,
    progress: Progress | None = None,
) -> Release:
    """Run the recipe, measure the released records themselves, refuse if a limit is broken, write the folder.

    The id and the direct identifiers are withheld; a column that looks like one and has neither role is refused, unless
    the policy allows it.

    Parameters
    ----------
    records, recipe, policy
        The original file, what to do to it, and what must hold.
    out
        The folder to make: `public/` (data, codebook, report, evidence) and `private/` (seed, policy, recipe, replay,
        internal report, journal).
    render
        Turns a Report into a page.
    format
        A name of `equipoise.files.FORMATS`, such as csv or parquet; that of the input when not given. SAS data sets
        become .xpt and R files Parquet, which the evidence says.
    overwrite
        Replace an earlier release at `out`.
    trials
        What else was tried, for the internal map.
    measures
        What to report beside the limits; the limits' own when not given, the standard ones when there are no limits.
    title, policy_text
        The heading of the report, and the policy file that makes the release again.
    register
        Where the seeds of random masks are kept, one per data asset.
    draw
        The number of the draw that is released; it is in the evidence.
    sign
        A private Ed25519 key (PEM) that signs the evidence.
    progress
        Called with (done, total, what) while the release is attacked.
    """
    folder = Path(out)
    refuse_existing(folder, overwrite)
    kind = format or (becomes(records.source.format) if records.source else "parquet")
    if kind not in FORMATS:
        raise ParameterError(f"No format {kind!r}. There are: {', '.join(FORMATS)}.")
    signer = Signer.load(sign) if sign is not None else None
    given, records = records, without_direct(records)
    refuse_unfit(records, keys_needed=False)
    scales = tuple(measures) or policy.measures() or standard(records, recipe)
    recipe = register.settle(recipe, records) if register else recipe
    released = recipe.run(records, draw)
    refuse_identifiers(released, policy.allow, (records.roles.id,) if records.roles.id else ())
    trial = Trial(recipe, Scores(both_ways(m, released, records) for m in scales))
    verdict = policy.judge(trial)
    if not verdict:
        raise refused(trial, verdict)
    facts = _report(records, released, trial, verdict, policy, scales, trials, title)
    facts = replace(facts, withheld=(*facts.withheld, *given.roles.direct))
    tried = try_out(released, records, progress=progress)
    facts = replace(facts, untried=tried) if isinstance(tried, str) else replace(facts, attack=tried)
    facts = completed(facts, records, released)
    text = policy_text or job_of(given, recipe, policy, format).to_toml()
    with staged(folder, overwrite) as stage:
        kept = {RECIPE: recipe_text(recipe, trial.scores.keys(), draw), "policy.toml": text, SCRIPT_NAME: SCRIPT}
        evidence = _write(stage, records, released, facts, kind, render, kept, draw, signer)
        if register:
            register.record(recipe, records)
    return Release(released, trial, verdict, folder, evidence, facts.frontier, facts.original)


def refuse_existing(folder: Path, overwrite: bool) -> None:
    """Never write over what is there, unless it is a release and we were told to."""
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise DataError(f"{str(folder)!r} is a file: name a folder that does not exist yet.")
    if not overwrite and any(folder.iterdir()):
        raise DataError(f"The folder {str(folder)!r} exists already: name another, or ask to overwrite it.")
    if overwrite and any(folder.iterdir()) and not (folder / "public" / "evidence.json").is_file():
        raise DataError(f"The folder {str(folder)!r} is not a release: it is not overwritten.")


@contextmanager
def staged(
    folder: Path, overwrite: bool, *, refuse: Callable[[Path, bool], None] = refuse_existing, private: bool = False
) -> Iterator[Path]:
    """A folder beside the target that takes its place only when everything in it is written.

    `refuse` says whether the target may be replaced; a `private` one is for its owner only. Whenever it is killed, what
    is called .partial may be in pieces, and what is called .old is whole.
    """
    fresh = [parent for parent in folder.parents if not parent.exists()]
    folder.parent.mkdir(parents=True, exist_ok=True)
    stage = folder.parent / f".{folder.name}.{secrets.token_hex(4)}.partial"
    system.make_folder(stage, private=True)
    old = stage.with_suffix(".old")
    try:
        yield stage
        refuse(folder, overwrite)
        if folder.exists():
            system.move(folder, old)
        system.move(stage, folder)
    except BaseException:
        if old.exists() and not folder.exists():
            system.move(old, folder)
        system.remove_folder(stage)
        for parent in fresh:
            with suppress(OSError):
                parent.rmdir()
        raise
    system.restrict(folder, private=private)
    if old.exists():
        system.restrict(old)
        system.move(old, stage)
    system.remove_folder(stage)


def _report(
    records: Records,
    released: Records,
    trial: Trial,
    verdict: Verdict,
    policy: Policy,
    measures: Sequence[Measure],
    trials: Sequence[Trial],
    title: str | None,
) -> Report:
    original, nothing = ends(records, measures)
    name = title or (Path(records.source.path).name if records.source else "Release")
    shown = [t for t in trials if t.scores.keys() == trial.scores.keys()]
    return Report(
        title=name,
        version=version("equipoise"),
        made=datetime.now(UTC).date(),
        policy=policy,
        verdict=verdict,
        chosen=trial,
        original=original,
        nothing=nothing,
        frontier=frontier(shown or (original, trial)),
        before=profile(records),
        after=profile(released),
        laws=released.history,
        withheld=(records.roles.id,) if records.roles.id else (),
    )


def _write(
    stage: Path,
    records: Records,
    released: Records,
    facts: Report,
    kind: str,
    render: Render,
    kept: Mapping[str, str],
    draw: int,
    signer: Signer | None,
) -> dict[str, Any]:
    public, private = stage / "public", stage / "private"
    system.make_folder(public, private=False)
    system.make_folder(private, private=True)
    data = public / f"data.{kind}"
    write_data(released, data, kind, facts.withheld, facts.chosen.recipe.seed)
    book = codebook(released, records, title=facts.title, file=data.name, withheld=facts.withheld)
    system.write(public / "codebook.md", book.to_markdown())
    system.write(public / "codebook.json", book.to_json())
    system.write(public / "report.html", render(facts, True))
    key = secrets.token_bytes(32)
    evidence = evidence_of(
        records, released, facts, public=public, data=data, draw=draw, key=key, policy=kept["policy.toml"]
    )
    told = put_evidence(public, evidence, signer)
    system.write(private / "report.html", render(facts, False))
    for name, text in kept.items():
        system.write(private / name, text)
    secret = {"format": FORMAT, "seed": str(facts.chosen.recipe.seed), "hash_key": key.hex(), "seal": sealed(told, key)}
    system.write(private / "seed.json", json.dumps(secret))
    system.write(private / "journal.jsonl", "".join(line + "\n" for line in _journal(facts)))
    for file in private.iterdir():
        system.restrict(file)
    return evidence


def put_evidence(public: Path, evidence: Mapping[str, Any], signer: Signer | None) -> bytes:
    """Write the evidence and, where there is a key, the signature under its bytes and the public key."""
    told = written(evidence)
    system.write(public / EVIDENCE, told)
    if signer is not None:
        (public / SIGNATURE).write_bytes(signer.sign(told.encode()))
        system.write(public / KEY, signer.public())
    return told.encode()


def write_data(records: Records, path: Path, kind: str, withheld: tuple[str, ...], seed: int | None) -> None:
    """The released data without the columns withheld, in its own engine where that writes the format.

    After a random mask the order of the records is drawn as well: where a record stands must not show where it was.
    """
    records = replace(records, frame=with_codes(records, kind))
    frame = records.frame if records.coarsened else shuffled(records, seed)
    frame = frame.drop(list(withheld), strict=False) if withheld else frame
    try:
        if frame.implementation.is_polars():
            save(frame.to_native(), path, kind, records.labels)
        elif kind == "parquet":
            frame.sink_parquet(str(path))
        else:
            save(engines.collect(frame).lazy(), path, kind, records.labels)
    except EquipoiseError:
        raise
    except Exception as error:
        engines.fail(error, "write the released data")


def shuffled(records: Records, seed: int | None) -> engines.Frame:
    """The records in an order drawn from the secret seed."""
    if records.kind == "pyspark":
        return engines.shuffled(records.frame, new_seed() if seed is None else seed)
    draws = Draws(new_seed() if seed is None else seed).child(ORDER)
    places = np.argsort(draws.uniform(records.keys_of_rows()), kind="stable")
    return engines.like(records.frame, records.collect()[places])


def _journal(facts: Report) -> Iterator[str]:
    """The format, then one line per trial: what was tried, what it scored."""
    yield json.dumps({"format": FORMAT, "scores": list(facts.chosen.scores.keys())})
    for trial in facts.frontier.trials:
        masks = [to_plain(mask) for mask in trial.recipe.masks]
        yield json.dumps(
            {"masks": masks, "values": [finite(score.value) for score in trial.scores]},
            default=str,
        )
