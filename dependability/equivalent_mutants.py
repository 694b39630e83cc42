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
}
