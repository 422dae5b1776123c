"""Force laws of machines: springs, bushings, friction, motors, controllers; and how to add one."""

from .base import ELEMENTS, Element, ForceLaw, NamedElement, element_kind

__all__ = ["ELEMENTS", "Element", "ForceLaw", "NamedElement", "element_kind"]
