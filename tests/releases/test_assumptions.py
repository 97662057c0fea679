"""Sentences on what an intruder is taken not to know."""

import narwhals as nw
import polars as pl
import pytest

import equipoise as eq
from equipoise.methods.method import Mask
from equipoise.methods.score import Scores
from equipoise.releases.assumptions import assumptions, shortcomings
from equipoise.trials.trial import Trial

TABLE = pl.DataFrame({"stay": [1, 2], "patient": [1, 2], "pid": [1, 2], "home": [1, 1], "age": [3, 4]})


def sentences(limits: dict[str, str] | None = None, **roles: str) -> tuple[str, ...]:
    """Without that on the columns beside the keys, which comes first."""
    first, *rest = assumptions(eq.read(TABLE, eq.Roles("age", **roles)), eq.Policy(limits or {}))  # type: ignore[arg-type]
    assert first == "Assumes that an intruder knows the keys or two of the other columns, not both and not more."
    return tuple(rest)


def test_one_record_of_a_person() -> None:
    assert sentences(person="patient", id="stay") == (
        "Assumes that only one stay of a patient is known, not how many there are.",
        "Assumes that every patient who fits is as likely: who guesses the one who fits most often finds more.",
    )
    assert sentences(person="pid") == (
        "Assumes that only one record of a person is known, not how many there are.",
        "Assumes that every person who fits is as likely: who guesses the one who fits most often finds more.",
    )
    assert sentences() == ()


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("uniques", "only one member of a household is known, not the whole household, nor its size"),
        ("composition(known=2)", "at most 2 members of a household are known, not the whole household"),
        (
            "composition(known=2, size_known=False)",
            "at most 2 members of a household are known, not the whole household, nor its size",
        ),
        ("composition", ""),
        ("composition(k=5)", ""),
    ],
)
def test_members_of_a_household(limit: str, words: str) -> None:
    said = sentences({limit: "< 0.1"}, household="home")
    assert said == ((f"Assumes that {words}.",) if words else ())


@pytest.mark.parametrize(("role", "words"), [(None, "other columns"), ("home", "other columns or other members")])
def test_blank_keys_are_not_guessed(role: str | None, words: str) -> None:
    """Said where keys are missing, whoever blanked them, and something else is released."""
    table = pl.DataFrame({"home": [1, 1, 2], "age": [3, 3, 4], "pay": [1, 2, 3], "tax": [1, 1, 2]})
    records = eq.read(table, eq.Roles("age", household=role))
    released = eq.Recipe([eq.masks.SuppressRecords(eq.rules.MinCount(2))], 1).run(records)
    assert f"Assumes that nobody guesses a blank key from {words}." in assumptions(released)
    assert f"Assumes that nobody guesses a blank key from {words}." in assumptions(
        eq.read(released.collect(), records.roles)
    )
    assert not any("blank" in sentence for sentence in assumptions(records))


@pytest.mark.parametrize(
    ("limit", "mask", "words"),
    [
        ("uniques", eq.masks.Pram(0.5), "nobody knows how keys were changed at random"),
        ("match_probability", eq.masks.Pram(0.5), "nobody reads other columns"),
        ("recognisable", eq.masks.Pram(0.5), ""),
        ("linkage", eq.masks.PramMatrix("age", diagonal=0.5), "nobody reads other columns"),
        ("uniques", eq.masks.Microaggregate("age", 2), ""),
        ("uniques", eq.masks.Recode("age", "5"), ""),
    ],
)
def test_keys_changed_at_random(limit: str, mask: Mask, words: str) -> None:
    """A class count binds nothing after a random mask; the law alone does not see what stands beside the keys."""
    roles = eq.Roles("age", id="id", hierarchies={"age": eq.Hierarchy.intervals([5])})
    records = eq.read(pl.DataFrame({"id": range(20), "age": range(20, 40), "pay": range(20)}), roles)
    _, *said = assumptions(eq.Recipe([mask], 1).run(records), eq.Policy({limit: "<= 0.5"}))
    assert bool(said) == bool(words)
    assert all(words in sentence for sentence in said)


def test_a_class_count_is_descriptive_after_a_random_mask() -> None:
    records = eq.read(pl.DataFrame({"id": range(20), "age": [*range(10), *range(10)]}), eq.Roles("age", id="id"))
    recipe = eq.Recipe([eq.masks.Pram(0.4)], 1)
    score = eq.risk.Uniques().measure(recipe.run(records), records)
    assert any("Descriptive only" in note for note in score.notes)
    assert eq.risk.Uniques().measure(records, records).notes == ()
    verdict = eq.Policy({"uniques": "<= 1"}).judge(Trial(recipe, Scores([score])))
    assert verdict.reasons[0].endswith("(descriptive after a random mask)")


def shortfalls(mask: Mask, limit: dict[str, str]) -> tuple[str, ...]:
    ages = pl.DataFrame({"age": [20 + 7 * i % 50 for i in range(60)], "pay": [float(i * i) for i in range(60)]})
    original, policy = eq.read(ages, eq.Roles("age", numeric="pay")), eq.Policy(limit)
    released = eq.Recipe([mask], 1).run(original)
    scores = Scores(measure.measure(released, original) for measure in policy.measures())
    return shortcomings(released, original, scores, policy)


def test_a_stronger_intruder_passes_by_a_limit_on_the_nearest_record() -> None:
    """Rank windows are known to who has read the law; a limit that says so, and one on classes, is complete."""
    mask = eq.masks.RankSwap(["age", "pay"], 0.3)
    giants, limited = shortfalls(mask, {"nearest": "< 1"})
    assert "finds more people than 'Nearest record' says, still within its limit." in limited
    assert "and more than its limit allows." in shortfalls(mask, {"nearest": "< 0.0001"})[1]
    assert shortfalls(mask, {"uniques": "< 1"}) == (giants,)
    assert giants.startswith("Assumes that nobody knows who is largest in pay: of the ten largest values half or more")


def test_columns_of_which_nothing_is_left() -> None:
    sentence = "Nothing is left of age: masking made all values of a column blank or the same."
    everything = eq.masks.SuppressRecords(eq.rules.MinCount(100))
    assert shortfalls(everything, {"uniques": "< 1"}) == (sentence,)
    unchanged = "Nothing was changed: every value that is released is as it was collected."
    assert shortfalls(eq.masks.SuppressRecords(eq.rules.MinCount(1)), {"uniques": "< 1"}) == (unchanged,)


def test_a_release_of_the_file_as_it_came_says_so() -> None:
    original = eq.read(pl.DataFrame({"age": [1, 2], "pay": [3, 4]}), eq.Roles("age"))
    unmasked = shortcomings(original, original, Scores([]), eq.Policy())
    assert unmasked == ("Nothing was changed: every value that is released is as it was collected.",)
    swapped = eq.Recipe([eq.masks.RankSwap(["age"], 0.9)], 1).run(original)
    assert shortcomings(swapped, original, Scores([]), eq.Policy()) == ()


@pytest.mark.parametrize(("left", "warned"), [(2, True), (3, False)])
def test_columns_of_which_little_is_left(left: int, warned: bool) -> None:
    """Two of twelve values are left, or three: a quarter."""
    ages = pl.DataFrame({"age": [*range(12 - left), *[50, 50, 60, 60, 60][:left]], "sex": ["f", "m"] * 6})
    original = eq.read(ages, eq.Roles("age"))
    blanked = original.with_frame(
        original.frame.with_columns(nw.when(nw.col("age") >= 50).then("age")),
        eq.Recipe([eq.masks.LocalSuppress(eq.rules.MinCount(1))], 1).run(original).history[0],
    )
    sentence = "Little is left of age: masking made more than three in four values of a column blank."
    assert shortcomings(blanked, original, Scores([]), eq.Policy()) == ((sentence,) if warned else ())
