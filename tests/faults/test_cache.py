"""The cache of compiled code: nothing foreign or damaged is run, and it works without a place."""

import logging
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from integrators.kernels import cache

posix = pytest.mark.skipif(os.name == "nt", reason="owners and modes of POSIX")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FEATHERSTEP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "compiled"


@pytest.fixture
def fresh():
    """Forget what was found out, and said, in other tests."""
    cache._private_place.cache_clear()
    cache._said.clear()
    yield
    cache._private_place.cache_clear()
    cache._said.clear()


# ---------------------------------------------------------------- where


@pytest.mark.parametrize("variable", ["FEATHERSTEP_CACHE", "XDG_CACHE_HOME"])
def test_an_empty_variable_is_none(variable, monkeypatch, tmp_path):
    monkeypatch.delenv("FEATHERSTEP_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(variable, "")
    if sys.platform != "win32":
        assert cache.cache_directory() == tmp_path / ".cache" / "featherstep"
    assert cache.cache_directory().is_absolute()


@posix
def test_a_relative_folder_of_the_system_is_none(monkeypatch, tmp_path):
    """A cache in the current folder would be whoever's that folder is."""
    monkeypatch.delenv("FEATHERSTEP_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert cache.cache_directory() == tmp_path / ".cache" / "featherstep"


@posix
def test_the_tilde_is_the_users_home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("FEATHERSTEP_CACHE", "~/mine")
    assert cache.cache_directory() == tmp_path / "mine"


@posix
@pytest.mark.parametrize("home", ["", "here", "./here"])
@pytest.mark.parametrize("chosen", ["", "~/mine"])
def test_a_home_in_the_current_folder_is_none(home, chosen, monkeypatch):
    import pwd

    monkeypatch.setenv("FEATHERSTEP_CACHE", chosen)
    monkeypatch.setenv("HOME", home)
    for cache_home in ("", "here", "~/.cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", cache_home)
        expected = Path(pwd.getpwuid(os.getuid()).pw_dir)
        expected /= "mine" if chosen else ".cache/featherstep"
        assert cache.cache_directory() == expected

    def nobody(number):
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert cache.cache_directory() == cache._temporary_directory()


def test_a_user_without_a_home(monkeypatch):
    def none(self):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("FEATHERSTEP_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "expanduser", none)
    assert "featherstep-" in cache.cache_directory().name


# ---------------------------------------------------------------- whose


@posix
def test_only_the_user_may_look_in(folder, fresh):
    assert cache.place() == folder
    cache.store("a", b"code")
    assert folder.stat().st_mode & 0o777 == 0o700
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file


def refused(folder, caplog, temporary):
    """The substitute is used, and the reason said once."""
    with caplog.at_level(logging.WARNING):
        cache.store("a", b"code")
        cache.store("b", b"code")
    assert not list(folder.glob("*.code"))
    assert len(list((temporary / f"featherstep-{os.geteuid()}" / "compiled").glob("*.code"))) == 2
    assert len(caplog.records) == 1
    return caplog.text


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


@posix
def test_a_folder_that_others_may_write_is_refused(folder, fresh, caplog, temporary):
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    assert "others may write there (mode 777)" in refused(folder, caplog, temporary)


@posix
def test_a_folder_of_another_user_is_refused(folder, fresh, caplog, temporary, monkeypatch):
    folder.mkdir(parents=True)
    status = os.lstat

    class Another:
        st_mode, st_uid = 0o40700, os.geteuid() + 1

    monkeypatch.setattr(os, "lstat", lambda p: Another if Path(p) == folder else status(p))
    assert "belongs to another user" in refused(folder, caplog, temporary)


@posix
def test_a_link_to_a_folder_is_refused(folder, fresh, caplog, temporary, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.parent.mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    assert "received a file or a link" in refused(folder, caplog, temporary)


@posix
def test_no_place_at_all(folder, fresh, caplog, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEATHERSTEP_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            cache.store("a", b"code")
            assert cache.load("a") is None
            with cache.loading("a"):
                pass
    assert caplog.text.count("not kept") == 1


# ---------------------------------------------------------------- what


class Trap:
    def __reduce__(self):
        return (Path.touch, (Path("trapped"),))


def test_foreign_entries_are_neither_loaded_nor_unpickled(folder, fresh, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cache.store("a", b"code")
    good = (folder / "a.code").read_bytes()
    for planted in (
        pickle.dumps(Trap()),
        good.replace(b"code", pickle.dumps(Trap())),
        b"",
        good[:9],
    ):
        (folder / "a.code").write_bytes(planted)
        assert cache.load("a") is None
        assert not (folder / "a.code").exists()  # and is not looked at again
    assert not Path("trapped").exists()


def test_a_flipped_bit_anywhere_is_noticed(folder, fresh):
    cache.store("a", b"some code")
    good = (folder / "a.code").read_bytes()
    for k in range(len(good)):
        (folder / "a.code").write_bytes(good[:k] + bytes([good[k] ^ 1]) + good[k + 1 :])
        assert cache.load("a") is None
    (folder / "a.code").write_bytes(good)
    assert cache.load("a") == b"some code"


def test_an_entry_under_another_name_is_refused(folder, fresh):
    cache.store("a", b"code")
    os.replace(folder / "a.code", folder / "b.code")
    assert cache.load("b") is None


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_a_damaged_key_is_replaced(folder, fresh, damage):
    """Whatever it sealed is built again; nothing else is lost."""
    cache.store("a", b"code")
    (folder / "key").unlink()
    if damage is not None:
        (folder / "key").write_bytes(damage)
    cache._private_place.cache_clear()
    assert cache.load("a") is None
    cache.store("a", b"again")
    assert cache.load("a") == b"again"


def test_two_processes_agree_on_a_key(folder, fresh):
    """Eight at once, with no folder yet."""
    script = "import sys; from integrators.kernels import cache; cache.store(sys.argv[1], b'code')"
    running = [subprocess.Popen([sys.executable, "-c", script, str(k)]) for k in range(8)]
    assert [process.wait() for process in running] == [0] * 8
    assert [cache.load(str(k)) for k in range(8)] == [b"code"] * 8
    assert not list(folder.glob("*.part"))


# ---------------------------------------------------------------- crashes

DIES = """
import os, signal
from integrators.kernels import cache
assert cache.load("a") == b"code"
with cache.loading("a"):
    os.kill(os.getpid(), signal.SIGKILL)
"""


@posix
def test_a_crash_while_loading_is_not_repeated(folder, fresh):
    for _ in range(2):
        cache.store("a", b"code")
        subprocess.run([sys.executable, "-c", DIES], check=False)
        assert cache.load("a") is None  # the process died, so the entry goes
        assert not (folder / "a.code").exists()
    cache.store("a", b"code")
    assert not (folder / "a.code").exists()  # it died twice: left alone for a day
    long_ago = time.time() - 2 * cache._REST
    os.utime(folder / "a.crashed", (long_ago, long_ago))
    cache.store("a", b"code")
    assert cache.load("a") == b"code"


def test_others_may_load_at_the_same_time(folder, fresh):
    cache.store("a", b"code")
    with cache.loading("a"), cache.loading("a"):
        assert cache.load("a") == b"code"
    assert not (folder / "a.loading").exists()


# ---------------------------------------------------------------- room


def test_a_long_process_prunes_too(folder, fresh, monkeypatch):
    monkeypatch.setattr(cache, "_PRUNE_EVERY", 10)
    monkeypatch.setattr(cache, "MOST_ENTRIES", 20)
    for k in range(200):
        cache.store(f"{k:03}", b"code")
    assert len(list(folder.glob("*.code"))) <= 30
    assert cache.load("199") == b"code"


def test_what_killed_processes_left_goes_too(folder, fresh):
    cache.store("a", b"code")
    (folder / "of_a_killed_process.part").write_bytes(b"half")
    long_ago = time.time() - 2 * 3600
    os.utime(folder / "of_a_killed_process.part", (long_ago, long_ago))
    (folder.parent / "objects").mkdir()
    former = folder.parent / "objects" / "of_an_earlier_version.obj"
    former.write_bytes(b"old")
    os.utime(former, (1e9, 1e9))
    assert cache.prune(folder) == 2
    assert cache.load("a") == b"code"
    assert not former.exists()


# ---------------------------------------------------------------- kernels

SOLVES = """
import sys
from integrators import solve
end = solve(lambda t, y: [-y[0]], (0, 1), [1.0], method="RK4", step=0.125).y[0, -1]
assert abs(end - 0.36788) < 1e-5
print("numba" in sys.modules)
"""


@pytest.fixture(scope="module")
def warm(tmp_path_factory):
    """A cache with the code of one run, made while other processes were killed at it."""
    folder = tmp_path_factory.mktemp("warm")
    environment = {**os.environ, "FEATHERSTEP_CACHE": str(folder)}
    command = [sys.executable, "-W", "error", "-c", SOLVES]
    for seconds in (1.0, 2.5):
        killed = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        time.sleep(seconds)
        killed.kill()  # perhaps while it compiles
        killed.wait()
    both = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    assert [process.communicate()[0] for process in both] == ["True\n"] * 2
    return environment, command


def run(warm, **more):
    environment, command = warm
    return subprocess.run(
        command, env={**environment, **more}, capture_output=True, text=True, check=False
    )


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere numba loads the code")
def test_a_second_process_does_not_even_import_numba(warm):
    result = run(warm)
    assert (result.stdout, result.stderr) == ("False\n", "")


def test_damaged_kernels_are_built_again(warm):
    files = sorted((Path(warm[0]["FEATHERSTEP_CACHE"]) / "compiled").glob("*.code"))
    assert len(files) >= 4
    smallest = min(files, key=lambda file: file.stat().st_size)
    good = smallest.read_bytes()
    smallest.write_bytes(good[:-1] + bytes([good[-1] ^ 64]))
    result = run(warm)
    assert result.returncode == 0
    assert result.stdout == "True\n"
    assert "built again: it is damaged" in result.stderr
    assert smallest.exists()


@posix
def test_an_unwritable_place_is_said_once_and_a_substitute_kept(warm, tmp_path):
    """The substitute is that of all processes: the second one has nothing to compile."""
    substitute = tmp_path / f"featherstep-{os.geteuid()}"
    os.symlink(warm[0]["FEATHERSTEP_CACHE"], substitute)
    result = run(warm, FEATHERSTEP_CACHE="/proc/nowhere", TMPDIR=str(tmp_path))
    assert result.returncode == 0
    assert result.stderr.count("cannot hold compiled code") == 1
    assert len(result.stderr.splitlines()) == 1
    if sys.platform == "linux":
        assert result.stdout == "False\n"


EDITED = """
from integrators.kernels import address_of, kernel
from integrators.stepping.workspace import Steps
import sys

@kernel
def answer(w, t, h):
    return 42

address_of(answer, Steps)
print("numba" in sys.modules)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere numba loads the code")
def test_editing_a_comment_keeps_the_code(tmp_path):
    environment = {**os.environ, "FEATHERSTEP_CACHE": str(tmp_path)}
    edited = EDITED.replace("@kernel", "# A remark.\n@kernel").replace("    return", "\n    return")
    changed = EDITED.replace("42", "43")
    script = tmp_path / "script.py"

    def compiles(text):
        script.write_text(text)
        found = subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=True
        )
        return found.stdout == "True\n"

    assert compiles(EDITED)
    assert not compiles(EDITED)
    assert not compiles(edited)
    assert compiles(changed)


RAISES = """
import ctypes, sys
from integrators.kernels import address_of, kernel
from integrators.stepping.workspace import Steps

@kernel
def wrong(w, t, h):
    total = 0
    for i in range(0, int(t), int(h)):
        total += i
    return total

kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_double, ctypes.c_double)
function = kind(address_of(wrong, Steps))
assert function(0, 5.0, 1.0) == 10
function(0, 5.0, 0.0)  # a step of zero
print("numba" in sys.modules)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere numba loads the code")
def test_an_exception_in_a_kernel_is_reported_without_numba_too(tmp_path):
    """Kernels raise none; should one do, it is not lost."""
    environment = {**os.environ, "FEATHERSTEP_CACHE": str(tmp_path)}
    for numba in (True, False):
        found = subprocess.run(
            [sys.executable, "-c", RAISES],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout == f"{numba}\n"
        assert ("ValueError" if numba else "a compiled kernel raised") in found.stderr
