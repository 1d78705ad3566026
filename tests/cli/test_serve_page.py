"""The page of `tessera serve` in headless Chromium: what a person does with mouse and keys."""

import re
import shutil
import subprocess
import sys
import time
import unittest

import numpy as np

from program import PROGRAM, ProgramTest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError:
    webdriver = None


class Page(ProgramTest):
    def setUp(self):
        super().setUp()
        volume = np.arange(6 * 50 * 60, dtype="<f4").reshape(6, 50, 60)
        table = np.array([(1, b"one"), (2, b"two")], [("n", "<i4"), ("<b>bold</b>", "S3")])
        np.savez(self.path("data.npz"), volume=volume, table=table)
        self.server = subprocess.Popen([PROGRAM, "serve", self.path("data.npz")], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.server.stdout.close)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.terminate)
        found = re.search(r"http://\S+", self.server.stdout.readline())
        if not found:
            self.skipTest("this build has no server")
        self.url = found.group(0)
        options = Options()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1200,800"):
            options.add_argument(word)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.addCleanup(self.browser.quit)

    def tearDown(self):
        self.assertEqual([line["message"] for line in self.browser.get_log("browser")], [])

    def open(self, link=""):
        self.browser.get("about:blank")
        self.browser.get(self.url + link)

    def wait(self, script):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.browser.execute_script("return " + script):
                return
            time.sleep(0.05)
        self.fail(f"the page never came to: {script}")

    def complete(self):
        self.wait("document.getElementById('map').dataset.state === 'complete'")

    def test_the_picture_is_there_at_once(self):
        self.open()
        self.complete()
        self.assertEqual(self.browser.find_element(By.ID, "name").text, "volume")
        self.assertIn("6 × 50 × 60", self.browser.find_element(By.ID, "facts").text)

    def test_axes_slider_and_link(self):
        self.open("#path=volume&at=2,0,0")
        self.complete()
        slider = self.browser.find_element(By.ID, "slider-0")
        slider.send_keys(Keys.ARROW_RIGHT)
        self.wait("location.hash.includes('at=3,')")
        self.browser.execute_script("const s = document.getElementById('axis-rows'); s.value = 0; s.dispatchEvent(new Event('change'))")
        self.wait("location.hash.includes('axes=0,2')")
        self.complete()
        link = self.browser.current_url
        self.browser.get("about:blank")
        self.browser.get(link)
        self.complete()
        self.assertEqual(self.browser.find_element(By.ID, "axis-rows").get_attribute("value"), "0")

    def test_keys_alone(self):
        self.open("#path=volume&at=0,0,0")
        self.complete()
        self.browser.execute_script("document.getElementById('map').focus()")
        self.browser.switch_to.active_element.send_keys(Keys.ADD)
        self.wait("!document.getElementById('cross').hidden")
        self.wait("/^[\\d.]+$/.test(document.getElementById('value').textContent)")

    def test_names_are_text(self):
        self.open("#path=table")
        self.wait("document.querySelectorAll('.grid-row .cell').length > 3")
        self.wait("[...document.querySelectorAll('.cell')].some((cell) => cell.textContent === '<b>bold</b>')")
        self.assertEqual(self.browser.find_elements(By.CSS_SELECTOR, "#panel-table b"), [])


if __name__ == "__main__":
    if webdriver is None or not shutil.which("chromedriver") or not shutil.which("chromium"):
        print("skipped: chromium, chromium-driver or python3-selenium is missing")
        sys.exit(77)
    unittest.main()
