"""Build the site: tutorials, how-to, explanation, reference, gallery, in one folder of HTML.

    python docs/build.py                 # everything: notebooks are run, mechanisms move
    python docs/build.py --quick         # neither, in half a minute
    python docs/build.py --out site/

Needs the extra ``docs``: ``pip install -e ".[docs]"``. Nothing is fetched. A link that leads
nowhere, a name that is not there, a formula that cannot be read: each ends the build.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(HERE)]

#: Where each page stands in the site; one that is in none of these stands in the first.
SECTIONS = {
    "How to": (
        "order", "labs", "studies", "many", "mechanisms", "models", "gears", "elements", "contact",
        "automatic", "quality", "manifolds", "cost", "parameters", "derivatives",
    ),
    "Explanation": (
        "conventions", "multistep", "dae", "general-dae", "hybrid", "loops", "floating",
        "hybrid-dynamics", "handles", "factorisations", "oracles", "tracing", "kernels",
        "reliability", "verdicts",
    ),
    "Sources": ("sources", "coverage", "errata"),
}  # fmt: skip
ELSEWHERE = ("index",)  # a map of the repository, which stands with the project
FROM_THE_ROOT = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "SECURITY.md")


def assemble(source: Path, extra: Path, quick: bool) -> None:
    """Lay out what Sphinx reads as the repository is laid out, so that its links hold."""
    shutil.copytree(
        HERE, source / "docs", ignore=shutil.ignore_patterns("_build", "*.py[co]", "front_page.txt")
    )
    shutil.copytree(ROOT / "notebooks", source / "notebooks",
                    ignore=shutil.ignore_patterns(".ipynb_checkpoints"))  # fmt: skip
    for name in FROM_THE_ROOT:
        shutil.copy(ROOT / name, source / name)
    for linked in ("integrators/references.bib", "integrators/methods/textbook.py"):
        (source / linked).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / linked, source / linked)
    from site_pages import gallery, labs, reference

    extra.mkdir(parents=True, exist_ok=True)
    names = reference(source / "reference")
    gallery(source, extra, animate=not quick)
    handed_out = labs(source / "labs")
    (source / "index.md").write_text(front_page(names, handed_out), encoding="utf-8")


def front_page(reference: list[str], labs: list[str]) -> str:
    """Return the first page, with the navigation of all others."""
    notebooks = sorted(path.stem for path in (ROOT / "notebooks").glob("*.ipynb"))
    decisions = sorted(path.stem for path in (HERE / "decisions").glob("*.md"))
    listed = {name for names in SECTIONS.values() for name in names} | set(ELSEWHERE)
    others = sorted({path.stem for path in HERE.glob("*.md")} - listed)
    sections = SECTIONS | {"How to": (*SECTIONS["How to"], *others)}
    pages = {
        "Start here": ["Install, run, test <README>"],
        "Tutorials": [f"notebooks/{name}" for name in notebooks],
        "Labs": [f"labs/{name}" for name in labs],
        **{title: [f"docs/{name}" for name in names] for title, names in sections.items()},
        "Reference": ["gallery", *(f"reference/{name}" for name in reference)],
        "Project": ["CONTRIBUTING", "CHANGELOG", "SECURITY", "docs/index",
                    *(f"docs/decisions/{name}" for name in decisions)],
    }  # fmt: skip
    lines = [(HERE / "front_page.txt").read_text(encoding="utf-8")]
    for title, listed in pages.items():
        body = "\n".join(listed)
        lines.append(f"```{{toctree}}\n:caption: {title}\n:maxdepth: 1\n:hidden:\n\n{body}\n```\n")
    return "\n".join(lines)


def build(out: Path, quick: bool) -> int:
    """Assemble and run Sphinx; returns its exit code."""
    from sphinx.cmd.build import build_main

    work = HERE / "_build"
    for part in ("source", "extra", "doctrees"):
        shutil.rmtree(work / part, ignore_errors=True)
    os.environ["FEATHERSTEP_SITE_NOTEBOOKS"] = "off" if quick else "force"
    os.environ["FEATHERSTEP_SITE_EXTRA"] = str(work / "extra")
    os.environ.setdefault("MPLBACKEND", "agg")
    assemble(work / "source", work / "extra", quick)
    places = [str(work / "source"), str(out)]
    return int(build_main(["-q", "-W", "--keep-going", "-c", str(HERE), "-b", "html",
                           "-d", str(work / "doctrees"), *places]))  # fmt: skip


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="run no notebook, animate nothing")
    parser.add_argument("--out", type=Path, default=HERE / "_build" / "html")
    arguments = parser.parse_args()
    start = time.monotonic()
    code = build(arguments.out.resolve(), arguments.quick)
    where = arguments.out / "index.html"
    sys.stdout.write(f"{where}, {time.monotonic() - start:.0f} s\n" if code == 0 else "failed\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
