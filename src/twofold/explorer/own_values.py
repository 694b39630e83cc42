"""Values of rows as their table has them, to look at and for the CSV files that leave a page.

Codes round: 9.38 comes out of 16 bits as 9.37986. Values of columns that the codes do not give back
are added to a page as doubles, the columns that take the least room first, up to a quarter of the
page. The page names the others.
"""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from twofold.array_types import FloatArray
from twofold.explorer.payload import Payload, Shown, Wanted

# Own values may take this part of what the page takes without them: a quarter of it with them.
MOST_OF_OTHERS = 1 / 3
# Room is estimated from this many rows before all are looked at; columns take at least that share
# of what these let expect.
SAMPLED_ROWS, SURELY = 2_048, 0.7
# Bytes of a page for each byte of a section, and for the number of a column in the header.
BASE64, IN_HEADER = 4 / 3, 8
# So many columns that are rounded are named, and all of them up to one more; of names so many
# letters, so that what is said takes no more than these bytes.
MOST_NAMED, MOST_LETTERS, SAID = 3, 40, 1_000


def with_own_values(
    payload: Payload, wanted: Wanted, shown: Shown, page: int, room: int
) -> Payload:
    """Return a payload with what its codes round, in a page of ``page`` bytes without payload.

    ``room`` bytes may be added at most.
    """
    room -= SAID
    if not shown.has_data or payload.sections is None or room < 0:
        return payload
    room = min(room, int(MOST_OF_OTHERS * (page + payload.size())))
    kept, left_out = _columns_in(wanted, shown, room)
    header = payload.header
    if kept:
        payload.sections.add("rows.own", np.stack(list(kept.values())))
    rows = {**header["rows"], "own": list(kept)}
    shows = [*header["shows"], *_sentences(bool(kept), [wanted.title_of(j) for j in left_out])]
    header = {**header, "rows": rows, "shows": shows}
    return replace(payload, header=header, data=payload.sections.compressed())


def _columns_in(wanted: Wanted, shown: Shown, room: int) -> tuple[dict[int, FloatArray], list[int]]:
    """Return the own values that fit, by features, and the features whose values are rounded."""
    table = shown.tables[-1]
    some = table[:: -(-len(table) // SAMPLED_ROWS)]
    kept: dict[int, FloatArray] = {}
    left_out = []
    samples = {j: _own_if_rounded(some, j, wanted, shown) for j in wanted.single_features()}
    sizes = {j: 0 if own is None else _bytes_of(own) for j, own in samples.items()}
    # Sizes of samples are a guide: nothing is packed that is far too large.
    for j in sorted(sizes, key=lambda j: (sizes[j], j)):
        if SURELY * sizes[j] * len(table) / len(some) > room:
            left_out.append(j)
            continue
        own = samples[j] if len(some) == len(table) else _own_if_rounded(table, j, wanted, shown)
        size = 0 if own is None else _bytes_of(own)
        if size > room:
            left_out.append(j)
        elif own is not None:
            kept[j] = own
            room -= size
    return kept, sorted(left_out)


def _own_if_rounded(table: FloatArray, j: int, wanted: Wanted, shown: Shown) -> FloatArray | None:
    """Return a feature's own values (k,), None if the page gets them from its codes."""
    feature = wanted.feature(table[:, j], j)
    own = feature.own()
    codes = shown.scale.of_feature(j).rounded(table[:, j : j + 1])[:, 0]
    return None if feature.comes_out_of(codes, float(shown.scale.step[j]), own) else own


def _bytes_of(values: FloatArray) -> int:
    """Return about how many bytes of a page values take."""
    return int(BASE64 * len(zlib.compress(values.tobytes()))) + IN_HEADER


def _sentences(has_own: bool, rounded: list[str]) -> list[str]:
    """Say what CSV files have."""
    if not rounded:
        return ["CSV files have the values of the table"] if has_own else []
    rounded = [n if len(n) <= MOST_LETTERS else f"{n[: MOST_LETTERS - 1]}…" for n in rounded]
    named = rounded if len(rounded) <= MOST_NAMED + 1 else rounded[:MOST_NAMED]
    others = [f"{len(rounded) - len(named):,} others"] if len(named) < len(rounded) else []
    *first, last = [*named, *others]
    listed = f"{', '.join(first)} and {last}" if first else last
    return [f"CSV files have rounded values of {listed}: the table's own would take too much room"]
