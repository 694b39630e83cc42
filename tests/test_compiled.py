"""Loops that are compiled at their first call, and what is said meanwhile."""

from __future__ import annotations

import gc
import importlib.util
import os
import pickle
import re
import subprocess
import sys
import threading

import numba
import numpy as np
import pytest
from families import FAMILIES

from twofold import UKR, compiled
from twofold.rowwise import PRODUCT, own_sums
from twofold.small_systems import dot

LOOPS = """
from twofold.compiled import compiled

@compiled
def twice(x):
    return 2 * x

@compiled
def twice_and_one(x):
    return twice(x) + 1
"""

interpreted = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0", reason="nothing is compiled"
)


@pytest.fixture
def open_loops(tmp_path):
    """Return a function that imports a module of loops anew, as another process would."""

    def open_again(source=LOOPS):
        (tmp_path / "loops.py").write_text(source)
        spec = importlib.util.spec_from_file_location("twofold.loops", tmp_path / "loops.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return open_again


@interpreted
def test_compiling_is_announced_once_and_opening_is_not(open_loops, monkeypatch):
    monkeypatch.setattr(compiled, "_announced", threading.Event())
    said = []
    with compiled.announced(None), compiled.announced(said.append):
        loops = open_loops()
        assert loops.twice_and_one(3) == 7
        assert loops.twice_and_one(3.5) == 8.0  # compiled for another type
    assert said == [compiled.NOTICE]
    monkeypatch.setattr(compiled, "_announced", threading.Event())
    with compiled.announced(said.append):
        assert open_loops().twice_and_one(3) == 7
    assert len(said) == 1


@interpreted
def test_no_garbage_is_collected_while_numba_compiles(open_loops, monkeypatch):
    seen = []
    monkeypatch.setattr(compiled, "_announced", threading.Event())
    with compiled.announced(lambda _: seen.append(gc.isenabled())):
        open_loops().twice_and_one(3)
    assert seen == [False]
    assert gc.isenabled()


@interpreted
def test_garbage_is_collected_again_after_what_cannot_be_compiled(open_loops):
    with pytest.raises(numba.TypingError):
        open_loops().twice_and_one("three")
    assert gc.isenabled()


OPEN_ONE = """
import sys
import numpy as np
from twofold.rowwise import PRODUCT, own_sums
assert own_sums(np.ones((2, 3)), PRODUCT).tolist() == [3.0, 3.0]
assert "numba.np.arraymath" not in sys.modules
import numba
assert numba.njit(lambda x: x + 1)(1) == 2
assert "numba.np.arraymath" in sys.modules
"""


@interpreted
def test_a_loop_that_was_kept_is_opened_without_all_that_could_be_compiled():
    own_sums(np.ones((2, 3)), PRODUCT)  # now it is kept
    done = subprocess.run([sys.executable, "-c", OPEN_ONE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@interpreted
def test_nothing_is_said_to_those_who_have_left(open_loops, monkeypatch):
    monkeypatch.setattr(compiled, "_announced", threading.Event())
    said = []
    with compiled.announced(said.append):
        pass
    assert open_loops().twice(3) == 6
    assert said == []


@interpreted
@pytest.mark.parametrize(("verbose", "said"), [("auto", 1), (True, 1), (False, 0)])
def test_a_fit_without_a_terminal_says_that_it_waits(
    open_loops, monkeypatch, capsys, verbose, said
):
    monkeypatch.setattr(compiled, "_announced", threading.Event())
    loops = open_loops()

    class Waiting(UKR):
        def _fit_table(self, X, sample_weight):
            loops.twice_and_one(3)
            super()._fit_table(X, sample_weight)

    Y = np.random.default_rng(0).normal(size=(20, 3))
    for _ in range(2):
        Waiting(1, init="pca", max_iter=1, verbose=verbose).fit(Y)
    assert capsys.readouterr().err.count(f"twofold: {compiled.NOTICE}\n") == said


def test_a_loop_is_a_function_with_a_name_that_can_be_sent_to_other_processes():
    assert dot.__name__ == "dot"
    assert dot.__doc__ == "Return ``a·b``."
    assert pickle.loads(pickle.dumps(dot)) is dot


def test_loops_begin_on_many_threads_at_once(open_loops):
    loops, found = open_loops(), []
    threads = [
        threading.Thread(target=lambda: found.append(loops.twice_and_one(np.float64(1))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [3.0] * 4


WRITES_AND_ADDS = """
from twofold.compiled import compiled

@compiled
def length(x, out):
    total = 0.0
    for k in range(x.size):
        out[k] = x[k]
        total += x[k] * x[k]
    return total
"""


def loops_that_write_and_add(code):
    """Return the names of loops in LLVM's language that do both, several numbers at a time.

    Ahead of these it is asked whether arrays lie too close to each other for that.
    """
    blocks = [block for block in code.split("\n\n") if re.match(r"\S*vector\.body", block)]
    adding = [block for block in blocks if re.search(r"= phi [^%]*<\d+ x (double|float)>", block)]
    return [block.partition(":")[0] for block in adding if re.search(r"\n +store ", block)]


def code_of(loop):
    """Return what each kind of arguments that a loop was called with is compiled into."""
    made = compiled._compile(loop.py_func, **loop.targetoptions)
    for signature in loop._entry.signatures:
        made.compile(signature)
        yield made.inspect_llvm(signature)


@interpreted
def test_loops_that_write_and_add_are_seen(open_loops):
    loops = open_loops(WRITES_AND_ADDS)
    loops.length(np.ones(3), np.ones(3))
    assert any(loops_that_write_and_add(code) for code in code_of(loops.length))


@interpreted
@pytest.mark.slow  # compiles nearly everything
@pytest.mark.filterwarnings("ignore")
def test_no_sum_depends_on_where_arrays_lie():
    rows = np.random.default_rng(0).normal(size=(40, 5))
    for family in FAMILIES:
        family.make().fit(rows).transform(rows[:3])
    called = [x for x in gc.get_objects() if isinstance(x, compiled.Loop) and x._entry]
    assert len(called) >= 40
    codes = [(loop.__name__, code) for loop in called for code in code_of(loop)]
    assert not {name for name, code in codes if loops_that_write_and_add(code)}
    # What `a[:] = b` has: arrays are copied by `assign`, for that message takes long to compile.
    assert not {name for name, code in codes if "raise_with_shape_context" in code}
