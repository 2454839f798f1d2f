"""Uses every part of the page in headless Chromium: page.py ADDRESS PICTURE ROOT FOLDER.

The index has 40 red and 40 green photographs in folders and 40 blue ones in an archive, all under ROOT. Leaves what it saw as
FOLDER/*.png.
"""

import csv
import pathlib
import sys

from headless import launch, until
from playwright.sync_api import sync_playwright

address, picture, root, folder = sys.argv[1:5]
here = "document.activeElement.closest('.pic')?.dataset.id"


def ids(page, grid="#grid"):
    return page.eval_on_selector_all(f"{grid} .pic", "all => all.map(p => p.dataset.id)")


def shown(page, grid, act):
    """Acts, and waits for pictures that were not there before: the address changes before the answer is there."""
    page.evaluate("document.querySelectorAll('.pic').forEach(pic => { pic.old = true; })")
    act()
    until(page, f"(pics => pics.length && pics.every(pic => !pic.old))([...document.querySelectorAll('{grid} .pic')])")


def keep(page, what):
    page.wait_for_timeout(250)
    page.screenshot(path=str(pathlib.Path(folder) / f"{what}.png"))


def fits(page, what):
    wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wide <= 0, f"{what} is {wide} pixels wider than the window"
    cut = page.evaluate("""[...document.querySelectorAll('.pic figcaption, h1, h2, .small')].filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1).length""")
    assert cut == 0, f"{cut} captions of {what} are cut"
    keep(page, what)


def originals(page):
    """Pictures are shown from their files, in the folder and in the archive, and asked for again by their tags."""
    page.wait_for_selector("#grid .pic")
    until(page, "[...document.querySelectorAll('#grid img')].some(i => i.naturalWidth === 240)")
    for id in (0, 119):
        said = page.evaluate(f"""(async () => {{
            const first = await fetch('/api/picture/{id}/small?side=200', {{ cache: 'no-store' }});
            const again = await fetch('/api/picture/{id}/small?side=200', {{ cache: 'no-store', headers: {{ 'If-None-Match': first.headers.get('etag') }} }});
            const other = await fetch('/api/picture/{id}/small?side=100', {{ cache: 'no-store', headers: {{ 'If-None-Match': first.headers.get('etag') }} }});
            const sides = async path => {{ const b = await createImageBitmap(await (await fetch(path)).blob()); return [b.width, b.height]; }};
            return [first.status, again.status, other.status, await sides('/api/picture/{id}/small?side=200'), await sides('/api/picture/{id}/large'), await sides('/api/picture/{id}/large?longest=180'), await sides('/api/picture/{id}')];
        }})()""")
        assert said == [200, 304, 200, [200, 200], [360, 240], [180, 120], [360, 240]], said


def pixels(page):
    """A picture of few pixels is shown by its pixels, a photograph is not."""
    square = "new Blob([Uint8Array.from(atob(canvas.toDataURL().split(',')[1]), c => c.charCodeAt(0))], { type: 'image/png' })"
    page.evaluate(f"(canvas => {{ canvas.width = canvas.height = 32; const img = document.createElement('img'); img.id = 'few'; img.src = URL.createObjectURL({square}); document.body.append(img); }})(document.createElement('canvas'))")
    until(page, "getComputedStyle(document.querySelector('#few')).imageRendering === 'pixelated'")
    page.evaluate("document.querySelector('#few').remove()")
    assert page.locator("#grid img.pixels").count() == 0


def lightbox(page):
    """Opened by key and by button, with the path; arrows go on, Escape leaves to where one was."""
    page.locator("#grid .pic a").first.focus()
    page.keyboard.press("e")
    until(page, "document.querySelector('#lightbox').open && document.querySelector('#boxPicture').naturalWidth === 360")
    shown = page.inner_text("#boxPath")
    assert shown.startswith(root) and shown.endswith(".png"), shown
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.click("#boxCopy")
    until(page, "document.querySelector('#boxSaid').textContent.includes('copied')")
    assert page.evaluate("navigator.clipboard.readText()") == shown
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    until(page, "document.querySelector('#boxSaid').textContent.startsWith('3 of')")
    assert page.inner_text("#boxPath") != shown
    keep(page, "lightbox")
    page.keyboard.press("Escape")
    until(page, "!document.querySelector('#lightbox').open")
    # The focus moves once the dialog's close event has come.
    until(page, f"{here} === '{ids(page)[2]}'")
    page.locator("#grid .pic").nth(1).hover()
    page.locator("#grid .pic .look").nth(1).click()
    until(page, "document.querySelector('#lightbox').open")
    page.click("#boxClose")


def way(page):
    """An upload is a step of the way like any other picture, from whichever view it was sent."""
    page.goto(f"{address}/#outliers")
    page.wait_for_selector("#outlierGrid .pic")
    page.set_input_files("#file", picture)
    until(page, "location.hash === '#upload/0' && !document.querySelector('#asked').hidden")
    assert page.inner_text("#queryName") == "Your picture"
    assert set(page.eval_on_selector_all("#grid .pic figcaption b", "all => all.map(b => b.textContent)")) == {"green"}
    for steps in (2, 3):
        page.locator("#grid .pic a").nth(3).click()
        until(page, f"document.querySelectorAll('#trail a').length === {steps}")
    assert page.evaluate("location.hash").startswith("#picture/")
    assert page.locator("#trail a[href='#upload/0']").count() == 1
    fits(page, "way")
    page.click("#trail a[href='#upload/0']")
    until(page, "document.querySelector('#queryName').textContent === 'Your picture'")
    until(page, "document.querySelector('#query').naturalWidth === 360")
    page.go_back()
    until(page, "document.querySelector('#queryName').textContent === 'green'")


def select(page):
    """By key, by click, by range, over views; as a list, a table, and on the clipboard."""
    page.goto(f"{address}/#picture/5")
    until(page, "document.querySelector('#query').src.includes('/api/picture/5/')")
    page.locator("#grid .pic a").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    until(page, "document.querySelector('#chosenCount').textContent === '3 pictures selected'")
    page.locator("#grid .pic a").nth(5).click(modifiers=["Shift"])
    until(page, "document.querySelector('#chosenCount').textContent === '6 pictures selected'")
    page.locator("#grid .pic .tick").nth(1).click()
    until(page, "document.querySelector('#chosenCount').textContent === '5 pictures selected'")
    assert page.evaluate("location.hash") == "#picture/5", "selecting goes nowhere"
    keep(page, "selected")
    shown(page, "#outlierGrid", lambda: page.goto(f"{address}/#outliers"))
    page.locator("#outlierGrid .pic a").first.focus()
    page.keyboard.press("Space")
    chosen = page.evaluate("[...selected.keys()]")
    assert len(chosen) in (5, 6), chosen
    with page.expect_download() as text:
        page.click("#chosenText")
    listed = pathlib.Path(text.value.path()).read_text().splitlines()
    assert listed == [f"{root}/{name}" for name in chosen], listed
    assert all(pathlib.Path(path).exists() or ".tar/" in path for path in listed)
    with page.expect_download() as table:
        page.click("#chosenTable")
    rows = pathlib.Path(table.value.path()).read_text().splitlines()
    assert rows[0] == "path,label,similarity" and len(rows) == 1 + len(chosen) and rows[1].count(",") == 2, rows
    page.click("#chosenCopy")
    until(page, "document.querySelector('#chosenCount').textContent.includes('copied')")
    assert page.evaluate("navigator.clipboard.readText()").splitlines() == listed
    page.click("#chosenNone")
    assert page.locator("#chosen").is_hidden() and page.locator(".pic.on").count() == 0
    # Names and labels are texts in a spreadsheet, never formulas; a number stays one.
    for name in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", '=A1,"x"', "a=b"]:
        page.evaluate("name => selected.set(name, { name, label: name, upload: 0, similarity: -0.5 })", name)
        text = name if name == "a=b" else f"'{name}"
        [_, row] = csv.reader(page.evaluate("table()").splitlines())
        assert row == [text, text, "-0.5"], row
        page.evaluate("selected.clear()")


def filters(page):
    """A folder or a label alone, in every view, in the address too."""
    page.goto(f"{address}/#search")
    until(page, "!document.querySelector('#filter').hidden")
    page.select_option("#folder", "photos/red")
    until(page, "document.querySelector('#gridName').textContent === '40 pictures'")
    assert ids(page) == [str(i) for i in range(40)]
    assert page.evaluate("location.hash") == "#search?folder=photos%2Fred"
    page.goto(f"{address}/#picture/50?label=blue")
    until(page, "document.querySelector('#query').src.includes('/api/picture/50/')")
    assert all(80 <= int(i) < 120 for i in ids(page)), ids(page)
    assert page.eval_on_selector("#label", "s => s.value") == "blue"
    for view, grid in [("outliers", "#outlierGrid"), ("clusters", "#clusterList")]:
        shown(page, grid, lambda: page.click(f"[data-view={view}]"))
        assert all(80 <= int(i) < 120 for i in ids(page, grid)), view
    shown(page, "#clusterList", lambda: page.click("#unfilter"))
    assert page.evaluate("location.hash") == "#clusters"


def views(page, name):
    page.goto(f"{address}/#clusters/6")
    until(page, "document.querySelectorAll('#clusterList .group').length === 6")
    fits(page, f"{name}-clusters")
    shown(page, "#clusterList", page.locator("#clusterList .over a").first.click)
    assert "most typical first" in page.inner_text("#clustersSaid")
    assert len(ids(page, "#clusterList")) > 6
    page.click("[data-view=duplicates]")
    until(page, "document.querySelector('#duplicatesSaid').textContent === '3 copies in 3 groups: 1 crop, 1 mirrored, 1 same file.'")
    assert ids(page, "#duplicateList") == ["0", "1", "40", "41", "80", "81"]
    notes = page.eval_on_selector_all("#duplicateList .kind", "all => all.map(n => n.textContent)")
    assert notes == ["keep · 360×240", "mirrored · 360×240", "keep · 360×240", "same file · 360×240", "keep · 360×240", "crop · 260×200"], notes
    page.click("#selectCopies")
    assert page.evaluate("[...selected.values()].map(p => p.id)") == [1, 41, 81]
    fits(page, f"{name}-duplicates")
    page.click("#chosenNone")
    shown(page, "#outlierGrid", lambda: page.click("[data-view=outliers]"))
    assert len(ids(page, "#outlierGrid")) == 60
    page.click("#outliersMore")
    until(page, "document.querySelectorAll('#outlierGrid .pic').length === 120 && document.querySelector('#outliersMore').hidden")
    assert len(set(ids(page, "#outlierGrid"))) == 120
    fits(page, f"{name}-outliers")
    page.click("[data-view=map]")
    page.wait_for_selector("#map .map:not([hidden]) canvas", timeout=60_000)
    assert page.get_attribute("[data-pictures]", "aria-pressed") == "true", "the map starts with pictures"
    page.wait_for_timeout(800)
    fits(page, f"{name}-map")


with sync_playwright() as playwright:
    browser = launch(playwright)
    broken = []
    pathlib.Path(folder).mkdir(parents=True, exist_ok=True)

    def opened(**how):
        page = browser.new_page(**how)
        page.on("pageerror", lambda e: broken.append(str(e)))
        page.on("console", lambda m: broken.append(m.text) if m.type == "error" else None)
        page.goto(address)
        return page

    page = opened(viewport={"width": 1100, "height": 820})
    for part in (originals, pixels, lightbox, way, select, filters):
        part(page)
    views(page, "wide")
    page.close()
    page = opened(viewport={"width": 360, "height": 740}, color_scheme="dark", has_touch=True, device_scale_factor=2)
    page.wait_for_selector("#grid .pic")
    fits(page, "phone-start")
    way(page)
    lightbox_button = page.locator("#grid .pic .look").first
    lightbox_button.click()
    until(page, "document.querySelector('#lightbox').open && document.querySelector('#boxPicture').naturalWidth === 360")
    fits(page, "phone-lightbox")
    page.keyboard.press("Escape")
    page.locator("#grid .pic .tick").first.click()
    fits(page, "phone-selected")
    page.click("#chosenNone")
    views(page, "phone")
    assert not broken, broken
    browser.close()
print("the page was used")
