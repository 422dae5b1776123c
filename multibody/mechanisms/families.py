"""Families of mechanisms by name: :class:`~multibody.ModelFamily` with the catalogue behind it."""

from __future__ import annotations

from ..runs.family import FamilyRows, ModelFamily, StructureError
from ..runs.family_starts import Starts
from . import registry  # noqa: F401  (tells families how to find a mechanism by its name)

__all__ = ["FamilyRows", "ModelFamily", "Starts", "StructureError"]
