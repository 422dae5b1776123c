"""Labs that grade themselves: hand-outs with numbers of their own for each student, and marks.

A lab is a TOML file (:mod:`definition`): text with formulae, code that draws figures, and tasks
with a stub, a solution and a check (:mod:`checks`). One engine makes notebooks of it
(:mod:`notebook`),
runs submissions in processes of their own (:mod:`submission`), and writes marks and reports
(:mod:`grading`). ``featherstep lab --help`` has the commands, ``docs/labs.md`` an own lab.
"""

from __future__ import annotations

from .checks import assess
from .definition import Lab, Task, labs, load_lab
from .grading import Marks, grade_folder
from .notebook import write_lab

__all__ = ["Lab", "Marks", "Task", "assess", "grade_folder", "labs", "load_lab", "write_lab"]
