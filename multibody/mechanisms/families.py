"""Families of mechanisms by name: :class:`~multibody.ModelFamily` with the catalogue behind it."""

from __future__ import annotations

from ..runs.families.family import FamilyRows, ModelFamily, StructureError
from ..runs.families.starts import Starts
from . import registry  # noqa: F401  (tells families how to find a mechanism by its name)

__all__ = ["FamilyRows", "ModelFamily", "Starts", "StructureError"]
