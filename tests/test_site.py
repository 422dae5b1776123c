"""The site: every public name has its place, formulae are MathML, docstrings are read as written.

``.ci/run`` builds it without running notebooks (``docs/build.py --quick``), where a link that leads
nowhere ends the build; here is what can be seen without Sphinx, and what a build would not notice.
"""

import importlib
import inspect
import re
import sys
from functools import reduce
from pathlib import Path

import pytest

from featherstep.lab import labs, load_lab

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site():
    sys.path.insert(0, str(ROOT / "docs"))
    yield importlib.import_module("site_pages")
    sys.path.remove(str(ROOT / "docs"))


def test_every_public_name_is_on_a_page(site):
    """Found again from the packages, not from the pages: by name, and by what it says of itself."""
    pages = list(site.namespaces())
    told = {id(getattr(module, public)) for _, module, names in pages for public in names}
    told |= {id(module) for _, module, _ in pages}
    for package in ("integrators", "multibody", "featherstep"):
        module = importlib.import_module(package)
        values = {name: getattr(module, name) for name in module.__all__}
        missing = [n for n, value in values.items() if id(value) not in told and callable(value)]
        assert not missing
    assert sum(len(names) for *_, names in pages) > 600


def test_every_public_name_says_what_it_is(site):
    silent = [
        f"{name}.{public}"
        for name, module, names in site.namespaces()
        for public in names
        if (inspect.isclass(value := getattr(module, public)) or inspect.isroutine(value))
        and not site.summary(value)
    ]
    assert not silent


def test_bars_are_absolute_values(site):
    lines = [
        "The error |y − z| of ``a|b``:",
        "",
        ">>> a | b",
        "",
        "so::",
        "",
        "    x | y",
        "",
        "|R|",
    ]
    site.without_substitutions(None, "", "", None, None, lines)
    assert lines[0] == r"The error \|y − z\| of ``a|b``:"
    assert lines[2] == ">>> a | b"
    assert lines[6] == "    x | y"
    assert lines[8] == r"\|R\|"


def test_formulae_of_labs_become_mathml():
    """With the converter of the build, on every formula that there is."""
    convert = pytest.importorskip("latex2mathml.converter", reason="latex2mathml is not installed")
    texts = [cell.text for name in labs() for cell in load_lab(name).cells]
    formulae = [f for text in texts for f in re.findall(r"\$\$?([^$]+)\$\$?", text)]
    assert len(formulae) > 40
    for formula in formulae:
        assert "<math" in convert.convert(formula)


def test_names_on_the_page_of_sources_exist():
    text = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    import integrators
    import integrators.methods.textbook

    for name in re.findall(r"`([\w.]+)`", text):
        reduce(getattr, name.removeprefix("integrators.").split("."), integrators)


def test_pages_that_are_listed_exist():
    build = (ROOT / "docs" / "build.py").read_text(encoding="utf-8")
    sections = re.search(r"^SECTIONS = (\{.*?^\})", build, flags=re.MULTILINE | re.DOTALL)
    for name in re.findall(r'"([a-z-]+)",', sections[1]):
        assert (ROOT / "docs" / f"{name}.md").is_file(), name
