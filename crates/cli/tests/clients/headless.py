"""What every script that drives a page in headless Chromium needs."""

import shutil
import sys


def launch(playwright):
    """Debian's browser where it is installed, Playwright's own otherwise; ends the script where neither starts."""
    system = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        return playwright.chromium.launch(executable_path=system, args=["--no-sandbox"])
    except Exception as error:  # Playwright without a browser is no failure of the page
        print("skipped: no browser starts")
        print(str(error).splitlines()[0])
        sys.exit(0)


def until(page, holds, seconds=20):
    """Waits for an expression to hold. Playwright's own waiting would need what the page's policy forbids."""
    for _ in range(20 * seconds):
        if page.evaluate(holds):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"still not: {holds}")
