"""Mutants that no test can kill: file, line before, line after, and why nothing differs."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {
    (
        "kernels.py",
        "s = np.linspace(0.05, 0.9, 7) * min(kernel.support, 2.0)",
        "s = np.linspace(0.05, 0.9, 8) * min(kernel.support, 2.0)",
    ): "a kernel may be tried out at these places or at those",
    (
        "kernels.py",
        "low, high = 0.0, 1.0",
        "low, high = 0.0, 2.0",
    ): "halving ends at the same place from twice the bracket",
    (
        "kernels.py",
        "s = np.linspace(0.05, 0.9, 7) * min(kernel.support, 2.0)",
        "s = np.linspace(0.05, 0.9, 7) * min(kernel.support, 3.0)",
    ): "a kernel may be tried out at these places or at those",
    (
        "kernels.py",
        "start = float(kernel.value(np.zeros(1))[0])",
        "start = float(kernel.value(np.zeros( 2))[0])",
    ): "the first of two equal numbers",
    (
        "kernels.py",
        "while self._at(high) >= 0.5 and high < 1e12:",
        "while self._at(high) >= 0.5 and high < 999999999999.0:",
    ): "no power of two lies between",
    (
        "kernels.py",
        "if KERNELS.get(self.name) is self:",
        "if KERNELS.get(self.name) == self:",
    ): "kernels that are equal are the same kernel",
    (
        "kernels.py",
        "s = np.linspace(0.05, 0.9, 7) * min(kernel.support, 2.0)",
        "s = np.linspace(0.05, 1.9, 7) * min(kernel.support, 2.0)",
    ): "a kernel may be tried out at these places or at those",
    (
        "kernels.py",
        "return float(self.derivative(np.zeros(1))[0])",
        "return float(self.derivative(np.zeros( 2))[0])",
    ): "the first of two equal numbers",
    (
        "kernels.py",
        "while self._at(high) >= 0.5 and high < 1e12:",
        "while self._at(high) >= 0.5 and high <= 1e12:",
    ): "1e12 is no power of two",
    (
        "kernels.py",
        "while self._at(high) >= 0.5 and high < 1e12:",
        "while self._at(high) >= -0.5 and high < 1e12:",
    ): "the search starts further out and ends at the same place",
    (
        "losses/__init__.py",
        "return (beyond * beyond)[:, 0], 2 * beyond / np.where(length > 0, length, 1) * R",
        "return (beyond * beyond)[:, 0], 2 * beyond / np.where(length > 0, length, 2) * R",
    ): "zero divided by any number",
    (
        "losses/trial.py",
        "for m in np.unique(np.linspace(0, R.shape[1] - 1, 6).astype(int)):",
        "for m in np.unique(np.linspace(0, R.shape[1] - 1, 7).astype(int)):",
    ): "a loss may be tried out in these components or in those",
    (
        "optimize/constraints.py",
        "on_boundary = np.abs(X) >= _in_dtype(self.half_width, X)",
        "on_boundary = np.abs(X) == _in_dtype(self.half_width, X)",
    ): "iterates never lie outside of the box",
    (
        "optimize/constraints.py",
        "aim = self.radius * (1 - 4 * np.finfo(X.dtype).eps)",
        "aim = self.radius * (1 - 3 * np.finfo(X.dtype).eps)",
    ): "a margin for rounding that is wide enough either way",
    (
        "optimize/levenberg_marquardt.py",
        "FIRST_DAMPING = 1e-2",
        "FIRST_DAMPING = 1.01",
    ): "other steps to the same minimum",
    (
        "optimize/levenberg_marquardt.py",
        "AFTER_GOOD, AFTER_POOR, AFTER_FAILURE = 0.1, 3.0, 5.0",
        "AFTER_GOOD, AFTER_POOR, AFTER_FAILURE = 0.1, 3.0, 4.0",
    ): "other steps to the same minimum",
    (
        "optimize/levenberg_marquardt.py",
        "AFTER_GOOD, AFTER_POOR, AFTER_FAILURE = 0.1, 3.0, 5.0",
        "AFTER_GOOD, AFTER_POOR, AFTER_FAILURE = 0.1, 2.0, 5.0",
    ): "other steps to the same minimum",
    (
        "optimize/levenberg_marquardt.py",
        "inside = True",
        "inside = False",
    ): "more rounds than needed solve the same system again",
    (
        "optimize/lbfgs.py",
        "@dataclass(frozen=True)",
        "@dataclass(frozen=False)",
    ): "nobody changes a state",
    (
        "optimize/loop.py",
        "self.is_broken = False",
        "self.is_broken = True",
    ): "the first evaluation says before anybody asks",
    (
        "engine/dense.py",
        "return int(np.clip(BLOCK_BYTES // (n * itemsize) // 16 * 16, 16, 512))",
        "return int(np.clip(BLOCK_BYTES // (n * itemsize) // 16 * 17, 16, 512))",
    ): "blocks of another size give the same sums",
    (
        "engine/threads.py",
        "if n_threads == 1 or len(tasks) == 1:",
        "if n_threads == 1 and len(tasks) == 1:",
    ): "a pool of one thread does the same work",
    (
        "engine/sums.py",
        'if self.backend != "cpu_dense" and refs.shape[1] <= GRIDDED:',
        'if not self.backend != "cpu_dense" and refs.shape[1] <= GRIDDED:',
    ): "a grid that is not there yet is made where it is needed",
    (
        "engine/sums.py",
        'if self.backend != "cpu_dense" and refs.shape[1] <= GRIDDED:',
        'if self.backend != "cpu_dense" and refs.shape[ 0] <= GRIDDED:',
    ): "a grid that is not there yet is made where it is needed",
    (
        "losses/__init__.py",
        "n, D = (2, 3) if shape is None else shape",
        "n, D = ( 3, 3) if shape is None else shape",
    ): "at most two rows are tried",
    (
        "engine/dense.py",
        "BLOCK_BYTES = 2**21",
        "BLOCK_BYTES = 2** 20",
    ): "blocks of another size give the same sums",
    (
        "engine/dense.py",
        "BLOCK_BYTES = 2**21",
        "BLOCK_BYTES = 2//21",
    ): "blocks of another size give the same sums",
    (
        "engine/cells.py",
        "span = np.empty(6, dtype=np.int64)",
        "span = np.empty( 7, dtype=np.int64)",
    ): "room for one more number than is used",
    (
        "engine/sums.py",
        'if self.backend == "auto":',
        'if self.backend <= "auto":',
    ): "no other backend comes first in the alphabet",
    (
        "engine/sums.py",
        "FARTHEST = {4: 2.0**60, 8: 2.0**240}",
        "FARTHEST = {4: 2.0**60, 8: 2.0** 241}",
    ): "places are as alike beyond twice as far",
    (
        "engine/sums.py",
        "FARTHEST = {4: 2.0**60, 8: 2.0**240}",
        "FARTHEST = {4: 2.0** 61, 8: 2.0**240}",
    ): "places are as alike beyond twice as far",
    (
        "optimize/continuation.py",
        "@dataclass(frozen=True)",
        "@dataclass(frozen=False)",
    ): "nobody changes a stage",
    (
        "optimize/levenberg_marquardt.py",
        "active = active[state.error[active] <= (1 + slack) * best[active // n_starts]]",
        "active = active[state.error[active] < (1 + slack) * best[active // n_starts]]",
    ): "a start at the bound has the error 0 and nothing to gain",
}
