"""The import rule, the speed of the import, and the size of files and functions."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "twofold"

# Imports point from later layers to earlier ones (ARCHITECTURE.md), never back.
LAYERS = [
    {
        "array_types",
        "compiled",
        "harmless_text",
        "kernel_description",
        "kernels",
        "landmarks",
        "losses",
        "number_checks",
        "process_settings",
        "regularization",
        "row_notes",
        "sample_weights",
        "table_checks",
    },
    {
        "datasets",
        "engine",
        "fitted_state",
        "latent_density",
        "latent_sampling",
        "metrics",
        "optimize",
        "tables",
    },
    {"distinct_rows", "family", "features", "k_harmonic_means", "kept_model"},
    {"contract", "landmark_choice", "preimages"},
    {"nested_models"},
    {"kernel_pca", "psom", "ukr", "unn"},
    {"classification", "neighbors", "scaled"},
    {"loading"},
    {"selection"},
    {"explorer", "plots"},
    {"cli"},
    {"__main__"},
]
# Modules of the first layer that others there may import.
LOWEST = ("array_types", "kernels", "losses", "number_checks")
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def part_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports_of(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return found


FILES = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if path.parent != SOURCE or path.stem != "__init__"
]


def wrong_imports(path: Path) -> list[str]:
    part = part_of(path)
    if part not in LEVEL:
        return [f"{part} has no layer: add it to LAYERS and to ARCHITECTURE.md"]
    wrong = []
    for module in imports_of(path):
        names = module.split(".")
        if names[0] != "twofold" or len(names) < 2 or names[1] == part:
            continue
        other = names[1]
        beside = LEVEL[other] == LEVEL[part] and other in LOWEST
        if LEVEL[other] >= LEVEL[part] and not beside:
            wrong.append(f"{path.relative_to(SOURCE)} must not import {module}")
    return wrong


def too_long(path: Path) -> list[str]:
    name, text = path.relative_to(SOURCE), path.read_text()
    wrong = [f"{name} has more than 500 lines"] if len(text.splitlines()) > 500 else []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = node.end_lineno - node.body[0].lineno + 1
            documented = ast.get_docstring(node, clean=False)
            length -= len(documented.splitlines()) if documented else 0
            if length > 60:
                wrong.append(f"{name}: {node.name} has {length} lines")
    return wrong


def test_imports_point_one_way():
    assert len(FILES) > 200
    assert [line for path in FILES for line in wrong_imports(path)] == []


def test_files_and_functions_stay_readable():
    assert [line for path in FILES for line in too_long(path)] == []


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in done.stdout.split()}


def test_import_is_light():
    heavy = {"numpy", "scipy", "sklearn", "numba", "torch", "dask", "matplotlib", "pandas", "rich"}
    assert not loaded_by("import twofold") & heavy


def test_optional_packages_are_loaded_at_first_use():
    optional = {"torch", "dask", "matplotlib", "pyarrow", "pandas", "cma", "rich", "typer", "umap"}
    by_others = loaded_by("import sklearn.base")  # which loads pandas where it is installed
    assert not loaded_by("from twofold import UKR") & (optional - by_others)


def test_public_names_are_there():
    import twofold

    for name in twofold.__all__:
        assert getattr(twofold, name) is not None
    assert sorted(twofold.__all__) == [name for name in dir(twofold) if not name.startswith("_")]
    with pytest.raises(AttributeError, match="no attribute 'TSNE'"):
        _ = twofold.TSNE
