"""The import rule, the speed of the import, and the size of files and functions."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import twofold

SOURCE = Path(__file__).parent.parent / "src" / "twofold"

# Imports point from later layers to earlier ones (ARCHITECTURE.md), never back.
LAYERS = [
    {
        *("array_types", "compiled", "kernels", "memory", "process_settings"),
        *("replacing", "small_systems"),
    },
    {"checks"},
    {"losses"},
    {"regularization"},
    {"datasets", "engine", "latent", "model_files", "optimize"},
    {"rowwise", "tables"},
    {"neighborhoods"},
    {"noise"},
    {"contract", "features", "metrics"},
    {"landmarks", "preimages", "standing_out"},
    {"kernel_pca", "psom", "unn"},
    {"ukr"},
    {"classification", "filling", "neighbors", "odd_rows", "plots", "scaled"},
    {"mixed", "reduced"},
    {"loading"},
    {"anndata", "selection"},
    {"explorer"},
    {"cli"},
    {"__main__"},
]
# Modules of the first layer that others there may import.
LOWEST = ("array_types", "compiled", "kernels", "process_settings")
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def part_of(path: Path) -> str:
    relative = path.relative_to(SOURCE)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


# A module named in a text, as `importlib.import_module` takes it.
MODULE = re.compile(r"twofold(\.[a-z_]\w*)+")


def imports_of(path: Path) -> list[str]:
    """Return all modules that a file imports: by statement, by name, or as a name of `twofold`."""
    found = []
    for node in nodes_of(path):
        if isinstance(node, ast.ImportFrom) and node.module == "twofold":
            found += [
                twofold._HOMES.get(alias.name, f"twofold.{alias.name}") for alias in node.names
            ]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and MODULE.fullmatch(str(node.value)):
            found.append(node.value)
    return [module for module in found if module != "twofold.__version__"]


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
        if names[0] != "twofold" or names[1:2] == [part]:
            continue
        if len(names) < 2:
            wrong.append(f"{path.relative_to(SOURCE)} must say what it imports of twofold")
            continue
        other = names[1]
        beside = LEVEL[other] == LEVEL[part] and other in LOWEST
        if LEVEL[other] >= LEVEL[part] and not beside:
            wrong.append(f"{path.relative_to(SOURCE)} must not import {module}")
    return wrong


def too_long(path: Path) -> list[str]:
    """Name what is longer than a reader can hold; docstrings do not count."""
    name, nodes = path.relative_to(SOURCE), nodes_of(path)
    documented = [
        len(ast.get_docstring(node, clean=False).splitlines())
        for node in nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node)
    ]
    length = len(path.read_text().splitlines()) - sum(documented)
    wrong = [f"{name} has {length} lines"] if length > 500 else []
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            length = node.end_lineno - node.body[0].lineno + 1
            documented = ast.get_docstring(node, clean=False)
            length -= len(documented.splitlines()) if documented else 0
            if length > 60:
                wrong.append(f"{name}: {node.name} has {length} lines")
    return wrong


def test_imports_point_one_way():
    assert len(FILES) > 150
    assert [line for path in FILES for line in wrong_imports(path)] == []


def test_files_and_functions_stay_readable():
    assert [line for path in FILES for line in too_long(path)] == []


def test_imports_by_name_are_seen(tmp_path):
    file = tmp_path / "room.py"
    file.write_text(
        "from twofold import UKR, plots\nimport_module('twofold.unn')\nimport twofold.cli.app\n"
    )
    assert imports_of(file) == ["twofold.ukr", "twofold.plots", "twofold.cli.app", "twofold.unn"]


def loaded_by(*statements: str) -> list[set[str]]:
    """Return the modules that a process has loaded after each of some statements."""
    told = "; print(' '.join(sys.modules))\n"
    code = "import sys\n" + "".join(statement + told for statement in statements)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [set(line.split()) for line in done.stdout.splitlines()[-len(statements) :]]


def arithmetic_of_numba(function: ast.FunctionDef) -> list[str]:
    """Return what numba compiles apart from a loop, with the flags of the first loop that asks."""
    found = []
    for node in ast.walk(function):
        is_power = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)
        if is_power and isinstance(node.right, ast.Constant) and isinstance(node.right.value, int):
            found.append(ast.unparse(node))
        is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
        called = getattr(node, "func", None)
        is_sum = isinstance(called, ast.Attribute) and called.attr in ("sum", "mean", "dot", "prod")
        if is_product or is_sum:
            found.append(ast.unparse(node))
    return found


def test_bits_of_compiled_loops_do_not_depend_on_what_was_compiled_before():
    loops = [
        (path, node)
        for path in SOURCE.rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef)
        and any(getattr(d, "id", "").startswith("compiled") for d in node.decorator_list)
    ]
    found = {f"{path.stem}.{node.name}": arithmetic_of_numba(node) for path, node in loops}
    assert len(found) > 100
    assert not {name: bad for name, bad in found.items() if bad}, "call `compiled.square` or sum up"


def rooms_of(modules: set[str]) -> set[str]:
    return {name.split(".")[1] for name in modules if name.startswith("twofold.")}


FILES_OF_MODELS = SOURCE.parent.parent / "tests" / "files"
HEAVY = {"numpy", "scipy", "sklearn", "numba", "matplotlib", "pandas", "rich"}
OPTIONAL = {"matplotlib", "pyarrow", "pandas", "cma", "rich", "typer", "umap", "torch", "triton"}
FAMILIES = {"kernel_pca", "psom", "ukr", "unn"}


@pytest.mark.parametrize(
    ("file", "family"),
    [
        ("ukr_kernel", "ukr"),
        pytest.param("unn", "unn", marks=pytest.mark.slow),
        pytest.param("psom", "psom", marks=pytest.mark.slow),
        pytest.param("diffusion_map", "kernel_pca", marks=pytest.mark.slow),
    ],
)
def test_what_is_loaded_on_the_way_from_the_import_to_a_model(file, family):
    path = FILES_OF_MODELS / f"{file}_0_1.twofold"
    first, others, unfitted, model, fitted = loaded_by(
        "import twofold",
        "import sklearn.base",  # which loads pandas where it is installed
        "from twofold import UKR" if family == "ukr" else "pass",
        f"twofold.load({str(path)!r})",
        "Y = [[k % 3, k % 5, k % 7] for k in range(30)]; "
        "twofold.UKR(max_iter=1, init='pca').fit(Y).transform(Y)",
    )
    assert not first & HEAVY
    assert not model & (OPTIONAL - others)
    assert "numba" not in unfitted  # which loops need when they are first called
    assert rooms_of(model) & FAMILIES == {family}
    assert not rooms_of(model) & {"selection", "plots", "explorer", "metrics"}
    assert not fitted & {"dask", "distributed"}


def test_help_of_commands_loads_none_of_what_they_need():
    (loaded,) = loaded_by("import twofold.cli.app")
    assert rooms_of(loaded) == {"checks", "cli"}


FOR_FITS = {"scipy.stats._stats_py", "scipy.optimize._optimize", "scipy.spatial._ckdtree"}


def loaded_by_command(*words: str) -> set[str]:
    """Return the modules that the process of a command has loaded when it ends."""
    (loaded,) = loaded_by(
        "import atexit; atexit.register(lambda: print(chr(10) + ' '.join(sys.modules))); "
        f"sys.argv[1:] = {list(words)!r}; from twofold.cli import main; main()"
    )
    return loaded


def test_describing_a_model_loads_neither_pandas_nor_what_fits_need():
    loaded = loaded_by_command("info", str(FILES_OF_MODELS / "ukr_0_1.twofold"))
    assert "twofold.ukr.estimator" in loaded
    assert not loaded & (FOR_FITS | {"pandas.core", "pyarrow"})


def test_placing_rows_loads_neither_what_compares_models_nor_what_fits_need(tmp_path):
    table = tmp_path / "rows.csv"
    names = ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)")
    table.write_text(",".join(names) + "\n5,3,1,1\n")
    loaded = loaded_by_command(
        "transform", str(FILES_OF_MODELS / "ukr_0_1.twofold"), str(table), "--quiet"
    )
    rooms = rooms_of(loaded)
    assert "tables" in rooms
    assert not rooms & {"selection", "plots", "explorer", "metrics"}
    assert not loaded & FOR_FITS


@pytest.mark.parametrize("name", twofold._MODULES)
def test_public_modules_show_what_is_public_only(name):
    module = getattr(twofold, name)
    assert dir(module) == sorted(module.__all__)
    for public in module.__all__:
        assert getattr(module, public) is not None


def test_public_names_are_there():
    for name in twofold.__all__:
        assert getattr(twofold, name) is not None
    assert sorted(twofold.__all__) == [name for name in dir(twofold) if not name.startswith("_")]
    with pytest.raises(AttributeError, match="no attribute 'TSNE'"):
        _ = twofold.TSNE


def test_tests_named_in_lists_exist():
    root = SOURCE.parents[1]
    for named in (root / "tests" / "interpreted.txt").read_text().split():
        path, *parts = named.split("::")
        text = (root / path).read_text()
        for part in parts:
            assert f" {part.split('[')[0]}(" in text or f"class {part}" in text, named
