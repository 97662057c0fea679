"""The built wheel, installed into an empty environment, runs the demo from somewhere else."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.xdist_group("wheel")


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV", "COV_"))}
    return subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={"UV_SYSTEM_CERTS": "1"} | clean | env,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy of the sources, so that nothing is left behind in the repository."""
    pytest.importorskip("build", reason="The wheel was not built: the package 'build' is not installed.")
    pytest.importorskip("hatchling", reason="The wheel was not built: hatchling is not installed.")
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, copy / name)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    out = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, copy, cwd=out)
    assert done.returncode == 0, done.stdout + done.stderr
    (made,) = out.glob("equipoise-*.whl")
    return made


def test_the_wheel_holds_what_is_not_python(wheel: Path) -> None:
    """Demo policy and report templates travel with the code; tests and caches do not."""
    names = zipfile.ZipFile(wheel).namelist()
    assert "equipoise/demo/survey.toml" in names
    outside = [n for n in names if not n.startswith(("equipoise/", "equipoise-"))]
    assert outside == []
    assert not [n for n in names if "__pycache__" in n]
    data = {p.relative_to(ROOT / "src").as_posix() for p in (ROOT / "src").rglob("*") if p.is_file()}
    kept = {n for n in data if "__pycache__" not in n}
    assert kept <= set(names)


def test_the_installed_wheel_runs_the_demo(wheel: Path, tmp_path: Path) -> None:
    """Installed non-editable into an empty environment it runs the demo (templates and charts are inside)."""
    empty, elsewhere = tmp_path / "empty", tmp_path / "elsewhere"
    elsewhere.mkdir()
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv:
        made = run(uv, "venv", "--python", sys.executable, empty, cwd=elsewhere)
        assert made.returncode == 0, made.stderr
        pip: list[str | Path] = [uv, "pip", "install", "--python", empty / "bin" / "python"]
    else:
        made = run(sys.executable, "-m", "venv", empty, cwd=elsewhere)
        assert made.returncode == 0, made.stderr
        pip = [empty / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check"]
    installed = run(*pip, "--constraint", ROOT / "constraints.txt", wheel, cwd=elsewhere)
    if installed.returncode:
        pytest.skip(f"The wheel was not installed: its dependencies could not be had. {installed.stderr[-300:]}")
    assert "Editable" not in run(*pip[:-1], "list", cwd=elsewhere).stdout
    done = run(empty / "bin" / "equipoise", "demo", "--out", "shown", cwd=elsewhere)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = sorted(p.relative_to(elsewhere).as_posix() for p in (elsewhere / "shown").rglob("report.html"))
    assert len(pages) == 2
    assert any("public" in p for p in pages)
    for page in pages:
        text = (elsewhere / page).read_text(encoding="utf-8")
        assert len(text) > 10_000, "the report is a whole page, not a stub"
    assert list((elsewhere / "shown").rglob("evidence.json"))
    where = run(empty / "bin" / "python", "-c", "import equipoise; print(equipoise.__file__)", cwd=elsewhere)
    assert str(empty) in where.stdout
    version = run(empty / "bin" / "equipoise", "--version", cwd=elsewhere)
    assert "0.1.0" in version.stdout
