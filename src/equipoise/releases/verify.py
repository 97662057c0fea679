"""Verify: is this release folder what it says, and can that be proven from what is here."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from equipoise import risk
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.files import read
from equipoise.ground.errors import DataError, EquipoiseError, ParameterError
from equipoise.methods.score import Score, Scores
from equipoise.presentation.missing_both_ways import both_ways
from equipoise.provenance.findings import Finding, Verification, failing
from equipoise.provenance.fingerprint import content_hash, hash_of, keyed_hash
from equipoise.recipe.catalogue import parse
from equipoise.releases.codebook import codebook
from equipoise.releases.evidence import (
    EVIDENCE,
    KEY,
    SIGNATURE,
    finite,
    hashes,
    holds,
    key_name,
    read_key,
    rounded,
    same_versions,
    sealed,
    told,
)
from equipoise.releases.release import write_data
from equipoise.releases.replay import Again, again, data_format, read_secret
from equipoise.releases.tables.verify import table_checks
from equipoise.trials.trial import Trial

ALONE = (
    risk.Uniques, risk.KAnonymity, risk.Individual, risk.Household, risk.Prosecutor, risk.SpecialUniques,
    risk.PopulationUniques, risk.AttributeDisclosure,
)  # fmt: skip
"""Measures that look at the released data alone."""
LONG = 9
"""A seed of fewer digits is found in any file by chance."""


def verify(
    folder: str | Path,
    *,
    original: Records | str | Path | None = None,
    key: str | Path | None = None,
    canaries: Iterable[str] = (),
) -> Verification:
    """Check a release folder, or its public part alone, and say what is proven.

    Every file must be there with its hash and no other; no seed and none of the `canaries` may be in what is published
    beside the data; scores that need only the released data are measured again. Two things prove a release, because
    nobody can bring them about by writing hashes anew: the signature of the evidence by the public `key` (a PEM file)
    that the reader knows, and making the release again from private/ and the original, which is the file that
    private/policy.toml names unless `original` says another. Without either the outcome is "unproven".

    Does not guard against whoever holds the private signing key, nor against a wrong original. The words of the report
    are covered by its hash, by the signature and by the seal in private/, not by making it again.
    Cost: reading the folder; with the original, what the masks, the measures and the writing cost.
    """
    if isinstance(original, str | Path) and not set("*?[") & set(str(original)) and not Path(original).exists():
        raise ParameterError(f"No file at {str(original)!r}.")
    place = Path(folder)
    public = _public(place)
    evidence, text = _evidence(public)
    private = place / "private" if public != place and (place / "private").is_dir() else None
    checks = [_files(public, evidence), *_secrets(public, private, evidence, tuple(canaries))]
    checks.append(_signed(public, text, key))
    checks += [_sealed(private, text, evidence)] if private else []
    if "table" in evidence:
        return Verification(place, (*checks, *table_checks(public, private, evidence, original)))
    checks.append(_alone(public, evidence))
    if private is None or not checks[0].holds:
        reason = "private/ is not here" if private is None else "its files are not those that were released"
        return Verification(place, (*checks, _not_made(reason)))
    return Verification(place, (*checks, *_made_again(place, evidence, original)))


def _public(place: Path) -> Path:
    found = next((p for p in (place / "public", place) if (p / EVIDENCE).is_file()), None)
    if found is None:
        raise DataError(f"The folder {str(place)!r} is not a release: it has no public/{EVIDENCE}.")
    return found


def _evidence(public: Path) -> tuple[dict[str, Any], bytes]:
    text = (public / EVIDENCE).read_bytes()
    try:
        found = json.loads(text)
        wanted = ("files", "output", "versions", "audit" if "table" in found else "scores")
        if not all(isinstance(found[name], dict | list | str) for name in wanted):
            raise ValueError
    except (ValueError, KeyError, TypeError, UnicodeDecodeError):
        raise DataError(f"Cannot read {str(public / EVIDENCE)!r}: it is not the evidence of a release.") from None
    return found, text


# --- the folder alone ---------------------------------------------------------------------------------------------


def _files(public: Path, evidence: dict[str, Any]) -> Finding:
    said, found = evidence["files"], hashes(public)
    faults = [f"{name!r} is missing." for name in said if name not in found]
    faults += [f"{name!r} is not a file of this release." for name in found if name not in said]
    faults += [
        f"{name!r} is not the file that was released." for name in said if found.get(name, said[name]) != said[name]
    ]
    for output in _outputs(evidence):
        path = public / Path(str(output["file"])).name
        if path.exists() and hash_of(path) != output["sha256"]:
            faults.append(f"The hash of {path.name!r} is another one.")
        if "content_sha256" in output and path.exists() and content_hash(path) != output["content_sha256"]:
            faults.append(f"The content of {path.name!r} is another one.")
    return failing("files", dict.fromkeys(faults), "Every public file is there with its hash, and no other.")


def _outputs(evidence: dict[str, Any]) -> list[dict[str, Any]]:
    return evidence["output"] if isinstance(evidence["output"], list) else [evidence["output"]]


def _secrets(
    public: Path, private: Path | None, evidence: dict[str, Any], canaries: tuple[str, ...]
) -> Iterator[Finding]:
    """Nothing secret is published: not the seed, not the key of the hashes; no canary beside the data."""
    everything = [path for path in sorted(public.rglob("*")) if path.is_file()]
    if private:
        secret = read_secret(private)
        seed = str(secret["seed"])
        hidden = [seed, f"{int(seed):x}"] if len(seed) >= LONG else []
        hidden += [str(secret["hash_key"])] if "hash_key" in secret else []
        leaky = [path.name for path in everything if _within(path, hidden)]
        yield failing(
            "secrets", (f"A secret of the release is in {name!r}." for name in leaky), "No seed is published."
        )
    if canaries:
        data = {str(output["file"]) for output in _outputs(evidence)}
        leaky = [path.name for path in everything if path.name not in data and _within(path, canaries)]
        yield failing("canaries", (f"A canary is in {name!r}." for name in leaky), "No canary is published in words.")


def _within(path: Path, texts: Iterable[str]) -> bool:
    """Whether a file holds one of the texts; read in blocks that overlap."""
    wanted = [text.encode() for text in texts if text]
    keep, tail = max((len(text) for text in wanted), default=1) - 1, b""
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            seen = tail + block
            if any(text in seen for text in wanted):
                return True
            tail = seen[-keep:] if keep else b""
    return False


def _signed(public: Path, text: bytes, key: str | Path | None) -> Finding:
    """The signature: by the key that is asked for it is proof; by the key beside it alone it is not."""
    wanted = read_key(key) if key is not None else None
    if not (public / SIGNATURE).is_file():
        return Finding("signature", None if wanted is None else False, "The evidence is not signed.")
    try:
        pem = wanted or read_key(public / KEY)
        good, name = holds(pem, (public / SIGNATURE).read_bytes(), text), key_name(pem)
    except EquipoiseError:
        return Finding("signature", False, "The public key beside the signature cannot be read.")
    if not good:
        return Finding("signature", False, "The signature is not one under this evidence by this key.")
    if wanted is None:
        return Finding("signature", None, f"Signed by the key {name}, which came with it: give the key that you know.")
    return Finding("signature", True, f"The evidence is signed by the key {name}.", proof=True)


def _sealed(private: Path, text: bytes, evidence: dict[str, Any]) -> Finding:
    """The evidence and the policy are those that this private folder was written with."""
    secret = read_secret(private)
    if "seal" not in secret or "hash_key" not in secret:
        return Finding("seal", None, "The private folder has no seal.")
    key = bytes.fromhex(secret["hash_key"])
    faults = (
        [] if sealed(text, key) == secret["seal"] else ["The evidence is not the one that private/ was written with."]
    )
    said = evidence.get("policy", {}).get("hmac_sha256")
    if said is not None and sealed((private / "policy.toml").read_bytes(), key) != said:
        faults.append("The policy is not the one of the evidence.")
    return failing("seal", faults, "Evidence and policy are those that private/ was written with.")


def _alone(public: Path, evidence: dict[str, Any]) -> Finding:
    """The scores that need only the released data, measured again."""
    wanted = {name: m for name in evidence["scores"] if isinstance(m := _measure(name), ALONE)}
    if not wanted:
        return Finding("scores", None, "No score can be measured on the released data alone.")
    try:
        roles = Roles.from_plain(evidence["roles"])
        released = read(public / Path(str(evidence["output"]["file"])).name, roles)
        found = Scores(measure.measure(released, released) for measure in wanted.values())
    except (EquipoiseError, KeyError, TypeError, OSError):
        return Finding("scores", None, "The released data could not be measured on its own.")
    many = f"{len(found)} {'score' if len(found) == 1 else 'scores'}"
    return failing("scores", _different(found, evidence), f"Measured again on the released data, {many} as told.")


def _measure(name: str) -> Any:
    try:
        return parse(name, "measure")
    except EquipoiseError:
        return None


def _different(found: Iterable[Score], evidence: dict[str, Any]) -> Iterator[str]:
    """Scores that are not as the evidence has them, by their names."""
    for score in found:
        said = evidence["scores"].get(score.name, {}).get("value")
        if finite(rounded(score.value, score.unit)) != said:
            yield f"{score.name} is {rounded(score.value, score.unit):g}, not {said}."


# --- with private/ and the original -------------------------------------------------------------------------------


def _not_made(reason: str) -> Finding:
    return Finding("again", None, f"The release was not made again: {reason}.")


def _made_again(place: Path, evidence: dict[str, Any], original: Records | str | Path | None) -> list[Finding]:
    """Run the recipe once more on the original, and compare data, laws, scores, limits and codebook."""
    try:
        found = again(place, original)
        records = found.records
    except EquipoiseError as error:
        return [_not_made(str(error).rstrip("."))]
    secret = read_secret(place / "private")
    if _another_input(records, evidence, secret):
        return [Finding("original", False, "The original is not the file that was released.")]
    try:
        released = found.recipe.run(records, found.draw)
        checks = [_same_data(place, evidence, released, found)]
        checks.append(_same_scores(evidence, released, records, found))
        checks.append(_same_words(place, evidence, released, records))
    except EquipoiseError as error:
        return [Finding("again", False, f"The release cannot be made again: {error}")]
    return checks


def _another_input(records: Records, evidence: dict[str, Any], secret: dict[str, Any]) -> bool:
    said = evidence["input"]["hmac_sha256"]
    return said is not None and keyed_hash(records, bytes.fromhex(secret["hash_key"])) != said


def _same_data(place: Path, evidence: dict[str, Any], released: Records, found: Again) -> Finding:
    """The data written once more: byte for byte, or with the same content."""
    name, kind = str(evidence["output"]["file"]), data_format(place)
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / f"data.{kind}"
        write_data(released, path, kind, tuple(evidence["withheld"]), found.recipe.seed)
        if hash_of(path) == hash_of(place / "public" / Path(name).name):
            return Finding(
                "again", True, "Made again from the original, the data is the same byte for byte.", proof=True
            )
        content = content_hash(path)
    if content is not None and content == content_hash(place / "public" / Path(name).name):
        return Finding("again", True, "Made again from the original, the data has the same content.", proof=True)
    other = "" if same_versions(evidence["versions"]) else " The versions differ from those of the release."
    return Finding("again", False, f"Made again from the original, the data is another one.{other}")


def _same_scores(evidence: dict[str, Any], released: Records, records: Records, found: Again) -> Finding:
    """Every score measured once more, and judged by the limits of the policy."""
    policy = found.job.policy()
    scores = Scores(both_ways(measure, released, records) for measure in found.measures)
    faults = list(_different(scores, evidence))
    if dict(policy.limits) != evidence["limits"]:
        faults.append("The limits are not those of the policy.")
    elif {s.name for s in scores} >= {limit.score for limit in policy.parsed}:
        faults += [r + "." for r in policy.judge(Trial(found.recipe, scores)).reasons if "outside" in r]
    lacking = [name for name in evidence["scores"] if name not in scores.keys()]  # noqa: SIM118
    left = f" Not measured: {', '.join(lacking)}." if lacking else ""
    return failing("limits", faults, f"Measured again, {len(scores)} scores are as told and within the limits.{left}")


def _same_words(place: Path, evidence: dict[str, Any], released: Records, records: Records) -> Finding:
    """The laws of the masks and the codebook, as the same versions write them."""
    if not same_versions(evidence["versions"]):
        return Finding("codebook", None, "Codebook and laws were not compared: the versions differ.")
    laws = json.loads(json.dumps([told(law) for law in released.history]))
    faults = [] if laws == evidence["masks"] else ["The masks are not those of the release."]
    pages = [place / "public" / name for name in ("codebook.json", "codebook.md")]
    found = [page.read_text(encoding="utf-8") if page.is_file() else "" for page in pages]
    title = str(_title(found[0]))
    book = codebook(released, records, title=title, file=str(evidence["output"]["file"]), withheld=evidence["withheld"])
    if [book.to_json(), book.to_markdown()] != found:
        faults.append("The codebook is another one.")
    return failing("codebook", faults, "The laws of the masks and the codebook are as made again.")


def _title(text: str) -> Any:
    try:
        return json.loads(text)["title"]
    except (ValueError, KeyError, TypeError):
        return ""
