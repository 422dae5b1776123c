"""Submissions are forked from one process: apart from each other, ended with all they start."""

import os
import subprocess
import sys
import time

import pytest

from featherstep.lab import nursery as module
from featherstep.lab.nursery import Nursery
from featherstep.lab.submission import Submission, SubmissionError

pytestmark = pytest.mark.skipif(not Nursery.available(), reason="processes cannot be forked here")


@pytest.fixture(scope="module")
def nursery():
    with Nursery(["import fractions, numpy as np\nsecret = 7\nnp.seen = 1", "1 / 0"]) as made:
        yield made


@pytest.fixture
def submit(tmp_path, nursery):
    def made(text, seconds=10.0):
        path = tmp_path / "work.py"
        path.write_text(text, encoding="utf-8")
        return Submission(path, seconds, nursery)

    return made


def test_what_the_handout_loads_is_shared_and_its_names_are_not(submit):
    text = "import sys, numpy\nloaded = 'fractions' in sys.modules and numpy.seen == 1\n"
    with submit(text + "secret = globals().get('secret', 0)") as one:
        assert one.value("loaded") is True
        assert one.value("secret") == 0


def test_submissions_do_not_see_each_other(submit):
    with (
        submit("import numpy; numpy.seen = 2; x = 1") as one,
        submit("import numpy; x = numpy.seen") as two,
    ):
        assert (one.value("x"), two.value("x")) == (1, 1)


def test_what_a_submission_starts_ends_with_it(submit):
    text = (  # by a way around what is refused
        "import ctypes, time\nnumber = ctypes.CDLL(None).fork()\n"
        "if number == 0:\n    time.sleep(60)\n"
    )
    with submit(text) as work:
        number = work.value("number")
        os.kill(number, 0)  # it runs
    end = time.monotonic() + 5.0
    while time.monotonic() < end:
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            return
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(number)], capture_output=True)
        if state.stdout.startswith(b"Z"):  # ended; whoever adopted it has not looked yet
            return
    pytest.fail("the child of a submission runs on")


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        ("import os; os.kill(os.getppid(), 9)", "may not send signals"),
        ("import os; os.fork()", "may not start processes"),
        ("import subprocess; subprocess.run(['ls'])", "may not start processes"),
        ("import gc; gc.get_objects()", "may not search the memory"),
        ("import socket; socket.socket().connect(('localhost', 1))", "may not open connections"),
        ("open({other!r}, 'w')", "may not write"),
        ("import os; os.remove({file!r})", "may not write"),
        ("open({file!r}).read()", "may not read"),
        ("import os; os.listdir({folder!r})", "may not read"),
    ],
)
def test_what_is_refused(tmp_path, nursery, attempt, said):
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "secret.txt").write_text("42")
    path = tmp_path / "work.py"
    file, other = closed / "secret.txt", tmp_path / "other.txt"
    text = attempt.format(file=str(file), folder=str(closed), other=str(other))
    path.write_text(text, encoding="utf-8")
    with Submission(path, 10.0, nursery, [closed]) as work:
        assert said in work.errors[0]
    assert file.read_text() == "42"
    assert not other.exists()


def test_it_writes_into_a_folder_of_its_own_and_prints_no_end(submit):
    text = "open('figure.txt', 'w').write('x')\nhere = open('figure.txt').read()\n"
    with submit(text + "for _ in range(2000): print('x' * 1000)") as work:
        assert work.value("here") == "x"
        assert len(work.printed) == 4000


def test_half_a_message_keeps_nobody_waiting(submit):
    text = (
        "import os, struct, sys, time\nframe = sys._getframe()\n"
        "while 'pipe' not in frame.f_locals: frame = frame.f_back\n"
        "os.write(frame.f_locals['pipe'].fileno(), struct.pack('!i', 99999) + b'x')\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(SubmissionError, match="longer than"), submit(text, 0.5):
        pass


def test_time_and_large_programs(submit):
    with pytest.raises(SubmissionError, match="longer than"), submit("while True: pass", 0.5):
        pass
    with submit(f"x = {'1' * 300_000!r}\ny = len(x)") as large:  # more than a pipe holds at once
        assert large.value("y") == 300_000


def test_a_handout_that_does_not_end_is_left_out(monkeypatch):
    monkeypatch.setattr(module, "LOADING", 1.5)
    start = time.monotonic()
    with Nursery(["while True: pass"]) as made:
        assert time.monotonic() - start < 60.0
        assert made._process.poll() is None


def test_a_script_without_a_guard_can_grade(tmp_path):
    """Processes that import the script that started them would run it again."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "ada.py").write_text(
        "def euler(f, t, y, h):\n    return y + h * f(t, y)\n"
    )
    script = tmp_path / "grade.py"
    script.write_text(
        "from featherstep.lab import grade_folder, load_lab\n"
        f"print(grade_folder({str(tmp_path / 'work')!r}, load_lab('euler')).students[0].total)\n"
    )
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert (ran.stdout, ran.stderr) == ("3.0\n", "")
