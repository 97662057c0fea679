"""Attack: every intruder's success is the measure's own, the sentences say it, and files that differ are handled."""

import re

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise import attacks
from equipoise.data.records import Records
from equipoise.doors.api import attack
from equipoise.intrusion.attack import try_out
from equipoise.recipe.catalogue import family, methods

ROLES = eq.Roles(["age", "sex", "area"], ["ill"], numeric=["salary"], id="person")


@pytest.fixture(scope="module")
def original(people: pl.DataFrame) -> Records:
    return eq.read(people, ROLES)


@pytest.fixture(scope="module")
def released(original: Records) -> Records:
    return eq.Recipe([eq.masks.Noise(["age", "salary"], 0.2)], 5).run(original)


@pytest.fixture(scope="module")
def found(released: Records, original: Records) -> eq.Attack:
    pytest.importorskip("sklearn", reason="Boosted trees were not tried: they need the extra learn.")
    return attack(released, original)


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def test_every_attack_there_is_is_tried(found: eq.Attack) -> None:
    tried = {score.name.partition("(")[0] for scenario in found.scenarios for score in scenario.tried}
    assert tried == {name for name, kind in methods("measure").items() if family(kind) == "attacks"}
    links = [s.known for s in found.scenarios if s.kind == "link"]
    assert [s.kind for s in found.scenarios[len(links) :]] == ["inference", "interval", "singling_out"]
    numbers, every = {"age", "sex", "area", "salary"}, {"age", "sex", "area", "salary", "ill", "weight"}
    assert links[0] == ("age", "sex", "area")
    assert [set(known) for known in links[1:]] == [numbers, every]


def test_the_scores_are_those_of_the_measures(found: eq.Attack, released: Records, original: Records) -> None:
    link, interval = found.scenarios[0], found.scenarios[-2]
    by_hand = attacks.Nearest(known=("age", "sex", "area")).measure(released, original)
    assert link.tried["nearest(known=('age', 'sex', 'area'))"].value == pytest.approx(by_hand.value, rel=1e-12)
    assert link.score.value == pytest.approx(max(score.value for score in link.tried), rel=1e-12)
    assert interval.score.value == pytest.approx(
        attacks.Interval(columns=("salary",)).measure(released, original).value, rel=1e-12
    )
    assert (found.truth, found.records, found.estimated) == ("id", 400, False)


def test_brute_force_says_the_same(released: Records, original: Records) -> None:
    """Share linked by the nearest of all pairs: standardised age, sex and area equal or not, ties 1/t."""
    here, there = released.collect().sort("person"), original.collect().sort("person")
    scale = there["age"].std(ddof=0)
    gap = ((there["age"].to_numpy()[:, None] - here["age"].to_numpy()[None, :]) / scale) ** 2
    for column in ("sex", "area"):
        gap = gap + (there[column].to_numpy()[:, None] != here[column].to_numpy()[None, :])
    least = gap.min(axis=1)
    near = gap <= least[:, None] + 1e-12
    expected = np.mean(np.diagonal(near) / near.sum(axis=1))
    found = attack(released, original, attacks=[attacks.Nearest()])
    assert found.strongest.score.value == pytest.approx(expected, abs=1e-12)


def test_the_sentence(released: Records, original: Records) -> None:
    found = attack(released, original, known=["age", "sex"], attacks=[attacks.Nearest()])
    (scenario,) = found.scenarios
    pattern = (
        r"Knowing age and sex, ([\d.]+) % of people are linked correctly \(([\d.]+) to ([\d.]+) %\); "
        r"guessing would give 0\.25 %\."
    )
    said = re.fullmatch(pattern, plain(scenario.words))
    assert said
    assert float(said[1]) == pytest.approx(100 * scenario.score.value, abs=0.05)
    assert float(said[2]) < float(said[1]) < float(said[3])
    assert scenario.known == ("age", "sex")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "inference",
            r"Knowing age, sex and area, the ill of .+ of people is guessed right \(.+\); guessing would give",
        ),
        ("interval", r"Whoever finds a person's record knows salary to within 10 % of the ranks in .+ of cases"),
        ("singling_out", r".+ of the descriptions that fit exactly one released record fit exactly one person"),
    ],
)
def test_other_sentences(found: eq.Attack, kind: str, words: str) -> None:
    (scenario,) = [s for s in found.scenarios if s.kind == kind]
    assert re.match(words, plain(scenario.words))


def test_the_knowledge_is_the_sweep_of_the_measure(released: Records, original: Records, found: eq.Attack) -> None:
    swept = attacks.Nearest(known=("age", "sex", "area")).sweep(released, original, 3)
    of_keys = found.knowledge.filter(~pl.col("known").str.contains("salary"))
    assert of_keys.sort("known").equals(swept.sort("known").cast({"size": pl.Int64}))
    assert found.knowledge["value"].is_sorted(descending=True)
    assert found.worst(2).rows() == found.knowledge.head(2).rows()
    assert found.growth["size"].to_list() == [1, 2, 3, 4, 6]
    best = {size: max(v for s, v in swept.select("size", "value").rows() if s == size) for size in (1, 2, 3)}
    assert found.growth["value"].to_list()[:3] == [best[size] for size in (1, 2, 3)]


def test_who_is_most_exposed(found: eq.Attack, released: Records, original: Records) -> None:
    listed = found.exposed(5)
    assert listed.columns == ["person", "risk", "margin"]
    assert listed.height == 5
    risk = found.strongest.score.by_record()
    assert listed["risk"][0] == risk["risk"].max()
    assert listed["risk"].is_sorted(descending=True)


def test_an_unmasked_file_links_everybody_unique(original: Records) -> None:
    found = attack(original, original, attacks=[attacks.Nearest()])
    cells = eq.count(original).table["n"].to_numpy()
    assert found.strongest.score.value == pytest.approx(len(cells) / cells.sum())


# Files that differ


def test_a_register_with_some_of_the_people(released: Records, original: Records) -> None:
    """Each is looked for among all released records; brute force over the 60 people who are in both."""
    some = original.collect().sample(60, seed=3).select("sex", "age", "person").with_columns(shoe=pl.lit(40))
    stranger = pl.DataFrame({"sex": ["f"], "age": [50], "person": [9999], "shoe": [39]}, schema=some.schema)
    register = eq.read(pl.concat([some, stranger]), eq.Roles(["age", "sex"], id="person"))
    found = attack(released, register, attacks=[attacks.Nearest()])
    assert found.records == 60
    assert found.notes[0].startswith("60 of the 61 people in the intruder's file are among the 400 of the release")
    here, there = released.collect(), register.collect()
    gap = ((there["age"].to_numpy()[:, None] - here["age"].to_numpy()[None, :]) / there["age"].std(ddof=0)) ** 2
    gap = gap + (there["sex"].to_numpy()[:, None] != here["sex"].to_numpy()[None, :])
    near = gap <= gap.min(axis=1)[:, None] + 1e-12
    own = there["person"].to_numpy()[:, None] == here["person"].to_numpy()[None, :]
    expected = np.mean(((near & own).sum(axis=1) / near.sum(axis=1))[:60])
    assert found.strongest.score.value == pytest.approx(expected, abs=1e-12)


def test_rows_in_step_need_no_id(released: Records, original: Records) -> None:
    roles = eq.Roles(["age", "sex", "area"])
    sides = [eq.read(side.collect().sort("person").drop("person"), roles) for side in (released, original)]
    found = attack(*sides, attacks=[attacks.Nearest()])
    assert found.truth == "row"
    assert "in the same order" not in " ".join(found.notes)
    by_id = attack(released, original, attacks=[attacks.Nearest()])
    assert found.strongest.score.value == pytest.approx(by_id.strongest.score.value, rel=1e-12)


def test_rows_out_of_step_are_estimated_and_said_so(released: Records, original: Records) -> None:
    roles = eq.Roles(["age", "sex"])
    mixed = eq.read(released.collect().drop("person").sample(fraction=1, shuffle=True, seed=1), roles)
    found = attack(mixed, eq.read(original.collect().drop("person"), roles))
    assert found.truth == "unknown"
    assert found.estimated
    assert all(s.words.startswith("Estimated: ") for s in found.scenarios)
    assert "nobody knows whose record is whose" in found.notes[0]
    assert "estimated share" in found.chart()["description"].lower()
    tried = {score.name.partition("(")[0] for s in found.scenarios for score in s.tried}
    assert tried <= {"nearest", "inference", "singling_out"}


def test_coarsened_files_out_of_step_are_coarsened_alike(original: Records, people_roles: eq.Roles) -> None:
    roles = eq.Roles(["age", "sex"], hierarchies={"age": people_roles.hierarchies["age"]})
    register = eq.read(original.collect().sample(100, seed=2).drop("person"), roles)
    coarse = eq.Recipe([eq.masks.Recode("age", "10")], 1).run(eq.read(original.collect().drop("person"), roles))
    found = attack(coarse, register, attacks=[attacks.Nearest()])
    assert found.estimated
    assert found.strongest.score.value > found.strongest.score.baseline
    by_salary = attack(coarse, eq.read(register.collect(), eq.Roles(["age", "sex"])), attacks=[attacks.Nearest()])
    assert by_salary.truth == "agreement"
    bare = eq.read(register.collect().select("age", "sex"), eq.Roles(["age", "sex"]))
    with pytest.raises(eq.DataError, match="No value of 'age' is in both files"):
        attack(coarse, bare)


def test_a_synthetic_file_has_nobody_to_link(original: Records) -> None:
    made = eq.Recipe([eq.masks.Synthesize("bootstrap")], 1).run(original)
    found = attack(made, original)
    assert "stands for nobody" in found.scenarios[0].words
    assert found.knowledge.is_empty()
    assert found.strongest.kind != "link"
    with pytest.raises(eq.ParameterError, match="nothing to draw"):
        found.chart()


def test_linkage_knows_recoded_labels(original: Records, people_roles: eq.Roles) -> None:
    """Whoever knows an age knows its band: exact agreement then links as well as the nearest record."""
    records = eq.read(original.collect(), people_roles)
    coarse = eq.Recipe([eq.masks.Recode("age", "10")], 1).run(records)
    tried = [attacks.Nearest(), attacks.Linkage(), attacks.Linkage(knows="truth")]
    link = attack(coarse, records, known=["age", "sex", "area"], attacks=tried).scenarios[0]
    values = [score.value for score in link.tried]
    assert max(values) - min(values) < 0.02


# What is refused


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"known": ["agee"]}, eq.RolesError, "No column 'agee' in the intruder's file. Did you mean 'age'?"),
        ({"sensitive": ["salry"]}, eq.RolesError, "No column 'salry' in the intruder's file. Did you mean 'salary'?"),
        ({"size": 0}, eq.ParameterError, "size must be a whole number"),
        ({"known": ["age", "age"]}, eq.RolesError, "stands twice"),
    ],
)
def test_refusals(released: Records, original: Records, given: dict, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        attack(released, original, **given)


def test_files_without_a_common_column(original: Records) -> None:
    other = eq.read(pl.DataFrame({"x": [1, 2]}), eq.Roles())
    with pytest.raises(eq.RolesError, match="no column in common"):
        attack(other, original)


def test_nothing_known(released: Records, original: Records) -> None:
    with pytest.raises(eq.RolesError, match="Nothing is known"):
        attack(released, eq.read(original.collect(), eq.Roles()))


def test_repeated_ids(original: Records) -> None:
    twice = eq.read(original.collect().with_columns(person=pl.lit(1)), ROLES)
    with pytest.raises(eq.RolesError, match="repeated values"):
        attack(twice, original)


def test_it_can_be_stopped(released: Records, original: Records) -> None:
    with pytest.raises(eq.Cancelled):
        attack(released, original, progress=lambda done, total, what: False)


def test_progress_goes_up_to_the_end(released: Records, original: Records) -> None:
    seen: list[tuple[int, int, str]] = []
    attack(released, original, attacks=[attacks.Nearest()], progress=lambda *told: seen.append(told))
    assert [what for *_, what in seen][-1] == "trying what an intruder may know"
    assert seen[-1][0] == seen[-1][1] == 7


# In a report


def test_a_release_is_tried_out_without_long_learning(released: Records, original: Records) -> None:
    found = try_out(released, original)
    assert found is not None
    names = [score.name for s in found.scenarios for score in s.tried]
    assert any("snoopers=('match', 'class')" in name for name in names)


def test_what_cannot_be_tried_out_is_left(original: Records) -> None:
    bare = eq.read(original.collect(), eq.Roles())
    assert "a key or a number" in try_out(bare, bare)
