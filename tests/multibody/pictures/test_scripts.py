"""Scripts of pages are JavaScript: Node reads them where it is installed; browsers run them."""

import shutil
import subprocess
from importlib.resources import files

import pytest

import featherstep
import multibody.pictures.page_in_space

NODE = shutil.which("node")
FOLDERS = (files(multibody.pictures.page_in_space), files(featherstep))
SCRIPTS = sorted(path for folder in FOLDERS for path in folder.rglob("*.js"))


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_has_no_syntax_errors(script):
    found = subprocess.run([str(NODE), "--check", str(script)], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
