"""The library under each Python, with the lowest and the newest packages that it says it takes.

For every interpreter given (or found as python3.11 to python3.14) a virtual environment is made
twice, once with the lower bounds of pyproject.toml and once with what is newest today, and a part
of the tests that touches every family, files and the command line is run in it.

``python -m dependability.versions python3.11 python3.13``
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
KNOWN = ("python3.11", "python3.12", "python3.13", "python3.14")
TESTS = (
    "tests/test_old_files.py",
    "tests/test_model_files.py",
    "tests/dependability/test_model_files.py",
    "tests/contract/test_contract.py",
    "tests/engine/test_backends.py",
    "tests/cli/test_fit.py",
)
TOOLS = (
    "pytest>=8",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
)
PRINT_VERSIONS = """
import importlib.metadata as m, platform
names = "numpy scipy scikit-learn numba pandas safetensors typer rich threadpoolctl".split()
print("python", platform.python_version(), *(f"{n} {m.version(n)}" for n in names))
"""


def lowest_versions() -> list[str]:
    """Return the needed packages pinned to the lowest version that pyproject.toml allows."""
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [re.sub(r">=", "==", requirement) for requirement in needed]


def try_version(python: str, which: str, folder: Path) -> tuple[bool, str]:
    """Install into a new environment and run the tests; say whether they passed, and what ran."""
    bin_ = folder / "bin"
    _run([python, "-m", "venv", str(folder)])
    # The lowest scikit-learn does not see column names of the newest polars.
    pins = [*lowest_versions(), "polars==1.0.0"] if which == "lowest" else ["polars"]
    install = [str(bin_ / "python"), "-m", "pip", "install", "--quiet", "--prefer-binary"]
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # else files that are gone are installed, too
    _run([*install, *pins, *TOOLS, f"{ROOT}[plot]"])
    versions = _run([str(bin_ / "python"), "-c", PRINT_VERSIONS]).strip()
    # The installed package is tested, not the source tree.
    tests = [str(bin_ / "python"), "-P", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
    tests += ["-W", "ignore::DeprecationWarning", "-W", "ignore::FutureWarning", *TESTS]
    done = subprocess.run(tests, cwd=ROOT, env=_alone(), capture_output=True, text=True)
    return done.returncode == 0, f"{versions}\n  {_last_words(done.stdout or done.stderr)}"


def _alone() -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**environment, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def _run(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=_alone())
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:6])} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def _last_words(output: str) -> str:
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return "\n  ".join([*failed[:20], output.strip().splitlines()[-1] if output else "no output"])


def main() -> int:
    """Try every interpreter with both sets of packages; return how many did not pass."""
    parser = argparse.ArgumentParser(description="tests under several versions")
    parser.add_argument("python", nargs="*", default=[p for p in KNOWN if shutil.which(p)])
    parser.add_argument("--only", choices=("lowest", "newest"))
    given = parser.parse_args()
    failures = 0
    for python in given.python:
        for which in [given.only] if given.only else ["lowest", "newest"]:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    passed, words = try_version(python, which, Path(folder) / "env")
                except RuntimeError as error:
                    passed, words = False, str(error)
            failures += not passed
            print(f"{python}, {which}: {'passed' if passed else 'FAILED'}\n  {words}", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main())
