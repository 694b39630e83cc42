"""Models inside the file of another model: a template that was never fitted, or a fitted part.

Both become plain dicts that a model file can keep; coming back, a class is only ever looked up
among the families the caller names.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from twofold.contract import TwoWayModel
from twofold.contract.kept_model import RUN_ONLY
from twofold.model_files import ModelFile, expect_class

Families: TypeAlias = Mapping[str, type[TwoWayModel]]


def template_of(model: TwoWayModel | None) -> dict[str, Any] | None:
    """Return the class and the parameters of a model, those of models within it included."""
    if model is None:
        return None
    if hasattr(model, "saved_as"):
        # A model that becomes another one is kept as that one.
        model = model.saved_as()
    params = {
        name: template_of(value) if isinstance(value, TwoWayModel) else value
        for name, value in model.get_params(deep=False).items()
        if name not in RUN_ONLY
    }
    return {"class_name": type(model).__name__, "params": params}


def from_template(template: dict[str, Any] | None, families: Families) -> TwoWayModel | None:
    """Return the unfitted model that `template_of` told of."""
    if template is None:
        return None
    stored = ModelFile(**template, attributes={}, arrays={})
    expect_class(stored, families)
    params = {
        name: from_template(value, families)
        if isinstance(value, dict) and value.keys() == {"class_name", "params"}
        else value
        for name, value in stored.params.items()
    }
    return families[stored.class_name](**params)


def fitted_part(model: TwoWayModel) -> dict[str, Any]:
    """Return what a file of the fitted model would hold."""
    return {name: value for name, value in vars(model.to_file()).items() if name != "versions"}


def from_fitted_part(part: dict[str, Any], families: Families) -> TwoWayModel:
    """Return the fitted model that `fitted_part` told of."""
    stored = ModelFile(**part)
    expect_class(stored, families)
    return families[stored.class_name].from_file(stored, families)
