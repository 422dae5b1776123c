"""Methods for constrained mechanical systems, by name."""

from __future__ import annotations

from typing import Any

from .generalized_alpha import GeneralizedAlpha
from .half_explicit import HalfExplicit

__all__ = ["constrained_method"]


def constrained_method(name: str) -> Any:
    """Return "HEM4", "HalfExplicit(RK4)", "GeneralizedAlpha(0.8)" and their like by name."""
    plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    plain = plain.replace("generalised", "generalized")
    inside = name.partition("(")[2].strip().removesuffix(")").strip()
    if plain.startswith("generalizedalpha"):
        try:
            return GeneralizedAlpha(float(inside)) if inside else GeneralizedAlpha()
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(
                f"{name!r}: write GeneralizedAlpha(0.8), with the spectral radius at infinity"
            ) from None
    return HalfExplicit.from_name(name)
