"""Animations as a viewer meets them: they play, stop, follow the slider, and fill any window."""

import io

import numpy as np
import pytest

import multibody as mb
from multibody import animate, mechanisms

pytest.importorskip("selenium", reason="selenium is not installed")
from matplotlib.image import imread
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 30.0  # to wait for what happens at once on an idle machine
FILLED = 0.5  # of the width or of the height, at least, that the motion takes in the course of time
FRAMES = (0, 15, 30, 45, 60)  # that are looked at


@pytest.fixture(scope="module")
def page(tmp_path_factory, driver):
    model = mechanisms.double_pendulum()
    run = mb.simulate(model, [2.0, 0.5], T=2.0)
    path = tmp_path_factory.mktemp("animations") / "double.html"
    return animate.save(model, run, path, fps=30) or path


def shown_time(browser):
    return float(browser.find_element("id", "time").text.split()[2])


def scrub(browser, frame):
    browser.execute_script(
        "const slider = document.getElementById('slider'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input'))",
        frame,
    )


def picture(browser):
    """What the canvas shows, True where there is ink."""
    data = browser.find_element("id", "canvas").screenshot_as_png
    return imread(io.BytesIO(data))[:, :, :3].sum(axis=2) < 2.0


def test_it_plays_and_stops(page, opened):
    browser = opened(page)
    wait = WebDriverWait(browser, SECONDS)
    begin = shown_time(browser)
    wait.until(lambda b: shown_time(b) != begin)  # a new time is shown: it plays by itself
    button = browser.find_element("id", "play")
    button.click()
    assert button.text == "Play"
    stopped = shown_time(browser)
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert shown_time(browser) == stopped
    button.click()
    wait.until(lambda b: shown_time(b) != stopped)


def test_the_slider_moves_it_and_stops_it(page, opened):
    browser = opened(page)
    pictures = {}
    for frame in FRAMES:
        scrub(browser, frame)
        assert shown_time(browser) == pytest.approx(frame / 30, abs=0.006)
        assert browser.find_element("id", "play").text == "Play"
        pictures[frame] = picture(browser)
    assert all(p.sum() > 100 for p in pictures.values())
    assert (pictures[0] != pictures[30]).sum() > 100  # it has moved
    scrub(browser, 0)
    assert (picture(browser) != pictures[0]).sum() < 20  # and comes back to where it was


@pytest.mark.parametrize("size", [(1000, 800), (500, 900), (1400, 500)])
def test_it_fills_windows_of_any_size(page, opened, size):
    """Opened small and made larger: nothing leaves the canvas, nothing is blurred or tiny."""
    browser = opened(page, 600, 600)
    browser.set_window_size(*size)
    wanted = "const c = document.getElementById('canvas');" + (
        "return Math.abs(c.width - c.clientWidth * devicePixelRatio) < 2"
        " && Math.abs(c.height - c.clientHeight * devicePixelRatio) < 2"
    )
    WebDriverWait(browser, SECONDS).until(lambda b: b.execute_script(wanted))
    ever = None
    for frame in FRAMES:
        scrub(browser, frame)
        seen = picture(browser)
        ever = seen if ever is None else ever | seen
    rows, columns = np.flatnonzero(ever.any(axis=1)), np.flatnonzero(ever.any(axis=0))
    filled = np.ptp(rows) / ever.shape[0], np.ptp(columns) / ever.shape[1]
    assert max(filled) > FILLED, filled
    assert rows[0] > 0
    assert rows[-1] < ever.shape[0] - 1
    assert columns[0] > 0
    assert columns[-1] < ever.shape[1] - 1
