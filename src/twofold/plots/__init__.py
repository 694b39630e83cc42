"""Pictures of fitted models, for papers and for looking closely.

Every function takes a fitted model first, draws into ``ax`` (a new figure if None) and returns the
axes, so that a picture can be changed and saved as any other of matplotlib. ``dims`` are the latent
coordinates that are shown. Nothing is set globally: sizes and fonts are those of
``matplotlib.rcParams``.
"""

from twofold.checks.installing import install_command

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    raise ImportError(
        "twofold.plots draws with matplotlib, which is not installed: " + install_command("plot")
    ) from error

from twofold.plots.comparison import comparison, coranking, dimension_choice
from twofold.plots.diagnosis import dimension_curve, errors, history
from twofold.plots.features import important_features, sensitivities, sensitivity
from twofold.plots.generated import grid, path
from twofold.plots.maps import latent_map, magnification
from twofold.plots.standing_out import what_stands_out
from twofold.plots.uncertainty import intervals, odd_rows

__all__ = [
    "comparison",
    "coranking",
    "dimension_choice",
    "dimension_curve",
    "errors",
    "grid",
    "history",
    "important_features",
    "intervals",
    "latent_map",
    "magnification",
    "odd_rows",
    "path",
    "sensitivities",
    "sensitivity",
    "what_stands_out",
]
__dir__ = __all__.copy  # without numpy and other imports
