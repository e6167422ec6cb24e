"""Makes the environments in which the peers of `benchmarks.peers` live: build/peers/NAME, one each.

    python -m benchmarks.peer_environments [implicit polars recbole rectools]

Their requirements exclude each other and ours, so none is installed next to towpath. An environment that is
whole is left as it is; one whose making failed is removed, and what pip said is shown.
"""

import argparse
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1] / "build" / "peers"
# Versions that were seen to work together; RecBole does not start with newer numpy, pandas or setuptools.
REQUIREMENTS: dict[str, tuple[str, ...]] = {
    "implicit": ("implicit==0.7.3", "numpy", "scipy"),
    "recbole": (
        "recbole==1.2.1",
        "torch==2.13.0",
        "numpy==1.26.4",
        "pandas<3",
        "scipy<1.14",
        "scikit-learn<1.6",
        "setuptools<81",
    ),
    "polars": ("polars==2.1.0", "numpy"),
    "rectools": ("rectools[torch]==0.19.0", "torch==2.13.0"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"any of {', '.join(REQUIREMENTS)}; all by default")
    names = parser.parse_args().names or list(REQUIREMENTS)
    unknown = sorted(set(names) - set(REQUIREMENTS))
    if unknown:
        parser.error(f"there is no recipe for {unknown[0]!r}, only for {', '.join(REQUIREMENTS)}")
    failed = [name for name in names if not make(name)]
    if failed:
        sys.exit(f"could not make: {', '.join(failed)}")


def interpreter(name: str) -> Path | None:
    """The peer's own python, or None if its environment was not made."""
    python = ROOT / name / "bin" / "python"
    return python if _stamp(name).is_file() else None


def make(name: str) -> bool:
    """Whether the environment is there now."""
    if interpreter(name):
        return True
    folder = ROOT / name
    shutil.rmtree(folder, ignore_errors=True)
    print(f"making {folder}", flush=True)
    venv.create(folder, with_pip=True)
    done = subprocess.run(
        [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *REQUIREMENTS[name]], check=False
    )
    if done.returncode:
        shutil.rmtree(folder)
        return False
    _stamp(name).touch()  # last, so that a half-made environment is made again
    return True


def _stamp(name: str) -> Path:
    return ROOT / name / ".made"


if __name__ == "__main__":
    main()
