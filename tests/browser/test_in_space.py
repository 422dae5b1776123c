"""Controls of the page in three dimensions: each changes what is seen, and the right thing."""

import io

import numpy as np
import pytest

import multibody as mb
from multibody import animate, mechanisms

pytest.importorskip("selenium", reason="selenium is not installed")
from matplotlib.image import imread
from selenium.webdriver.common.action_chains import ActionChains

PURPLE, RED, BLUE = (0.45, 0.2, 0.65), (0.85, 0.1, 0.1), (0.0, 0.45, 0.7)
SEEN = 40  # pixels that count as something
COLOURS_ALIKE = 0.3  # light and shade change colours, but not their order


@pytest.fixture(scope="module")
def page(tmp_path_factory, driver):
    """Two methods that part, and the forces in the joints."""
    model = mechanisms.double_pendulum()
    runs = {
        name: mb.simulate(model, [2.0, 0.5], T=2.0, method=name, step=0.05)
        for name in ("RK4", "ExplicitEuler")
    }
    path = tmp_path_factory.mktemp("space") / "two.html"
    return animate.save(model, runs, path, reactions=True, view="3d")


@pytest.fixture(scope="module")
def travel(tmp_path_factory, driver):
    """A box that slides by ten times its size, without weight: nothing else is in the picture."""
    b = mb.ModelBuilder(gravity=(0, 0, 0), name="box")
    b.add_body("box", 0, mb.Prismatic("x"), inertia=mb.box((1, 1, 1), mass=1.0))
    b.add_solid("box", "box", (1.0, 1.0, 1.0), colour=BLUE)
    model = b.build()
    path = tmp_path_factory.mktemp("travel") / "box.html"
    return animate.save(model, mb.simulate(model, [0.0], [5.0], T=2.0), path, view="xz")


def choose(browser, control, value):
    browser.execute_script(
        "const e = document.getElementById(arguments[0]);"
        "if (e.type === 'checkbox') e.checked = arguments[1]; else e.value = arguments[1];"
        "e.dispatchEvent(new Event(e.type === 'range' ? 'input' : 'change'))",
        control, value,
    )  # fmt: skip


def colours(browser):
    data = browser.find_element("id", "canvas").screenshot_as_png
    return imread(io.BytesIO(data))[:, :, :3]


def like(picture, colour):
    """Where a picture has the hue of a colour, in light or shade."""
    hue = np.asarray(colour) / np.linalg.norm(colour)
    size = np.linalg.norm(picture, axis=2)
    far = np.linalg.norm(picture / np.maximum(size, 1e-9)[..., None] - hue, axis=2)
    return (far < COLOURS_ALIKE) & (np.ptp(picture, axis=2) > 0.15)


def test_ghosts_side_by_side_and_alone(page, opened):
    browser = opened(page)
    choose(browser, "slider", 40)
    choose(browser, "forces", False)
    seen = {}
    for layout in ("ghosts", "beside", "none"):
        choose(browser, "layout", layout)
        seen[layout] = colours(browser)
    assert (np.abs(seen["ghosts"] - seen["none"]).max(axis=2) > 0.1).sum() > SEEN
    labels = browser.find_element("id", "labels")
    assert "ExplicitEuler" not in labels.text
    choose(browser, "layout", "beside")
    assert labels.text.split() == ["RK4", "ExplicitEuler"]
    half = seen["beside"].shape[1] // 2
    left, right = seen["beside"][:, :half], seen["beside"][:, half : 2 * half]
    for side in (left, right):  # each has the blue upper bar
        assert like(side, BLUE).sum() > SEEN
    assert (np.abs(left - right).max(axis=2) > 0.2).sum() > SEEN  # and they have parted
    choose(browser, "run", 1)
    choose(browser, "layout", "none")
    assert labels.text == "ExplicitEuler"
    assert (np.abs(colours(browser) - seen["none"]).max(axis=2) > 0.2).sum() > SEEN


def test_forces_and_frames_on_request(page, opened):
    browser = opened(page)
    choose(browser, "layout", "none")
    choose(browser, "slider", 20)
    choose(browser, "forces", False)
    bare = colours(browser)
    choose(browser, "frames", True)
    assert like(colours(browser), RED).sum() > like(bare, RED).sum() + SEEN
    choose(browser, "frames", False)
    choose(browser, "forces", True)
    arrows = []
    for scale in (10, 30):
        choose(browser, "enlarged", scale)
        arrows.append(like(colours(browser), PURPLE).sum() - like(bare, PURPLE).sum())
    assert arrows[1] > 1.5 * arrows[0] > SEEN
    newtons = [
        float(option.text.split()[0])
        for option in browser.find_elements("css selector", "#enlarged option")
    ]
    assert newtons[0] == pytest.approx(10 * newtons[2], rel=0.01)


def test_orbit_zoom_and_solids(page, opened):
    browser = opened(page)
    choose(browser, "slider", 10)
    before = colours(browser)
    canvas = browser.find_element("id", "canvas")
    ActionChains(browser).drag_and_drop_by_offset(canvas, 120, 40).perform()
    turned = colours(browser)
    assert (np.abs(turned - before).max(axis=2) > 0.1).mean() > 0.01
    browser.execute_script(
        "document.getElementById('canvas').dispatchEvent(new WheelEvent('wheel', {deltaY: -600}))"
    )
    nearer = colours(browser)
    assert like(nearer, BLUE).sum() > 1.5 * like(turned, BLUE).sum()
    ActionChains(browser).double_click(canvas).perform()
    np.testing.assert_array_equal(colours(browser), before)
    choose(browser, "ground", False)
    assert (colours(browser) < 1.0).any(axis=2).mean() < (before < 1.0).any(axis=2).mean() / 2


def test_a_body_is_followed(travel, opened):
    browser = opened(travel)

    def middle():
        ink = like(colours(browser), BLUE)
        return np.nonzero(ink)[1].mean() / ink.shape[1]

    def places():
        found = []
        for frame in (0, 30, 60):
            choose(browser, "slider", frame)
            found.append(middle())
        return found

    choose(browser, "follow", 0)
    assert np.ptp(places()) > 0.5
    choose(browser, "follow", 1)
    np.testing.assert_allclose(places(), 0.5, atol=0.02)
