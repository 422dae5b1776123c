"""Settings of the site; ``python docs/build.py`` builds it, ``site_pages.py`` makes what is ours.

Nothing is fetched, neither while it is built nor while it is read: formulae become MathML, which
browsers draw themselves.
"""

import os
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from site_pages import cited, mathml, without_substitutions

project = "featherstep"
author = copyright = "The featherstep developers"
with (Path(__file__).parent.parent / "pyproject.toml").open("rb") as settings:
    version = release = tomllib.load(settings)["project"]["version"]
language = "en_GB"

quick = os.environ.get("FEATHERSTEP_SITE_NOTEBOOKS") == "off"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
extensions += [] if quick else ["sphinx.ext.viewcode"]  # pages of source: half of the time
root_doc = "index"
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nitpicky = False
suppress_warnings = [
    "myst.header",  # pages of records begin with what they need
    "mystnb.unknown_mime_type",
    "ref.python",  # `n` in a table of attributes is no link
]

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 4
nb_execution_mode = os.environ.get("FEATHERSTEP_SITE_NOTEBOOKS", "force")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_excludepatterns = ["*.md"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # types stand in the tables of parameters
autodoc_default_options = {"members": True, "show-inheritance": True}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"featherstep {release}"
html_static_path = html_css_files = ["site.css"]
html_extra_path = [os.environ["FEATHERSTEP_SITE_EXTRA"]]  # animations of the gallery
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"
pygments_style = "friendly"


def setup(app):
    """Draw formulae without a script; read docstrings as they are written."""
    inline, display = mathml
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    app.connect("autodoc-process-docstring", without_substitutions)
    app.add_role("cite", cited)
