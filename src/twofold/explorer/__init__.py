"""The explorer: the map of a model, and its regression running in a web page or a notebook."""

from twofold.explorer.page import show, write

__all__ = ["show", "write"]
__dir__ = __all__.copy  # without numpy and other imports
