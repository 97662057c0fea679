"""How many processes share the trials, with a fake number of cores and fake memory."""

from pathlib import Path
from typing import Any

import pytest

import equipoise as eq
from equipoise.ground import system
from equipoise.policies.policy_file import Job
from equipoise.trials import runner as running
from equipoise.trials.runner import Runner
from equipoise.trials.worker_count import COPIES_OF_DATA, WORKER_BYTES, worker_count

GIB = 1 << 30


@pytest.mark.parametrize(
    ("processes", "cores", "free", "data", "expected"),
    [
        (None, 8, 64 * GIB, 0, 8),
        (None, 64, 64 * GIB, GIB, 64 * GIB // (WORKER_BYTES + COPIES_OF_DATA * GIB)),
        (None, 8, WORKER_BYTES // 2, 0, 1),
        (None, 3, None, GIB, 3),
        (1, 8, 64 * GIB, 0, 1),
        (17, 8, WORKER_BYTES, GIB, 17),
    ],
)
def test_every_core_as_far_as_memory_allows(
    processes: int | None,
    cores: int,
    free: int | None,
    data: int,
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A number that was asked for is taken as it is."""
    monkeypatch.setattr(system, "cores", lambda: cores)
    monkeypatch.setattr(system, "free_memory", lambda: free)
    assert worker_count(processes, data) == expected


@pytest.mark.parametrize(("cores", "started"), [(5, [5]), (1, [])])
def test_a_runner_starts_as_many(
    cores: int, started: list[int], people_records: eq.Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers: list[int] = []

    def count(number: int, *_: Any) -> Any:
        numbers.append(number)
        raise OSError("enough")

    monkeypatch.setattr(running, "MIN_SECONDS_LEFT", 0.0)
    monkeypatch.setattr(system, "cores", lambda: cores)
    monkeypatch.setattr(system, "free_memory", lambda: 64 * GIB)
    monkeypatch.setattr(system, "workers", count)
    recipes = [eq.Recipe([eq.masks.Noise(("salary",), scale)], 5) for scale in (0.1, 0.2, 0.3, 0.4, 0.5)]
    with Runner(people_records, [eq.utility.Moments(("salary",))], processes=None, total=5) as runner:
        assert len(runner.run(recipes)) == 5
    assert numbers == started


def test_there_is_a_core() -> None:
    assert system.cores() >= 1


def test_no_process_at_all_is_refused(people_records: eq.Records) -> None:
    with pytest.raises(eq.ParameterError, match="processes must be at least 1"):
        eq.sweep(people_records, [eq.Recipe([])], [eq.risk.Uniques()], processes=0)


@pytest.mark.parametrize(("line", "expected"), [("", None), ("processes = 12", 12)])
def test_a_policy_takes_any_number(line: str, expected: int | None, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,pay\n1,2\n2,3\n", encoding="utf-8")
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f'[data]\npath = "people.csv"\n[roles]\nkeys = ["age"]\n[limits]\nuniques = "< 0.9"\n[search]\n{line}\n'
        '[[candidates]]\nmasks = [{ use = "top_code", column = "age", at = 1 }]\n[waive]\nattack = "a test"\n',
        encoding="utf-8",
    )
    assert Job.load(policy).search.processes == expected
