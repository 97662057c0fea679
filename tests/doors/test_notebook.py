"""In a notebook: well-formed, escaped, small, nothing fetched, no data."""

from html.parser import HTMLParser

import polars as pl
import pytest

import equipoise as eq

HOSTILE = "<script>alert('column')</script>"
CANARY = "CANARY<img src=x>"
LIMIT = 60_000
VOID = {"br", "path", "line", "img"}


class Reader(HTMLParser):
    """Refuses tags that do not close, and what a notebook must not hold."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(page)
        self.close()
        assert self.open == []
        self.text = " ".join(" ".join(self.words).split()).replace("\xa0", " ")

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        assert tag not in ("script", "img", "link", "style", "iframe")
        assert not {"src", "href", "onerror", "onclick"} & {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture(scope="module")
def records():
    ages = [20, 20, 21, 21, 30, 31, 40, 40, 50, 61, 70, 80] * 2
    towns = ["a", "a", "b", "b", "a", CANARY, "a", "a", "b", "b", "a", "b"] * 2
    frame = pl.DataFrame({"person": range(24), HOSTILE: [*ages[:12], *range(12)], "town": towns})
    return eq.read(frame, eq.Roles([HOSTILE, "town"], id="person"))


@pytest.fixture(scope="module")
def frontier(records):
    recipes = [eq.Recipe([eq.masks.TopCode(HOSTILE, at)]) for at in (3, 7, 20, 30, 45)]
    return eq.frontier(eq.sweep(records, recipes, (eq.risk.Uniques(), eq.utility.Entropy())))


@pytest.fixture(scope="module")
def shown(records, frontier, tmp_path_factory):
    """Everything that a notebook may be asked to show."""
    release = eq.protect(
        records, [eq.masks.TopCode(HOSTILE, 7)], tmp_path_factory.mktemp("n") / "out",
        policy=eq.Policy({"uniques": "< 1"}),
    )  # fmt: skip
    score = eq.Score(HOSTILE, 0.1, "lower", interval=(0.05, 0.2), baseline=0.01, notes=(f"See {HOSTILE}.",))
    lattice = eq.read(
        records.collect().with_columns(code=pl.Series(["11", "12", "21", "22"] * 6)),
        eq.Roles(["code"], hierarchies={"code": eq.Hierarchy.prefix(1)}),
    )
    return {
        "score": score,
        "scores": eq.Scores([score, eq.Score("entropy", float("nan"), "higher")]),
        "trial": frontier.best[0],
        "frontier": frontier,
        "release": release,
        "assessment": eq.assess(records),
        "attack": eq.attack(release.data, records),
        "table": eq.tabulate(records, by=[HOSTILE, "town"], rule="min_count:2"),
        "coarsening": eq.best_coarsening(lattice, eq.rules.MinCount(2)),
    }


KINDS = ["score", "scores", "trial", "frontier", "release", "assessment", "attack", "table", "coarsening"]


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_whole_escaped_and_small(shown, kind):
    page = shown[kind]._repr_html_()
    reader = Reader(page)
    assert "table" in reader.tags
    assert 100 < len(page) < LIMIT
    assert HOSTILE not in page
    assert "CANARY" not in page
    assert "http" not in page
    assert "color:#" not in page.replace("currentColor", "")


@pytest.mark.parametrize("kind", ["score", "frontier", "trial", "release", "assessment", "attack", "table"])
def test_hostile_names_are_shown_as_they_are(shown, kind):
    assert HOSTILE in Reader(shown[kind]._repr_html_()).text


def test_what_they_say(shown):
    text = {kind: Reader(shown[kind]._repr_html_()).text for kind in KINDS}
    assert text["score"].count("0.05 to 0.2") == 1
    assert text["frontier"].startswith("Frontier: ")
    assert "Uniques (share of records)" in text["trial"]
    assert text["release"].startswith("Released: ")
    assert "within the limit (below 100 %)" in text["release"]
    assert "24 records" in text["assessment"]
    assert "linked correctly" in text["attack"]
    assert "suppressed" in text["table"]
    assert "proven best" in text["coarsening"]


def test_the_seed_and_the_people_stay_out(shown):
    seed = str(shown["release"].trial.recipe.seed)
    for kind in KINDS:
        assert seed not in shown[kind]._repr_html_()


def test_a_frontier_without_a_side_or_without_trials_has_no_map(frontier):
    one = eq.frontier(eq.Trial(t.recipe, [t.scores[0]]) for t in frontier.trials)
    assert "<svg" not in one._repr_html_()
    assert "<svg" in frontier._repr_html_()
    assert "no trials" in eq.frontier([])._repr_html_()
