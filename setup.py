"""Everything is in pyproject.toml; here only what cannot be said there."""

import re
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

# A link to a file or picture of the repository, which a page of a package index does not have.
INSIDE = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]*)\)")


class FreshBuild(build_py):
    """Build from the source alone: what an earlier build left would be packed as well."""

    def run(self) -> None:
        """Clear the folder, then build."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


def description() -> str:
    """Return README.md without its pictures, and with names of files in place of links to them."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    return INSIDE.sub(lambda found: "" if found[1] else f"{found[2]} (`{found[3]}`)", text)


if __name__ == "__main__":
    setup(
        cmdclass={"build_py": FreshBuild},
        long_description=description(),
        long_description_content_type="text/markdown",
    )
