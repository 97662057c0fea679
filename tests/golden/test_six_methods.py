"""The demo policy of six methods: one map, a curve for each, and a sentence that says why one won."""

from pathlib import Path

import equipoise as eq
from equipoise.demo import folder


def test_six_methods_on_one_map(tmp_path: Path) -> None:
    """A tenth of the survey, one draw by a known seed: every family is on the map, the report explains the choice."""
    policy = folder.write(tmp_path).with_name("methods.toml")
    text = policy.read_text().replace("draws = 3", "draws = 1").replace("5000", "500")
    policy.write_text('seed_file = "seed.json"\n' + text, encoding="utf-8")
    (tmp_path / "seed.json").write_text('{"seed": "1"}')
    eq.demo.survey().gather_every(10).write_parquet(tmp_path / folder.KITS["survey"].data)
    made = eq.balance(policy)
    families = {trial.recipe.family for trial in made.frontier.trials}
    assert families == {"noise", "rank swap", "microaggregate", "shuffle", "swap", "top code"}
    layers = {layer["name"]: layer for layer in made.frontier.chart("value_disclosure", "moments")["layer"]}
    named = {layers[f"curve_label_{i}"]["data"]["values"][0]["label"] for i in range(6)}
    assert named == families
    page = made.report.read_text(encoding="utf-8")
    assert "candidates inside the limits it is the best by Change of moments" in page
    assert made.trial.scores["value_disclosure"].value < 0.6
    assert made.trial.scores["moments"].value < 0.1
