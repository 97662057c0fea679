"""Runs of the page Tables: protect and audit one table; try other rules and methods on it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from equipoise.data.tables.statistic import statistic_of
from equipoise.data.tables.table import Table
from equipoise.doors.report.page_parts import for_page
from equipoise.doors.report.table_map_section import compared_facts
from equipoise.doors.report.table_page import table_facts
from equipoise.doors.web.work.table_settings import Plain
from equipoise.ground.errors import ParameterError
from equipoise.ground.progress import Progress, report
from equipoise.ground.randomness import new_seed
from equipoise.policies.policy_file import Job
from equipoise.policies.table_section import rules_of
from equipoise.presentation.numbers import number
from equipoise.recipe.catalogue import parse
from equipoise.recipe.recipe import Recipe
from equipoise.releases.statistic_table import refuse_statistic
from equipoise.releases.table_release import TableCase, TableContents, write_table
from equipoise.releases.tabulated import Tabulated
from equipoise.search.table_comparison import TableComparison, diagnoses
from equipoise.search.table_map import table_map
from equipoise.tables import Distance, Exposed, Suppressed
from equipoise.trials.runner import attempted
from equipoise.trials.trial import original_trial


def protect(progress: Progress, folder: Path, policy: Mapping[str, Any], out: Path) -> Plain:
    """Protect the table of a policy, audit it, and write it as `equipoise balance` writes tables; and what to show."""
    job = Job.from_plain(policy, folder / "table.toml")
    assert job.table is not None
    report(progress, 0, 1, "counting the table")
    records, seed = job.read(), new_seed()
    coarse = job.table.prepared(records)
    recipe = replace(job.recipes(coarse)[0], seed=seed)
    method: Any = recipe.masks[-1]
    if (statistic := statistic_of(job.table.statistic)) is not None:
        refuse_statistic(statistic, job.table, method)
    original = job.table.made(coarse, job.folder, recipe.masks, rules_of((method, *job.scales())), seed)
    report(progress, 0, 1, "protecting the table")
    table = TableCase(job, records).protected(original, recipe, (method, *job.scales()), seed, progress)
    contents = TableContents(table, records, Path(job.data.path).name, job.title, formulas=job.output.csv_formulas)
    write_table(contents, out, overwrite=False, texts={"policy.toml": job.again(records).to_toml()})
    return {"folder": out.name, **result_facts(table, contents.source)}


def result_facts(tabulated: Tabulated, source: str) -> Plain:
    """What the page says of a protected table."""
    facts = table_facts(tabulated, source, public=False)
    names = ("grid", "details", "changes", "certificate", "narrow", "warnings", "notes", "done", "suppresses")
    kept = {name: facts[name] for name in (*names, "against", "not_against")}
    return {**kept, "counts": tabulated.counts, "words": sentence(tabulated)}


def sentence(tabulated: Tabulated) -> str:
    """The outcome in one sentence."""
    many = tabulated.counts
    are = "is" if many["sensitive"] == 1 else "are"
    first = f"{number(many['sensitive'])} of {number(many['cells'])} cells {are} sensitive"
    if not many["sensitive"] and tabulated.suppresses:
        return f"None of {number(many['cells'])} cells is sensitive: everything can be published."
    if tabulated.suppresses:
        more = many["secondary"]
        rest = f"{number(more)} more {'is' if more == 1 else 'are'} suppressed so that they cannot be worked out"
        outcome = rest if more else "no other has to be suppressed for them"
    else:
        outcome = f"{number(many['changed'])} of the published numbers differ from the truth"
    last = "; an outsider can bound each sensitive cell no closer than asked" if many["sensitive"] else ""
    return f"{first}; {outcome}{last}."


def compare(
    progress: Progress, folder: Path, policy: Mapping[str, Any], rules: Sequence[str], methods: Sequence[str]
) -> Plain:
    """Other rules and methods on one table: what each suppresses, moves and leaves exposed, under the rule in use."""
    job = Job.from_plain(policy, folder / "table.toml")
    assert job.table is not None
    report(progress, 0, 1, "counting the table")
    records, seed = job.table.prepared(job.read()), new_seed()
    own: Any = job.recipes(records)[0].masks[-1]
    ruled = [method for method in methods if method.partition(":")[0] in ("suppress", "adjust")]
    others = [_other(method, rule) for method in methods for rule in (rules if method in ruled else ("",))]
    used = list(dict.fromkeys((own, *others)))
    recipes = [Recipe((method,), seed) for method in used]
    rule = next(measure.rule for measure in job.scales() if isinstance(measure, Exposed))
    scales = (Exposed(rule), Suppressed(), Suppressed("value"), Distance("mean", skip=True), Distance())
    original = job.table.made(records, job.folder, used, rules_of((*used, *scales)), seed)
    trials = attempted(original, recipes, scales, progress=progress)
    if not trials:
        raise ParameterError(f"None of {len(recipes)} ways can be taken with this table. {trials.left_out[0].reason}")
    warnings = diagnoses(original, [trial.recipe.masks[-1] for trial in trials])
    comparison = TableComparison(trials, original_trial(original, scales), trials[0], diagnoses=warnings)
    return compared(comparison, original, own)


def _other(method: str, rule: str) -> Any:
    name, _, value = method.partition(":")
    text = f"{name}(rule='{rule}')" if rule else f"{name.replace('_', '-')}:{value}" if value else name
    return parse(text, "mask")


def compared(comparison: TableComparison, table: Table, own: Any) -> Plain:
    """Every way with its numbers, and the map; the one in use is marked where it could be taken."""
    facts = compared_facts(comparison)
    trials = (*comparison.trials, comparison.original)
    for row, trial in zip(facts["rows"], trials, strict=True):
        used: Any = trial.recipe.masks[-1] if trial.recipe.masks else None
        rule = getattr(used, "rule", None)
        row["sensitive"] = number(int(rule.flag(table).sum())) if rule is not None else "–"
        row["released"] = used == own
    chosen = comparison.chosen.recipe.masks[-1] == own
    spec = for_page(table_map(comparison, mark="in use" if chosen else "first")) if comparison.trials else None
    warned = [(one.rule, one.words, one.example) for one in comparison.diagnoses]
    return {**{k: facts[k] for k in ("heads", "rows", "left", "rules")}, "map": spec, "warnings": warned}
