"""What tests of the server's page share: headless Chromium, and what a person does with mouse and keys."""

import shutil
import sys
import time

import program
from serving import ServeTest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys  # noqa: F401
except ImportError:
    webdriver = None


class PageTest(ServeTest):
    """A browser for all tests of a class; nothing may be left on its console by any."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        options = Options()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,800"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        cls.addClassCleanup(cls.browser.quit)
        # Not all errors of a page are on the console.
        cls.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": """
            addEventListener('error', (event) => (window.pageErrors ??= []).push(event.message))"""})

    def serve(self, *words, env=None):
        server = super().serve(*words, env=env)
        if not server.get("page/leaflet.min.js").body:
            self.skipTest("built without Leaflet")
        return server

    def tearDown(self):
        messages = [line["message"] for line in self.browser.get_log("browser")]
        messages += self.script("return window.pageErrors ?? []")
        self.browser.get("about:blank")  # before the server ends
        self.assertEqual(messages, [])

    def open(self, server, link=""):
        self.browser.get("about:blank")
        self.browser.get(server.url + link)

    def script(self, text, *words):
        return self.browser.execute_script(text, *words)

    def wait(self, script):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.script("return " + script):
                return
            time.sleep(0.05)
        self.fail(f"the page never came to: {script}")

    def complete(self):
        """Waits until the picture shows all that it is to show."""
        self.wait("document.getElementById('map').dataset.state === 'complete'")

    def by_id(self, name):
        return self.browser.find_element(By.ID, name)

    def text(self, name):
        return self.script("return document.getElementById(arguments[0]).textContent", name)

    def find(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def press(self, *keys):
        self.browser.switch_to.active_element.send_keys(*keys)

    def focus(self, selector):
        """Presses Tab until an element that fits has the focus."""
        for _ in range(40):
            if self.script("return document.activeElement.matches(arguments[0])", selector):
                return
            ActionChains(self.browser).send_keys(Keys.TAB).perform()
        self.fail(f"Tab does not lead to {selector}")

    def mouse(self):
        return ActionChains(self.browser, duration=20)


def main():
    if webdriver is None or not shutil.which("chromedriver") or not shutil.which("chromium"):
        print("skipped: chromium, chromium-driver or python3-selenium is missing")
        sys.exit(77)
    program.main()
