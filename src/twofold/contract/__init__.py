"""The two-way contract: what every model does, what a family writes, what a fit leaves."""

from twofold.contract.model import TwoWayModel

__all__ = ["TwoWayModel"]
