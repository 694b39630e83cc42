"""Odd inputs for everything public: ``python -m dependability.inputs --count 2000``.

A case draws an estimator or function, a table, weights and new rows, and uses all that there is to
use. It is fine if all results are finite and of the right shape, refused if a sentence says what
was wrong with the input. Everything else is a finding: warnings of numpy and changed inputs, too.
"""

from __future__ import annotations

import sys
import traceback
import warnings

from dependability.child import FINE, REFUSED, Outcome, try_cases
from dependability.odd_tables import Recipe, recipe_by_number
from dependability.refusals import is_refusal
from dependability.report import conclude, numbers_from_command_line
from dependability.untouched import untouched
from dependability.uses import USES, Situation

SECONDS = 60.0  # the first use of a form of input compiles loops for it
NAMES = tuple(USES)


def verdict(name: str, recipe: Recipe) -> str:
    """Return how the use of that name goes with that recipe; raise if that is a finding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = Situation.of(recipe)  # a matrix of numpy warns that it is one
        warnings.simplefilter("error", RuntimeWarning)
        # scikit-learn looks for infinities by a sum, which is no number if there are two of them.
        warnings.filterwarnings("ignore", "invalid value encountered in reduce")
        with untouched(given.table, given.new):
            try:
                USES[name](given)
            except (ValueError, TypeError) as error:
                if not is_refusal(error):
                    raise
                return REFUSED
    return FINE


def check(case: int) -> str:
    """Return how a case went; see :func:`dependability.child.try_cases`."""
    name, recipe = NAMES[case % len(NAMES)], recipe_by_number(case)
    try:
        return verdict(name, recipe)
    except Exception as error:
        # The case in words, and the place where it happened, which may be deeper than is printed.
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{frames[-1].filename}:{frames[-1].lineno}"
        raise RuntimeError(f"{name} {recipe}: {type(error).__name__} {error} at {place}") from error


def try_inputs(cases: list[int], processes: int | None = None) -> list[Outcome]:
    """Return how the cases went."""
    return list(try_cases(check, cases, seconds=SECONDS, processes=processes))


if __name__ == "__main__":
    numbers = numbers_from_command_line("odd inputs for everything public", 2000)
    sys.exit(conclude("odd inputs", try_cases(check, numbers, seconds=SECONDS)))
