"""Would a test notice? ``python -m tests.mutate integrators/stepping --count 40 --seed 1``.

Changes one place of the source at a time, at random: a sign, a comparison, a constant, a statement
left out. Each change is made in a copy of the tree, where the tests related to the changed file are
run until one fails. What survives is printed: a test is missing, or the change means nothing.

Related are the tests in the mirrored folder (``integrators/dae/x.py``: ``tests/integrators/dae``)
and those of :data:`RELATED`, which says what else exercises a folder. They run once unchanged, and
then with each mutant file by file, the quickest first, so that most mutants take seconds.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).parents[1]
PACKAGES = ("integrators", "multibody", "featherstep", "tests")

#: Tests besides those of the mirrored folder, by the longest prefix that fits; a folder that has a
#: line here and no mirror is tested by the line alone.
RELATED = {
    "integrators": "tests/integrators",
    "integrators/kernels": "tests/integrators/kernels tests/faults/test_cache.py",
    "integrators/stepping": "tests/integrators/stepping tests/integrators/runs",
    "integrators/methods": "tests/integrators/methods tests/integrators/stepping",
    "integrators/methods/mechanical": "tests/integrators/dae/test_methods.py "
    "tests/multibody/runs/test_adaptive_alpha.py",
    "integrators/runs": "tests/integrators/runs tests/integrators/hybrid",
    "integrators/dae": "tests/integrators/dae tests/multibody/runs/test_dae_loops.py",
    "multibody": "tests/multibody",
    "multibody/kernels": "tests/multibody/algebra/test_kernels.py tests/multibody/dynamics",
    "multibody/dynamics": "tests/multibody/dynamics",
    "multibody/dynamics/loops": "tests/multibody/loops",
    "multibody/runs": "tests/multibody/runs tests/multibody/loops",
    "featherstep": "tests/featherstep",
}

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


#: Endings of the names of what is 1 or −1.
SIGNS = ("forward", "direction", "[DIRECTION]", "sign", "side")


@dataclass(frozen=True)
class Mutant:
    """One change: the text between two places of a file, and what takes its place."""

    path: str
    start: int
    end: int
    line: int
    before: str
    after: str

    def applied(self, source: bytes) -> bytes:
        """The changed file."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        before, after = (" ".join(text.split()) for text in (self.before, self.after))
        return f"{self.path}:{self.line}: {before}  →  {after}"


def mutants(path: str, source: bytes) -> list[Mutant]:
    """All changes of a file."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, after in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = source[start:end].decode()
        found.append(Mutant(path, start, end, node.lineno, before, after))
    return found


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Each expression or statement to replace, and by what."""
    for name, value in ast.iter_fields(node):
        # Annotations change nothing; what is said in errors and f-strings is no arithmetic.
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.Raise | ast.JoinedStr | ast.Assert | ast.Import):
                continue
            if _is_list_of_names(child) or _only_for_types(child):
                continue
            if isinstance(child, ast.AST):
                yield from _changed(child)
                yield from _changes(child)


def _is_list_of_names(node: object) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("__")


def _only_for_types(node: object) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changed(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    match node:
        case ast.Compare(left, [op], [right]) if type(op) in SWAPPED:
            yield node, f"({ast.unparse(ast.Compare(left, [SWAPPED[type(op)]()], [right]))})"
        case ast.BinOp(left, ast.Mult() | ast.Div(), right) if _is_sign(left) or _is_sign(right):
            pass  # dividing by ±1 is multiplying
        case ast.BinOp(left, op, right) if type(op) in SWAPPED and not _is_text(left, right):
            yield node, f"({ast.unparse(ast.BinOp(left, SWAPPED[type(op)](), right))})"
        case ast.BoolOp(op, values):
            yield node, f"({ast.unparse(ast.BoolOp(SWAPPED[type(op)](), values))})"
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Constant(bool(value)):
            yield node, str(not value)
        case ast.Constant(int(value)):
            yield node, str(value + 1)
        case ast.Constant(float(value)):
            yield node, repr(2 * value or 1.0)
        case ast.AugAssign(target, op, value):
            if type(op) in SWAPPED:
                changed = ast.AugAssign(target, SWAPPED[type(op)](), value)
                yield node, ast.unparse(ast.fix_missing_locations(changed))
            yield node, "pass"
        case ast.Assign([ast.Subscript() | ast.Attribute()], _) | ast.Expr(ast.Call()):
            if "log." not in ast.unparse(node) and "self" not in ast.unparse(node)[:5]:
                yield node, "pass"
        case ast.If(ast.Name() | ast.Attribute() | ast.Call() as test):
            yield test, f"(not {ast.unparse(test)})"


def _is_sign(operand: ast.AST) -> bool:
    return any(ast.unparse(operand).endswith(name) for name in SIGNS)


def _is_text(*operands: ast.AST) -> bool:
    return any(
        isinstance(x, ast.JoinedStr) or (isinstance(x, ast.Constant) and isinstance(x.value, str))
        for x in operands
    )


def related(path: str) -> list[str]:
    """Tests of a file: the mirrored ones first."""
    fitting = [prefix for prefix in RELATED if path == prefix or path.startswith(prefix + "/")]
    tests = RELATED[max(fitting, key=len)].split()
    mirror = Path("tests", path).parent
    alone = mirror / f"test_{Path(path).stem}.py"
    first = [str(alone)] if (HERE / alone).exists() else []
    folder = [str(mirror)] if any((HERE / mirror).glob("test_*.py")) else []
    return list(dict.fromkeys([*first, *folder, *tests]))


class Trial:
    """A copy of the tree in which mutants live."""

    def __init__(self, folder: Path, interpret: bool) -> None:
        self.folder = folder
        for package in PACKAGES:
            shutil.copytree(
                HERE / package, folder / package, ignore=shutil.ignore_patterns("__pycache__")
            )
        for file in ("pyproject.toml", "README.md", "conftest.py"):
            shutil.copy(HERE / file, folder)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            "FEATHERSTEP_INTERPRET": "1" if interpret else "",
        }
        self.usual: dict[tuple[str, ...], tuple[float, list[str]]] = {}

    def run(self, tests: list[str], limit: float, *more: str) -> tuple[str, str]:
        """Outcome of some tests: "passed", "failed" or "too slow"; and what pytest said."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "addopts="]
        try:
            done = subprocess.run(
                [*command, *more, *tests],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return "too slow", ""
        return "passed" if done.returncode == 0 else "failed", done.stdout

    def prepared(self, tests: list[str], limit: float) -> tuple[float, list[str]]:
        """Seconds that the tests take unchanged, and arguments that run them.

        These are their files, the quickest first, without those tests that fail unchanged.
        """
        key = tuple(tests)
        if key not in self.usual:
            started = time.monotonic()
            times = self.folder / "times.xml"
            outcome, said = self.run(tests, limit, f"--junitxml={times}")
            if outcome == "too slow":
                raise SystemExit(f"{tests} take longer than {limit:g} s unchanged; raise --limit")
            failing = [line.split()[1] for line in said.splitlines() if line.startswith("FAILED")]
            files = self._quickest_first(times)
            given = [*files, *(f"--deselect={test}" for test in failing)]
            self.usual[key] = time.monotonic() - started, given
        return self.usual[key]

    def _quickest_first(self, times: Path) -> list[str]:
        """Files of the tests that ran, by the time that they took."""
        spent: Counter[str] = Counter()
        for case in ElementTree.parse(times).iter("testcase"):
            parts = case.attrib["classname"].split(".")
            while parts and not (self.folder / Path(*parts)).with_suffix(".py").is_file():
                parts.pop()  # a class within the file
            if parts:
                spent[str(Path(*parts).with_suffix(".py"))] += float(case.attrib["time"])
        return sorted(spent, key=spent.__getitem__)

    def fate(self, mutant: Mutant, limit: float, only: list[str]) -> str:
        """What becomes of a mutant: "survived", "killed" or "too slow"."""
        usual, tests = self.prepared(only or related(mutant.path), limit)
        file = self.folder / mutant.path
        source = file.read_bytes()
        try:
            file.write_bytes(mutant.applied(source))
            outcome, _ = self.run(tests, 3 * usual + 30, "-x")
        finally:
            file.write_bytes(source)
        return {"passed": "survived", "failed": "killed"}.get(outcome, outcome)


def chosen(places: list[str], count: int, seed: int) -> list[Mutant]:
    """Some mutants of files and folders, or of ``file:first-last`` lines of one."""
    found: list[Mutant] = []
    for place in places:
        name, _, lines = place.partition(":")
        first, _, last = lines.partition("-")
        path = HERE / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            here = mutants(str(file.relative_to(HERE)), file.read_bytes())
            if lines:
                here = [m for m in here if int(first) <= m.line <= int(last or first)]
            found += here
    random.Random(seed).shuffle(found)
    return found[:count]


def main() -> int:
    """Try some mutants and print which survived."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("places", nargs="+", help="files, folders, or file:first-last")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds of unchanged tests")
    parser.add_argument("--tests", nargs="*", default=[], help="instead of the related ones")
    parser.add_argument("--interpret", action="store_true", help="do not compile kernels")
    parser.add_argument("--list", action="store_true", help="print the mutants only")
    arguments = parser.parse_args()
    sample = chosen(arguments.places, arguments.count, arguments.seed)
    if arguments.list:
        sys.stdout.writelines(f"{mutant}\n" for mutant in sample)
        return 0
    fates: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder), arguments.interpret)
        for mutant in sample:
            fate = trial.fate(mutant, arguments.limit, arguments.tests)
            fates[fate] += 1
            sys.stdout.write(f"{fate:9} {mutant}\n")
            sys.stdout.flush()
    killed, total = sum(fates.values()) - fates["survived"], sum(fates.values())
    sys.stdout.write(f"{killed} of {total} killed ({dict(fates)})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
