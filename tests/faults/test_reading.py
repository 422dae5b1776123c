"""Files are read with limits: what is damaged, hostile or huge is refused, at once and by name."""

import io
import json
import tracemalloc
import zipfile
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import multibody
from integrators import (
    FileError,
    Hybrid,
    Mode,
    Solution,
    Status,
    Tableau,
    Transition,
    catalogue,
    solve,
)
from integrators.tableau.exact import parse
from multibody import ModelBuilder, ModelFileError, load_model, mechanisms, save_model


@pytest.fixture
def saved(tmp_path):
    event = lambda t, y: y[0]  # noqa: E731
    run = solve(
        lambda t, y: [y[1], -y[0]],
        (0, 3),
        [1.0, 0.0],
        dense_output=True,
        events=event,
        t_eval=[1, 2],
    )
    return run.save(tmp_path / "run.npz")


def members(path):
    with np.load(path) as file:
        return dict(file)


def changed(path, **arrays):
    """The file with other arrays; None leaves one out."""
    kept = {k: v for k, v in {**members(path), **arrays}.items() if v is not None}
    np.savez(path, **kept)
    return path


def with_header(path, **entries):
    header = json.loads(str(members(path)["header"])) | entries
    header = {k: v for k, v in header.items() if v is not ...}
    return changed(path, header=np.array(json.dumps(header)))


ARRAYS = {
    "times out of order": (dict(t=np.array([2.0, 1.0, 3.0]), y=np.ones((2, 3))), "out of order"),
    "times not finite": (dict(t=np.array([0.0, np.nan])), "no list of times"),
    "times as text": (dict(t=np.array(["0", "1"])), "no list of times"),
    "another number of states": (dict(y=np.ones((2, 5))), r"y of shape \(2, 5\)"),
    "states of integers": (dict(y=np.ones((2, 2), dtype=np.int32)), "kind int32"),
    "no states": (dict(y=None), "an archive of other data"),
    "no steps": (dict(h=None), "'h'"),
    "event without states": (dict(y_events_0=None), "y_events_0"),
    "states of no event": (dict(y_events_0=np.ones((7, 2))), "occurrences of event 0"),
    "surplus": (dict(t_events_7=np.ones(2)), "belongs to nothing"),
    "foreign": (dict(__class__=np.ones(2)), "__class__"),
    "dense of other shape": (dict(sol_Q=np.ones((1, 2, 3))), "dense output of shapes"),
    "dense without length": (dict(sol_h=np.zeros(3)), "dense output without steps"),
    "dense without end": (dict(sol_end=np.array(np.inf)), "without an end"),
    "dense half": (dict(sol_Q=None), "sol_Q"),
    "times beyond the dense output": (dict(t=np.array([1.0, 4.0])), "t that contradicts"),
    "times against the dense output": (dict(t=np.array([2.0, 1.0])), "t that contradicts"),
    "an event beyond the end": (dict(t_events_0=np.array([7.0])), "t_events_0 that contradicts"),
    "an end beyond the last step": (dict(sol_end=np.array(4.0)), "do not follow"),
    "ended nowhere": (dict(reached_y=np.array([np.nan, 0.0])), "reached_y that is not finite"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_solutions_with_wrong_arrays(case, saved):
    arrays, reason = ARRAYS[case]
    if case == "dense without length":
        arrays = {"sol_h": 0.0 * members(saved)["sol_h"]}
    with pytest.raises(FileError, match=reason) as refused:
        Solution.load(changed(saved, **arrays))
    assert refused.value.file == str(saved)
    assert str(refused.value).startswith(str(saved))


@pytest.mark.parametrize("name", ["y", "h", "y_events_0", "sol_t", "sol_h", "sol_y", "sol_Q"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_success_is_finite(name, value, saved):
    array = members(saved)[name]
    array.flat[array.size // 2] = value
    with pytest.raises(FileError, match=rf"{name[:5]}|step"):
        Solution.load(changed(saved, **{name: array}))


def test_dense_output_with_a_hole(saved):
    with pytest.raises(FileError, match="do not follow one another"):
        Solution.load(changed(saved, sol_h=0.5 * members(saved)["sol_h"]))


def test_states_that_only_a_failure_has(saved):
    """A method of another package may end at a NaN; the run says so itself."""
    y = members(saved)["y"]
    y[:, -1] = np.nan
    changed(saved, y=y)
    assert np.isnan(Solution.load(with_header(saved, status=int(Status.NONFINITE))).y[0, -1])


@pytest.mark.parametrize("state", [[np.nan, 1.0], [1.0, np.inf], [np.nan, np.nan]])
def test_modes_leave_out_the_last_components(state, tmp_path):
    grow = Mode(
        lambda t, y: [1.0], Transition(lambda t, y: y[0] - 1, to="two", map=lambda t, y: [0, 0])
    )
    run = solve(Hybrid({"one": grow, "two": lambda t, y: [1.0, 2.0]}, "one", [0.0], (0, 2)))
    path = run.save(tmp_path / "run")
    assert np.isnan(Solution.load(path).y[:, 0]).tolist() == [False, True]
    y = run.y.copy()
    y[:, -1] = state
    with pytest.raises(FileError, match="y that is not finite"):
        Solution.load(changed(path, y=y))


HEADERS = {
    "a key too few": (dict(nfev=...), "without 'nfev'"),
    "a key too many": (dict(colour="red"), "unknown key 'colour'"),
    "no count": (dict(nfev=-1), "nfev is -1"),
    "a float": (dict(events=1.5), "events is 1.5"),
    "huge": (dict(events=10**9), "t_events_1"),
    "status": (dict(status=77), "status is 77"),
    "message": (dict(message=[1]), "no text"),
    "format": (dict(format=99), "newer version"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_solutions_with_wrong_headers(case, saved):
    entries, reason = HEADERS[case]
    with pytest.raises(FileError, match=reason):
        Solution.load(with_header(saved, **entries))


def test_a_header_nested_deep(saved):
    with pytest.raises(FileError):
        Solution.load(changed(saved, header=np.array("[" * 50_000)))


def test_a_solution_is_not_expanded_before_its_size_is_known(saved):
    """240 kB that would become 240 MB."""
    many = 10**7
    with zipfile.ZipFile(saved, "a", zipfile.ZIP_DEFLATED) as archive:
        for k in range(3):
            data = io.BytesIO()
            np.save(data, np.zeros(many))
            archive.writestr(f"t_events_{k + 1}.npy", data.getvalue())
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"would expand to 240 MB.*largest=240"):
            Solution.load(saved, largest=10**8)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_holds_more_than_it_claims(method, saved):
    """100 kB that claim to be a thousand bytes and hold 100 MB; the checksum comes after them."""
    with zipfile.ZipFile(saved, "a", method) as archive:
        with archive.open("t_events_1.npy", "w") as member:
            for _ in range(100):
                member.write(bytes(10**6))
        archive.getinfo("t_events_1.npy").file_size = 1000  # in the directory at the end
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="damaged archive"):
            Solution.load(saved)
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


def test_arrays_that_claim_more_than_they_hold(saved):
    """NumPy would ask for the memory first: 8 TB here."""
    header = np.lib.format.header_data_from_array_1_0(np.zeros(1)) | {"shape": (10**12,)}
    claim = io.BytesIO()
    np.lib.format.write_array_header_1_0(claim, header)
    contents = members(saved)
    del contents["t"]
    np.savez(saved, **contents)
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("t.npy", claim.getvalue())
    with pytest.raises(FileError, match="size is not that of its header"):
        Solution.load(saved)


# ---------------------------------------------------------------- a damaged byte in every file


def test_a_damaged_byte_in_a_solution(saved):
    """Refused, or (a byte of the archive that nobody looks at) the same solution."""
    good, expected = saved.read_bytes(), Solution.load(saved)
    rng = np.random.default_rng(4)
    refused = 0
    for place in rng.choice(len(good), size=min(len(good), 300), replace=False):
        saved.write_bytes(
            good[:place] + bytes([good[place] ^ rng.integers(1, 256)]) + good[place + 1 :]
        )
        try:
            found = Solution.load(saved)
        except FileError:
            refused += 1
        else:
            np.testing.assert_array_equal(found.t, expected.t)
            np.testing.assert_array_equal(found.y, expected.y)
            assert found.nfev == expected.nfev
    assert refused > 150


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_damaged_byte_in_a_model(ending, tmp_path):
    path = tmp_path / f"model.{ending}"
    save_model(mechanisms.double_pendulum(), path)
    good = path.read_bytes()
    rng = np.random.default_rng(5)
    blamed = set()
    for place in rng.choice(len(good), size=150, replace=False):
        path.write_bytes(good[:place] + bytes([rng.integers(256)]) + good[place + 1 :])
        try:
            load_model(path)
        except ModelFileError as error:
            blamed.add(error.file)
    assert blamed == {str(path)}
    assert issubclass(ModelFileError, FileError)


@pytest.mark.parametrize("ending", ["toml", "json"])
def test_a_damaged_byte_in_a_tableau(ending, tmp_path):
    path = tmp_path / f"tableau.{ending}"
    catalogue.get("DOPRI5").save(path)
    good = path.read_bytes()
    rng = np.random.default_rng(6)
    blamed = set()
    for place in rng.choice(len(good), size=150, replace=False):
        path.write_bytes(good[:place] + bytes([rng.integers(256)]) + good[place + 1 :])
        try:
            Tableau.load(path)
        except FileError as error:
            blamed.add(error.file)
    assert blamed == {str(path)}


# ---------------------------------------------------------------- numbers and keys

ENDLESS = [
    "1e999999999",
    "1e-999999999",
    "9**9**9**9",
    "(1/3)**100000000",
    "cos(1e999)",
    "((10.1234567890123456**1000)**1000)**1000",
    "-" * 100_000 + "1",
    "(" * 250 + "1" + ")" * 250,
    "+".join(["1"] * 20_000),
    "*".join(["1e999"] * 500),
    "(sqrt(2)+sqrt(3))**1000",  # infinite as a double
    "-1e309",
]


@pytest.mark.parametrize("text", ENDLESS, ids=lambda text: text[:12])
def test_numbers_that_would_take_for_ever(text):
    with pytest.raises(ValueError, match="cannot read") as refused:
        parse(text)
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("number", [Decimal("1e400"), Fraction(10**400), 10**400, float("inf")])
def test_coefficients_that_no_double_holds(number):
    with pytest.raises(ValueError, match=r"A\[2, 1\] is .*must be finite doubles") as refused:
        Tableau([[], [number]], [1, 0])
    assert len(str(refused.value)) < 100
    with pytest.raises(ValueError, match=r"c\[3\] is"):
        Tableau([[], ["1e308"], ["1e308", "1e308"]], [1, 0, 0])


def test_numbers_of_use_are_read():
    assert parse("1e-1000") * 10**1000 == 1
    assert parse("2**100") == 2**100
    assert parse("(2/3)**-5") == parse("243/32")


LONG = [".".join("a" * 10_000) + " = 1", "[" + ".".join("a" * 10_000) + "]"]
LONG += ["x = {a = 1, " + " . ".join(['"a"'] * 5000) + " = 1}"]
LONG += [".".join([r'"\""'] * 5000) + " = 1", ".".join([r'"\\"', "'\\'"] * 2500) + " = 1"]


@pytest.mark.parametrize("text", LONG, ids=["key", "table", "inline", "quotes", "backslashes"])
def test_keys_of_ten_thousand_parts(text, tmp_path):
    model, tableau = tmp_path / "model.toml", tmp_path / "tableau.toml"
    for path, load in ((model, load_model), (tableau, Tableau.load)):
        path.write_text('name = "a.b.c"  # a.b.c\n' + text)
        with pytest.raises(FileError, match=r"at most 100 parts.*line 2"):
            load(path)


@pytest.mark.parametrize(
    "content", ["[]", "[[[[", "1", '{"A": 1, "b": 2}', '{"A": [[1e999]], "b": [1]}']
)
def test_tableaux_that_are_none(content, tmp_path):
    path = tmp_path / "tableau.json"
    path.write_text(content)
    with pytest.raises(FileError, match=r"tableau\.json: "):
        Tableau.load(path)


def test_a_tableau_nested_deep(tmp_path):
    path = tmp_path / "tableau.json"
    path.write_text('{"A": ' + "[" * 100_000 + "]" * 100_000 + ', "b": [1]}')
    with pytest.raises(FileError):
        Tableau.load(path)


# ---------------------------------------------------------------- deep


def test_a_long_chain_is_printed():
    builder = ModelBuilder(name="chain")
    parent = "base"
    inertia = multibody.Inertia(1.0, [0, 0, 0], 1.0)
    for k in range(2000):
        builder.add_body(f"b{k}", parent, multibody.Revolute("y"), None, inertia)
        parent = f"b{k}"
    lines = str(builder.build()).splitlines()
    assert len(lines) == 2002
    assert lines[-1].lstrip() == "└─ 2000 b1999: Revolute(axis=[0.0, 1.0, 0.0]), 1 kg"


def test_where_a_run_ended_is_kept(tmp_path):
    run = solve(lambda t, y: -y, (0, 10), [1.0], t_eval=[0.0, 5.0])
    t, y = Solution.load(run.save(tmp_path / "run")).reached
    assert (t, y.tolist()) == (10.0, run.reached[1].tolist())


def test_messages_do_not_repeat_whole_files(tmp_path):
    path = tmp_path / "model.toml"
    path.write_text("a" * 20_000 + " = 1")
    with pytest.raises(ModelFileError, match=r"a…: unknown key") as error:
        load_model(path)
    assert len(str(error.value)) < 500
    assert len(error.value.key) == 20_000
