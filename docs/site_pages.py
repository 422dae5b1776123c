"""Pages of the site that are made from the code: the reference, the gallery; and formulae."""

from __future__ import annotations

import html
import importlib
import inspect
import json
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Namespaces of the reference; a name of several is told where it comes first.
NAMESPACES = {
    "integrators": "Problems, methods, solve, solutions",
    "integrators.analysis": "Orders, stability, errors, studies",
    "integrators.analysis.plot": "Figures of methods, problems and studies",
    "integrators.catalogue": "Every named scheme, as data",
    "integrators.problems": "Reference problems",
    "integrators.dae": "Constrained systems and general DAEs",
    "integrators.groups": "Lie groups",
    "integrators.scipy": "Our methods behind SciPy's solve_ivp",
    "multibody": "Models, joints, dynamics, runs",
    "multibody.mechanisms": "The catalogue of mechanisms",
    "featherstep": "Studies",
    "featherstep.lab": "Labs that grade themselves",
}


def namespaces() -> Iterator[tuple[str, types.ModuleType, list[str]]]:
    """Yield each namespace with the names that are explained on its page.

    A module among the names of a package is a namespace of its own.
    """
    waiting = [(name, importlib.import_module(name)) for name in NAMESPACES]
    seen: set[int] = {id(module) for _, module in waiting}
    told: set[int] = set()
    while waiting:
        name, module = waiting.pop(0)
        own = []
        for public in sorted(getattr(module, "__all__", ()), key=str.lower):
            value = getattr(module, public)
            if isinstance(value, types.ModuleType):
                if id(value) not in seen:
                    seen.add(id(value))
                    waiting.append((f"{name}.{public}", value))
            elif id(value) not in told or not callable(value):
                told.add(id(value))
                own.append(public)
        yield name, module, own


def reference(folder: Path) -> list[str]:
    """Write a page for each namespace; returns their names."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, module, names in namespaces():
        (folder / f"{name}.md").write_text(_page(name, module, names), encoding="utf-8")
        written.append(name)
    return written


def _page(name: str, module: types.ModuleType, names: list[str]) -> str:
    lines = [f"# {name}", "", summary(module), "", "| name | what it is |", "|:---|:---|"]
    for public in names:
        text = summary(getattr(module, public)).replace("|", r"\|")
        lines.append(f"| [`{public}`](#{module.__name__}.{public}) | {text} |")
    lines += ["", "```{eval-rst}", f".. currentmodule:: {module.__name__}", ""]
    for public in names:
        lines += _directive(public, getattr(module, public))
    return "\n".join([*lines, "```", ""])


def _directive(name: str, value: Any) -> list[str]:
    if inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        return [f".. {kind}:: {name}", ""]
    if inspect.isroutine(value):
        return [f".. autofunction:: {name}", ""]
    # A constant: autodoc would print the docstring of its type.
    kind = type(value).__name__
    size = f" of {len(value)}" if hasattr(value, "__len__") else ""
    return [f".. py:data:: {name}", "", f"   A constant: {kind}{size}.", ""]


def summary(value: Any) -> str:
    """Return the first sentence of a docstring in one line."""
    text = inspect.getdoc(value) or ""
    if not callable(value) and not isinstance(value, types.ModuleType):
        text = ""  # a constant has the docstring of its type
    text = re.sub(r":\w+:`~?([^`]*)`", r"\1", text.split("\n\n")[0])  # roles are for Sphinx
    return " ".join(text.split()).replace("*", r"\*").replace("_", r"\_")


def labs(folder: Path) -> list[str]:
    """Write the hand-outs of all labs, as a student called ada would get them."""
    from featherstep.lab import labs as names
    from featherstep.lab import load_lab
    from featherstep.lab.notebook import handout

    folder.mkdir(parents=True, exist_ok=True)
    for name in names():
        text = json.dumps(handout(load_lab(name), "ada"))
        (folder / f"{name}.ipynb").write_text(text, encoding="utf-8")
    return list(names())


# -------------------------------------------------------------------- the gallery


#: Browsers draw a dozen scenes at most: what is out of sight is put away.
IN_SIGHT = """
const watch = new IntersectionObserver(entries => entries.forEach(({target, isIntersecting}) => {
  if (isIntersecting) target.src = target.dataset.page; else target.removeAttribute("src");
}));
document.querySelectorAll("iframe.moving").forEach(frame => watch.observe(frame));
"""


def gallery(folder: Path, extra: Path, animate: bool) -> None:
    """Write the gallery of mechanisms; with ``animate`` each moves on a page of its own."""
    from multibody import mechanisms

    lines = ["# Gallery of mechanisms", "",
             "Each is `mechanisms.get(name)` in Python and `featherstep simulate name` on the "
             "command line; [Mechanisms](docs/mechanisms.md) has parameters.", ""]  # fmt: skip
    for entry in mechanisms.entries():
        lines += [f"## {entry.name}", "", summary(entry.build), ""]
        if animate:
            _moving(entry, extra / "gallery" / f"{entry.name}.html")
            page = f"gallery/{entry.name}.html"
            frame = f'<iframe class="moving" data-page="{page}" title="{entry.name}"></iframe>'
            alone = f'<a href="{page}">on a page of its own</a>'
            lines += ["```{raw} html", frame, alone, "```", ""]
        lines += [f"*Source: {entry.source}*", ""] if entry.source else []
    lines += ["```{raw} html", f"<script>{IN_SIGHT}</script>", "```"] if animate else []
    (folder / "gallery.md").write_text("\n".join(lines), encoding="utf-8")


def _moving(entry: Any, path: Path) -> None:
    from multibody import animate, simulate

    path.parent.mkdir(parents=True, exist_ok=True)
    model = entry.model()
    seconds = min(entry.t_end, 5.0)
    solution = simulate(model, *entry.start(model), T=seconds, rtol=1e-6)
    speed = min(1.0, seconds / 2.0)  # what is over in a blink is slowed down
    animate.save(model, solution, path, fps=30, speed=speed)


# -------------------------------------------------------------------- docstrings


def without_substitutions(app: Any, what: Any, name: Any, thing: Any, options: Any,
                          lines: list[str]) -> None:  # fmt: skip
    """Let |y| be an absolute value: in reStructuredText bars would mark a substitution."""
    example = literal = False
    for k, line in enumerate(lines):
        if not line.strip():
            example = False
            continue
        example = example or line.lstrip().startswith(">>>")
        if literal and not line.startswith((" ", "\t")):
            literal = False
        if not example and not literal:
            parts = line.split("``")  # odd ones are code
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[k] = "``".join(parts)
        literal = literal or line.rstrip().endswith("::")


def cited(name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None,
          content: Any = ()) -> tuple[list, list]:  # fmt: skip
    """Name a source as the list of references does."""
    from docutils import nodes

    from featherstep.citations import authors_and_year, citation

    found = [nodes.abbreviation(rawtext, authors_and_year(key), explanation=citation(key))
             for key in map(str.strip, text.split(","))]  # fmt: skip
    return found, []


# -------------------------------------------------------------------- formulae


def _mathml(node: Any, display: str) -> str:
    from latex2mathml.converter import convert

    return convert(node.astext(), display=display)


def _inline(writer: Any, node: Any) -> None:
    from docutils import nodes

    writer.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _display(writer: Any, node: Any) -> None:
    from docutils import nodes

    number = (
        f'<span class="eqno">({html.escape(str(node["number"]))})</span>'
        if node.get("number")
        else ""
    )
    writer.body.append(f'<div class="math">{number}{_mathml(node, "block")}</div>')
    raise nodes.SkipNode


mathml = (_inline, _display)
