"""Drives the page in headless Chromium: browser.py ADDRESS PICTURE [SCREENSHOT]."""

import shutil
import sys

from playwright.sync_api import sync_playwright

address, picture = sys.argv[1], sys.argv[2]
# Debian's browser where it is installed, Playwright's own otherwise.
system = shutil.which("chromium") or shutil.which("chromium-browser")

with sync_playwright() as playwright:
    try:
        browser = playwright.chromium.launch(executable_path=system, args=["--no-sandbox"])
    except Exception as error:  # Playwright without a browser is no failure of the page
        print(f"skipped: no browser starts: {str(error).splitlines()[0]}")
        sys.exit(0)
    page = browser.new_page(viewport={"width": 1100, "height": 900})
    outside, broken = [], []
    page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else outside.append(r.url))
    page.on("pageerror", lambda e: broken.append(str(e)))
    page.on("console", lambda m: broken.append(m.text) if m.type == "error" else None)
    page.goto(address)
    page.wait_for_selector("#grid .pic")
    page.set_input_files("#file", picture)
    page.wait_for_selector("#asked:not([hidden])")
    assert page.inner_text("#queryName") == "Your picture"
    first = page.locator("#grid .pic").first
    assert first.inner_text().startswith("1.000"), first.inner_text()
    second = page.locator("#grid .pic").nth(1)
    chosen = second.get_attribute("data-id")
    if len(sys.argv) > 3:
        page.wait_for_timeout(500)
        page.screenshot(path=sys.argv[3])
    second.click()
    page.wait_for_function("location.hash.startsWith('#picture/')")
    assert page.evaluate("location.hash") == f"#picture/{chosen}"
    page.wait_for_function(f"document.querySelector('#query').src.endsWith('/api/picture/{chosen}')")
    ids = page.eval_on_selector_all("#grid .pic", "all => all.map(p => p.dataset.id)")
    assert chosen not in ids and len(ids) > 5, ids
    page.go_back()
    page.click("[data-view=map]")
    page.wait_for_selector("#map .map:not([hidden]) canvas")
    page.wait_for_timeout(300)
    assert not outside, outside
    assert not broken, broken
    browser.close()
print("the browser walked")
