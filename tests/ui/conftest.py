"""A real Chromium, without a window, that drives Locust's page as a user would."""

import os
import shutil
import time

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--no-proxy-server", "--window-size=1440,1500",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Open a Chromium; the second value is the folder of its downloads."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("THE PAGE IS NOT TESTED: no Chromium (Debian: apt-get install chromium chromium-driver)")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    folder = tmp_path_factory.mktemp("browser")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    downloads = folder / "downloads"
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    before = os.environ.get("NO_PROXY")
    os.environ["NO_PROXY"] = "127.0.0.1,localhost"
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver, downloads
    driver.quit()
    if before is None:
        del os.environ["NO_PROXY"]
    else:
        os.environ["NO_PROXY"] = before


class Page:
    """The page in the browser, by what a user sees of it."""

    def __init__(self, driver, downloads, url):
        self.driver, self.downloads = driver, downloads
        self.driver.get(url)

    def find(self, css):
        return self.driver.find_elements("css selector", css)

    def button(self, words):
        path = f"//*[self::button or self::a][normalize-space()='{words}']"
        return self.wait(lambda: self.driver.find_elements("xpath", path), f"button {words}")[0]

    def wait(self, condition, what, timeout_s=15.0):
        """Wait until *condition* gives something, and return it."""
        deadline = time.monotonic() + timeout_s
        while not (found := self.look(condition)):
            if time.monotonic() > deadline:
                self.driver.save_screenshot(str(self.downloads.with_name("failed.png")))
                pytest.fail(f"never came: {what}\n{self.driver.find_element('tag name', 'body').text[:3000]}")
            time.sleep(0.1)
        return found

    def look(self, condition):
        from selenium.common.exceptions import StaleElementReferenceException

        try:
            return condition()
        except StaleElementReferenceException:  # the page draws itself anew
            return None

    def fill(self, name, text):
        field = self.wait(lambda: next(iter(self.find(f"[name={name}]")), None), f"field {name}")
        field.send_keys("\ue009a\ue000", text)  # all of it, replaced

    def tab(self, words):
        path = f"//*[@role='tab'][normalize-space()='{words}']"
        self.wait(lambda: self.driver.find_elements("xpath", path), f"tab {words}")[0].click()

    def rows(self):
        """The table of the tab: {protocol: {title: text}}."""
        table = self.find(".MuiTableContainer-root table")
        if not table:
            return {}
        script = "return [...arguments[0].rows].map(r => [...r.cells].map(c => c.innerText.trim()))"
        head, *body = self.driver.execute_script(script, table[0])
        return {cells[0]: dict(zip(head, cells, strict=True)) for cells in body}


@pytest.fixture
def show(browser):
    """Open a page of ours."""
    driver, downloads = browser
    return lambda url: Page(driver, downloads, url)
