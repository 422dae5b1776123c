"""The web page of an animation: one file with its own drawing code, which loads nothing else.

`page.html` is the frame; `mathematics.js`, `shapes.js`, `drawing.js`, `sticks.js` and `player.js`
are put into it, with the scene of :func:`multibody.pictures.scene.scene` as data. Solids are drawn
by WebGL 2; where a browser has none, sticks on a flat canvas (decision 14 says why this is no
library of others).
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

__all__ = ["SCRIPTS", "page_of"]

SCRIPTS = ("mathematics.js", "shapes.js", "drawing.js", "sticks.js", "player.js")


def page_of(scene: dict[str, Any]) -> str:
    """Text of the page that shows a scene."""
    here = files(__package__)
    frame = here.joinpath("page.html").read_text("utf-8")
    code = "\n".join(here.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    # In a script element only "</" could end the data early, and "<!--" hide what follows.
    data = json.dumps(scene, separators=(",", ":"), allow_nan=False)
    data = data.replace("</", "<\\/").replace("<!--", "<\\u0021--")
    before, after = frame.split("@script@")
    title = before.replace("@title@", escape(str(scene["name"])))
    return f'{title}"use strict";\nconst scene = {data};\n{code}{after}'
