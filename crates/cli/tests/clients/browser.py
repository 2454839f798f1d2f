"""Drives the page in headless Chromium: browser.py ADDRESS PICTURE FOLDER NAME.

Uploads PICTURE, walks from neighbour to neighbour, opens every tab that there is, wide and on a phone, and leaves what it saw
as FOLDER/NAME-*.webp (.png without Pillow).
"""

import io
import pathlib
import sys

from headless import launch, until
from playwright.sync_api import sync_playwright

try:
    from PIL import Image
except ImportError:
    Image = None

address, picture, folder, name = sys.argv[1:5]


def keep(page, what):
    """A picture of the page as it is, once its pictures are there."""
    page.wait_for_timeout(400)
    until(page, "[...document.images].filter(i => i.offsetParent && i.getBoundingClientRect().top < innerHeight).every(i => i.complete)")
    png = page.screenshot()
    path = pathlib.Path(folder) / f"{name}-{what}"
    if Image is None:
        path.with_suffix(".png").write_bytes(png)
    else:
        Image.open(io.BytesIO(png)).convert("RGB").save(path.with_suffix(".webp"), quality=80, method=6)


def settle(page):
    """Until nothing has been fetched for half a second, or half a minute is over."""
    for _ in range(60):
        before = len(fetched)
        page.wait_for_timeout(500)
        if len(fetched) == before:
            return


def walk(page):
    """An upload, a neighbour, the keyboard, and back."""
    page.wait_for_selector("#grid .pic")
    keep(page, "start")
    page.set_input_files("#file", picture)
    page.wait_for_selector("#asked:not([hidden])")
    assert page.inner_text("#queryName") == "Your picture"
    assert page.evaluate("document.activeElement.id") == "queryName", "whoever listens hears what was found"
    first = page.locator("#grid .pic").first
    assert 0 < float(first.locator(".near").inner_text()) <= 1.0, first.inner_text()
    keep(page, "search")
    second = page.locator("#grid .pic").nth(1)
    chosen = second.get_attribute("data-id")
    second.locator("a").click()
    until(page, f"location.hash === '#picture/{chosen}'")
    until(page, f"document.querySelector('#query').src.includes('/api/picture/{chosen}/')")
    ids = page.eval_on_selector_all("#grid .pic", "all => all.map(p => p.dataset.id)")
    assert chosen not in ids and len(ids) > 5, ids
    page.wait_for_selector("#trail a[href^='#upload/']")
    page.locator("#grid .pic a").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.closest('.pic').dataset.id") == ids[1]
    page.keyboard.press("Enter")
    until(page, f"document.querySelector('#query').src.includes('/api/picture/{ids[1]}/')")
    page.go_back()
    until(page, f"document.querySelector('#query').src.includes('/api/picture/{chosen}/')")


def select(page):
    """Three pictures with keys alone; a bar says so, until it is told to forget them."""
    page.locator("#grid .pic a").first.focus()
    for key in ("Space", "Shift+ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    until(page, "document.querySelector('#chosenCount').textContent === '3 pictures selected'")
    keep(page, "selected")
    page.click("#chosenNone")
    assert page.locator("#chosen").is_hidden()


def look(page):
    """The picture beside where the network looks."""
    page.click("#looks")
    until(page, "document.querySelector('#heat img').naturalWidth > 0")
    keep(page, "attention")


def tabs(page, run):
    """Every view; none may be wider than the window, no picture without words."""
    if run:
        page.click("[data-view=hoods]")
        page.wait_for_selector("#hoodList .hood img")
        page.fill("#at", "0.5")
        page.wait_for_timeout(300)
        page.fill("#at", "0")
        check(page, "neighbourhoods")
    for view, first in [("clusters", "#clusterList .pic"), ("outliers", "#outlierGrid .pic")]:
        page.click(f"[data-view={view}]")
        page.wait_for_selector(first, timeout=60_000)
        check(page, view)
    page.click("[data-view=duplicates]")
    until(page, "/cop(y|ies) in|are the same/.test(document.querySelector('#duplicatesSaid').textContent)", seconds=180)
    check(page, "duplicates")
    page.click("[data-view=map]")
    page.wait_for_selector("#map .map:not([hidden]) canvas", timeout=60_000)
    page.locator("#map .map").scroll_into_view_if_needed()
    settle(page)
    check(page, "map")
    if run:
        page.click("[data-view=curves]")
        page.wait_for_selector("#charts svg")
        check(page, "curves")
    page.click("[data-view=search]")
    page.wait_for_selector("#grid .pic")


def check(page, what):
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{what} is {wide} pixels wider than the window"
    wordless = page.evaluate("[...document.images].filter(i => i.offsetParent && !i.alt && !i.closest('.tip')).length")
    assert wordless == 0, f"{wordless} pictures of {what} have no words"
    keep(page, what)


def mistakes(page):
    """What cannot be shown is told in a sentence, and there is something to go on with."""
    before = len(broken)
    page.goto(f"{address}/#picture/123456789")
    page.wait_for_selector("#trouble:not([hidden])")
    assert page.inner_text("#trouble").startswith("There is no picture"), page.inner_text("#trouble")
    page.wait_for_selector("#grid .pic")
    page.set_input_files("#file", __file__)
    until(page, "document.querySelector('#trouble').textContent.includes('not a picture')")
    # A browser also tells its console of every refusal.
    assert all("Failed to load resource" in b for b in broken[before:]), broken
    del broken[before:]


with sync_playwright() as playwright:
    browser = launch(playwright)
    outside, broken, fetched = [], [], []

    def opened(**how):
        page = browser.new_page(**how)
        page.on("request", lambda r: None if r.url.startswith((address, "data:", "blob:")) else outside.append(r.url))
        page.on("requestfinished", lambda r: fetched.append(r.url))
        page.on("pageerror", lambda e: broken.append(str(e)))
        page.on("console", lambda m: broken.append(m.text) if m.type == "error" else None)
        page.goto(address)
        return page

    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    page = opened(viewport={"width": 1000, "height": 760})
    run = page.evaluate("fetch('/api/run').then(r => r.json())")["kind"] == "run"
    walk(page)
    select(page)
    if run:
        look(page)
    tabs(page, run)
    mistakes(page)
    page.close()
    name = f"{name}-phone"
    page = opened(viewport={"width": 390, "height": 780}, color_scheme="dark", has_touch=True)
    walk(page)
    tabs(page, run)
    assert not outside, outside
    assert not broken, broken
    browser.close()
print("the browser walked")
