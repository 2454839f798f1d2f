"""Opens a report in headless Chromium, wide and on a narrow phone: report.py PAGE FOLDER. Leaves FOLDER/report-*.png."""

import pathlib
import sys

from headless import launch, until
from playwright.sync_api import sync_playwright

page_path, folder = sys.argv[1:3]


def check(page, width):
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"the page is {wide} pixels wider than {width}"
    tables = page.evaluate("[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)")
    assert tables and max(tables) <= 0, f"tables do not fit {width} pixels: {tables}"
    # The verdict, then large pictures, then figures.
    order = page.evaluate("['.verdict', '.alike .tile', '.figures', '.chart'].map(s => document.querySelector(s).getBoundingClientRect().top)")
    assert order == sorted(order), order
    sides = page.evaluate("[...document.querySelectorAll('.alike .tile')].map(t => t.getBoundingClientRect().width)")
    assert len(sides) >= 12 and min(sides) >= (90 if width < 500 else 130), sides
    pictured = page.evaluate("new Set([...document.querySelectorAll('.alike .tile')].map(t => getComputedStyle(t).backgroundImage.length)).size")
    assert pictured == 1, "all are cut from one sheet"
    # No figure stands alone in its row, unless it is as wide as the row.
    rows = page.evaluate("""(() => {
        const rows = new Map();
        for (const f of document.querySelectorAll('.figure')) { const r = f.getBoundingClientRect(); rows.set(r.top, (rows.get(r.top) || 0) + r.width); }
        return [...rows.values()].map(w => w / document.querySelector('.figures').getBoundingClientRect().width);
    })()""")
    assert min(rows) > 0.6, rows
    assert page.get_attribute(".map [data-pictures]", "aria-pressed") == "true", "the map begins with pictures"


with sync_playwright() as playwright:
    browser = launch(playwright)
    broken = []
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
    for width, height in [(1100, 900), (360, 740)]:
        page = browser.new_page(viewport={"width": width, "height": height})
        page.on("pageerror", lambda e: broken.append(str(e)))
        page.on("console", lambda m: broken.append(m.text) if m.type == "error" else None)
        page.goto(pathlib.Path(page_path).absolute().as_uri())
        until(page, "document.querySelector('.map canvas').width > 0")
        check(page, width)
        page.screenshot(path=str(pathlib.Path(folder) / f"report-{width}.png"))
        page.close()
    assert not broken, broken
    browser.close()
print("the report was read")
