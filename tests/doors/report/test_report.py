"""The report: complete in itself, escaped, and public only where it may be."""

import hashlib
import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise

import polars as pl
import pytest

import equipoise as eq
from equipoise.doors.report import render, report_sections
from equipoise.policies.policy import Policy
from equipoise.presentation.pages import PAGES
from equipoise.releases.release import release
from equipoise.search.frontier import frontier
from equipoise.search.risk_utility_map import undominated

ASSETS = files("equipoise.doors.report") / "assets"
HOSTILE = "<script>alert('column')</script>"
CANARY = "CANARY</script><!--<img src=x onerror=alert('category')>"
SEED = 8_161_616_161_618
LIMIT = 2_000_000


def made(folder, measures=(), limits=None):
    """A report of a small file with a hostile column and a hostile category, and some trials."""
    ages = [20, 20, 21, 21, 30, 31, 40, 40, 50, 61, 70, 80] * 2
    towns = ["a", "a", "b", "b", "a", CANARY, "a", "a", "b", "b", "a", "b"] * 2
    frame = pl.DataFrame({"person": range(24), HOSTILE: [*ages[:12], *range(12)], "town": towns})
    records = eq.read(frame, eq.Roles([HOSTILE, "town"], id="person"))
    scales = measures or (eq.risk.Uniques(), eq.utility.Entropy())
    recipes = [eq.Recipe([eq.masks.TopCode(HOSTILE, at)], SEED) for at in (3, 7, 20, 30, 45, 60)]
    trials = eq.sweep(records, recipes, scales)
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PAGES, "Report", lambda report, public: kept.append(report) or "page")
        policy = Policy(limits or {})
        release(records, recipes[1], policy, folder / "out", trials=trials, measures=scales, title="Towns <b>")
    return kept[0]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return made(tmp_path_factory.mktemp("report"), limits={"uniques": "< 0.9", "entropy": "> 0.5"})


@pytest.fixture(scope="module")
def internal(report):
    return render(report, False)


@pytest.fixture(scope="module")
def public(report):
    return render(report, True)


@pytest.fixture
def page(internal, public, request):
    return {"internal": internal, "public": public}[request.param]


both = pytest.mark.parametrize("page", ["internal", "public"], indirect=True)


class Reader(HTMLParser):
    """The tags of a page with their attributes, and its text outside scripts and styles."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.words, self.inside = [], [], ""
        self.feed(page)
        self.text = " ".join(" ".join(self.words).split()).replace("\xa0", " ")

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag if tag in ("script", "style") else self.inside

    def handle_endtag(self, tag):
        self.inside = "" if tag == self.inside else self.inside

    def handle_data(self, data):
        if not self.inside:
            self.words.append(data)


def own(page):
    """The page without the front-end libraries."""
    for name in ("vega", "vega-lite", "vega-embed"):
        page = page.replace((ASSETS / f"{name}.min.js").read_text(encoding="utf-8"), "")
    return page


def text(page):
    return Reader(page).text


# The assets


def test_assets_are_the_published_ones():
    lines = re.findall(r"^\| (\S+) \| [\d.]+ \| BSD-3-Clause \((\S+)\) \| (\S+) \| (\w{64}) \|$", _readme(), re.M)
    assert [name for name, *_ in lines] == ["vega", "vega-lite", "vega-embed"]
    for _, licence, file, digest in lines:
        assert hashlib.sha256((ASSETS / file).read_bytes()).hexdigest() == digest
        assert "Redistribution and use" in (ASSETS / licence).read_text(encoding="utf-8")


def _readme():
    return (ASSETS / "README.md").read_text(encoding="utf-8")


def test_the_template_library_is_not_loaded_until_a_page_is_made():
    import subprocess
    import sys

    code = "import sys, equipoise; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# One file, offline


@both
def test_nothing_is_fetched(page):
    for tag, attributes in Reader(page).tags:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base")
        assert not {"src", "href", "srcset", "action", "data"} & set(attributes)
    assert "url(" not in own(page)
    assert "@import" not in own(page)
    assert set(re.findall(r"https?://[^\s\"'<]+", own(page))) == {"https://vega.github.io/schema/vega-lite/v6.json"}


@both
def test_the_page_allows_its_own_scripts_only(page):
    policy = next(a["content"] for t, a in Reader(page).tags if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    assert policy.count("'sha256-") == len(re.findall(r"<script>", page)) == 4
    assert "'unsafe-inline' 'unsafe-eval'" not in policy


@both
def test_the_page_is_small(page):
    assert len(page.encode()) < LIMIT


def test_a_page_of_thousands_of_trials_is_small_too(report):
    many = tuple(replace(t, name=f"{t.words()} number {i}") for i in range(1_000) for t in report.frontier.trials)
    page = render(replace(report, frontier=replace(report.frontier, trials=many)), False)
    assert len(page.encode()) < LIMIT
    assert re.search(r"tried \([\d,]+ of 6,000 are drawn\)", text(page))
    assert "(the 20 nearest to the release)" in text(page)


# Escaped


@both
def test_hostile_names_are_text(page):
    assert HOSTILE not in page
    assert "<img" not in own(page)
    assert "Towns &lt;b&gt;" in page
    assert "Towns <b>" not in page
    charts = len(re.findall(r'id="\w+-spec"', page))
    assert len(re.findall(r"<script\b", own(page))) == len(re.findall(r"</script>", own(page))) == 4 + charts
    assert "<!--" not in own(page)


def test_hostile_names_are_shown_as_they_are(internal):
    assert HOSTILE in text(internal)


def test_a_category_of_hardly_anybody_is_named_nowhere(internal, public):
    assert "CANARY" not in text(internal) + text(public)
    assert "a category of hardly anybody" in text(internal)


# What the officer reads


def test_the_parts_come_in_order(internal):
    heads = re.findall(r"<h2[^>]*>(.*?)</h2>", own(internal))
    assert heads == [
        "Risk-utility map",
        "What an intruder could do",
        "What users lose",
        "What was done",
        "Limits",
        "What it was chosen from",
        "How the scores are computed",
        "All trials",
    ]


def test_the_public_parts_come_in_the_same_order(public):
    heads = re.findall(r"<h2[^>]*>(.*?)</h2>", own(public))
    assert heads == [
        "Risk-utility map",
        "What an intruder could do",
        "Risk and utility of the release",
        "What was done",
        "Limits",
        "How the scores are computed",
    ]


def test_the_verdict_and_the_balance_are_said(report, internal):
    words = text(internal)
    risk, use = report.chosen.scores
    assert "Released: inside the limits" in words
    worst = report_sections.value_text(risk.value, risk.unit)
    assert f"while {worst} of records are unique, down from".replace("\xa0", " ") in words
    assert f"This release keeps {report_sections.number(use.value)} of " in words
    assert f"no other record in the file has the same {HOSTILE} and town" in words


def test_what_was_done_is_said(report, internal):
    words = text(internal)
    assert report.laws[0].words in words
    assert "Withheld from the release: person." in words
    assert "Nothing else was changed." in words


def test_the_tables_hold_the_numbers_without_the_map(report, internal):
    words = text(internal)
    assert "6 candidates were tried" in words
    assert all(
        t.words() in words for t in undominated(report.frontier.trials, report_sections.find_axes(*_scored(report)))
    )


def _scored(report):
    return report.chosen.scores, report.policy


@both
def test_tables_and_headings_are_accessible(page):
    reader = Reader(page)
    tags = [tag for tag, _ in reader.tags]
    assert tags.count("table") == tags.count("caption") > 1
    assert all("scope" in attributes for tag, attributes in reader.tags if tag == "th")
    assert [tag for tag in tags if tag in ("header", "main", "footer")] == ["header", "main", "footer"]
    levels = [int(tag[1]) for tag in tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert next(a for t, a in reader.tags if a.get("id") == "map")["aria-label"].startswith("Risk-utility map")


def test_a_release_that_was_not_attacked_says_so(report):
    assert "No attack was tried here" in text(render(replace(report, attack=None), False))
    assert "intruder could do" not in text(render(replace(report, attack=None), True))


def test_notes_of_scores_are_shown(report, internal):
    doubted = replace(report.chosen.scores[0], notes=("The population is far larger.",))
    chosen = replace(report.chosen, scores=[doubted, *report.chosen.scores[1:]])
    assert "The population is far larger." in text(render(replace(report, chosen=chosen), False))
    assert "The population is far larger." not in text(internal)


@pytest.mark.parametrize(
    ("use", "risk", "words"),
    [
        (("entropy", 10, 12.5), ("uniques", 0.0126, 0.176), "This release keeps 10 of 12.5 bits (80 %), while "),
        (("r2", 0.6, 0.8), ("uniques(k=2)", 0.1, 0.1), "R2 is 0.6 of 0.8 bits (75 %), while Uniques (k = 2) is 10 % "),
        (
            ("entropy", 10, 0),
            ("uniques", 0.1, 0.05),
            "This release keeps 10 bits, while 10 % of records are unique, up",
        ),
    ],
)
def test_the_balance_is_a_sentence(use, risk, words):
    def at(place):
        scores = [eq.Score(risk[0], risk[place], "lower", unit="share of records")]
        return eq.Trial(eq.Recipe(), [*scores, eq.Score(use[0], use[place], "higher", unit="bits")])

    shown = report_sections.find_axes(at(1).scores, Policy())
    assert report_sections.balance(at(1), at(2), shown).replace("\xa0", " ").startswith(words)
    assert report_sections.balance(at(1), None, shown).count(".") >= 1


def test_methods_are_told_from_their_docstrings():
    (uniques,) = report_sections.methods(["uniques", "uniques(k=2)", "no such measure"])
    assert uniques["name"] == "Uniques"
    assert uniques["source"].startswith("Massell (1999)")
    assert uniques["misleads"].startswith("the file is a small sample")
    assert "`" not in uniques["what"]
    assert ">>>" not in uniques["what"]


def test_a_release_without_limits(tmp_path):
    words = text(render(made(tmp_path), False))
    assert "Released: no limits were set" in words
    assert "No limits were set for this release." in words
    assert "Inside the limits" not in words


def test_a_release_measured_on_one_side_has_no_map(tmp_path):
    one_sided = made(tmp_path, measures=(eq.risk.Uniques(),))
    for public in (True, False):
        page = render(one_sided, public)
        assert "There is no map" in page
        assert "This release was measured on one side only" in page
        assert 'id="map-spec"' not in page
        assert ("vegaEmbed" in page) is not public


def test_refused_is_said_plainly(report):
    refused = replace(report, verdict=replace(report.verdict, accepted=False))
    assert "Refused: outside the limits" in render(refused, False)


# What the public reads


def test_the_public_report_says_so(public):
    assert text(public).startswith("Towns <b> – public report")
    assert "Public report." in text(public)
    assert "Released: inside the limits" in text(public)


def test_the_public_report_leaks_nothing(report, public):
    page = own(public)
    assert "CANARY" not in page
    told = [*report.frontier.trials, report.original, report.chosen]
    exact = {repr(score.value) for trial in told for score in trial.scores if len(repr(score.value)) > 6}
    assert exact
    assert not [value for value in exact if value in page]
    others = [t.words() for t in report.frontier.trials if t.recipe != report.chosen.recipe]
    assert not [words for words in others if words in text(public) or words in page]
    assert not re.search(r"candidates were|down from|would remain|Before", text(public))
    assert str(SEED) not in page


def test_the_public_map_has_one_point_and_the_rectangle(report):
    spec = report_sections.public_facts(report)["spec"]
    points = [layer for layer in spec["layer"] if layer["mark"]["type"] == "point" and layer["data"]["values"]]
    assert [layer["name"] for layer in points] == ["chosen"]
    (point,) = points[0]["data"]["values"]
    risk, use = report.chosen.scores
    assert (point["risk"], point["utility"]) == (round(risk.value, 3), round(use.value, 1))
    assert "rectangle" in {layer["name"] for layer in spec["layer"]}


def test_the_public_facts_do_not_depend_on_the_original(report):
    other = replace(
        report,
        original=report.chosen,
        nothing=None,
        frontier=frontier([report.chosen]),
        before=report.after,
        made=date(2000, 1, 1),
    )
    same = replace(report, made=date(2000, 1, 1))
    assert render(other, True) == render(same, True)


# In a browser


@pytest.fixture
def browser(chromium):
    return chromium


def opened(browser, page, folder, **options):
    """The page in a tab, drawn, with whatever it complained about or asked for."""
    file = folder / "report.html"
    file.write_text(page, encoding="utf-8")
    tab = browser.new_page(viewport={"width": 1280, "height": 1000}, **options)
    tab.set_default_timeout(300_000)
    heard, asked = [], []
    tab.on("console", lambda message: heard.append(message.text))
    tab.on("pageerror", lambda error: heard.append(str(error)))
    tab.on("dialog", lambda dialog: (heard.append("dialog"), dialog.dismiss()))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(file.as_uri())
    tab.wait_for_selector("#map[data-drawn]", timeout=300_000)
    return tab, heard, asked


def test_the_map_is_drawn_with_a_mark_per_trial(browser, report, internal, tmp_path):
    tab, heard, asked = opened(browser, internal, tmp_path)
    drawn = tab.locator("#map .tried_marks path").count() + tab.locator("#map .best_marks path").count()
    assert drawn == len(report.frontier.trials)
    assert tab.locator("#map .chosen_marks path").count() == 1
    assert tab.locator("#map .ends_marks path").count() == 2
    assert tab.locator("#map .rectangle_marks path").count() == 1
    tab.locator("#map .best_marks path").first.hover()
    tab.wait_for_selector("#vg-tooltip-element.visible")
    assert HOSTILE in tab.locator("#vg-tooltip-element h2").inner_text()
    assert len(tab.screenshot(full_page=True)) > 10_000
    assert heard == []
    assert len(asked) == 1
    tab.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_public_map_is_drawn(browser, public, tmp_path, scheme):
    tab, heard, asked = opened(browser, public, tmp_path, color_scheme=scheme)
    assert tab.locator("#map .tried_marks path").count() == 0
    assert tab.locator("#map .chosen_marks path").count() == 1
    assert (heard, len(asked)) == ([], 1)
    tab.close()


def test_the_page_fits_a_phone(browser, internal, tmp_path):
    tab, _, _ = opened(browser, internal, tmp_path)
    tab.set_viewport_size({"width": 390, "height": 800})
    tab.evaluate("document.querySelectorAll('details').forEach(part => { part.open = true; })")
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    tab.close()


def test_without_scripts_the_map_is_a_picture(browser, report, internal, tmp_path):
    (tmp_path / "report.html").write_text(internal, encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.set_default_timeout(300_000)
    tab.goto((tmp_path / "report.html").as_uri())
    picture = tab.locator("noscript svg[role=img]").first
    assert picture.get_attribute("aria-label").startswith("Risk-utility map")
    assert picture.bounding_box()["height"] > 200
    points = tab.locator("noscript .tried_marks path").count() + tab.locator("noscript .best_marks path").count()
    assert points >= len(report.frontier.trials)
    context.close()


def test_it_is_read_with_the_keyboard(browser, internal, tmp_path):
    tab, _, _ = opened(browser, internal, tmp_path)
    for _ in range(200):
        tab.keyboard.press("Tab")
        if tab.evaluate("document.activeElement.matches('.method summary')"):
            break
    tab.keyboard.press("Enter")
    assert tab.locator(".method[open]").count() == 1
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.close()


def test_on_paper_it_is_light_open_and_unbroken(browser, internal, tmp_path):
    tab, _, _ = opened(browser, internal, tmp_path, color_scheme="dark")
    made = tab.pdf(format="A4", outline=True, tagged=True)
    pages = len(re.findall(rb"/Type\s*/Page\b(?!s)", made))
    assert 2 <= pages <= 8
    heights = [float(place) for place in re.findall(rb"/Dest \[\d+ 0 R /XYZ [\d.-]+ ([\d.]+) ", made)]
    assert len(heights) > 10
    assert min(heights) > 72, "a heading stands alone at the foot of a page"
    tab.emulate_media(media="print", color_scheme="dark")
    assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert tab.locator(".method > div").first.bounding_box()["height"] > 20
    assert not tab.locator(".appendix table").is_visible()
    assert tab.locator(".paper").is_visible()
    tab.close()
