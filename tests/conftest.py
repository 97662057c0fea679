"""What many tests share: small seeded files, every engine, and two masks that draw at random.

`make test` runs a small seeded version of what takes long. The fixture `full(small, large)` picks the size, and the
mark `evidence` names the cases that are only in the full version: `make evidence` runs both, with EQUIPOISE_EVIDENCE=1.
"""

import gc
import multiprocessing
import os
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from threading import Lock
from typing import Any
from unittest import mock

import narwhals as nw
import numpy as np
import polars as pl
import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

import equipoise as eq
from equipoise.data.records import Law, Records
from equipoise.ground.randomness import Draws
from equipoise.presentation.pages import PAGES
from equipoise.releases import release as releases
from equipoise.trials import runner

CHROMIUM = Path("/usr/bin/chromium")
BROWSER_FLAGS = (
    *("--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
EVIDENCE = os.environ.get("EQUIPOISE_EVIDENCE") == "1"
"""Whether the full versions of the tests run."""
REDTEAM = EVIDENCE and "EQUIPOISE_ATTACK_ROWS" in os.environ
"""Whether they run for the table of attacks: large files, but of cases that differ by their draw alone only some."""
MAX_DRAWN_CASES = 8
"""Cases of a test marked `evidence(every=...)` that run for the table of attacks."""

settings.register_profile(
    "equipoise",
    deadline=None,
    max_examples=200 if EVIDENCE else 10,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("equipoise")

Make = Callable[[pl.DataFrame], Any]
LIGHT_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of a short-lived Java: compiling for speed costs twice the CPU of all that Spark does in the tests."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file on one worker, so that what its tests share is made once; one Spark and one browser.

    With pytest 9.2 xdist 3.8 loses the groups on the way (pytest-xdist issue 1386).
    """
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            groups = {"spark": "spark", "_browser.py": "browser"}
            return next((group for mark, group in groups.items() if mark in nodeid), nodeid.partition("::")[0])

    return Grouped(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_collection_finish() -> None:
    """Thousands of collected tests are no garbage: without this every full collection looks through all of them."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Any:
    """Examples are in the source: test files are not searched for them."""
    collectors = yield
    return [collector for collector in collectors if not isinstance(collector, DoctestModule)]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "evidence(every=None): in full under `make evidence`; here none, or one in so many"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Cases marked `evidence` are left out of `make test`; under `make evidence` tests that grow have the mark too.

    `evidence(every=3)` keeps the first of each three cases of a test, in the order of its parameters.
    """
    if EVIDENCE and not REDTEAM:
        for item in items:
            examples = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
            if examples or "full" in getattr(item, "fixturenames", ()):
                item.add_marker("evidence")
        return
    marked = [(item, mark) for item in items if (mark := item.get_closest_marker("evidence"))]
    total, cases = Counter(_test_name(item) for item, _ in marked), Counter[str]()
    left_out = set[pytest.Item]()
    for item, mark in marked:
        name, every = _test_name(item), mark.kwargs.get("every")
        if REDTEAM:
            every = -(-total[name] // MAX_DRAWN_CASES)
        if every is None or cases[name] % every:
            left_out.add(item)
        cases[name] += 1
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


def _test_name(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


@pytest.fixture(scope="session", autouse=True)
def quick_processes() -> Iterator[None]:
    """Processes start as copies of one that has imported the package: a fresh one costs a second of CPU each time.

    They get the environment of the session's start. Fresh processes are tried in subprocesses by test_package.py and
    releases/test_kills.py, and in every process of `make evidence`.
    """
    if EVIDENCE or "forkserver" not in multiprocessing.get_all_start_methods():
        yield
        return
    from multiprocessing import forkserver

    fresh, environment, first = multiprocessing.get_context, dict(os.environ), Lock()
    fresh("forkserver").set_forkserver_preload(["equipoise.doors.cli", "equipoise.doors.web.app", "scipy.stats"])

    def copied(method: str | None = None) -> Any:
        if first.acquire(blocking=False):  # and never again: the test that is first may have changed the environment
            with mock.patch.dict(os.environ, environment, clear=True):
                forkserver.ensure_running()
        return fresh("forkserver" if method == "spawn" else method)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multiprocessing, "get_context", copied)
        yield
    forkserver._forkserver._stop()


@pytest.fixture(scope="session", autouse=True)
def one_process() -> Iterator[None]:
    """Trials stay in their process, however slow the machine is: each more would read and count the file again.

    Several processes are tried in trials/test_runner.py, which ask for them, and in all of `make evidence`.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not EVIDENCE:
            patch.setattr(runner, "MIN_SECONDS_LEFT", float("inf"))
        yield


@pytest.fixture(scope="session")
def full() -> Callable[..., Any]:
    """Picks the first of two sizes in `make test`, the second in `make evidence`, `redteam` for `make redteam`."""
    return lambda small, large, redteam=None: small if not EVIDENCE else (redteam if REDTEAM else None) or large


@dataclass(frozen=True)
class Engine:
    """A kind of frame: its name, how to make one from Polars, and the type that must come back."""

    name: str
    make: Make
    type: type

    def rows(self, native: Any) -> pl.DataFrame:
        """A native frame as Polars, whatever its order."""
        frame = nw.from_native(native).lazy()
        table: pl.DataFrame = frame.collect(backend="polars").to_native()
        return table


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One local Spark for the session, silent and small."""
    if shutil.which("java") is None:
        pytest.skip("Spark was not tried: there is no java on this machine.")
    pytest.importorskip("pyspark", reason="Spark was not tried: pyspark is not installed.")
    os.environ.setdefault(
        "PYSPARK_SUBMIT_ARGS", f'--driver-memory 1g --driver-java-options "{LIGHT_JAVA}" pyspark-shell'
    )
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's Python workers must find this package
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark and py4j start with warnings of their own
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master("local[2]")
            .appName("equipoise-tests")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.default.parallelism", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.execution.arrow.pyspark.enabled", "true")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def _pandas(table: pl.DataFrame) -> Any:
    pytest.importorskip("pandas")
    return table.to_pandas(use_pyarrow_extension_array=True)


def _pyarrow(table: pl.DataFrame) -> Any:
    pytest.importorskip("pyarrow")
    return table.to_arrow()


def _duckdb(table: pl.DataFrame) -> Any:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("arrived", table.to_arrow())
    connection.execute("create table held as select * from arrived")
    return connection.table("held")


@pytest.fixture(
    params=[
        "polars",
        "polars-lazy",
        "pandas",
        "pyarrow",
        "duckdb",
        pytest.param("pyspark", marks=pytest.mark.xdist_group("spark")),
    ]
)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every kind of frame, one after the other."""
    name = request.param
    if name == "polars":
        return Engine(name, lambda table: table, pl.DataFrame)
    if name == "polars-lazy":
        return Engine(name, lambda table: table.lazy(), pl.LazyFrame)
    if name == "pandas":
        return Engine(name, _pandas, pytest.importorskip("pandas").DataFrame)
    if name == "pyarrow":
        return Engine(name, _pyarrow, pytest.importorskip("pyarrow").Table)
    if name == "duckdb":
        return Engine(name, _duckdb, pytest.importorskip("duckdb").DuckDBPyRelation)
    session = request.getfixturevalue("spark")
    from pyspark.sql import DataFrame

    return Engine(name, lambda table: session.createDataFrame(table.to_arrow()), DataFrame)


@pytest.fixture(scope="session")
def mixed() -> pl.DataFrame:
    """Every type a key may have, with nulls, NaN and repeated rows; `id` names each record."""
    rng = np.random.default_rng(1999)
    size = 240
    days = [date(2024, 1, 30), date(2024, 2, 1), date(1999, 12, 31), None]
    table = pl.DataFrame(
        {
            "id": np.arange(size) * 7 + 1,
            "town": rng.choice(["Ål", "Bo", "C d", ""], size).tolist(),
            "age": rng.integers(0, 12, size),
            "rooms": rng.choice([1, 2, 3], size),
            "grade": rng.choice([0.5, 1.25, -2.0], size),
            "owner": rng.choice([True, False], size),
            "born": [days[i] for i in rng.integers(0, 4, size)],
            "income": rng.integers(0, 60, size) * 100,
            "weight": rng.choice([0.5, 1.0, 2.25], size),
        }
    )
    gaps = rng.random(size)
    return table.with_columns(
        town=pl.when(pl.Series(gaps < 0.1)).then(None).otherwise(pl.col("town")),
        rooms=pl.when(pl.Series(gaps > 0.9)).then(None).otherwise(pl.col("rooms")),
        grade=pl.when(pl.Series(gaps > 0.8)).then(float("nan")).otherwise(pl.col("grade")),
        owner=pl.when(pl.Series((gaps > 0.4) & (gaps < 0.5))).then(None).otherwise(pl.col("owner")),
    ).with_columns(grade=pl.when(pl.Series(gaps < 0.05)).then(None).otherwise(pl.col("grade")))


@pytest.fixture(scope="session")
def people() -> pl.DataFrame:
    """A small file without gaps: two categorical keys, two numeric ones, a sensitive column, weights and ids."""
    rng = np.random.default_rng(7)
    size = 400
    age = rng.integers(16, 91, size)
    return pl.DataFrame(
        {
            "person": np.arange(1, size + 1),
            "sex": rng.choice(["f", "m"], size),
            "area": rng.choice(["1011", "1012", "1021", "2600", "2601"], size),
            "age": age,
            "salary": rng.choice([0, 1500, 12_000, 30_500, 99_000], size) + age * 10,
            "ill": rng.choice(["no", "no", "no", "yes"], size),
            "weight": rng.choice([1.5, 2.0, 4.0], size),
        }
    )


@pytest.fixture(scope="session")
def people_roles() -> eq.Roles:
    return eq.Roles(
        ["sex", "area", "age"],
        ["ill"],
        numeric=["salary"],
        weight="weight",
        id="person",
        hierarchies={
            "area": eq.Hierarchy.prefix(3, 2, 1, root=True),
            "age": eq.Hierarchy.intervals([5, 10], top=80) | eq.Hierarchy.intervals(3),
        },
    )


@pytest.fixture
def people_records(people: pl.DataFrame, people_roles: eq.Roles) -> eq.Records:
    return eq.read(people, people_roles)


@dataclass(frozen=True)
class Jumble:
    """Give the values of a column to other records at random: a permutation, drawn by record and not by row order."""

    column: str

    def apply(self, data: Records, draws: Draws) -> Records:
        keys, table = data.keys_of_rows(), data.collect()
        giver, taker = np.argsort(draws.uniform(keys, 0)), np.argsort(draws.uniform(keys, 1))
        given = np.empty(table.height, dtype=np.int64)
        given[taker] = giver
        moved = table.with_columns(table[self.column].gather(pl.Series(given)).alias(self.column))
        law = Law("jumble", (self.column,), f"{self.column} given to other records at random")
        return data.with_frame(nw.from_native(moved.lazy()), law)


@pytest.fixture(scope="session")
def jumble() -> type[Jumble]:
    """A random mask that is in no family, for tests only."""
    return Jumble


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Files of other projects; without them the twin on generated data still runs."""
    named = os.environ.get("EQUIPOISE_DATA")
    if not named:
        pytest.skip("Real files were not tried: set EQUIPOISE_DATA to the folder that holds arx/ and sdcmicro/.")
    folder = Path(named)
    if not (folder / "arx").is_dir() or not (folder / "sdcmicro").is_dir():
        pytest.skip(f"Real files were not tried: {folder} has no arx/ and sdcmicro/.")
    return folder


def plain_page(report: Any, public: bool) -> str:
    """A report page that takes no time to draw."""
    return f"<!doctype html><title>{report.title}</title><p>{'public' if public else 'internal'}"


@contextmanager
def without_pages() -> Iterator[None]:
    """Plain pages; attacks, which stand on the page alone and take most of a small release, are not tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PAGES, "Report", plain_page)
        if not EVIDENCE:
            patch.setattr(releases, "try_out", lambda *files, **options: "the page is plain.")
        yield


@pytest.fixture
def page() -> Iterator[Callable[[Any, bool], str]]:
    """Releases get a page that takes no time to make."""
    with without_pages():
        yield plain_page


@pytest.fixture(scope="module")
def plain_pages() -> Iterator[None]:
    """The same for all tests of a module."""
    with without_pages():
        yield


@pytest.fixture(scope="session")
def plainly() -> Callable[[], AbstractContextManager[None]]:
    """The same for what is made inside it."""
    return without_pages


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A browser, one for all tests of a process: a second could not be driven beside it."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if not CHROMIUM.exists():
        pytest.skip(f"No page was opened in a browser: there is no Chromium at {CHROMIUM}.")
    with playwright.sync_playwright() as tools:
        running = tools.chromium.launch(executable_path=str(CHROMIUM), args=list(BROWSER_FLAGS))
        yield running
        running.close()


@pytest.fixture
def opened_page(chromium: Any) -> Iterator[Callable[..., tuple[Any, list[str]]]]:
    """Opens a file in the browser: the tab, and a list of what it complains of or asks for beyond the disk."""
    tabs: list[Any] = []

    def open_page(file: Path, **options: Any) -> tuple[Any, list[str]]:
        tab = chromium.new_page(viewport={"width": 1100, "height": 900}, **options)
        tab.set_default_timeout(300_000)
        heard: list[str] = []
        tab.on("console", lambda message: heard.append(message.text))
        tab.on("pageerror", lambda error: heard.append(str(error)))
        tab.on("request", lambda request: request.url.startswith("file:") or heard.append(request.url))
        tab.goto(file.resolve().as_uri())
        tabs.append(tab)
        return tab, heard

    yield open_page
    for tab in tabs:
        tab.context.close()
