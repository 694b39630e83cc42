"""The fused loops of local polynomial fits over tiles of pairs, in Triton.

Weights are formed as in `kernels`. Differences of places, polynomials of them and moments are in
float64: a neighbourhood with fewer references than the polynomial has terms is held by a ridge of
1e-7, where single precision would leave nothing. Products with the columns are three of tf32.

Tiles are visited in pieces of ``BN`` references, so that the numbers of a pair stay in registers.
Queries are always the rows of a tile of pairs and references its columns: what a pair gives for
the moments of a query is then bit for bit what it gives for the gradient of a reference.
"""

import triton
import triton.language as tl

from twofold.engine.gpu.kernels import (
    _coordinates,
    _laid_out,
    _slope,
    _squared_distances,
    _weight,
    _without_hidden,
)


@triton.jit
def _steps(xa, xb, a_rows, b_rows, n_a, n_b, AXIS: tl.constexpr):
    """Return x_b - x_a (BM, BN) along one axis, exactly."""
    there = tl.load(xb + AXIS * n_b + b_rows).to(tl.float64)
    return there[None, :] - tl.load(xa + AXIS * n_a + a_rows).to(tl.float64)[:, None]


@triton.jit
def _all_steps(xa, xb, a_rows, b_rows, n_a, n_b, Q: tl.constexpr):
    d0 = _steps(xa, xb, a_rows, b_rows, n_a, n_b, 0)
    d1 = _steps(xa, xb, a_rows, b_rows, n_a, n_b, 1) if Q > 1 else d0
    d2 = _steps(xa, xb, a_rows, b_rows, n_a, n_b, 2) if Q > 2 else d0
    return d0, d1, d2


@triton.jit
def _coefficient(fits, k, a_rows, n_a):
    return tl.load(fits + k * n_a + a_rows)[:, None]


@triton.jit
def _polynomial(fits, d0, d1, d2, a_rows, n_a, Q: tl.constexpr, DEGREE: tl.constexpr):
    """Return the value (BM, BN) of a polynomial whose coefficients are ``fits`` (terms, n_a).

    Terms are in the order of `polynomial_terms`: 1, each axis, their squares, their products.
    """
    value = _coefficient(fits, 0, a_rows, n_a) + _coefficient(fits, 1, a_rows, n_a) * d0
    if Q > 1:
        value += _coefficient(fits, 2, a_rows, n_a) * d1
    if Q > 2:
        value += _coefficient(fits, 3, a_rows, n_a) * d2
    if DEGREE > 1:
        value += _coefficient(fits, 1 + Q, a_rows, n_a) * (d0 * d0)
        if Q > 1:
            value += _coefficient(fits, 2 + Q, a_rows, n_a) * (d1 * d1)
            value += _coefficient(fits, 1 + 2 * Q, a_rows, n_a) * (d0 * d1)
        if Q > 2:
            value += _coefficient(fits, 3 + Q, a_rows, n_a) * (d2 * d2)
            value += _coefficient(fits, 2 + 2 * Q, a_rows, n_a) * (d0 * d2)
            value += _coefficient(fits, 3 + 2 * Q, a_rows, n_a) * (d1 * d2)
    return value


@triton.jit
def _along(
    fits, d0, d1, d2, a_rows, n_a, Q: tl.constexpr, DEGREE: tl.constexpr, AXIS: tl.constexpr
):
    """Return the derivative of a polynomial along one axis."""
    value = d0 * 0.0 + _coefficient(fits, 1 + AXIS, a_rows, n_a)
    if DEGREE > 1:
        own = d0 if AXIS == 0 else (d1 if AXIS == 1 else d2)
        value += 2.0 * _coefficient(fits, 1 + Q + AXIS, a_rows, n_a) * own
        if Q > 1 and AXIS < 2:  # δ_0 δ_1
            value += _coefficient(fits, 1 + 2 * Q, a_rows, n_a) * (d1 if AXIS == 0 else d0)
        if Q > 2 and AXIS != 1:  # δ_0 δ_2
            value += _coefficient(fits, 2 + 2 * Q, a_rows, n_a) * (d2 if AXIS == 0 else d0)
        if Q > 2 and AXIS > 0:  # δ_1 δ_2
            value += _coefficient(fits, 3 + 2 * Q, a_rows, n_a) * (d2 if AXIS == 1 else d1)
    return value


@triton.jit
def _alignment(u, u_last, v, v_last, a_rows, b_rows, COLUMNS: tl.constexpr, C: tl.constexpr):
    """Return G = U_a · V_b (BM, BN), the last column apart."""
    g = tl.load(u_last + a_rows)[:, None] * tl.load(v_last + b_rows)[None, :]
    columns = tl.arange(0, C)
    at_a = a_rows.to(tl.int64)[:, None] * COLUMNS + columns[None, :]
    at_b = b_rows.to(tl.int64)[None, :] * COLUMNS + columns[:, None]
    for column in range(0, COLUMNS, C):
        U, V = tl.load(u + at_a + column), tl.load(v + at_b + column)
        g = tl.dot(U, V, g, input_precision="tf32x3")
    return g.to(tl.float64)


@triton.jit
def _with_moments(moments, t, d0, d1, d2, Q: tl.constexpr, DEGREE: tl.constexpr):
    """Return the tuple of moments with Σ_b t δ^k added, in the order in which `exponents` lists k.

    Every sum stays in registers until all tiles were visited.
    """
    found = ()
    t2 = t
    for e2 in tl.static_range(DEGREE + 1 if Q > 2 else 1):
        t1 = t2
        for e1 in tl.static_range(DEGREE + 1 - e2 if Q > 1 else 1):
            t0 = t1
            for _ in tl.static_range(DEGREE + 1 - e2 - e1):
                found = found + (moments[len(found)] + tl.sum(t0, axis=1),)  # noqa: RUF005
                t0 = t0 * d0
            t1 = t1 * d1
        t2 = t2 * d2
    return found


@triton.jit
def _no_moments(COUNT: tl.constexpr, BM: tl.constexpr):
    found = ()
    for _ in tl.static_range(COUNT):
        found = found + (tl.zeros((BM,), dtype=tl.float64),)  # noqa: RUF005
    return found


@triton.jit
def moments_of_fits(
    xa,
    xb,
    shift,
    mass,
    u,
    u_last,
    v,
    v_last,
    hidden,
    order,
    first,
    tiles,
    out,
    n_a,
    n_b,
    Q: tl.constexpr,
    COLUMNS: tl.constexpr,
    C: tl.constexpr,
    ANSWERED: tl.constexpr,
    SLOPES: tl.constexpr,
    DEGREE: tl.constexpr,
    COUNT: tl.constexpr,
    HIDDEN: tl.constexpr,
    KERNEL: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Write the moments Σ_b ω_b F δ^k, (COUNT, n_a), times G if ``ANSWERED``.

    With ``SLOPES`` -2F' takes the place of F.
    """
    a = tl.load(order + tl.program_id(0))
    a_rows = a * BM + tl.arange(0, BM)
    x0, x1, x2 = _coordinates(xa, a_rows, n_a, Q)
    far = tl.load(shift + a_rows)[:, None]
    pieces = BM // BN
    moments = _no_moments(COUNT, BM)
    for e in range(tl.load(first + a) * pieces, tl.load(first + a + 1) * pieces):
        b_rows = tl.load(tiles + e // pieces) * BM + (e % pieces) * BN + tl.arange(0, BN)
        s = _squared_distances(x0, x1, x2, xa, xb, a_rows, b_rows, n_a, n_b, Q)
        s = _laid_out(s, BM, BN)
        d0, d1, d2 = _all_steps(xa, xb, a_rows, b_rows, n_a, n_b, Q)
        w = _slope(s, far, KERNEL) if SLOPES else _weight(s, far, KERNEL)
        w = _without_hidden(w, a_rows, b_rows, hidden, HIDDEN, False)
        t = w.to(tl.float64) * tl.load(mass + b_rows).to(tl.float64)[None, :]
        if ANSWERED:
            t = t * _alignment(u, u_last, v, v_last, a_rows, b_rows, COLUMNS, C)
        moments = _with_moments(moments, t, d0, d1, d2, Q, DEGREE)
    for k in tl.static_range(COUNT):
        tl.store(out + k * n_a + a_rows, moments[k])


@triton.jit
def sum_fits(
    xa,
    xb,
    shift,
    mass,
    v,
    v_last,
    fits,
    hidden,
    order,
    first,
    tiles,
    sums,
    totals,
    n_a,
    n_b,
    n_terms,
    Q: tl.constexpr,
    COLUMNS: tl.constexpr,
    C: tl.constexpr,
    DEGREE: tl.constexpr,
    SLOPES: tl.constexpr,
    HIDDEN: tl.constexpr,
    KERNEL: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Write sums (1 + q, n_a, COLUMNS), C columns a program, and totals (1 + q, n_a) of the last.

    Weights are ω F P_0(δ), and for the derivatives ω F P_m(δ) - 2 ω F' δ_m P_0(δ), with the
    polynomials P in ``fits`` (1 + q, terms, n_a).
    """
    a = tl.load(order + tl.program_id(0))
    column = tl.program_id(1) * C
    axis = tl.program_id(2)
    a_rows = a * BM + tl.arange(0, BM)
    columns = column + tl.arange(0, C)
    x0, x1, x2 = _coordinates(xa, a_rows, n_a, Q)
    far = tl.load(shift + a_rows)[:, None]
    acc = tl.zeros((BM, C), dtype=tl.float32)
    total = tl.zeros((BM,), dtype=tl.float64)
    pieces = BM // BN
    own = fits + axis * n_terms * n_a
    for e in range(tl.load(first + a) * pieces, tl.load(first + a + 1) * pieces):
        b_rows = tl.load(tiles + e // pieces) * BM + (e % pieces) * BN + tl.arange(0, BN)
        s = _squared_distances(x0, x1, x2, xa, xb, a_rows, b_rows, n_a, n_b, Q)
        s = _laid_out(s, BM, BN)
        d0, d1, d2 = _all_steps(xa, xb, a_rows, b_rows, n_a, n_b, Q)
        w = _weight(s, far, KERNEL).to(tl.float64)
        w *= _polynomial(own, d0, d1, d2, a_rows, n_a, Q, DEGREE)
        if SLOPES:  # noqa: SIM102 (decided when this is compiled)
            if axis > 0:
                d = d0
                if Q > 1:
                    d = tl.where(axis == 2, d1, d)
                if Q > 2:
                    d = tl.where(axis == 3, d2, d)
                u = _polynomial(fits, d0, d1, d2, a_rows, n_a, Q, DEGREE)
                w += _slope(s, far, KERNEL).to(tl.float64) * d * u
        w = _without_hidden(w, a_rows, b_rows, hidden, HIDDEN, False)
        w *= tl.load(mass + b_rows).to(tl.float64)[None, :]
        total += tl.sum(w * tl.load(v_last + b_rows).to(tl.float64)[None, :], axis=1)
        rows = tl.load(v + b_rows.to(tl.int64)[:, None] * COLUMNS + columns[None, :])
        # Tensor cores cut off what they add up, instead of rounding it: sums of a piece only.
        acc += tl.dot(w.to(tl.float32), rows, tl.zeros_like(acc), input_precision="tf32x3")
    row = axis.to(tl.int64) * n_a + a_rows
    tl.store(sums + row[:, None] * COLUMNS + columns[None, :], acc)
    if column == 0:
        tl.store(totals + row, total.to(tl.float32))


# fmt: off
@triton.jit
def _push_along(
    pushed, along, w, T, u, g, h, d, d0, d1, d2, a_rows, n_a, Q: tl.constexpr,
    DEGREE: tl.constexpr, AXIS: tl.constexpr,
):
    # fmt: on
    """Return ``pushed`` with E along one axis added; its formula is in `engine.local_fit`."""
    of_u = _along(g, d0, d1, d2, a_rows, n_a, Q, DEGREE, AXIS)
    of_v = _along(h, d0, d1, d2, a_rows, n_a, Q, DEGREE, AXIS)
    return pushed + along * d + w * (T * of_u - u * of_v)


@triton.jit
def push_fits(
    xa,
    xb,
    shift,
    mass,
    u,
    u_last,
    v,
    v_last,
    g,
    h,
    ridges,
    hidden,
    order,
    first,
    tiles,
    push,
    n_a,
    n_b,
    Q: tl.constexpr,
    COLUMNS: tl.constexpr,
    C: tl.constexpr,
    DEGREE: tl.constexpr,
    HIDDEN: tl.constexpr,
    KERNEL: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
):
    """Write what queries a push references b by, Σ_a E_ab as (q, n_b).

    ``g`` and ``h`` (terms, n_a) are polynomials; ``ridges`` (4, n_a) are 1/S, what the ridge takes
    off, how stiff it is, and the mean squared distance.
    """
    b = tl.load(order + tl.program_id(0))
    b_rows = b * BM + tl.program_id(1) * BN + tl.arange(0, BN)
    push0 = tl.zeros((BM, BN), dtype=tl.float64)
    push1 = tl.zeros((BM, BN), dtype=tl.float64)
    push2 = tl.zeros((BM, BN), dtype=tl.float64)
    omega = tl.load(mass + b_rows).to(tl.float64)[None, :]
    for e in range(tl.load(first + b), tl.load(first + b + 1)):
        a_rows = tl.load(tiles + e) * BM + tl.arange(0, BM)
        x0, x1, x2 = _coordinates(xa, a_rows, n_a, Q)
        far = tl.load(shift + a_rows)[:, None]
        s = _squared_distances(x0, x1, x2, xa, xb, a_rows, b_rows, n_a, n_b, Q)
        s = _laid_out(s, BM, BN)
        d0, d1, d2 = _all_steps(xa, xb, a_rows, b_rows, n_a, n_b, Q)
        share = omega * _coefficient(ridges, 0, a_rows, n_a)
        stiff = _coefficient(ridges, 2, a_rows, n_a)
        w = _without_hidden(_weight(s, far, KERNEL), a_rows, b_rows, hidden, HIDDEN, False)
        slope = _without_hidden(_slope(s, far, KERNEL), a_rows, b_rows, hidden, HIDDEN, False)
        w, slope = w.to(tl.float64) * share, slope.to(tl.float64) * share
        G = _alignment(u, u_last, v, v_last, a_rows, b_rows, COLUMNS, C)
        value = _polynomial(g, d0, d1, d2, a_rows, n_a, Q, DEGREE)
        T = G - _polynomial(h, d0, d1, d2, a_rows, n_a, Q, DEGREE)
        square = d0 * d0
        if Q > 1:
            square += d1 * d1
        if Q > 2:
            square += d2 * d2
        off = stiff * (_coefficient(ridges, 3, a_rows, n_a) - square)
        off -= _coefficient(ridges, 1, a_rows, n_a)
        along = -slope * (T * value + off) - 2.0 * stiff * w
        # fmt: off
        push0 = _push_along(
            push0, along, w, T, value, g, h, d0, d0, d1, d2, a_rows, n_a, Q, DEGREE, 0
        )
        if Q > 1:
            push1 = _push_along(
                push1, along, w, T, value, g, h, d1, d0, d1, d2, a_rows, n_a, Q, DEGREE, 1
            )
        if Q > 2:
            push2 = _push_along(
                push2, along, w, T, value, g, h, d2, d0, d1, d2, a_rows, n_a, Q, DEGREE, 2
            )
        # fmt: on
    tl.store(push + b_rows, tl.sum(push0, axis=0).to(tl.float32))
    if Q > 1:
        tl.store(push + n_b + b_rows, tl.sum(push1, axis=0).to(tl.float32))
    if Q > 2:
        tl.store(push + 2 * n_b + b_rows, tl.sum(push2, axis=0).to(tl.float32))
