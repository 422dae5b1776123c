"""Labs: solutions get all points, hand-outs and cheats none; nothing gives an answer away."""

import json
import random
import shutil
from contextlib import nullcontext

import numpy as np
import pytest

from featherstep.cli import main
from featherstep.lab import assess, grade_folder, labs, load_lab, write_lab
from featherstep.lab.grading import Marks, StudentMarks, _as_counted, grade_file
from featherstep.lab.notebook import EXPORTS, export_lab, handout, solution
from featherstep.lab.nursery import Nursery
from integrators import Tableau, catalogue, problems
from integrators.methods.multistep import multistep

STUDENTS = ("Ada", "Bob", "Zoë")
#: Each lab with one student, all students over the labs: what is drawn is graded.
DRAWN = [(name, random.Random(k).choice(STUDENTS)) for k, name in enumerate(labs())]

EMPTY = ("euler", "stiffness")  # whose hand-outs are graded as they are


def code_of(notebook):
    return [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


def submitted(folder, student, text):
    folder.mkdir(exist_ok=True)
    (folder / f"{student}.py").write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """All solutions and all hand-outs; without figures, which the next test draws."""
    found = {}
    with Nursery() if Nursery.available() else nullcontext() as nursery:
        for name, student in DRAWN:
            folder = tmp_path_factory.mktemp(name) / "lab"
            write_lab(load_lab(name), folder, [student], seed="seven")
            lab = load_lab(folder)
            code = "\n".join(cell.code for cell in lab.cells)
            imports = [line for line in code.splitlines() if line.startswith(("import ", "from "))]
            found[name] = []
            for kind in ("solution", "stub") if name in EMPTY else ("solution",):
                answers = [lab.filled(getattr(task, kind), student) for task in lab.tasks.values()]
                submitted(folder / kind, student, "\n".join([*imports, *answers]))
                path = folder / kind / f"{student}.py"
                found[name].append(grade_file(path, lab, folder / kind, 30.0, nursery=nursery))
    return found


@pytest.mark.parametrize("name", list(labs()))
def test_the_code_of_a_lab_runs(name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    namespace = {}
    for cell in code_of(solution(load_lab(name), "ada")):
        exec(cell, namespace)


@pytest.mark.parametrize("name", list(labs()))
def test_solutions_get_all_points_and_handouts_none(graded, name):
    solved, *handed_out = graded[name]
    assert solved.total == load_lab(name).points, solved.grades
    assert not solved.remarks
    assert all(marks.total == 0 for marks in handed_out)


@pytest.mark.parametrize("name", list(labs()))
def test_a_lab_is_a_course_unit(name):
    lab = load_lab(name)
    assert len(lab.tasks) == 3
    assert lab.points == 10
    text = "".join(cell.text for cell in lab.cells)
    assert "$$" in text  # formulae
    assert any(".figure" in cell.code for cell in lab.cells)  # a figure
    assert lab.choices  # numbers of each student's own


@pytest.mark.parametrize("name", list(labs()))
def test_hand_outs_have_no_answers(name):
    lab = load_lab(name)
    handed = "\n".join(code_of(handout(lab, "ada")))
    for task in lab.tasks.values():
        assert lab.filled(task.solution, "ada") not in handed
        assert task.settings.get("answer", "no answer") not in handed
    assert "«" not in json.dumps(handout(lab, "ada"), ensure_ascii=False)
    assert "«" not in json.dumps(solution(lab, "ada"), ensure_ascii=False)


def test_numbers_are_drawn_from_seed_and_student(tmp_path):
    lab = load_lab("euler")
    drawn = {tuple(lab.numbers(f"student {k}").values()) for k in range(40)}
    assert len(drawn) > 25
    write_lab(lab, tmp_path / "one", ["ada"], seed="1")
    write_lab(lab, tmp_path / "two", ["ada"], seed="2")
    one, two = (load_lab(tmp_path / name).numbers("ada") for name in ("one", "two"))
    assert one == load_lab(tmp_path / "one").numbers(" ADA ")
    assert one != two
    with pytest.raises(ValueError, match="not empty"):
        write_lab(lab, tmp_path / "one")
    for names in (["a/b"], [".."], ["ada", "Ada"]):
        with pytest.raises(ValueError, match="name"):
            write_lab(lab, tmp_path / "three", names)


# -------------------------------------------------------------------- cheats

EULER = """
def euler(f, t, y, h):
    return y + h * f(t, y)
"""

CHEATS = {
    # The library does the work, in one way or another.
    "wrapper": "from integrators import solve\n"
    "def euler(f, t, y, h):\n"
    "    return solve(f, (t, t + h), y, method='ExplicitEuler', step=h).y[:, -1]\n",
    "inner": "def euler(f, t, y, h):\n"
    "    import integrators.solve as s\n"
    "    return s.solve(f, (t, t + h), y, method='ExplicitEuler', step=h).y[:, -1]\n",
    "helper": "import integrators\n"
    "def helper(f, t, y, h):\n"
    "    return integrators.solve(f, (t, t + h), y, method='ExplicitEuler', step=h).y[:, -1]\n"
    "def euler(f, t, y, h):\n    return helper(f, t, y, h)\n",
    "modules": "import sys, integrators\n"
    "def euler(f, t, y, h):\n"
    "    s = sys.modules['integrators'].solve\n"
    "    return s(f, (t, t + h), y, method='ExplicitEuler', step=h).y[:, -1]\n",
    "alias": "import importlib as i\n"
    "def euler(f, t, y, h):\n"
    "    s = i.import_module('integrators').solve\n"
    "    return s(f, (t, t + h), y, method='ExplicitEuler', step=h).y[:, -1]\n",
    "star": "from integrators import *\n"
    "def euler(f, t, y, h):\n"
    "    return solve(f, (t, t + h), y, method='ExplicitEuler', step=h).y[:, -1]\n",
    "globals": "import integrators as i\n"
    "globals()['euler'] = lambda f, t, y, h: (\n"
    "    i.solve(f, (t, t + h), y, method='ExplicitEuler', step=h).y[:, -1])\n",
    "box": "import numpy, integrators\nnumpy.box = [integrators.solve]\n"
    "def euler(f, t, y, h):\n"
    "    return numpy.box[0](f, (t, t + h), y, method='ExplicitEuler', step=h).y[:, -1]\n",
    # What the check compares with, known by heart.
    "heart": "import math\ndef euler(f, t, y, h):\n"
    "    f(t, y)\n    return [2 + math.sin(t + h), 2 + 3 * math.cos(t + h)]\n",
    "solved": "from featherstep.lab import load_lab\nlab = load_lab('euler')\n"
    "for task in lab.tasks.values(): exec(lab.filled(task.solution))\n",
    # Answers that break what looks at them.
    "huge": "bound = 10**400\nsteps = {1: 2}\ndef euler(f, t, y, h):\n    return {}\n",
    # New meanings for what grades.
    "patch": "import featherstep.lab.checks as c, integrators.analysis as a\n"
    "c.KINDS = {k: (lambda *x: a.Grade(True, 'yes')) for k in c.KINDS}\n"
    "c.assess = lambda *x: a.Grade(True, 'yes')\n"
    "def euler(f, t, y, h):\n    return y\n",
    "equal": "class Anything(float):\n"
    "    def __eq__(self, other): return True\n"
    "steps = bound = Anything(1.0)\n",
    "leave": "import os\nos._exit(0)\n",
    "loop": "while True: pass\n",
    "mutates": "def euler(f, t, y, h):\n    y += h * f(t, y)\n    return 2 * y\n",
    "text": "bound = '0.5'\nsteps = [5]\neuler = 3\n",
    "deep": "def euler(f, t, y, h):\n    return euler(f, t, y, h)\n",
    "syntax": "def euler(f, t, y, h:\n",
}  # fmt: skip


@pytest.fixture(scope="module")
def cheats(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cheats")
    for name, text in CHEATS.items():
        submitted(folder, name, text)
    submitted(folder, "honest", EULER)
    marks = grade_folder(folder, load_lab("euler"), seconds=5.0)
    return {student.student: student for student in marks.students}


@pytest.mark.parametrize("name", list(CHEATS))
def test_cheats_get_nothing(cheats, name):
    assert cheats[name].total == 0, cheats[name].grades


def test_honest_work_gets_its_points(cheats):
    assert cheats["honest"].points == {"euler": 3.0, "bound": 0.0, "steps": 0.0}


def test_what_went_wrong_is_said(cheats):
    assert "took longer than 5 s" in cheats["loop"].remarks[0]
    assert "ended by itself" in cheats["leave"].remarks[0]
    assert "integrators.solve" in cheats["wrapper"].grades["euler"].message
    assert "there is no lab" in cheats["solved"].remarks[0]  # in that process
    assert cheats["huge"].grades["bound"].message == "expected a finite number, got inf"
    assert "no state" in cheats["huge"].grades["euler"].message
    assert "integrators" in cheats["helper"].grades["euler"].message
    assert "line 1" in cheats["syntax"].remarks[0]
    assert "RecursionError" in cheats["deep"].grades["euler"].message
    assert cheats["text"].grades["bound"].message == "expected a number, got '0.5'"


def test_steps_and_programs_are_tried_on_problems_nobody_knows():
    """Solutions are right whatever is drawn; a start by heart is of no use."""
    for lab, task in (("adaptivity", "integrate"), ("stiffness", "step"), ("geometric", "step")):
        made = load_lab(lab)
        name = task if task in made.tasks else next(
            n for n, t in made.tasks.items() if t.check == "step"
        )  # fmt: skip
        for student in map(str, range(12)):
            namespace = {"np": np}
            exec(made.filled(made.tasks[name].solution, student), namespace)
            assert assess(made, name, namespace[made.tasks[name].variable], student), student
    rational = problems.get("order_rational")

    def integrate(f, t0, y0, t1, tol):
        return f(t0, y0) * 0.0 + rational.reference(t1)

    assert "the error is" in assess(load_lab("adaptivity"), "integrate", integrate).message


def test_the_catalogue_repairs_nothing():
    lab = load_lab("taylor")
    message = assess(lab, "repair", catalogue.get("RK4"), "ada").message
    assert "differs from the one given in" in message
    known = [scheme.arrays[0] for scheme in map(catalogue.get, catalogue.names())]
    for wrong in lab.choices["scheme"]:  # nor is what has to come out in the catalogue
        printed = Tableau(*wrong, check=False)
        assert printed.order < 4
        apart = [abs(A - printed.arrays[0]) > 1e-9 for A in known if A.shape == (4, 4)]
        assert len(apart) > 5
        assert min(map(np.count_nonzero, apart)) > 1
    trees = load_lab("trees")
    wanted = trees.numbers("ada")["c2"]
    assert wanted in assess(trees, "third", catalogue.get("Kutta3"), "ada").message
    assert not assess(load_lab("multistep"), "family", multistep("AB2"), "ada")


def test_a_number_cannot_be_bisected():
    """Neither the verdict nor its words depend on the side on which a wrong number lies."""
    lab = load_lab("stiffness")
    said = {assess(lab, "longest", x, "ada").message.replace(f"{x:.6g}", "") for x in (1e-9, 1e9)}
    assert said == {" is not right"}


# -------------------------------------------------------------------- a teacher's own

OWN = """
name = "own"
title = "Decay"
[numbers]
k = [2, 3, 5]
[[cell]]
task = "half_life"
points = 2
text = "After which time has $y' = -«k» y$ fallen to one half?"
solution = "half_life = 0.6931471805599453 / «k»"
check = "number"
answer = "math.log(2) / k"
"""


EVEN = """
[[cell]]
task = "even"
points = 1
text = "An even number."
solution = "even = 2"
check = "python"
"""


def test_an_own_exercise_in_ten_lines(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text(OWN + EVEN, encoding="utf-8")
    (tmp_path / "checks.py").write_text(
        "def even(value, k):\n    return value % 2 == 0, f'{value} and {k}'\n"
    )
    folder = tmp_path / "lab"
    assert main(["lab", "new", str(file), "--out", str(folder), "--seed", "x"]) == 0
    marks = grade_folder(folder / "solution", load_lab(folder))
    assert marks.students[0].total == 3, marks.students[0].grades


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("check = \"number\"", "check = \"nmber\""), "did you mean number"),
        (("points = 2", "points = 0"), "points must be positive"),
        (("«k» y", "«q» y"), "«q» is not among"),
        (("[numbers]", "[nmbers]"), "did you mean numbers"),
        (("solution", "soluton"), "lacks solution"),
        (("k = [2, 3, 5]", "k = 3"), "list of choices"),
        (("title", "title ="), "is not TOML"),
    ],
)  # fmt: skip
def test_mistakes_in_a_lab_are_told(tmp_path, change, said):
    file = tmp_path / "own.toml"
    file.write_text(OWN.replace(*change), encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        load_lab(file)
    with pytest.raises(ValueError, match="did you mean stiffness"):
        load_lab("stifness")


# -------------------------------------------------------------------- tables, pages, other graders


def test_marks_and_pages(tmp_path, capsys):
    folder = tmp_path / "submissions"
    submitted(folder, "ada", EULER)
    submitted(folder, "<b>bob", "print('hello')\n")
    inner = folder / "cleo"
    inner.mkdir(parents=True)
    (inner / "work.py").write_text(EULER, encoding="utf-8")
    arguments = ["--csv", str(tmp_path / "marks.csv"), "--html", str(tmp_path / "report.html")]
    assert main(["lab", "grade", str(folder), "--lab", "euler", *arguments]) == 0
    rows = (tmp_path / "marks.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0] == "student,euler,bound,steps,total,seconds,file,remarks"
    assert rows[1].startswith("(points),3,3,4,10")
    assert [row.split(",")[0] for row in rows[2:]] == ["<b>bob", "ada", "cleo"]
    assert rows[3].endswith(",ada.py,")  # nothing to remark on
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<b>bob" not in page
    assert "&lt;b&gt;bob" in page
    own = (tmp_path / "report" / "<b>bob.html").read_text(encoding="utf-8")
    assert "hello" in own
    assert "0 of 10 points" in own
    assert main(["lab", "grade", str(tmp_path / "none"), "--lab", "euler"]) == 2
    assert "there is no folder" in capsys.readouterr().err


def test_students_come_as_one_counts_and_none_is_a_formula():
    names = ["s10", "s9", "=1+1", "S1", "zoe", "²"]
    marks = [StudentMarks(name, "") for name in names]
    ordered = sorted(marks, key=_as_counted)
    assert [m.student for m in ordered] == ["=1+1", "S1", "s9", "s10", "zoe", "²"]
    rows = Marks(load_lab("euler"), ordered).to_csv().splitlines()
    assert [row.split(",")[0] for row in rows[2:4]] == ["'=1+1", "S1"]
    page = Marks(load_lab("euler"), [StudentMarks("50 % of #1?", "1.py")]).to_html("pages")
    assert 'href="pages/50%20%25%20of%20%231%3F.html"' in page


def test_who_handed_in_nothing_or_twice_is_told(tmp_path, capsys):
    lab, folder = tmp_path / "lab", tmp_path / "submissions"
    write_lab(load_lab("euler"), lab, ["ada", "bob"])
    folder.mkdir()
    for name in ("ada", "bob"):  # ada's work, and ada's work in the name of bob
        shutil.copy(lab / "solution" / "ada.ipynb", folder / f"{name}.ipynb")
    page = tmp_path / "report.html"
    main(["lab", "grade", str(folder), "--lab", str(lab), "--csv", "-", "--html", str(page)])
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split(",")[0] for row in rows] == ["ada", "ada", "bob"]
    assert rows[2] == "bob,0,0,0,0,0.00,,nothing was handed in"
    assert "2 submissions, 10 points" in page.read_text(encoding="utf-8")
    assert sorted(p.name for p in (tmp_path / "report").iterdir()) == ["ada.html", "ada_2.html"]


def test_students_can_look_whether_all_is_there(tmp_path, capsys):
    write_lab(load_lab("euler"), tmp_path / "lab", ["ada"])
    path = tmp_path / "lab" / "handout" / "ada.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = EULER + "bound = 1e9" if "def euler" in cell["source"] else ""
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert main(["lab", "check", str(path)]) == 1
    said = capsys.readouterr().out
    assert said.split() == ["euler", "there", "bound", "there", "steps", "no", "answer", "yet"]


@pytest.mark.parametrize("form", list(EXPORTS))
def test_exports_have_hidden_tests_that_pass(tmp_path, form):
    lab = load_lab("taylor")
    notebook = json.loads(export_lab(lab, form, tmp_path).read_text(encoding="utf-8"))
    cells = code_of(notebook)
    tests = [cell for cell in cells if "assess(" in cell]
    assert len(tests) == 3
    namespace = {"Tableau": Tableau}
    for task in lab.tasks.values():
        exec(lab.filled(task.solution), namespace)
    for test in tests:
        assert "HIDDEN" in test
        exec(test, namespace)
    if form == "nbgrader":
        marked = [
            c["metadata"]["nbgrader"] for c in notebook["cells"] if "nbgrader" in c["metadata"]
        ]
        assert sum(cell.get("points", 0) for cell in marked) == 10
        assert len({cell["grade_id"] for cell in marked}) == 6
    else:
        raw = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "raw"]
        assert raw.count("# BEGIN TESTS") == raw.count("# END TESTS") == 3
