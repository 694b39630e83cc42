from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cosmic_ray", reason="mutants need cosmic-ray: pip install 'twofold[mutants]'")

from dependability import mutants
from dependability.mutants import KILLED, SURVIVED, Group, Known, changed, changes_of, drawn_mutants

CODE = """
from collections.abc import Callable

Respond = Callable[[int | None], int]


@compiled
def half(x: int | None = None, *, digits: list[int] | None) -> int | None:
    y: float | None = x
    if x < 0:
        raise ValueError(f"expected 0 + 1, got {x - 1}")
    return x / 2
"""


def every_change(code):
    found = [changed(code, *change) for some in changes_of(code).values() for change in some]
    return [after for after in found if after is not None]


def test_only_changes_that_matter_are_mutants():
    places = {
        line
        for after in every_change(CODE)
        for line, (a, b) in enumerate(zip(CODE.splitlines(), after.splitlines(), strict=True))
        if a != b
    }
    # The condition and what is returned; neither annotations, nor the decorator, nor the message.
    assert places == {9, 11}


def test_arithmetic_is_not_turned_into_operations_on_bits():
    returned = {after.splitlines()[11].strip() for after in every_change(CODE)}
    assert {"return x / 2", "return x * 2", "return x // 2", "return x / 3"} <= {
        line.replace("  ", " ") for line in returned
    }
    assert not any(sign in line for line in returned for sign in "|&^")


@pytest.mark.slow
def test_the_sample_is_drawn_over_places_and_repeats_with_its_seed():
    paths = [Path("src/twofold/kernels.py")]
    some, places = drawn_mutants(paths, 5, seed=3)
    again, _ = drawn_mutants(paths, 5, seed=3)
    others, _ = drawn_mutants(paths, 5, seed=4)
    assert some == again != others
    assert places > 50
    assert len({(mutant.line, mutant.after) for mutant in some}) == 5
    for mutant in some:
        compile(mutant.code, "mutant", "exec")
        assert mutant.line in mutant.statement()


def test_a_mutant_meets_the_quickest_tests_of_its_line():
    mutant = drawn_mutants([Path("src/twofold/kernels.py")], 1, seed=0)[0][0]
    line = str(mutant.line)
    seconds = {"a": 3.0, "b": 1.0, "c": 2.0, "d": 0.1}
    known = Known(seconds, {"src/twofold/kernels.py": {line: ["a", "b", "c"]}})
    assert known.tests_for(mutant, 3.5) == {"b": 1.0, "c": 2.0}
    assert known.tests_for(mutant, 60.0) == {"b": 1.0, "c": 2.0, "a": 3.0}
    at_import = Known(seconds, {"src/twofold/kernels.py": {line: [""]}})
    assert set(at_import.tests_for(mutant, 60.0)) == set(seconds)
    assert Known(seconds, {}).tests_for(mutant, 60.0) == {}


def test_a_decorator_is_found_below_the_empty_lines_that_go_with_it():
    code = "x = 1\n\n\n@dataclass\nclass A:\n    y: int\n"
    mutant = mutants._mutant(Path("a.py"), code, "x = 1\nclass A:\n    y: int\n")
    assert (mutant.line, mutant.before, mutant.after) == (4, "@dataclass", "")


@pytest.mark.slow
def test_a_wrong_line_is_noticed_and_a_harmless_one_is_not():
    group = Group(("kernels.py",), ("test_kernels.py",))
    path = Path("src/twofold/kernels.py")
    code = (mutants.ROOT / path).read_text()
    wrong = code.replace("np.exp(-0.5 * s)", "np.exp(-0.6 * s)", 1)
    harmless = code.replace("INFINITELY_SMOOTH = 1_000", "INFINITELY_SMOOTH = 1_001")
    some = [mutants._mutant(path, code, after) for after in (wrong, harmless)]
    found = dict(mutants.verdicts_of(group, some, seconds=20.0, processes=2))
    assert [found[mutant] for mutant in some] == [KILLED, SURVIVED]
    assert (mutants.ROOT / path).read_text() == code
