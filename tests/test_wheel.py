"""The built wheel works where nothing else of the project is: no source tree, no editable install."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a folder to work in."""

    python: Path
    folder: Path

    def run(self, *command: str) -> str:
        """Standard output of a program of the environment."""
        done = subprocess.run(
            [str(self.python.parent / command[0]), *command[1:]],
            cwd=self.folder, env=_bare_environment(), capture_output=True, text=True, timeout=280,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def _bare_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TOWPATH"))}
    return {**kept, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    pytest.importorskip("hatchling", reason="the wheel is built by hatchling, which is not installed")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    wheels, home = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("environment")
    offline = ["--no-deps", "--no-index"]
    build = [*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", str(wheels), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, cwd=wheels)
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (wheel,) = wheels.glob("towpath-*.whl")
    subprocess.run(
        [*pip, "--python", str(python), "install", *offline, str(wheel)], check=True, capture_output=True
    )
    # What the wheel depends on is borrowed from this environment, so that nothing is downloaded. Its own .pth
    # files, such as that of an editable install, are not followed from here.
    (site,) = (home / "lib").glob("python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    return Installed(python, tmp_path_factory.mktemp("work"))


def test_the_installed_package_is_the_wheel(installed: Installed) -> None:
    where = installed.run("python", "-c", "import towpath; print(towpath.__file__)")
    assert Path(where.strip()).is_relative_to(installed.python.parents[1])


def test_version_and_datasets(installed: Installed) -> None:
    assert installed.run("towpath", "--version") == f"towpath {version('towpath')}\n"
    assert "ml-1m" in installed.run("towpath", "data", "list")


def test_a_model_is_trained_and_recommends(installed: Installed) -> None:
    events = [f"{user},{item},{item}" for user in range(20) for item in range(user % 5, user % 5 + 8)]
    (installed.folder / "events.csv").write_text(
        "user,item,time\n" + "\n".join(events) + "\n", encoding="utf-8"
    )
    installed.run("towpath", "fit", "events.csv", "--model", "ease", "--out", "run")
    answer = json.loads(installed.run("towpath", "recommend", "run", "--user", "3", "-k", "2", "--json"))
    assert len(answer["items"]) == 2
    assert answer["fallback"] is False


def test_the_demonstration_runs(installed: Installed) -> None:
    told = json.loads(installed.run("towpath", "demo", "--json", "--quiet", "--out", "demo"))
    assert {one["name"] for one in told["recommenders"]} >= {"plain", "transport", "popularity"}
    assert (installed.folder / "demo" / "index.html").stat().st_size > 10_000
