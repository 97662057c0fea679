"""Releasing: the folder is the one the command line makes, the script takes every step again, a refusal is told."""

import io
import subprocess
import sys
import tomllib
import zipfile
from typing import Any

import polars as pl
import pytest

import equipoise as eq


@pytest.fixture(scope="module")
def unreleased(tmp_path_factory: pytest.TempPathFactory, workbench_of: Any) -> Any:
    """A workbench that has released nothing, shared by the tests that only ask."""
    return workbench_of(tmp_path_factory.mktemp("unreleased"))


@pytest.fixture(scope="module")
def released(module_sampled: Any) -> Any:
    """A release from the page; the tests here come in this order and share it."""
    answer = module_sampled.post("/release/run", {"folder": "out"})
    assert answer.status_code == 200
    assert module_sampled.finished("release").state == "done"
    return module_sampled


def test_from_the_page_to_a_verified_release(released: Any) -> None:
    shown = released.get("/release").text
    assert "Released: inside the limits" in shown
    assumed = "Assumes that an intruder knows the keys or two of the other columns, not both and not more."
    assert shown.index("<h1>out</h1>") < shown.index(assumed) < shown.index("Limits and what was done")
    folder = released.folder / "out"
    assert eq.verify(folder).outcome == "verified"
    released.post("/release/verify")
    assert released.finished("verify").result["outcome"] == "verified"
    assert "Verified" in released.get("/release").text
    assert "data-report" in released.get("/release").text


def test_the_policy_makes_the_same_release_on_the_command_line(released: Any) -> None:
    policy = released.folder / "survey-policy.toml"
    downloaded = released.get("/release/policy").text
    assert tomllib.loads(downloaded) == tomllib.loads(policy.read_text(encoding="utf-8"))
    seeded = policy.with_name("seeded.toml")
    seeded.write_text(f'seed_file = "out/private/seed.json"\n{downloaded}', encoding="utf-8")
    made = eq.balance(seeded, out=released.folder / "again")
    data = (released.folder / "out" / "public" / "data.parquet").read_bytes()
    assert (made.public / "data.parquet").read_bytes() == data


def test_what_may_be_taken_along(released: Any) -> None:
    archive = zipfile.ZipFile(io.BytesIO(released.get("/release/public.zip").content))
    assert {name.split("/")[0] for name in archive.namelist()} == {"public"}
    table = pl.read_parquet(io.BytesIO(released.get("/release/file/public/data.parquet").content))
    assert table.height == 4_000
    assert released.get("/release/file/public/seed.json").status_code == 422
    public, private = (released.get(f"/release/report/{part}") for part in ("public", "private"))
    for report in (public, private):
        assert report.headers["Content-Security-Policy"].startswith("sandbox")
    assert public.text != private.text


def test_an_existing_release_is_not_replaced_unasked(released: Any) -> None:
    answer = released.post("/release/run", {"folder": "out"})
    assert answer.status_code == 422
    assert "exists already" in answer.text
    released.post("/release/run", {"folder": "out", "overwrite": "true"})
    assert released.finished("release").result["released"]


@pytest.mark.parametrize("folder", ["../out", "a/b", ".hidden", "", "  ", "uploads", "x" * 101, "a\0", "C:\\x"])
def test_a_folder_is_made_in_the_working_folder_only(unreleased: Any, folder: str) -> None:
    assert unreleased.post("/release/run", {"folder": folder}).status_code == 422
    assert unreleased.office.runs.latest("release") is None


def test_a_refusal_is_told_with_its_page(sampled: Any) -> None:
    def strict(draft: Any) -> Any:
        return {**draft, "policy": {**draft["policy"], "limits": {**draft["policy"]["limits"], "entropy": "> 12"}}}

    sampled.office.edit(None, "Stricter", "balance", strict)
    sampled.post("/release/run", {"folder": "out"})
    run = sampled.finished("release")
    assert run.state == "done"
    assert not run.result["released"]
    shown = sampled.get("/release").text
    assert "Nothing was released" in shown
    assert sampled.get("/release/report/refused").status_code == 200
    assert not (sampled.folder / "out").exists()


def test_before_a_release_there_is_nothing_to_take(unreleased: Any) -> None:
    for path in ("/release/public.zip", "/release/report/public", "/release/file/public/data.parquet"):
        answer = unreleased.get(path)
        assert answer.status_code == 422
        assert "yet" in answer.text
    assert unreleased.post("/release/verify").status_code == 422


def test_the_script_takes_every_step_again(released: Any) -> None:
    released.post("/open/role", {"column": "tenure", "role": "sensitive"})
    assert released.post("/tables/method", {"name": "suppress"}).status_code == 200
    assert released.post("/publish/keep", {"risk": "0.3"}).status_code == 200
    script = released.get("/release/script")
    assert "# 2. tenure: sensitive" in script.text
    assert "attachment" in script.headers["content-disposition"]
    place = released.folder / "steps.py"
    place.write_text(script.text, encoding="utf-8")
    done = subprocess.run([sys.executable, place], cwd=released.folder, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    assert "Verified" in done.stdout
    assert eq.verify(released.folder / "survey-table").outcome == "verified"
    assert (released.folder / "survey-decision" / "decision.csv").is_file()
    plain = tomllib.loads((released.folder / "survey-policy.toml").read_text(encoding="utf-8"))
    assert plain["roles"]["sensitive"] == released.policy["roles"]["sensitive"]
