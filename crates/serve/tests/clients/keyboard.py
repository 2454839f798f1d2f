"""Walks over the map with keys alone, in headless Chromium: keyboard.py ADDRESS FOLDER NAME.

Where an arrow should lead is worked out here from /api/map, and compared with where the page goes. Leaves what it saw as
FOLDER/NAME-light.png and -dark.png.
"""

import math
import pathlib
import random
import sys

from headless import launch, until
from playwright.sync_api import sync_playwright

address, folder, name = sys.argv[1:4]
WAYS = {"ArrowRight": (1, 0), "ArrowLeft": (-1, 0), "ArrowDown": (0, 1), "ArrowUp": (0, -1)}
PAD = 24  # between the map's outermost pictures and its edge


def here(page):
    """The picture that is shown beside the map's frame, or nothing."""
    return page.evaluate("(t => t.style.display === 'block' ? Number(t.dataset.id) : null)(document.querySelector('.map .tip'))")


def heard(page):
    return page.inner_text(".map .heard")


def focused(page):
    return page.evaluate("document.activeElement.tagName")


def expected(points, at, way):
    """The nearest in the quarter of that direction. Of those at one place, the one of the next number."""
    x, y = points[at]
    (dx, dy), found = WAYS[way], []
    for i, (a, b) in points.items():
        far, along = math.hypot(a - x, b - y), (a - x) * dx + (b - y) * dy
        if i == at:
            continue
        if far == 0:
            found += [(0, abs(i - at), i)] * ((i - at) * (dx + dy) > 0)
        elif along >= far * 0.7071:
            found.append((far, 0, i))
    return min(found)[2] if found else at


def route(points, at, to):
    """The fewest keys from one picture to another."""
    ways, queue = {at: []}, [at]
    for i in queue:
        for way in WAYS:
            j = expected(points, i, way)
            if j not in ways:
                ways[j] = [*ways[i], way]
                queue.append(j)
    assert len(ways) == len(points), f"{set(points) - set(ways)} cannot be reached"
    return ways[to]


def walk(page):
    got = page.evaluate("fetch('/api/map').then(r => r.json())")["points"]
    names = {p[0]: f"{p[3]}, {p[4]}" if p[3] else p[4] for p in got}
    w, h = page.evaluate("(c => [c.clientWidth, c.clientHeight])(document.querySelector('.map canvas'))")
    points = {p[0]: (p[1] * (w - 2 * PAD), p[2] * (h - 2 * PAD)) for p in got}
    # By Tab alone, as whoever has no mouse; the ring around the map says that it was reached.
    page.evaluate("document.querySelector('.map [data-home]').focus()")
    page.keyboard.press("Tab")
    assert focused(page) == "CANVAS"
    ring = page.evaluate("(s => s.outlineStyle + s.outlineWidth)(getComputedStyle(document.querySelector('.map canvas')))")
    assert ring == "solid2px", ring
    label = page.get_attribute(".map canvas", "aria-label")
    assert f"{len(got)} pictures" in label and "Arrow keys" in label and "Enter" in label, label
    middle = min(points, key=lambda i: math.hypot(points[i][0] + PAD - w / 2, points[i][1] + PAD - h / 2))
    assert here(page) == middle, (here(page), middle)
    draw = random.Random(7)
    # The first two pictures are the same and may lie at one place; each can be reached all the same.
    keys = [draw.choice(list(WAYS)) for _ in range(50)] + [0, 1]
    for step, key in enumerate(keys):
        if step == 25:
            at = here(page)
            for zoom in "++=-":
                page.keyboard.press(zoom)
            assert here(page) == at, "magnifying stays with the picture"
        for way in [key] if key in WAYS else route(points, here(page), key):
            at = here(page)
            to = expected(points, at, way)
            page.keyboard.press(way)
            assert here(page) == to, (at, way, to, here(page))
            words = names[to] if to != at else f"No picture further {way[5:].lower()}"
            assert heard(page) == words, (heard(page), words)
    assert here(page) == 1
    left, right = page.evaluate("(r => [r.left, r.right])(document.querySelector('.map .tip').getBoundingClientRect())")
    assert 0 <= left and right <= page.viewport_size["width"], (left, right)


def leave(page):
    """Enter opens a picture as a click does, back comes to where one was, Escape leaves."""
    at = here(page)
    page.keyboard.press("Enter")
    until(page, f"location.hash === '#picture/{at}'", seconds=10)
    until(page, "document.activeElement.id === 'queryName'", seconds=10)
    page.go_back()
    until(page, "document.activeElement.tagName === 'CANVAS'", seconds=10)
    assert here(page) == at, (here(page), at)
    page.keyboard.press("Escape")
    assert focused(page) == "BODY" and here(page) is None and heard(page) == ""
    page.keyboard.press("ArrowRight")
    assert here(page) is None, "keys are the page's again"


def legend(page):
    """One kind alone: the others are not walked over."""
    first = page.locator(".map .legend span").first
    first.focus()
    page.keyboard.press("Enter")
    assert first.get_attribute("aria-pressed") == "true"
    kind = first.inner_text()
    page.keyboard.press("Shift+Tab")
    assert focused(page) == "CANVAS"
    for way in ["ArrowLeft", "ArrowUp", "ArrowRight", "ArrowRight", "ArrowDown", "ArrowRight"]:
        page.keyboard.press(way)
        assert heard(page).startswith((kind, "No picture")), (kind, heard(page))


def mouse(page):
    """A click picks what is under it, wherever the keys were; a click on nothing moves nothing."""
    page.click(".map [data-home]")
    box = page.locator(".map canvas").bounding_box()
    page.mouse.click(box["x"] + 2, box["y"] + 2)
    assert here(page) is None and page.evaluate("location.hash") == "#map"


with sync_playwright() as playwright:
    browser = launch(playwright)
    broken = []
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for scheme, width in [("light", 1000), ("dark", 390)]:
        page = browser.new_page(viewport={"width": width, "height": 860}, color_scheme=scheme)
        page.on("pageerror", lambda e: broken.append(str(e)))
        page.on("console", lambda m: broken.append(m.text) if m.type == "error" else None)
        page.goto(f"{address}/#map")
        page.wait_for_selector(".map:not([hidden]) canvas", timeout=60_000)
        walk(page)
        if scheme == "light":
            page.keyboard.press("-")
            page.keyboard.press("-")
        page.wait_for_timeout(400)
        page.screenshot(path=str(pathlib.Path(folder) / f"{name}-{scheme}.png"))
        leave(page)
        if page.locator(".map .legend span").count():
            legend(page)
        mouse(page)
        page.close()
    assert not broken, broken
    browser.close()
print("the map was walked")
