"""Understanding: the numbers of the page against the flow and against counting by hand; values only when asked for."""

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from equipoise.attacks import Nearest
from equipoise.data.cells import count
from equipoise.data.records import Records
from equipoise.data.roles import Roles
from equipoise.doors.web.memory import Memory
from equipoise.doors.web.work import intruder_knowledge, understand
from equipoise.ground.errors import Cancelled, ParameterError, RolesError
from equipoise.ground.packed_keys import code
from equipoise.inspection.assess import assess
from equipoise.inspection.worst_records import worst
from equipoise.intrusion import exact_matching, rough_numbers
from equipoise.risk import Prosecutor

KEYS = ["sex", "age", "town"]
ROLES = {"keys": KEYS, "sensitive": ["ill"], "weight": "w", "household": "home", "id": "nr", "direct": ["name"]}
POLICY = {"data": {"path": "people.parquet"}, "roles": ROLES}
CANARY = "Canaryville"
HOSTILE = "<script>alert('x')</script> \"&{{7*7}}"


def people(n: int = 400, seed: int = 3) -> pl.DataFrame:
    draws = np.random.default_rng(seed)
    towns = [*(f"t{i}" for i in draws.integers(0, 8, n - 1)), CANARY]
    return pl.DataFrame(
        {
            "nr": range(1000, 1000 + n),
            "name": [f"Person {i}" for i in range(n)],
            "sex": draws.choice(["f", "m"], n),
            "age": draws.integers(18, 60, n),
            "town": [None if gap else town for gap, town in zip(draws.random(n) < 0.05, towns, strict=True)],
            "ill": draws.choice(["no", "yes"], n, p=[0.9, 0.1]),
            "pay": draws.lognormal(7, 0.5, n).round(2),
            "rent": draws.lognormal(5, 0.3, n).round(2),
            "w": draws.uniform(2, 9, n).round(3),
            "home": draws.integers(0, n // 2, n),
        }
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    people().write_parquet(tmp_path / "people.parquet")
    return tmp_path


def recorded(roles: dict[str, Any] = ROLES) -> Records:
    table = people().drop("name")
    return Records.of(table, Roles.from_plain({k: v for k, v in roles.items() if k != "direct"}, Path()))


def places(*columns: str) -> list[int]:
    return [people().columns.index(column) for column in columns]


# At a glance ----------------------------------------------------------------------------------------------------------


def test_the_risks_are_those_of_assess(file: Path) -> None:
    found = understand.overview(Memory(), file, POLICY)
    scores = assess(recorded()).scores
    same = ("uniques", "individual", "household", "population_uniques")
    named = {name.partition("(")[0]: score for name, score in scores.items() if name != "uniques(k=2)"}
    for theirs in same:
        mine = theirs.partition("_")[0]
        assert found[mine]["share"] == pytest.approx(named[theirs].value, abs=0)
        assert found[mine]["number"] == named[theirs].number
        assert set(named[theirs].notes) <= set(found[mine]["notes"])
    assert found["learnt"][0]["share"] == named["attribute_disclosure"].value
    assert found["fewer"][1]["share"] == scores["uniques(k=2)"].value
    assert found["individual"]["worst"] == named["individual"].detail["risk"].max()
    assert found["household"]["worst"] == named["household"].detail["risk"].max()


def test_classes_are_counted_as_by_hand(file: Path) -> None:
    found = understand.overview(Memory(), file, POLICY)
    sizes = Counter(people().select(KEYS).rows())
    by_size = Counter(sizes[row] for row in people().select(KEYS).rows())
    assert found["smallest"] == min(by_size)
    for row in found["fewer"]:
        assert row["number"] == sum(n for size, n in by_size.items() if size < row["k"])
    for bar, nxt in zip(found["bars"], [*found["bars"][1:], {"least": 10**9}], strict=True):
        assert bar["records"] == sum(n for size, n in by_size.items() if bar["least"] <= size < nxt["least"])
    assert sum(bar["records"] for bar in found["bars"]) == 400
    drawn = [row for layer in found["chart"]["layer"][:3] for row in layer["data"]["values"]]
    assert [row["share"] for row in drawn] == [bar["share"] for bar in found["bars"]]


def test_the_sentence_says_what_is_at_stake(file: Path) -> None:
    words = understand.overview(Memory(), file, POLICY)["sentence"].replace("\xa0", " ")
    alone = sum(n == 1 for n in Counter(people().select(KEYS).rows()).values())
    assert words.startswith(f"{100 * alone / 400:.0f} % of the records are alone on what an outsider may know; ")
    safe = understand.overview(Memory(), file, POLICY | {"roles": {"keys": ["sex"]}})["sentence"]
    assert safe.startswith("No record is alone on what an outsider may know: each has at least")


def test_without_weights_the_file_is_the_population(file: Path) -> None:
    found = understand.overview(Memory(), file, POLICY | {"roles": {"keys": KEYS}})
    assert found["individual"]["notes"][0] == understand.UNWEIGHTED
    assert found["individual"]["share"] == found["matched"]["share"]
    assert found["population"] is None
    assert found["household"] is None


def test_a_household_that_is_missing_is_said_in_its_card(tmp_path: Path) -> None:
    table = people().with_columns(home=pl.when(pl.col("nr") == 1003).then(None).otherwise("home"))
    table.write_parquet(tmp_path / "people.parquet")
    found = understand.overview(Memory(), tmp_path, POLICY)
    assert found["household"]["share"] is None
    assert "1 records have no household" in found["household"]["notes"][0]
    assert found["uniques"]["share"] > 0


def test_keys_are_told_by_what_goes_without_them(file: Path) -> None:
    found, there = understand.keys(Memory(), file, POLICY), assess(recorded())
    rows = {row["key"]: row for row in there.keys.iter_rows(named=True)}
    for row in found["rows"]:
        assert row["gone"] == rows[row["key"]]["uniques"] - rows[row["key"]]["without"]
        assert row["categories"] == rows[row["key"]]["categories"]
    assert [r["gone"] for r in found["rows"]] == sorted((r["gone"] for r in found["rows"]), reverse=True)


def test_the_worst_records_are_by_row_until_values_are_asked_for(file: Path) -> None:
    held, records = Memory(), recorded()
    found = understand.riskiest_records(held, file, POLICY, False)
    there = worst(records, count(records))
    assert [row["id"] for row in found["rows"]] == [str(row) for row in there["record"]]
    assert "values" not in found
    shown = understand.riskiest_records(held, file, POLICY, True)
    assert [row["id"] for row in shown["rows"]] == [str(nr) for nr in there["nr"]]
    first = people().filter(pl.col("nr") == int(shown["rows"][0]["id"])).select(KEYS).row(0)
    assert shown["values"][0] == [understand.value_text(value) for value in first]
    nameless = understand.riskiest_records(held, file, POLICY | {"roles": {"keys": KEYS}}, True)
    row = int(nameless["rows"][0]["id"])
    assert nameless["values"][0] == [understand.value_text(value) for value in people().select(KEYS).row(row)]


# What if --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [("sex",), ("sex", "ill"), tuple(KEYS), ("age", "pay"), ("town", "ill", "rent"), ()])
def test_matching_is_that_of_counting_by_hand(file: Path, known: tuple[str, ...]) -> None:
    found = intruder_knowledge.knows(Memory(), file, POLICY, places(*known))
    sizes = Counter(people().select(known).rows() if known else [()] * 400)
    assert found["right"] == pytest.approx(sum(1 / sizes[row] * n for row, n in sizes.items()) / 400)
    assert found["alone"] == sum(n == 1 for n in sizes.values())
    assert found["smallest"] == min(sizes.values())
    assert found["keys"]["right"] == pytest.approx(Prosecutor("mean").measure(recorded(), recorded()).value)
    assert found["same"] == (known == tuple(KEYS))


def test_a_missing_key_matches_anything_where_the_roles_say_so(file: Path) -> None:
    roles = ROLES | {"missing": "any"}
    found = intruder_knowledge.knows(Memory(), file, POLICY | {"roles": roles}, places("sex", "town", "ill"))
    rows = people().select("sex", "town", "ill").rows()
    alike = [sum(a == c and i == e and (b == d or None in (b, d)) for c, d, e in rows) for a, b, i in rows]
    assert found["right"] == pytest.approx(np.mean([1 / n for n in alike]))
    assert found["alone"] == alike.count(1)
    assert found["smallest"] == min(alike)


def test_few_cells_are_added_up_instead_of_records(tmp_path: Path) -> None:
    draws = np.random.default_rng(1)
    table = pl.DataFrame(
        {"a": draws.integers(0, 3, 900), "b": draws.integers(0, 4, 900), "c": draws.integers(0, 2, 900)}
    )
    table.write_parquet(tmp_path / "people.parquet")
    policy = POLICY | {"roles": {"keys": ["a", "b", "c"]}}
    found = intruder_knowledge.knows(Memory(), tmp_path, policy, [0, 2])
    sizes = Counter(table.select("a", "c").rows())
    assert (found["right"], found["smallest"]) == (len(sizes) / 900, min(sizes.values()))


def test_class_sizes_of_very_many_combinations() -> None:
    draws = np.random.default_rng(5)
    table = pl.DataFrame({f"c{i}": draws.integers(0, 300, 300) * 10**9 for i in range(9)})
    table = pl.concat([table, table.head(20)])
    found = exact_matching.class_sizes([code(column) for column in table])
    assert sorted(found.tolist()) == sorted(Counter(table.rows()).values())


def test_columns_that_could_be_known(file: Path) -> None:
    found = intruder_knowledge.columns(Memory(), file, POLICY)
    names = {kind: [row["name"] for row in rows] for kind, rows in found.items()}
    assert names == {"keys": KEYS, "others": ["ill"], "numbers": ["pay", "rent"], "left": ["nr", "name", "w", "home"]}
    for column in ("nr", "name", "w", "home"):
        with pytest.raises(RolesError, match="not one that somebody outside knows"):
            intruder_knowledge.knows(Memory(), file, POLICY, places(column))
    with pytest.raises(ParameterError, match="not in the file"):
        intruder_knowledge.knows(Memory(), file, POLICY, [99])


def test_the_worst_combinations_are_the_worst_of_all(file: Path) -> None:
    found = intruder_knowledge.combinations(Memory(), file, POLICY)
    for size, row in enumerate(found["rows"], start=1):
        every = {c: len(set(people().select(c).rows())) / 400 for c in combinations(KEYS, size)}
        assert row["right"] == pytest.approx(max(every.values()))
        assert every[row["known"]] == pytest.approx(row["right"])
        assert row["places"] == places(*row["known"])
    assert "to" not in found["chart"]["layer"][-2]["data"]["values"][0]["told"]


# Numbers known roughly ------------------------------------------------------------------------------------------------


def match(folder: Path, exact: list[str], numbers: list[str], within: float, told: Any = None) -> dict[str, Any]:
    def heard(*said: Any) -> bool:
        if told is not None:
            told.append(said)
        return True

    return intruder_knowledge.match_numbers(heard, folder, POLICY, exact, numbers, within)


def test_numbers_known_to_the_last_digit_are_matched_exactly(file: Path) -> None:
    found = match(file, ["sex"], ["age"], 0.0)
    assert found["value"] == pytest.approx(found["exactly"])
    assert found["exactly"] == pytest.approx(len(set(people().select("sex", "age").rows())) / 400)
    assert found["without"] == pytest.approx(2 / 400)
    assert found["people"] == 400


def test_matching_in_parts_is_matching_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = people(1700)
    table.write_parquet(tmp_path / "people.parquet")
    monkeypatch.setattr(rough_numbers, "MIN_BATCH_PEOPLE", 400)
    said: list[Any] = []
    found = match(tmp_path, ["sex"], ["pay", "rent"], 0.1, said)
    assert len({done for done, _, _ in said}) == 8
    numbers = table.select(pl.col("pay", "rent").cast(pl.Float64), "sex").with_row_index("record")
    asked = rough_numbers.sought(numbers, ["pay", "rent"], 0.1)
    roles, values = Roles(id="record"), []
    for change in (rough_numbers.itself, rough_numbers.logarithm):
        here, there = (rough_numbers.changed(side, ["pay", "rent"], change) for side in (numbers, asked))
        attack = Nearest(variables=("pay", "rent"), blocks=("sex",))
        values.append(attack.measure(Records.of(here, roles), Records.of(there, roles)).value)
    assert found["value"] == pytest.approx(max(values), abs=1e-12)
    assert found["without"] < found["value"] < found["exactly"]
    off = np.abs(asked.sort("record")["pay"].to_numpy() / numbers["pay"].to_numpy() - 1)
    assert 0.09 < off.max() <= 0.1 + 1e-9


def test_a_number_that_hardly_varies_is_matched_in_one_part(tmp_path: Path) -> None:
    table = pl.DataFrame({"x": [0.0] * 1499 + [5.0], "y": np.arange(1500.0)})
    table.write_parquet(tmp_path / "people.parquet")
    found = match(tmp_path, [], ["x", "y"], 0.0)
    assert found["value"] == 1.0
    assert rough_numbers.spreads(table.head(10), ("x", "y"))[0] == 0.0


def test_matching_stops_when_asked(file: Path) -> None:
    with pytest.raises(Cancelled):
        intruder_knowledge.match_numbers(lambda *said: False, file, POLICY, [], ["pay"], 0.1)


def test_one_record_is_nobody_to_confuse(tmp_path: Path) -> None:
    people(2).head(1).write_parquet(tmp_path / "people.parquet")
    with pytest.raises(ParameterError, match="one record only"):
        match(tmp_path, [], ["pay"], 0.1)


# The page -------------------------------------------------------------------------------------------------------------


def opened(workbench: Any, table: pl.DataFrame, roles: dict[str, Any]) -> Any:
    """The workbench with a file and its roles."""
    table.write_parquet(workbench.folder / "people.parquet")
    draft = {"policy": {"format": 1, "title": "people", "data": {"path": "people.parquet"}, "roles": roles}}
    workbench.office.edit(None, "Opened people", "open", lambda _: draft)
    return workbench


PARTS = ("risk", "keys", "combinations", "records", "columns", "knows?known=2", "numbers")


def test_every_part_is_drawn_and_holds_no_value(workbench: Any) -> None:
    opened(workbench, people(), ROLES)
    assert workbench.get("/understand").status_code == 200
    for name in PARTS:
        answer = workbench.get(f"/understand/{name}")
        assert answer.status_code == 200, answer.text
        assert CANARY not in answer.text
        assert "Person 1" not in answer.text
    asked = workbench.get("/understand/records?values=true").text
    assert "for your eyes only" in asked
    assert "data values" not in workbench.get("/understand/records").text
    spec = re.search(r'id="sizes-spec">(.*?)</script>', workbench.get("/understand/risk").text)
    assert spec is not None
    assert json.loads(spec[1])["layer"][0]["name"] == "alone"


def test_ticks_change_the_answer(workbench: Any) -> None:
    opened(workbench, people(), ROLES)
    few, many = ("/understand/knows?" + "&".join(f"known={p}" for p in places(*known)) for known in (("sex",), KEYS))
    assert "0.5\xa0%" in workbench.get(few).text
    alone = sum(n == 1 for n in Counter(people().select(KEYS).rows()).values())
    assert f'<span class="under">{alone}</span>' in workbench.get(many).text
    assert "nothing is ticked" in workbench.get("/understand/knows").text


def test_numbers_are_matched_as_a_run(workbench: Any) -> None:
    opened(workbench, people(), ROLES)
    began = workbench.post("/understand/numbers", {"known": places("sex"), "rough": places("pay"), "within": "5"})
    assert began.status_code == 200, began.text
    run = workbench.finished("numbers")
    assert run.state == "done", run.error
    assert run.about == {"exact": ["sex"], "numbers": ["pay"], "within": 5.0, "path": "people.parquet"}
    assert run.result == match(workbench.folder, ["sex"], ["pay"], 0.05)
    shown = workbench.get("/understand/numbers").text
    assert "of the people are found by somebody who knows" in shown
    assert "every 500ms" not in shown
    assert "of the people are found" in workbench.get("/understand/columns").text
    opened(workbench, people(), ROLES)
    workbench.office.edit(None, "Other", "open", lambda d: {"policy": {**d["policy"], "data": {"path": "other.csv"}}})
    assert "of the people" not in workbench.get("/understand/numbers").text


def test_a_run_is_stopped(workbench: Any) -> None:
    opened(workbench, people(30_000), ROLES)
    form = {"known": places("sex"), "rough": places("pay", "rent"), "within": "10"}
    assert "Stop" in workbench.post("/understand/numbers", form).text
    assert workbench.post("/understand/numbers", form).status_code == 422
    assert workbench.post("/understand/numbers/stop").status_code == 200
    assert workbench.finished("numbers").state == "stopped"
    assert "nothing was found out" in workbench.get("/understand/numbers").text


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "Tick a number first"),
    ({"rough": places("town")}, "holds no numbers"),
    ({"rough": [99]}, "not in the file"),
    ({"rough": places("w")}, "not one that somebody outside knows"),
    ({"rough": places("pay"), "within": "nan"}, "within"),
    ({"rough": places("pay"), "within": "101"}, "within"),
    ({"rough": ["x"]}, "missing or not as it should be"),
]


def test_what_cannot_be_matched_is_one_sentence(workbench: Any) -> None:
    opened(workbench, people(), ROLES)
    for form, words in REFUSED:
        answer = workbench.post("/understand/numbers", form)
        assert answer.status_code == 422
        assert words in answer.text
    assert workbench.office.runs.latest("numbers") is None


def test_nothing_open_is_said_and_leads_on(workbench: Any) -> None:
    page = workbench.get("/understand")
    assert page.status_code == 200
    assert "No file is open" in page.text
    for name in PARTS[:-1]:
        assert workbench.get(f"/understand/{name}").status_code == 422
    assert workbench.get("/understand/numbers").status_code == 200


def test_no_keys_is_said_and_columns_may_still_be_ticked(workbench: Any) -> None:
    opened(workbench, people(), {"id": "nr"})
    page = workbench.get("/understand").text
    assert "Choose the keys" in page
    assert "/understand/risk" not in page
    assert "No column is a key yet" in workbench.get("/understand/risk").text
    shown = workbench.get("/understand/columns").text
    assert 'value="2"' in shown
    assert "All keys" not in shown
    assert "0.5\xa0%" in workbench.get("/understand/knows?known=2").text


def test_a_file_that_is_unfit_says_so_in_its_place(workbench: Any) -> None:
    nobody = people(9).with_columns(town=pl.lit(None, pl.String))
    for table, words in ((people(2).head(1), "one record only"), (nobody, "has no values")):
        opened(workbench, table, {"keys": KEYS})
        for name in ("risk", "keys", "records"):
            answer = workbench.get(f"/understand/{name}")
            assert answer.status_code == 200
            assert words in answer.text
            assert 'class="empty"' in answer.text


def test_hostile_names_are_text(workbench: Any) -> None:
    table = people().rename({"sex": HOSTILE, "town": "🙂 ' OR 1=1", "pay": "x" * 1000, "ill": HOSTILE + "2"})
    opened(workbench, table, {"keys": [HOSTILE, "🙂 ' OR 1=1", "age"], "id": "nr", "sensitive": [HOSTILE + "2"]})
    for name in (*PARTS, "records?values=true"):
        answer = workbench.get(f"/understand/{name}")
        assert answer.status_code == 200, (name, answer.text)
        assert "<script>alert" not in answer.text
        assert "49" not in re.findall(r"<b>(.*?)</b>", answer.text)
    workbench.post("/understand/numbers", {"known": places("sex", "town"), "rough": places("pay")})
    assert workbench.finished("numbers").state == "done"
    assert "<script>alert" not in workbench.get("/understand/numbers").text
