"""Files are written whole or not at all: full disks, exceptions, killed processes."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from featherstep import options
from featherstep.lab.definition import load_lab
from featherstep.lab.grading import Marks, StudentMarks
from featherstep.problem_study import figure as plot
from integrators import Solution, catalogue, files, solve
from integrators.kernels import cache
from multibody import load_model, mechanisms, save_model, simulate
from multibody.pictures import animate

resource = pytest.importorskip("resource", reason="limits of a process are POSIX's")

MODEL = mechanisms.pendulum()
REPORTS = Marks(load_lab("euler"), [StudentMarks("ada", "ada.py")])
HERE = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}


@pytest.fixture(scope="module")
def solution():
    return simulate(MODEL, [1.0], T=0.2, fps=20)


def picture():
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([1, 2])
    return figure


WRITERS = {
    "solution.npz": lambda solution, path: solution.save(path),
    "model.toml": lambda solution, path: save_model(MODEL, path),
    "model.json": lambda solution, path: save_model(MODEL, path),
    "tableau.toml": lambda solution, path: catalogue.get("DOPRI5").save(path),
    "tableau.json": lambda solution, path: catalogue.get("DOPRI5").save(path),
    "table.csv": lambda solution, path: options.write(str(path), lambda: "1,2\n" * 1000),
    "picture.png": lambda solution, path: plot.save(picture(), path),
    "picture.svg": lambda solution, path: plot.save(picture(), path),
    "page.html": lambda solution, path: animate.save(MODEL, solution, path),
    "ada.html": lambda solution, path: REPORTS.write_pages(path.parent),
    "film.gif": lambda solution, path: animate.save(MODEL, solution, path, fps=10, dpi=20),
}


class full_disk:
    """No file of this process may grow beyond 100 bytes: writing more fails, as on a full disk."""

    def __enter__(self):
        self.limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, self.limits[1]))

    def __exit__(self, *_):
        resource.setrlimit(resource.RLIMIT_FSIZE, self.limits)
        signal.signal(signal.SIGXFSZ, self.handler)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(name, tmp_path, solution):
    path = tmp_path / name
    write = WRITERS[name]
    write(solution, path)  # imports what it needs, and may write caches of fonts
    path.write_bytes(b"what was there before")
    with full_disk(), pytest.raises(OSError, match=r"File too large|No space"):
        write(solution, path)
    assert path.read_bytes() == b"what was there before"
    assert [file.name for file in tmp_path.iterdir()] == [name]  # nothing is left lying about
    write(solution, path)
    assert len(path.read_bytes()) > 100


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory):
    """A file system of 256 kB, where the tests may mount one."""
    folder = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("file systems may not be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("name", WRITERS)
def test_a_disk_without_room_leaves_the_old_file(name, small_disk, tmp_path, solution):
    """The same on a disk that is really full: the message is the system's, with the user's name."""
    WRITERS[name](solution, tmp_path / name)  # it may write caches elsewhere
    path, filler = small_disk / name, small_disk / "filler"
    path.write_bytes(b"what was there before")
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    try:
        with pytest.raises(OSError, match=r"No space left on device") as error:
            WRITERS[name](solution, path)
        assert str(path) in str(error.value)
        assert path.read_bytes() == b"what was there before"
        assert {file.name for file in small_disk.iterdir()} == {name, "filler"}
        filler.unlink()
        WRITERS[name](solution, path)
        assert path.read_bytes() == (tmp_path / name).read_bytes() or path.stat().st_size > 100
    finally:
        for file in small_disk.iterdir():
            file.unlink()


def test_a_cache_without_room_is_said_once_and_is_in_nobodys_way(small_disk, monkeypatch, caplog):
    monkeypatch.setenv("FEATHERSTEP_CACHE", str(small_disk))
    cache._private_place.cache_clear()
    cache._said.clear()
    try:
        for k in range(200):
            cache.store(f"{k:03}", os.urandom(8000))
        kept = [k for k in range(200) if cache.load(f"{k:03}") is not None]
        assert 5 < len(kept) < 40
        assert caplog.text.count("compiled code is not kept") == 1
        assert not list(small_disk.rglob("*.part"))
    finally:
        cache._private_place.cache_clear()
        shutil.rmtree(small_disk / "compiled")


def test_an_exception_leaves_the_old_file(tmp_path):
    path = tmp_path / "numbers.txt"
    path.write_text("old")

    def interrupted():
        with files.replacing(path) as temporary:
            temporary.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_errors_name_the_file_of_the_user(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere/x\.toml"):
        save_model(MODEL, tmp_path / "nowhere" / "x.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(IsADirectoryError, match=r"received a folder: '.*folder\.toml'"):
        save_model(MODEL, tmp_path / "folder.toml")


def test_links_modes_and_devices_stay_what_they_are(tmp_path):
    path, link = tmp_path / "file.txt", tmp_path / "link.txt"
    path.write_text("old")
    path.chmod(0o640)
    link.symlink_to(path)
    files.write_text(link, "new")
    assert link.is_symlink()
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    before = os.umask(0o027)
    try:
        files.write_text(tmp_path / "another.txt", "new")
    finally:
        os.umask(before)
    assert (tmp_path / "another.txt").stat().st_mode & 0o777 == 0o640
    files.write_text("/dev/null", "new")
    assert not Path("/dev/null").is_file()


SAVES = """
import sys
from integrators import Solution
solution = Solution.load(sys.argv[1])
print("ready", flush=True)
while True:
    solution.save(sys.argv[1])
"""


def test_a_killed_process_leaves_a_whole_file(tmp_path):
    """Four times, at moments that differ: the file can be read, and holds what was saved."""
    path = tmp_path / "solution.npz"
    times = np.linspace(0, 1, 20_000)
    solution = solve(lambda t, y: [-y[0], y[1]], (0, 1), [1.0, 1.0], t_eval=times)
    solution.save(path)
    rng = np.random.default_rng(13)
    for _ in range(4):
        command = [sys.executable, "-c", SAVES, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0.01, 0.1))
            process.kill()
        np.testing.assert_array_equal(Solution.load(path).y, solution.y)


def test_a_killed_run_leaves_nothing(tmp_path):
    """The command line writes at the end: runs killed at any moment touch no file."""
    path = tmp_path / "run.csv"
    path.write_text("old")
    command = [sys.executable, "-m", "featherstep", "simulate", "double_pendulum"]
    command += ["--t-end", "1e6", "--csv", str(path)]
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    running = [subprocess.Popen(command, cwd=tmp_path, env=HERE, **quiet) for _ in range(3)]
    for process, seconds in zip(running, np.random.default_rng(14).uniform(0.1, 0.6, 3)):
        time.sleep(seconds)
        process.kill()
        process.wait()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_was_written_can_be_read(tmp_path, solution):
    save_model(MODEL, tmp_path / "model.toml")
    assert load_model(tmp_path / "model.toml") == MODEL
    catalogue.get("DOPRI5").save(tmp_path / "tableau.json")
    assert type(catalogue.get("DOPRI5")).load(tmp_path / "tableau.json") == catalogue.get("DOPRI5")
