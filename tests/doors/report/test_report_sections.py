"""The parts of the report: before and after, distributions, margins, colours, all trials."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.report import render, report_sections
from equipoise.doors.report.method_notes import method_note
from equipoise.doors.report.variable_changes import overlay_facts, uses_roots
from equipoise.policies.policy import Limit, Policy
from equipoise.presentation.pages import PAGES
from equipoise.presentation.style import DARK_GREEN, FAMILIES
from equipoise.releases.overlays import Overlay
from equipoise.releases.release import release

STYLE = (files("equipoise.doors.report") / "templates" / "page.css").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A file with numbers and missing keys, coarsened and perturbed."""
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {
            "person": range(300),
            "age": rng.integers(18, 90, 300),
            "town": rng.choice(["a", "b", "c", None], 300),
            "rent": rng.lognormal(6, 0.5, 300).round(),
            "wage": rng.normal(3_000, 500, 300),
        }
    )
    roles = eq.Roles(["age", "town"], numeric=["rent", "wage"], id="person", missing="any")
    records = eq.read(frame, roles)
    recipe = eq.Recipe([eq.masks.TopCode("age", 60), eq.masks.Noise(["rent"], scale=0.3)], 7)
    scales = (eq.risk.Uniques(), eq.utility.Moments(["rent"]))
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PAGES, "Report", lambda made, public: kept.append(made) or "page")
        release(
            records, recipe, Policy({"uniques": "< 0.9", "moments": "< 0.9"}), tmp_path_factory.mktemp("parts") / "out",
            measures=scales, title="Rents",
        )  # fmt: skip
    return kept[0]


@pytest.fixture(scope="module")
def internal(report):
    return render(report, False)


def text(page):
    class Words(HTMLParser):
        said, off = "", False

        def handle_starttag(self, tag, attrs):
            self.off = tag in ("script", "style")

        def handle_data(self, data):
            self.said += "" if self.off else f" {data}"

    reader = Words()
    reader.feed(page)
    return " ".join(reader.said.split()).replace("\xa0", " ")


# Before and after


def test_attacks_are_told_before_and_after(report, internal):
    rows = report_sections.internal_facts(report)["unprotected"]
    assert len(rows) == len(report.attack.scenarios) == len(report.unprotected)
    linked = rows[0]
    assert linked["aim"] == "Finds a person's record, knowing age and town"
    share = re.compile(r"([\d.]+)")
    before, after = (float(share.match(linked[side])[1]) for side in ("before", "after"))
    assert before >= after
    assert "How often the strongest attack of each kind succeeds" in text(internal)


def test_attacks_that_were_not_tried_on_the_original(report):
    half = replace(report, unprotected=(None, *report.unprotected[1:]))
    assert report_sections.internal_facts(half)["unprotected"][0]["before"] == "not tried"
    none = replace(report, unprotected=tuple(None for _ in report.unprotected))
    assert report_sections.internal_facts(none)["unprotected"] == []


def test_what_was_touched_is_drawn_and_the_rest_is_named(report, internal):
    assert [one.column for one in report.overlays] == ["age", "rent"]
    assert report.unchanged == ("town", "wage")
    assert "Released as they are: town and wage." in text(internal)
    assert internal.count('<figure class="overlay">') == 2
    assert "Distribution of rent before and after" in internal


def test_the_public_page_has_no_distributions(report):
    page = render(report, True)
    assert "<figure class" not in page
    assert "Before" not in text(page)


def test_numbers_stand_under_each_histogram(report):
    told = overlay_facts(report.overlays[1])
    assert len(told["rows"]) == len(report.overlays[1].before)
    assert told["picture"].count("<path") == 3


def test_a_bar_that_dwarfs_the_rest_is_drawn_by_roots():
    steep = Overlay("<x>", ("0", "1", "2"), (0.9, 0.05, 0.05), (0.8, 0.1, 0.1), "", (0, 1, 2, 3), ((0.0, "<0>"),))
    assert uses_roots(steep)
    assert "square roots" in overlay_facts(steep)["words"]
    assert "<x>" not in overlay_facts(steep)["picture"]
    assert "<0>" not in overlay_facts(steep)["picture"]
    even = replace(steep, before=(0.4, 0.3, 0.3), after=(0.4, 0.3, 0.3))
    assert not uses_roots(even)


def test_each_variable_says_what_was_done(report):
    rows = {row["name"]: row for row in report_sections.internal_facts(report)["variables"]}
    assert list(rows) == ["age", "rent", "person"]
    assert rows["age"]["role"] == "key"
    assert rows["rent"]["role"] == "number"
    assert rows["person"]["done"] == ["withheld"]
    assert len(rows["age"]["done"]) == 1


def test_notes_stand_with_their_scores(report, internal):
    notes = [note for score in report.chosen.scores for note in score.notes]
    assert notes
    assert all(note.replace("\xa0", " ") in text(internal) for note in notes)
    assert internal.count('class="under doubt"') == len(notes)


# Limits


@pytest.mark.parametrize(
    ("limit", "value", "unit", "words"),
    [
        ("< 0.02", 0.0126, "share of records", "0.74 percentage points below the limit (37 % of it)"),
        ("> 7.5", 10.7, "bits per record", "3.2 bits per record above the limit (42.7 % of it)"),
        ("<= 0.5", 0.5, "share", "at the limit"),
        ("< 0", 3.0, "", "3 above the limit"),
        ("< 1", float("nan"), "", "not known"),
    ],
)
def test_margins_in_words(limit, value, unit, words):
    score = eq.Score("x", value, "lower", unit=unit)
    assert report_sections.margin(Limit.of("x", limit), score).replace("\xa0", " ") == words


def test_a_limit_says_its_reason_and_whether_it_binds(report):
    def trial(at, risk, use):
        scores = [eq.Score("uniques", risk, "lower", unit="share of records"), eq.Score("entropy", use, "higher")]
        return eq.Trial(eq.Recipe([eq.masks.TopCode("age", at)]), scores)

    trials = (trial(80, 0.03, 9.0), trial(60, 0.01, 7.0), trial(40, 0.0, 2.0))
    policy = Policy({"uniques": {"limit": "< 0.02", "reason": "the board said so"}, "entropy": "> 1"})
    told = replace(
        report, policy=policy, chosen=trials[1], original=trials[0], nothing=None, frontier=eq.frontier(trials)
    )
    limits = {row["name"]: row for row in report_sections.internal_facts(told)["limits"]}
    assert (limits["Uniques"]["binds"], limits["Entropy kept"]["binds"]) == (True, False)
    page = render(told, False)
    for words in ("the board said so", "it binds:", "What the next steps would buy", "How firm the choice is"):
        assert words in page
    public = render(told, True)
    assert not [words for words in ("the board said so", "it binds:", "next steps") if words in public]


def test_a_release_that_the_choice_does_not_explain_has_no_next_steps(report):
    assert "What the next steps would buy" not in render(report, False)


# Methods and trials


def test_methods_tell_formula_source_and_doubt_apart():
    told = method_note(eq.utility.Entropy, "Entropy kept")
    assert told["what"] == "Bits per record that are kept: the mutual information of original and released keys."
    (formula,) = [line["text"] for line in told["lines"] if line["formula"]]
    assert formula.startswith("I(X; Y) = H(X)")
    assert told["source"].startswith("Massell (1999)")
    assert told["misleads"].startswith("records are few")
    items = [line for line in method_note(eq.utility.Estimate, "Estimate")["lines"] if line["item"]]
    assert [line["text"].partition(":")[0] for line in items] == ["Overlap", "Square"]


def test_a_measure_for_a_scenario_is_described_once():
    told = report_sections.methods(
        ["uniques[neighbour]", "uniques(k=2)[employer] by region", "individual (worst record)"]
    )
    assert [method["name"] for method in told] == ["Uniques", "Individual"]


def test_every_measure_can_be_described():
    from equipoise.recipe.catalogue import methods

    for name, kind in methods("measure").items():
        told = method_note(kind, name)
        assert told["what"].endswith("."), name
        assert told["source"], name
        assert not [line for line in told["lines"] if "`" in line["text"] or ">>>" in line["text"]], name


def test_the_first_five_hundred_trials_are_listed(report):
    many = tuple(replace(report.chosen, name=f"trial {i}") for i in range(700))
    told = report_sections.internal_facts(replace(report, frontier=replace(report.frontier, trials=many)))["appendix"]
    assert (len(told["rows"]), told["tried"], told["cut"]) == (500, "700", True)
    assert [len(row["scores"]) for row in told["rows"][:2]] == [2, 2]


# Colours


def palettes():
    """The colours of each scheme: light, dark, paper."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    light, dark, paper = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", block)) for block in blocks)
    return {"light": light, "dark": light | dark, "paper": light | paper}


def luminance(colour):
    """Relative luminance, WCAG 2.2."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, two):
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_published():
    assert contrast("#000", "#fff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)


@pytest.mark.parametrize("scheme", ["light", "dark", "paper"])
def test_text_and_marks_stand_out(scheme):
    colours = palettes()[scheme]
    for ink in ("ink", "muted", "accept-ink", "warn-ink"):
        for ground in ("paper", "raised"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for mark in ("tried", "best", "chosen", "accept"):
        assert contrast(colours[mark], colours["paper"]) >= 3, mark


def test_names_of_families_can_be_read():
    assert min(contrast(colour.lower(), "#ffffff") for colour in (*FAMILIES, DARK_GREEN)) >= 4.5


def test_a_balance_speaks_of_the_scenario() -> None:
    """What the sentence calls unique is explained by what that intruder knows, not by all keys."""
    risk = eq.Score("uniques[neighbour]", 0.01, "lower", unit="share of records", side="risk")
    use = eq.Score("entropy", 9.0, "higher", unit="bits per record")
    shown = report_sections.Axes(risk, use)
    trial = eq.Trial(eq.Recipe(), (risk, use))
    assert "1\xa0% of records are unique (scenario neighbour)" in report_sections.balance(trial, None, shown)
    meant = dict(report_sections.meanings(shown, ["sex", "age"]))
    assert "scenario neighbour knows" in meant["Unique"]
    assert "sex" not in meant["Unique"]
    worst = report_sections.Axes(eq.Score("prosecutor", 1 / 12, "lower", unit="share", side="risk"), use)
    assert "the same sex and age" in dict(report_sections.meanings(worst, ["sex", "age"]))["Probability of being found"]
