"""A real browser: Debian's Chromium without a window, driven by Selenium; none is downloaded.

Without a browser these tests are skipped and say why. ``apt-get install chromium chromium-driver``
makes them run.
"""

import shutil

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # a container's root has none
    "--disable-dev-shm-usage",
    "--use-gl=angle",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",  # a page that loads anything fails
    "--force-color-profile=srgb",
)


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    selenium = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    service = shutil.which("chromedriver")
    if program is None or service is None:
        pytest.skip("no Chromium here: apt-get install chromium chromium-driver")
    options = selenium.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    found = selenium.Chrome(options, selenium.ChromeService(service))
    found.set_page_load_timeout(60)
    yield found
    found.quit()


@pytest.fixture
def opened(driver):
    """Open a page in a window of a size; afterwards nothing may stand in the console."""

    def open_page(path, width=1000, height=800):
        driver.set_window_size(width, height)
        driver.get(path.as_uri())
        return driver

    driver.get_log("browser")
    yield open_page
    complaints = [entry["message"] for entry in driver.get_log("browser")]
    assert not complaints
