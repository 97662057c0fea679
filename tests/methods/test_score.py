"""Score and Scores: directions, names, and ties within error."""

import itertools
import pickle

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise import Score, Scores


def test_the_side_follows_the_direction_unless_told() -> None:
    assert Score("uniques", 0.1, "lower").side == "risk"
    assert Score("entropy", 9.0, "higher").side == "utility"
    assert Score("error", 0.1, "lower", side="utility").side == "utility"


def test_a_score_is_a_number() -> None:
    assert float(Score("x", 0.25, "lower")) == 0.25


def test_directions_are_checked() -> None:
    with pytest.raises(eq.ParameterError, match="'lower' or 'higher'"):
        Score("x", 0.0, "up")  # type: ignore[arg-type]


@pytest.mark.parametrize(("better", "worse"), [("lower", 0.3), ("higher", 0.1)])
def test_gaps_are_positive_when_worse(better: eq.methods.score.Better, worse: float) -> None:
    good, bad = Score("x", 0.2, better), Score("x", worse, better)
    assert bad.gap(good) == pytest.approx(0.1)
    assert good.gap(bad) == pytest.approx(-0.1)
    assert good.gap(good) == 0


def test_within_error_is_tied() -> None:
    """Half widths add: 0.2 +- 0.03 and 0.25 +- 0.03 are tied, 0.2 +- 0.02 are not."""
    near = Score("x", 0.2, "lower", interval=(0.17, 0.23)), Score("x", 0.25, "lower", interval=(0.22, 0.28))
    assert near[0].gap(near[1]) == near[1].gap(near[0]) == 0
    far = Score("x", 0.2, "lower", interval=(0.18, 0.22)), Score("x", 0.25, "lower", interval=(0.23, 0.27))
    assert far[0].gap(far[1]) < 0 < far[1].gap(far[0])


@given(a=st.floats(-5, 5), b=st.floats(-5, 5), e=st.floats(0, 1), f=st.floats(0, 1))
def test_gaps_are_opposite(a: float, b: float, e: float, f: float) -> None:
    one, two = (Score("x", v, "lower", interval=(v - w, v + w)) for v, w in ((a, e), (b, f)))
    assert one.gap(two) == -two.gap(one)


def test_detail_is_made_once_when_asked() -> None:
    calls: list[int] = []

    def cells() -> pl.DataFrame:
        calls.append(1)
        return pl.DataFrame({"risk": [1.0]})

    score = Score("x", 1.0, "lower", cells=cells)
    assert calls == []
    assert score.detail is score.detail
    assert calls == [1]


def test_details_that_were_not_kept_say_so() -> None:
    brief = Score("x", 1.0, "lower", cells=lambda: pl.DataFrame(), records=lambda: pl.DataFrame()).brief()
    with pytest.raises(eq.EquipoiseError, match="not kept"):
        _ = brief.detail
    with pytest.raises(eq.EquipoiseError, match="measured on cells"):
        brief.by_record()


def test_scores_are_found_by_name_place_and_bare_name() -> None:
    scores = Scores([Score("uniques(k=3)", 0.1, "lower"), Score("entropy", 9.0, "higher")])
    assert scores["uniques"] is scores[0] is scores["uniques(k=3)"]
    assert list(scores.keys()) == ["uniques(k=3)", "entropy"]
    assert "entropy" in scores
    assert scores[0] in scores
    assert dict(scores.items())["entropy"].value == 9.0
    assert len(scores) == 2


def test_bare_names_must_be_clear() -> None:
    scores = Scores([Score("uniques(k=3)", 0.1, "lower"), Score("uniques(k=2)", 0.1, "lower")])
    with pytest.raises(eq.ParameterError, match="2 scores are named 'uniques'"):
        _ = scores["uniques"]
    with pytest.raises(eq.ParameterError, match="No score named 'entropy'"):
        _ = scores["entropy"]


def test_an_exact_name_wins_over_a_bare_one() -> None:
    scores = Scores([Score("uniques(k=2)", 0.2, "lower"), Score("uniques", 0.1, "lower")])
    assert scores["uniques"].value == 0.1


def test_names_are_unique_within_a_trial() -> None:
    """Names unique within a trial."""
    with pytest.raises(eq.ParameterError, match="share a name"):
        Scores([Score("x", 1.0, "lower"), Score("x", 2.0, "lower")])


def test_scores_can_be_pickled() -> None:
    """Workers send scores home."""
    scores = Scores([Score("x", 1.0, "lower", interval=(0.5, 1.5))])
    assert pickle.loads(pickle.dumps(scores)) == scores


def test_an_endless_iterator_is_no_list_of_scores() -> None:
    """It took all memory before."""
    with pytest.raises(eq.ParameterError, match="list of Score"):
        eq.Scores(itertools.count())
