"""What the reports on methods of all families share: a headline, and a page of text to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...notebook_html import page_of_text

__all__ = ["Page", "headline"]


def headline(method: Any, kind: str) -> str:
    """Return name, kind, number of stages and orders of a method in one line."""
    plural = "" if method.stages == 1 else "s"
    embedded = getattr(method, "embedded_order", None)
    pair = "" if embedded is None else f", embedded order {embedded}"
    name = method.name or "unnamed method"
    return f"{name}: {kind}, {method.stages} stage{plural}, order {method.order}{pair}"


class Page:
    """A report that is read as text; notebooks show its columns aligned."""

    if TYPE_CHECKING:  # a field of the reports, which are dataclasses

        @property
        def method(self) -> Any:
            """What the report is on: it has a name, a number of stages, an order, a source."""

    @property
    def title(self) -> str:
        """What the report is on, in one line."""
        return headline(self.method, self.method.kind)

    def heading(self) -> list[str]:
        """Return the title, underlined, and the source."""
        lines = [self.title, "=" * len(self.title)]
        return [*lines, f"source: {self.method.reference}"] if self.method.reference else lines

    def __repr__(self) -> str:
        return f"<Report on {self.title}>"

    def _repr_html_(self) -> str:
        return page_of_text(str(self))
