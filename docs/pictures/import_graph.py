"""Draw which room imports which: one column a library, layers from the contracts in pyproject.toml.

Every arrow leads down: the contracts allow nothing else. Run it after a layer has changed:

    python docs/pictures/import_graph.py
"""

from __future__ import annotations

import collections
import tomllib
from pathlib import Path

import grimp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[2]
LIBRARIES = ("integrators", "multibody", "featherstep")
COLOURS = {"integrators": "#2a6f97", "multibody": "#9c4f12", "featherstep": "#4b7f3b"}


def layers() -> dict[str, list[list[str]]]:
    """Rooms of each library, from the top layer down."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    found = {}
    for contract in contracts["contracts"]:
        for library in contract.get("containers", ()):
            found[library] = [
                [room.strip(" ()") for room in line.split("|")] for line in contract["layers"]
            ]
    return found


def main() -> None:
    """Write import_graph.svg beside this file."""
    graph = grimp.build_graph(*LIBRARIES)
    edges: collections.Counter[tuple[str, str]] = collections.Counter()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            a, b = (".".join(name.split(".")[:2]) for name in (module, other))
            if a != b:
                edges[a, b] += 1
    place = {}
    figure, axes = plt.subplots(figsize=(13, 9))
    columns = {"multibody": (4.6, 9.0), "integrators": (0.0, 9.0), "featherstep": (8.6, 9.0)}
    for library, rows in layers().items():
        x, top = columns[library]
        height = top / max(len(rows) - 1, 1)
        for row, rooms in enumerate(rows):
            for k, room in enumerate(rooms):
                shift = (k - (len(rooms) - 1) / 2) * 1.25
                place[f"{library}.{room}"] = (x + shift, top - row * height)
        axes.text(x, top + 0.7, library, ha="center", size=14, color=COLOURS[library])
    for (a, b), count in edges.items():
        if a in place and b in place:
            same = a.split(".")[0] == b.split(".")[0]
            axes.annotate(
                "",
                xy=place[b],
                xytext=place[a],
                arrowprops={
                    "arrowstyle": "-|>",
                    "color": COLOURS[a.split(".")[0]],
                    "alpha": 0.35 if same else 0.12,
                    "lw": 0.6 + 0.25 * min(count, 10) ** 0.5,
                    "shrinkA": 10,
                    "shrinkB": 10,
                },
            )
    for name, (x, y) in place.items():
        library, room = name.split(".", 1)
        axes.text(
            x, y, room, ha="center", va="center", size=8.5,
            bbox={"boxstyle": "round,pad=0.3", "fc": "white", "ec": COLOURS[library]},
        )  # fmt: skip
    axes.set_xlim(-2.2, 11.0)
    axes.set_ylim(-0.6, 10.2)
    axes.axis("off")
    figure.savefig(Path(__file__).with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    main()
