"""The page in a browser: what is drawn where, and what its controls do."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from multibody import ModelBuilder, Prismatic, Revolute, mechanisms, rod, simulate, sphere
from multibody.pictures import animate

webdriver = pytest.importorskip("selenium.webdriver")
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="needs chromium and chromedriver"
)

SOFTWARE = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")

#: Colours of the canvas by predicate, in one call: how many pixels, and their middle.
FIND = """
const wide = canvas.width, high = canvas.height, data = new Uint8Array(4 * wide * high);
draw();
gl.readPixels(0, 0, wide, high, gl.RGBA, gl.UNSIGNED_BYTE, data);
let count = 0, x = 0, y = 0;
const is = new Function("r", "g", "b", "return " + arguments[0]);
for (let k = 0; k < data.length; k += 4) if (is(data[k], data[k + 1], data[k + 2])) {
  count += 1; x += (k / 4) % wide; y += Math.floor(k / 4 / wide);
}
return [count, (x / count + 0.5) / wide * 2 - 1, (y / count + 0.5) / high * 2 - 1];
"""
INKED, RED = "r + g + b < 600", "r > 90 && g < 0.5 * r && b < 0.5 * r"


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless=new", "--no-sandbox", "--window-size=640,520", *SOFTWARE):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(DRIVER, env=dict(os.environ))
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page, paused at its first frame; at the end the console must be empty."""

    def show(model, solution, **options):
        path = animate.save(model, solution, tmp_path / "page.html", **options)
        browser.get(path.as_uri())
        browser.execute_script("if (state.playing) toggle(); state.frame = 0; draw();")
        return browser

    yield show
    assert [entry["message"] for entry in browser.get_log("browser")] == []


def red_ball():
    b = ModelBuilder(name="ball", gravity=(0, 0, 0))
    b.add_body("cart", 0, Prismatic("x"), inertia=sphere(0.2, mass=1.0))
    b.add_body("arm", "cart", Revolute("z"), inertia=rod((0, 0, 0), (1, 0, 0), mass=1.0))
    b.add_solid("cart", "box", (0.4, 0.4, 0.1), colour=(0.2, 0.3, 0.9))
    b.add_solid("arm", "sphere", 0.15, (1, 0, 0.3), colour=(0.9, 0.05, 0.05))
    model = b.build()
    return model, simulate(model, [0.0, 0.4], [0.5, 1.0], T=2.0)


def test_solids_are_where_the_bodies_are(opened):
    model, solution = red_ball()
    page = opened(model, solution, fps=10, view="3d")
    shown = animate.frames(model, solution, fps=10)
    for frame in (0, 7.5, 20):  # between frames, too
        page.execute_script(f"state.frame = {frame};")
        count, x, y = page.execute_script(FIND, RED)
        low = int(frame)
        cart, angle = (shown.y[:2, low] + shown.y[:2, min(low + 1, 20)]) / 2
        if frame == low:
            cart, angle = shown.y[:2, low]
        place = [cart + np.cos(angle), np.sin(angle), 0.3]
        camera = page.execute_script(
            "const c = cameraFor(scene.runs[0], state.frame, canvas.width / canvas.height);"
            "const p = matrices(scene.runs[0], 0)[0]; return [Array.from(c.matrix), p];"
        )
        base = np.array(camera[1]).reshape(4, 4).T
        seen = np.array(camera[0]).reshape(4, 4).T @ base @ [*place, 1.0]
        assert count > 200
        # A sphere is seen as an ellipse whose middle is off by a little in perspective.
        np.testing.assert_allclose([x, y], seen[:2] / seen[3], atol=0.02)


def test_controls(opened):
    entry = mechanisms.entry("bicycle")
    model = entry.model()
    page = opened(model, simulate(model, *entry.start(model), T=1.0))
    find = page.find_element
    drawn = page.execute_script(FIND, INKED)[0]
    assert drawn > 2000
    find("id", "frames").click()
    page.execute_script("state.follow = 1;")
    assert page.execute_script(FIND, RED)[0] > 20
    find("id", "frames").click()
    page.execute_script("state.follow = 0;")
    find("id", "solids").click()
    sticks = page.execute_script(FIND, INKED)[0]
    assert 0 < sticks < 0.7 * drawn
    find("id", "solids").click()
    assert page.execute_script(FIND, INKED)[0] == drawn
    before = page.execute_script("return [state.azimuth, state.elevation, state.zoom]")
    canvas = find("id", "canvas")
    actions = webdriver.ActionChains(page)
    actions.drag_and_drop_by_offset(canvas, 60, 20).perform()
    after = page.execute_script("return [state.azimuth, state.elevation, state.zoom]")
    np.testing.assert_allclose(np.subtract(after, before), [-0.48, 0.16, 0.0], atol=1e-9)
    origin = webdriver.common.actions.wheel_input.ScrollOrigin.from_element(canvas)
    actions.scroll_from_origin(origin, 0, -300).perform()
    assert page.execute_script("return state.zoom") > 1.2
    page.execute_script("byId('slider').value = 15;")
    page.execute_script("byId('slider').dispatchEvent(new Event('input'))")
    assert find("id", "time").text == "t = 0.50 s"
    page.execute_script("last = 1000; toggle(); tick(1250); toggle();")
    assert find("id", "time").text == "t = 0.73 s"  # frame 22 of thirty a second
    choose = "const box = byId(arguments[0]); box.value = arguments[1];"
    choose += "box.dispatchEvent(new Event('change'));"
    for body in (0, 2):
        page.execute_script(choose, "follow", str(body))
        assert page.execute_script("return state.follow") == body
        assert page.execute_script(FIND, INKED)[0] > 0
    for view in ("xz", "xy", "yz", "3d"):
        page.execute_script(choose, "view", view)
        assert page.execute_script(FIND, INKED)[0] > 100, view


def test_runs_as_ghosts_and_side_by_side(opened):
    model = mechanisms.double_pendulum()
    first = simulate(model, [2.0, 0.5], T=3.0)
    second = simulate(model, [2.0, 0.5], T=3.0, method="Euler", step=0.01)
    page = opened(model, {"good": first, "bad": second}, fps=10)
    page.execute_script("state.frame = 29; label();")
    with_ghost = page.execute_script(FIND, "r + g + b < 740")[0]
    assert "bad" in page.find_element("id", "labels").text
    page.execute_script("state.layout = 'none'; label();")
    alone = page.execute_script(FIND, "r + g + b < 740")[0]
    assert with_ghost > alone + 200
    page.execute_script("state.layout = 'beside'; label();")
    for half in ("< wide / 2", ">= wide / 2"):
        found = page.execute_script(
            FIND.replace("if (is(", f"if ((k / 4) % wide {half} && is("), INKED
        )
        assert found[0] > 300
    assert len(page.find_elements("css selector", "#labels div")) == 2


def test_forces_and_springs_are_drawn(opened):
    entry = mechanisms.entry("box_stack")
    model = entry.model()
    page = opened(model, simulate(model, *entry.start(model), T=0.3))
    page.execute_script("state.frame = 5;")
    assert page.execute_script(FIND, RED)[0] > 100
    page.find_element("id", "forces").click()
    assert page.execute_script(FIND, RED)[0] < 20


def test_meshes_are_drawn_true_to_size(opened):
    b = ModelBuilder(name="tetrahedron", gravity=(0, 0, 0))
    b.add_body("it", 0, Revolute("z"), inertia=sphere(0.3, mass=1.0))
    corners = [[0, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0]]
    faces = [[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]
    red = (0.9, 0.0, 0.0)
    b.add_solid("it", "mesh", placement=(0, 0, 0), colour=red, vertices=corners, faces=faces)
    model = b.build()
    page = opened(model, simulate(model, T=0.1), view="xz")
    count, x, y = page.execute_script(FIND, RED)
    camera = page.execute_script(
        "const c = cameraFor(scene.runs[0], 0, canvas.width / canvas.height);"
        "return [Array.from(c.matrix), matrices(scene.runs[0], 0)[0], canvas.width, canvas.height];"
    )
    m = np.array(camera[0]).reshape(4, 4).T @ np.array(camera[1]).reshape(4, 4).T
    corner = m @ np.array([[0, 0, 0, 1], [1, 0, 0, 1], [0, 0, 1, 1]]).T
    flat = (corner[:2] / corner[3]).T
    area = 0.5 * abs(np.linalg.det(flat[1:] - flat[0])) * camera[2] * camera[3] / 4
    assert count == pytest.approx(area, rel=0.05)
    np.testing.assert_allclose([x, y], flat.mean(axis=0), atol=0.03)


def test_sticks_where_there_is_no_webgl(browser, opened):
    hide = browser.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument",
        {
            "source": "const real = HTMLCanvasElement.prototype.getContext;"
            "HTMLCanvasElement.prototype.getContext = function (kind, ...more) {"
            " return kind === 'webgl2' ? null : real.call(this, kind, ...more); };"
        },
    )
    try:
        model = mechanisms.double_pendulum()
        page = opened(model, simulate(model, [2.0, 0.5], T=1.0))
        drawn = page.execute_script(
            "draw(); const d = flat.pen.getImageData(0, 0, canvas.width, canvas.height).data;"
            "let n = 0; for (let k = 3; k < d.length; k += 4) if (d[k] > 128) n++; return n;"
        )
        assert drawn > 500
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", hide)
