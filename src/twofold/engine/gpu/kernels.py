"""The fused loops over tiles of pairs, in Triton.

Points are kept as (q, n) in tiles of neighbours; the tiles of references that a tile of queries
has to visit are listed in ``tiles[first[a]:first[a + 1]]``. What a pair weighs never leaves the
chip. Programs own their rows, so that nothing is added in an order that time decides. Where each
row is hidden from itself, its own tile is not in the list and comes before it: only there pairs
have to be compared.

For the precision "fp32" factors are split in two parts in float16, ``high`` and ``low``: three
products of those (high·high, high·low, low·high) keep 22 bits of each, and sums are in float32.
"""

import triton
import triton.language as tl

# log2(e) / 2: exp(-s / 2) is 2 to the power of -s times this.
HALF_LOG2E = tl.constexpr(0.7213475204444817)
# Triton's interpreter knows no products of bfloat16; what they hold is exact in float32, too.
INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def _differences(x, xb, b_rows):
    return tl.load(xb + b_rows)[None, :] - x[:, None]


@triton.jit
def _squared_distances(x0, x1, x2, xa, xb, a_rows, b_rows, n_a, n_b, Q: tl.constexpr):
    """Return s (BM, BN); the first three coordinates of the rows a are already loaded."""
    d = _differences(x0, xb, b_rows)
    s = d * d
    if Q > 1:
        d = _differences(x1, xb + n_b, b_rows)
        s += d * d
    if Q > 2:
        d = _differences(x2, xb + 2 * n_b, b_rows)
        s += d * d
    for m in tl.static_range(3, Q):
        d = _differences(tl.load(xa + m * n_a + a_rows), xb + m * n_b, b_rows)
        s += d * d
    return s


@triton.jit
def _laid_out(s, BM: tl.constexpr, BN: tl.constexpr):
    """Return s as tensor cores hold their sums, by adding a product of nothing to it.

    Weights then go to the next product without a detour through shared memory: half of the time.
    """
    left, right = tl.zeros((BM, 16), dtype=tl.float16), tl.zeros((16, BN), dtype=tl.float16)
    return tl.dot(left, right, s)


@triton.jit
def _coordinates(xa, a_rows, n_a, Q: tl.constexpr):
    x0 = tl.load(xa + a_rows)
    x1 = tl.load(xa + n_a + a_rows) if Q > 1 else x0
    x2 = tl.load(xa + 2 * n_a + a_rows) if Q > 2 else x0
    return x0, x1, x2


@triton.jit
def _weight(s, shift, KERNEL: tl.constexpr):
    """Return F(s - shift)."""
    if KERNEL == "gaussian":
        w = tl.exp2((shift - s) * HALF_LOG2E)
    else:
        r = tl.maximum(1.0 - s, 0.0)
        w = r
        if KERNEL != "epanechnikov":
            w = r * r if KERNEL == "quartic" else r * r * r
    return w


@triton.jit
def _slope(s, shift, KERNEL: tl.constexpr):
    """Return -2F'(s - shift)."""
    if KERNEL == "gaussian":
        w = tl.exp2((shift - s) * HALF_LOG2E)
    else:
        r = tl.maximum(1.0 - s, 0.0)
        w = tl.where(r > 0.0, 2.0, 0.0)
        if KERNEL != "epanechnikov":
            w = 4.0 * r if KERNEL == "quartic" else 6.0 * r * r
    return w


@triton.jit
def _without_hidden(w, a_rows, b_rows, hidden, HIDDEN: tl.constexpr, BY_B: tl.constexpr):
    """Return weights with 0 where a pair must not see each other.

    ``HIDDEN`` is -1 where each row is hidden from itself alone, else the length of its list, which
    belongs to the rows b if ``BY_B``.
    """
    if HIDDEN == -1:
        w = tl.where(a_rows[:, None] == b_rows[None, :], 0.0, w)
    for k in tl.static_range(HIDDEN if HIDDEN > 0 else 0):
        if BY_B:
            unseen = tl.load(hidden + b_rows * HIDDEN + k)
            w = tl.where(a_rows[:, None] == unseen[None, :], 0.0, w)
        else:
            unseen = tl.load(hidden + a_rows * HIDDEN + k)
            w = tl.where(unseen[:, None] == b_rows[None, :], 0.0, w)
    return w


@triton.jit
def _dot(a, b, acc):
    if INTERPRETED:
        a, b = a.to(tl.float32), b.to(tl.float32)
    return tl.dot(a, b, acc)


@triton.jit
def _product(a, b, b_low, acc, PRECISION: tl.constexpr):
    """Return acc + a b, a in float32, for the parts of b that the precision has."""
    if PRECISION == "bf16":
        acc = _dot(a.to(tl.bfloat16), b, acc)
    elif PRECISION != "fp32":
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
    else:
        high = a.to(tl.float16)
        low = (a - high.to(tl.float32)).to(tl.float16)
        # Tensor cores cut off what they add up, instead of rounding it: sums of a tile only.
        part = _dot(low, b, tl.zeros_like(acc))
        part = _dot(high, b_low, part)
        acc += _dot(high, b, part)
    return acc


# fmt: off
@triton.jit
def _add_tile(
    b, acc, total, a_rows, x0, x1, x2, far, axis, columns, xa, xb, v, v_low, mass, hidden, n_a,
    n_b, Q: tl.constexpr, COLUMNS: tl.constexpr, HIDDEN: tl.constexpr, SLOPES: tl.constexpr,
    KERNEL: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    # fmt: on
    """Return sums (BM, C) and totals (BM,) with what the tile b of references adds to them."""
    places = tl.arange(0, BN)[:, None] * COLUMNS + columns[None, :]  # in a tile of rows
    b_rows = b * BN + tl.arange(0, BN)
    s = _squared_distances(x0, x1, x2, xa, xb, a_rows, b_rows, n_a, n_b, Q)
    s = _laid_out(s, BM, BN)
    w = _weight(s, far, KERNEL)
    if SLOPES:  # noqa: SIM102 (decided when this is compiled)
        if axis > 0:
            there = tl.load(xb + (axis - 1) * n_b + b_rows)
            here = tl.load(xa + (axis - 1) * n_a + a_rows)
            w = _slope(s, far, KERNEL) * (there[None, :] - here[:, None])
    w = _without_hidden(w, a_rows, b_rows, hidden, HIDDEN, False)
    if PRECISION == "bf16":
        w = w.to(tl.bfloat16).to(tl.float32)  # the denominator of what the numerator adds up
    total += tl.sum(w * tl.load(mass + b_rows)[None, :], axis=1)
    rows = v + b.to(tl.int64) * (BN * COLUMNS)
    rows_low = v_low + b.to(tl.int64) * (BN * COLUMNS)
    b_low = tl.load(rows_low + places) if PRECISION == "fp32" else 0
    return _product(w, tl.load(rows + places), b_low, acc, PRECISION), total


@triton.jit
def sum_tiles(
    xa,
    xb,
    shift,
    v,
    v_low,
    mass,
    hidden,
    order,
    first,
    tiles,
    sums,
    totals,
    n_a,
    n_b,
    Q: tl.constexpr,
    COLUMNS: tl.constexpr,
    C: tl.constexpr,
    HIDDEN: tl.constexpr,
    SLOPES: tl.constexpr,
    KERNEL: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Write sums (1 + q, n_a, COLUMNS), C columns a program, and totals (1 + q, n_a) of the mass.

    The first of the 1 + q are the sums, the others (with ``SLOPES``) their derivatives by axis.
    """
    a = tl.load(order + tl.program_id(0))
    column = tl.program_id(1) * C
    axis = tl.program_id(2)
    a_rows = a * BM + tl.arange(0, BM)
    columns = column + tl.arange(0, C)
    far = tl.load(shift + a_rows)[:, None]
    x0, x1, x2 = _coordinates(xa, a_rows, n_a, Q)
    acc = tl.zeros((BM, C), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float32)
    # fmt: off
    if HIDDEN == -1:
        acc, total = _add_tile(
            a, acc, total, a_rows, x0, x1, x2, far, axis, columns, xa, xb, v, v_low, mass, hidden,
            n_a, n_b, Q, COLUMNS, -1, SLOPES, KERNEL, PRECISION, BM, BN,
        )
    for e in range(tl.load(first + a), tl.load(first + a + 1)):
        acc, total = _add_tile(
            tl.load(tiles + e), acc, total, a_rows, x0, x1, x2, far, axis, columns, xa, xb, v,
            v_low, mass, hidden, n_a, n_b, Q, COLUMNS, 0 if HIDDEN == -1 else HIDDEN, SLOPES,
            KERNEL, PRECISION, BM, BN,
        )
    # fmt: on
    row = axis.to(tl.int64) * n_a + a_rows
    tl.store(sums + row[:, None] * COLUMNS + columns[None, :], acc)
    if column == 0:
        tl.store(totals + row, total)


@triton.jit
def _aligned(one, one_low, q, q_low, places, acc, PRECISION: tl.constexpr):
    """Return acc + rows a (BM, C) times rows of q (C, BN)."""
    other = tl.load(q + places)
    if PRECISION == "tf32" or PRECISION == "tf32x3":
        acc = tl.dot(one, other, acc, input_precision=PRECISION)
    else:
        if PRECISION == "fp32":
            acc = _dot(one_low, other, acc)
            acc = _dot(one, tl.load(q_low + places), acc)
        acc = _dot(one, other, acc)
    return acc


# fmt: off
@triton.jit
def _pull_of_tile(
    b, grad0, grad1, grad2, a_rows, x0, x1, x2, U, U_low, V, V_low, u_a, v_a, xa, xb, shift, u,
    u_low, v, v_low, u_mass, v_mass, u_size, hidden, pull, n_a, n_b, Q: tl.constexpr,
    COLUMNS: tl.constexpr, C: tl.constexpr, HIDDEN: tl.constexpr, SIDE: tl.constexpr,
    KERNEL: tl.constexpr, PRECISION: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    # fmt: on
    """Return the pulls (BM, BN) by axis with those of the tile b of references."""
    columns = tl.arange(0, C)
    places = tl.arange(0, BN)[None, :] * COLUMNS + columns[:, None]  # in a tile of rows
    b_rows = b * BN + tl.arange(0, BN)
    tile = b.to(tl.int64) * (BN * COLUMNS)
    g = tl.zeros((BM, BN), dtype=tl.float32)
    far = 0.0
    if SIDE != "references":
        g += u_a * tl.load(v_mass + b_rows)[None, :]
    if SIDE != "queries":
        g += v_a * tl.load(u_mass + b_rows)[None, :]
    if COLUMNS == C:
        if SIDE != "references":
            g = _aligned(U, U_low, v + tile, v_low + tile, places, g, PRECISION)
        if SIDE != "queries":
            g = _aligned(V, V_low, u + tile, u_low + tile, places, g, PRECISION)
    else:
        at_a = a_rows.to(tl.int64)[:, None] * COLUMNS + columns[None, :]
        for column in range(0, COLUMNS, C):
            own, at = at_a + column, tile + column
            if SIDE != "references":
                one, one_low = tl.load(u + own), tl.load(u_low + own)
                g = _aligned(one, one_low, v + at, v_low + at, places, g, PRECISION)
            if SIDE != "queries":
                one, one_low = tl.load(v + own), tl.load(v_low + own)
                g = _aligned(one, one_low, u + at, u_low + at, places, g, PRECISION)
    if SIDE == "queries":
        far = tl.load(shift + a_rows)[:, None]
        g *= tl.load(u_size + a_rows)[:, None]
    if SIDE == "references":
        far = tl.load(shift + b_rows)[None, :]
        g *= tl.load(u_size + b_rows)[None, :]
    s = _squared_distances(x0, x1, x2, xa, xb, a_rows, b_rows, n_a, n_b, Q)
    g *= _slope(s, far, KERNEL)
    g = _without_hidden(g, a_rows, b_rows, hidden, HIDDEN, SIDE == "references")
    grad0 += g * _differences(x0, xb, b_rows)
    if Q > 1:
        grad1 += g * _differences(x1, xb + n_b, b_rows)
    if Q > 2:
        grad2 += g * _differences(x2, xb + 2 * n_b, b_rows)
    for m in tl.static_range(3, Q):  # few need more dimensions: those add up in memory
        d = _differences(tl.load(xa + m * n_a + a_rows), xb + m * n_b, b_rows)
        so_far = pull + m * n_a + a_rows
        tl.store(so_far, tl.load(so_far) + tl.sum(g * d, axis=1))
    return grad0, grad1, grad2


@triton.jit
def pull_tiles(
    xa,
    xb,
    shift,
    u,
    u_low,
    v,
    v_low,
    u_mass,
    v_mass,
    u_size,
    hidden,
    order,
    first,
    tiles,
    pull,
    n_a,
    n_b,
    Q: tl.constexpr,
    COLUMNS: tl.constexpr,
    C: tl.constexpr,
    HIDDEN: tl.constexpr,
    SIDE: tl.constexpr,
    KERNEL: tl.constexpr,
    PRECISION: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Write Σ_b a_ab g_ab (x_b - x_a) as (q, n_a).

    ``SIDE`` says whose answers U are aligned with whose rows V: "queries" (g = U_a·V_b),
    "references" (g = V_a·U_b) or "both", where queries are references (g = U_a·V_b + V_a·U_b,
    shifts are in U). For one side, rows of U were divided by their ``u_size``.
    """
    a = tl.load(order + tl.program_id(0))
    a_rows = a * BM + tl.arange(0, BM)
    x0, x1, x2 = _coordinates(xa, a_rows, n_a, Q)
    u_a, v_a = tl.load(u_mass + a_rows)[:, None], tl.load(v_mass + a_rows)[:, None]
    # Rows that stay for all tiles, where they are not too wide.
    at_a = a_rows.to(tl.int64)[:, None] * COLUMNS + tl.arange(0, C)[None, :]
    U, V = tl.load(u + at_a), tl.load(v + at_a)
    U_low, V_low = tl.load(u_low + at_a), tl.load(v_low + at_a)
    grad0 = tl.zeros((BM, BN), dtype=tl.float32)
    grad1 = tl.zeros((BM, BN), dtype=tl.float32)
    grad2 = tl.zeros((BM, BN), dtype=tl.float32)
    # fmt: off
    if HIDDEN == -1:
        grad0, grad1, grad2 = _pull_of_tile(
            a, grad0, grad1, grad2, a_rows, x0, x1, x2, U, U_low, V, V_low, u_a, v_a, xa, xb,
            shift, u, u_low, v, v_low, u_mass, v_mass, u_size, hidden, pull, n_a, n_b, Q, COLUMNS,
            C, -1, SIDE, KERNEL, PRECISION, BM, BN,
        )
    for e in range(tl.load(first + a), tl.load(first + a + 1)):
        grad0, grad1, grad2 = _pull_of_tile(
            tl.load(tiles + e), grad0, grad1, grad2, a_rows, x0, x1, x2, U, U_low, V, V_low, u_a,
            v_a, xa, xb, shift, u, u_low, v, v_low, u_mass, v_mass, u_size, hidden, pull, n_a, n_b,
            Q, COLUMNS, C, 0 if HIDDEN == -1 else HIDDEN, SIDE, KERNEL, PRECISION, BM, BN,
        )
    # fmt: on
    tl.store(pull + a_rows, tl.sum(grad0, axis=1))
    if Q > 1:
        tl.store(pull + n_a + a_rows, tl.sum(grad1, axis=1))
    if Q > 2:
        tl.store(pull + 2 * n_a + a_rows, tl.sum(grad2, axis=1))


@triton.jit
def nearest_in_tiles(
    xa,
    xb,
    hidden,
    first,
    tiles,
    nearest,
    farthest,
    near,
    n_a,
    n_b,
    n_queries,
    n_references,
    Q: tl.constexpr,
    BEGINS: tl.constexpr,
    HIDDEN: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Lower ``nearest`` (n_a,) to the squared distance of the nearest reference in the tiles.

    It ``BEGINS`` at infinity. ``farthest`` (2, tiles) is the largest in each tile, as far as it is
    a number, and the largest of those beyond ``near``, -1 where there is none.
    """
    a = tl.program_id(0)
    a_rows = a * BM + tl.arange(0, BM)
    x0, x1, x2 = _coordinates(xa, a_rows, n_a, Q)
    least = tl.where(a_rows < n_queries, float("inf"), 0.0)
    if not BEGINS:
        least = tl.load(nearest + a_rows)
    for e in range(tl.load(first + a), tl.load(first + a + 1)):
        b_rows = tl.load(tiles + e) * BN + tl.arange(0, BN)
        s = _squared_distances(x0, x1, x2, xa, xb, a_rows, b_rows, n_a, n_b, Q)
        seen = _without_hidden(s * 0.0 + 1.0, a_rows, b_rows, hidden, HIDDEN, False)
        is_seen = (seen > 0.0) & (b_rows < n_references)[None, :]
        least = tl.minimum(least, tl.min(tl.where(is_seen, s, float("inf")), axis=1))
    tl.store(nearest + a_rows, least)
    known = tl.where(least < float("inf"), least, 0.0)
    tl.store(farthest + a, tl.max(known, axis=0))
    lonely = tl.where(least > near, least, -1.0)
    tl.store(farthest + tl.num_programs(0) + a, tl.max(lonely, axis=0))


@triton.jit
def lay_out(
    x,
    order,
    out,
    low,
    high,
    n,
    n_out,
    n_tiles,
    Q: tl.constexpr,
    AWAY: tl.constexpr,
    B: tl.constexpr,
):
    """Write points x (n, q) in an order as (q, n_out), and the corners of their tiles (q, tiles).

    Places beyond the last point are far away and in no corner.
    """
    tile = tl.program_id(0)
    places = tile * B + tl.arange(0, B)
    rows = tl.load(order + tl.minimum(places, n - 1))
    for m in tl.static_range(Q):
        coordinate = tl.load(x + rows * Q + m)
        tl.store(low + m * n_tiles + tile, tl.min(coordinate, axis=0))
        tl.store(high + m * n_tiles + tile, tl.max(coordinate, axis=0))
        tl.store(out + m * n_out + places, tl.where(places < n, coordinate, AWAY))


@triton.jit
def list_tiles(
    low_a,
    high_a,
    reach_a,
    low_b,
    high_b,
    reach_b,
    first,
    tiles,
    n_a,
    n_b,
    Q: tl.constexpr,
    FILL: tl.constexpr,
    SKIP_OWN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Count, or write, the tiles b within squared reach of tile a: their own reach, or a's.

    ``first[a]`` is where the list of a begins or, when they are counted, becomes its length.
    """
    a = tl.program_id(0)
    place = tl.load(first + a) * FILL
    own = tl.load(reach_a + a)
    for start in range(0, n_b, BLOCK):
        b = start + tl.arange(0, BLOCK)
        is_there = b < n_b
        gaps = tl.zeros((BLOCK,), dtype=tl.float32)
        for m in tl.static_range(Q):
            above = tl.load(low_b + m * n_b + b, mask=is_there, other=0.0)
            below = tl.load(high_b + m * n_b + b, mask=is_there, other=0.0)
            above -= tl.load(high_a + m * n_a + a)
            below = tl.load(low_a + m * n_a + a) - below
            gap = tl.maximum(tl.maximum(above, below), 0.0)
            gaps += gap * gap
        reach = tl.maximum(tl.load(reach_b + b, mask=is_there, other=-1.0), own)
        if SKIP_OWN:
            is_there = is_there & (b != a)
        is_near = ((gaps <= reach) & is_there).to(tl.int32)
        if FILL:
            tl.store(tiles + place + tl.cumsum(is_near, axis=0) - 1, b, mask=is_near > 0)
        place += tl.sum(is_near, axis=0)
    if not FILL:
        tl.store(first + a, place)


@triton.jit
def attract(first, other, p, x, pull, Q: tl.constexpr, BLOCK: tl.constexpr):
    """Write Σ_j p_ij (x_i - x_j) / (1 + s_ij) over the list of each point x (n, q)."""
    i = tl.program_id(0).to(tl.int64)
    start, end = tl.load(first + i), tl.load(first + i + 1)
    axis = tl.arange(0, 4)
    here = tl.load(x + i * Q + axis, mask=axis < Q, other=0.0)
    total = tl.zeros((4,), dtype=tl.float32)
    for e in range(start, end, BLOCK):
        places = e + tl.arange(0, BLOCK)
        is_there = places < end
        j = tl.load(other + places, mask=is_there, other=0).to(tl.int64)
        there = tl.load(x + j[:, None] * Q + axis[None, :], mask=(axis < Q)[None, :], other=0.0)
        d = here[None, :] - there
        weight = tl.load(p + places, mask=is_there, other=0.0) / (1.0 + tl.sum(d * d, axis=1))
        total += tl.sum(weight[:, None] * d, axis=0)
    tl.store(pull + i * Q + axis, total, mask=axis < Q)
