"""Trying out a user's loss on a small table before a fit relies on it."""

import numpy as np

from twofold.array_types import FloatArray, IntArray
from twofold.losses import Loss, is_rotation_invariant, rows_of


def try_out(loss: Loss, rows: int, D: int) -> None:
    """Try a loss of the user's on a small table; say what is wrong with it."""
    name, every = type(loss).__name__, np.arange(rows)
    # Of both signs and many sizes, so that both sides of a kink near 1 are seen.
    R = (np.linspace(0.13, 2.9, rows * D) * (-1.0) ** np.arange(rows * D)).reshape(D, rows).T
    losses, slope = _call(loss, R, every)
    size = np.abs(losses).max()
    if not (losses > 0).all():
        raise ValueError(
            f"The loss {name} must be positive where there is a residual; got "
            f"{losses.min():.4g}. Check its sign."
        )
    at_zero = np.concatenate([part.ravel() for part in _call(loss, np.zeros_like(R), every)])
    if not (np.abs(at_zero) <= 1e-9 * max(size, np.abs(slope).max())).all():
        raise ValueError(
            f"The loss {name} must be zero, with slope zero, at residual zero, because missing "
            f"entries arrive as zeros; got the loss {at_zero[0]:.4g} and the slope "
            f"{np.abs(at_zero[rows:]).max():.4g}. Subtract the value at zero."
        )
    for i in every:
        alone = _call(loss, R[[i]], every[[i]])
        if not (_agree(alone[0], losses[[i]]) and _agree(alone[1], slope[[i]])):
            raise ValueError(
                f"The loss {name} must take each row by itself; got {losses[i]:.4g} for row {i} "
                f"among {rows} rows and {alone[0][0]:.4g} for it alone. Use no sums or means over "
                "the rows."
            )
    _check_slope(loss, R, slope, 1e-8 * size)
    if is_rotation_invariant(loss):
        _check_rotation(loss, R, losses)


def _call(loss: Loss, R: FloatArray, numbers: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return what the loss says of the residuals of some rows, after checks of its form."""
    name = type(loss).__name__
    try:
        with np.errstate(all="ignore"):  # what is not finite is told below
            losses, slope = rows_of(loss, numbers).value_and_slope(R.copy())
        losses, slope = np.asarray(losses), np.asarray(slope)
        is_single = np.float32 in (losses.dtype, slope.dtype)
        losses, slope = losses.astype(float), slope.astype(float)
    except Exception as error:
        raise ValueError(
            f"`value_and_slope` of the loss {name} must take residuals (rows, D) and return the "
            "loss of each row (rows,) and its derivative by the residual (rows, D); trying it "
            f"with the shape {R.shape} raised {type(error).__name__}: {error}"
        ) from error
    if losses.shape != R.shape[:1] or slope.shape != R.shape:
        raise ValueError(
            f"`value_and_slope` of the loss {name} must return the shapes {R.shape[:1]} and "
            f"{R.shape} for residuals of shape {R.shape}; got {losses.shape} and {slope.shape}. "
            "Sum the loss over the components, not over the rows."
        )
    if is_single:
        raise ValueError(
            f"`value_and_slope` of the loss {name} must keep the precision of the residuals; for "
            "float64 it returned float32."
        )
    finite = np.isfinite(losses) & np.isfinite(slope).all(axis=1)
    if not finite.all():
        i = int(finite.argmin())
        raise ValueError(
            f"`value_and_slope` of the loss {name} must return finite numbers; for the residual "
            f"{R[i]} it returned the loss {losses[i]:.4g} and the slope {slope[i]}. Guard "
            "divisions and logarithms, above all at zero."
        )
    return losses, slope


def _check_slope(loss: Loss, R: FloatArray, slope: FloatArray, noise: float) -> None:
    """Compare the slope with central differences in a few components, all rows at once."""
    every, step = np.arange(len(R)), 1e-6
    for m in np.unique(np.linspace(0, R.shape[1] - 1, 6).astype(int)):
        move = np.zeros_like(R)
        move[:, m] = step
        difference = _call(loss, R + move, every)[0] - _call(loss, R - move, every)[0]
        expected = difference / (2 * step)
        off = np.abs(slope[:, m] - expected)
        i = int(off.argmax())
        if off[i] > 1e-4 * np.abs(expected).max() + noise:
            raise ValueError(
                f"The second answer of the loss {type(loss).__name__} must be the derivative of "
                f"the first by the residual f - y: at r = {R[i, m]:.3g} it is {slope[i, m]:.4g}, "
                f"expected {expected[i]:.4g} (from differences). Check its factor and its sign."
            )


def _check_rotation(loss: Loss, R: FloatArray, losses: FloatArray) -> None:
    axis = np.arange(1.0, R.shape[1] + 1)
    axis /= np.linalg.norm(axis)
    mirrored = R - 2 * np.outer(R @ axis, axis)
    found = _call(loss, mirrored, np.arange(len(R)))[0]
    if not _agree(found, losses):
        i = int(np.abs(found - losses).argmax())
        raise ValueError(
            f"The loss {type(loss).__name__} says is_rotation_invariant, so it must depend on the "
            f"length of a residual only; turning one changed it from {losses[i]:.4g} to "
            f"{found[i]:.4g}. Leave that attribute out."
        )


def _agree(found: FloatArray, expected: FloatArray) -> bool:
    return bool(np.allclose(found, expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max()))
