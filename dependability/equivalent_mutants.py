"""Mutants that no test can kill: file, line before, line after, and why nothing differs."""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {
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
        "return math.log(tolerance) / float(self.derivative(np.zeros(1))[0])",
        "return math.log(tolerance) / float(self.derivative(np.zeros( 2))[0])",
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
}
