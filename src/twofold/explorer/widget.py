"""The explorer in a notebook, as an anywidget."""

from __future__ import annotations

from functools import cache
from typing import Any

from twofold.explorer.page import find_payload, joined_scripts, library_text, static_text


def show(
    model: Any,
    *,
    title: str | None = None,
    max_mb: float = 20.0,
    data: Any = None,
    image_shape: Any = None,
    view: str = "auto",
    labels: Any = None,
    names: Any = None,
) -> Any:
    """Return the map of a model as a widget for a notebook.

    Parameters
    ----------
    model, title, max_mb, data, image_shape, view, labels, names
        As in :func:`twofold.explorer.write`.

    Returns
    -------
    anywidget.AnyWidget
        ``probe`` is the latent place that is looked at and may be set; ``generated`` the data that
        belongs to it; ``selection`` the numbers of the selected rows, which may be set; ``picked``
        the number of the row clicked last, -1 for none.

    Raises
    ------
    ImportError
        Without the package anywidget.
    """
    kind = explorer_widget()
    payload = find_payload(model, title, max_mb, data, image_shape, view, labels, names)
    return kind(header=payload.header, data=payload.data)


@cache
def explorer_widget() -> Any:
    """Return the class of the widget; it exists only where anywidget does."""
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError(
            'The explorer in a notebook needs anywidget: pip install "twofold[notebook]". '
            "`explorer.write` makes a file without it."
        ) from error

    class ExplorerWidget(anywidget.AnyWidget):
        """The map of a model in a notebook."""

        # In one module: its scripts see the library, and the notebook gets no global name.
        _esm = library_text() + joined_scripts("widget.js")
        _css = static_text("style.css")
        header = traitlets.Dict().tag(sync=True)
        data = traitlets.Bytes().tag(sync=True)
        probe = traitlets.List(traitlets.Float()).tag(sync=True)
        generated = traitlets.List(traitlets.Float()).tag(sync=True)
        selection = traitlets.List(traitlets.Int()).tag(sync=True)
        picked = traitlets.Int(-1).tag(sync=True)

        @traitlets.validate("probe")  # type: ignore[untyped-decorator]
        def _check_probe(self, proposal: Any) -> list[float]:
            q = self.header["model"]["n_components"]
            if len(proposal.value) not in (0, q):
                raise traitlets.TraitError(
                    f"`probe` is a latent place of {q} numbers; got {len(proposal.value)}."
                )
            return list(proposal.value)

    return ExplorerWidget
