"""Everything is in pyproject.toml; here only what cannot be said there."""

import shutil

from setuptools import setup
from setuptools.command.build_py import build_py


class FreshBuild(build_py):
    """Build from the source alone: what an earlier build left would be packed as well."""

    def run(self) -> None:
        """Clear the folder, then build."""
        if not self.editable_mode:
            shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


setup(cmdclass={"build_py": FreshBuild})
