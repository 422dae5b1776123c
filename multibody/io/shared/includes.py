"""<include> of SDF and MJCF: other files, read only from a folder that the caller names.

No file is opened unless a folder is given. Addresses are `model://name`, `file://path` or a path,
all inside that folder: what leads out of it, by dots or by links of the file system, is refused,
and so are rings and floods of includes.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from .source import read_text
from .xml import Element, parse_xml

__all__ = ["Includes"]

MOST_FILES = 1000
DEEPEST = 20
#: Elements of all included files together.
MOST_ELEMENTS = 1_000_000


class Includes:
    """Reads included files.

    Parameters
    ----------
    folder
        Where they are; None if none may be read.
    """

    def __init__(self, folder: str | PathLike[str] | None) -> None:
        self.folder = None if folder is None else Path(folder).resolve()
        self.reading: list[Path] = []
        self._files = self._elements = 0

    def open(self, include: Element, address: str) -> Element:
        """Root of the file at an address, named by an element; `close` when it has been read."""
        path = self._path(include, address)
        if path in self.reading:
            raise include.error(f"{path.name} includes itself in the end")
        self._files += 1
        if self._files > MOST_FILES or len(self.reading) >= DEEPEST:
            raise include.error(
                f"more than {MOST_FILES} included files, or files in files deeper than {DEEPEST}"
            )
        root = parse_xml(read_text(path), str(path))
        self._elements += _count(root)
        if self._elements > MOST_ELEMENTS:
            raise include.error(f"the included files have more than {MOST_ELEMENTS:,} elements")
        self.reading.append(path)
        return root

    def close(self) -> None:
        """Done with the file that was opened last."""
        self.reading.pop()

    def _path(self, include: Element, given: str) -> Path:
        if self.folder is None:
            raise include.error(
                "other files are read only from a folder that you name, "
                "load_model(…, includes=FOLDER), or --includes FOLDER"
            )
        address = given
        for start in ("model://", "file://"):
            address = address.removeprefix(start)
        if "://" in address:
            raise include.error(
                f"{given[:100]!r} is on a network; fetch it, and pass the folder as includes"
            )
        try:
            path = (self.folder / address).resolve()
            if path.is_relative_to(self.folder) and path.is_dir():
                path = self._in_folder(path)
        except (OSError, ValueError, RuntimeError) as error:
            raise include.error(f"{address[:100]!r} is no path: {error}") from None
        if not path.is_relative_to(self.folder):
            raise include.error(f"{address[:100]!r} leads out of the folder of includes")
        if not path.is_file():
            raise include.error(f"there is no file {address[:100]!r} in the folder of includes")
        return path

    @staticmethod
    def _in_folder(path: Path) -> Path:
        """The file of a model in a folder: model.sdf, or the last that model.config names."""
        usual, listing = path / "model.sdf", path / "model.config"
        if usual.exists() or not listing.is_file() or listing.resolve().parent != path:
            return usual.resolve()
        named = list(parse_xml(read_text(listing), str(listing)).all("sdf"))
        return (path / named[-1].content).resolve() if named else usual


def _count(element: Element) -> int:
    total, waiting = 0, [element]
    while waiting:
        total += 1
        waiting.extend(waiting.pop().children)
    return total
