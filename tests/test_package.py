"""The product: what is in the wheel and the sdist, the demos from the wheel, an installation without a network."""

import base64
import csv
import hashlib
import importlib.metadata
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "equipoise"
SCRIPTS, ENDING = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
TOP = {
    ".gitignore", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "PKG-INFO", "README.md", "benchmarks",
    "constraints.txt", "docs", "pyproject.toml", "src", "tests", "tools",
}  # fmt: skip
DATA = ("doors/report/assets/vega.min.js", "doors/report/assets/vega.LICENSE", "doors/report/templates/base.html")
pytestmark = pytest.mark.xdist_group("wheel")


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A command with nothing of this environment: no source tree, no settings of pip."""
    hidden = ("PYTHON", "VIRTUAL_ENV", "COV_", "PIP_", "UV_", "EQUIPOISE_")
    clean = {k: v for k, v in os.environ.items() if not k.startswith(hidden)} | {"PIP_CONFIG_FILE": os.devnull}
    words = [str(part) for part in command]
    return subprocess.run(words, cwd=cwd, env=clean | env, capture_output=True, text=True, timeout=1200, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the sdist, and the wheel that was built from it."""
    pytest.importorskip("build", reason="Nothing was built: the package 'build' is not installed.")
    pytest.importorskip("hatchling", reason="Nothing was built: hatchling is not installed.")
    out = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-W", "error", "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "warn" not in said.lower()
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (made,) = built.glob("*.whl")
    return made


# What is inside -------------------------------------------------------------------------------------------------------


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    """Every file of the package, templates, charts and types too; the licence; no tests."""
    names = set(zipfile.ZipFile(wheel).namelist())
    own = {p.relative_to(SOURCE.parent).as_posix() for p in SOURCE.rglob("*") if p.is_file()}
    own = {name for name in own if "__pycache__" not in name}
    info = {name for name in names if name.startswith("equipoise-0.1.0.dist-info/")}
    assert names - info == own
    assert {f"equipoise/{name}" for name in ("py.typed", *DATA)} <= own
    kept = {name.partition("/")[2] for name in info}
    assert kept == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def test_the_metadata(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        told = archive.read("equipoise-0.1.0.dist-info/METADATA").decode("utf-8")
        licence = archive.read("equipoise-0.1.0.dist-info/licenses/LICENSE").decode("utf-8")
    head = told.partition("\n\n")[0].splitlines()
    assert {"License-Expression: Apache-2.0", "License-File: LICENSE", "Requires-Python: >=3.11"} <= set(head)
    assert "Description-Content-Type: text/markdown" in head
    assert licence == (ROOT / "LICENSE").read_text(encoding="utf-8")


def test_the_sdist_holds_what_is_needed_to_build_and_test(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = [PurePosixPath(member.name).relative_to("equipoise-0.1.0") for member in archive if member.isfile()]
    assert {name.parts[0] for name in names} >= TOP
    assert not [n for n in names if n.suffix in (".pyc", ".so", ".log", ".parquet") or "__pycache__" in n.parts]
    assert not [n for n in names if any(part.startswith(".") and part != ".gitignore" for part in n.parts)]
    assert PurePosixPath("tools/bundle.py") in names
    assert PurePosixPath("tests/test_package.py") in names


# Installed ------------------------------------------------------------------------------------------------------------


def empty(place: Path, *, pip: bool) -> Path:
    """A new environment; its Python."""
    venv.create(place, with_pip=pip, symlinks=os.name != "nt")
    return place / SCRIPTS / f"python{ENDING}"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The scripts of an environment that holds the wheel, and sees the packages of this one but not our sources."""
    place = tmp_path_factory.mktemp("installed")
    python = empty(place, pip=False)
    done = run(
        sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=place
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=place).stdout.strip()
    Path(where, "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return python.parent


def test_it_is_the_wheel(installed: Path, tmp_path: Path) -> None:
    asked = "import equipoise, sys; print(equipoise.__file__); print(*sys.path, sep='\\n')"
    done = run(installed / f"python{ENDING}", "-c", asked, cwd=tmp_path)
    first, *paths = done.stdout.splitlines()
    assert Path(first).is_relative_to(installed.parent)
    assert not [path for path in paths if Path(path).is_relative_to(ROOT / "src")]
    assert run(installed / f"equipoise{ENDING}", "--version", cwd=tmp_path).stdout == "equipoise 0.1.0\n"


@pytest.mark.parametrize("name", ["hospital", pytest.param("business", marks=pytest.mark.evidence)])
def test_the_wheel_runs_the_demos(installed: Path, name: str, tmp_path: Path) -> None:
    """The quickest here, two in full; the third runs from the bundle, below, in full too."""
    shown(installed, name, tmp_path)


def shown(scripts: Path, name: str, folder: Path) -> None:
    """Run a demo in an empty folder; templates, charts, policies and trees are inside the package."""
    done = run(scripts / f"equipoise{ENDING}", "demo", name, "--out", "shown", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert [p.name for p in folder.iterdir()] == ["shown"]
    pages = sorted((folder / "shown").rglob("report.html"))
    assert [page.parent.name for page in pages] == ["private", "public"]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert len(text) > 10_000, "the report is a whole page, not a stub"
        assert "vega" in text
    assert len(list((folder / "shown").rglob("evidence.json"))) == 1


# Without a network ----------------------------------------------------------------------------------------------------


def required(name: str, found: dict[str, importlib.metadata.Distribution]) -> None:
    """The distributions of this environment that a package needs."""
    for text in importlib.metadata.distribution(name).requires or ():
        needed = Requirement(text)
        if needed.name not in found and (needed.marker is None or needed.marker.evaluate({"extra": ""})):
            found[needed.name] = importlib.metadata.distribution(needed.name)
            required(needed.name, found)


def packed(distribution: importlib.metadata.Distribution, folder: Path) -> None:
    """An installed package as a wheel again."""
    stem = f"{distribution.metadata['Name'].replace('-', '_').replace('.', '_')}-{distribution.version}"
    tags = [line[5:] for line in (distribution.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: ")]
    tag = "-".join(".".join(dict.fromkeys(parts)) for parts in zip(*(tag.split("-") for tag in tags), strict=True))
    record = io.StringIO()
    lines = csv.writer(record, lineterminator="\n")
    with zipfile.ZipFile(folder / f"{stem}-{tag}.whl", "w") as archive:
        for name, path in _files(distribution):
            content = path.read_bytes()
            mark = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            lines.writerow((name, f"sha256={mark}", len(content)))
            archive.writestr(name, content)
        info = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA")).rpartition("/")[0]
        archive.writestr(f"{info}/RECORD", record.getvalue() + f"{info}/RECORD,,\n")


def _files(distribution: importlib.metadata.Distribution) -> Iterator[tuple[str, Path]]:
    added = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
    for file in distribution.files or ():
        path = Path(str(file.locate()))
        if ".." not in file.parts and file.suffix != ".pyc" and file.name not in added and path.is_file():
            yield file.as_posix(), path


@pytest.fixture(scope="module")
def bundle(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the required packages, from wheels made of those installed here."""
    place, needed = tmp_path_factory.mktemp("bundle"), dict[str, importlib.metadata.Distribution]()
    required("equipoise", needed)
    (place / "wheels").mkdir()
    for distribution in needed.values():
        packed(distribution, place / "wheels")
    told = ["--wheel", wheel, "--extras", "", "--out", place / "dist" / "bundle"]
    tool = ROOT / "tools" / "bundle.py"
    done = run(sys.executable, tool, *told, "--", "--no-index", "--find-links", place / "wheels", cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(place / "wheels")
    return place / "dist" / "bundle"


def install(bundle: Path, *pip: str | Path) -> subprocess.CompletedProcess[str]:
    """As INSTALL.txt says."""
    told = ["--no-index", "--find-links", ".", "--require-hashes", "-r", "requirements.txt"]
    assert f"python -m pip install {' '.join(told)}" in (bundle / "INSTALL.txt").read_text(encoding="utf-8")
    return run(*pip, "install", "--no-compile", *told, cwd=bundle, PIP_NO_INDEX="1")


def test_the_bundle_is_described(bundle: Path) -> None:
    """Every file has its hash, every wheel its pin, and nothing says where the wheels came from."""
    wheels = {file.name for file in bundle.glob("*.whl")}
    texts = {
        name: (bundle / name).read_text(encoding="utf-8") for name in ("requirements.txt", "SHA256SUMS", "INSTALL.txt")
    }
    assert {file.name for file in bundle.iterdir()} == wheels | set(texts)
    sums = dict(reversed(line.split("  ")) for line in texts["SHA256SUMS"].splitlines())
    assert set(sums) == wheels | {"requirements.txt", "INSTALL.txt"}
    for name, mark in sums.items():
        assert hashlib.sha256((bundle / name).read_bytes()).hexdigest() == mark
    pins = texts["requirements.txt"].splitlines()
    assert pins[0].startswith("equipoise==0.1.0 --hash=sha256:")
    assert {pin.partition("--hash=sha256:")[2] for pin in pins} == {sums[name] for name in wheels}
    assert not any("://" in text or "index-url" in text for text in texts.values())
    assert all("\r" not in text for text in texts.values())


def test_it_installs_without_a_network(bundle: Path, tmp_path: Path, full: Any) -> None:
    """Into an empty environment, by pip's own hashes; then it works, in full with a demo."""
    python = empty(tmp_path / "empty", pip=True)
    done = install(bundle, python, "-m", "pip")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "http" not in done.stdout + done.stderr
    work = tmp_path / "work"
    work.mkdir()
    assert run(python.parent / f"equipoise{ENDING}", "--version", cwd=work).stdout == "equipoise 0.1.0\n"
    assert run(python, "-m", "pip", "check", cwd=work).returncode == 0
    if full(False, True):
        shown(python.parent, "survey", work)


def test_a_changed_wheel_is_refused(bundle: Path, tmp_path: Path) -> None:
    """One changed bit, and nothing of the bundle is installed."""
    copy = tmp_path / "copy"
    shutil.copytree(bundle, copy, copy_function=os.link)
    (changed,) = copy.glob("tomli_w-*.whl")
    content = changed.read_bytes()
    changed.unlink()
    changed.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    python = empty(tmp_path / "empty", pip=False)
    done = install(copy, sys.executable, "-m", "pip", "--python", python)
    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert list((tmp_path / "empty").rglob("*.dist-info")) == []
