"""How heavy the first page of the app is, and after how long it answers: `python -m benchmarks.first_page ADDRESS …`.

Several addresses, each of an app that was started by hand (`tablesafe serve --no-browser`), are measured in turn, so
that whatever else the machine does meets all of them.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from typing import Any

TIMES = 12
"""How often each page is opened, in a browser that knows nothing of it."""


def opened(browser: Any, address: str) -> tuple[float, float, float, int]:
    """Seconds until a click is answered by the server, seconds of the page's own work, kilobytes, and requests."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    session, weights, asked = context.new_cdp_session(page), list[float](), list[str]()
    session.on("Network.loadingFinished", lambda event: weights.append(event["encodedDataLength"]))
    session.on("Network.requestWillBeSent", lambda event: asked.append(event["request"]["url"]))
    session.send("Network.enable")
    session.send("Performance.enable")
    begin = time.perf_counter()
    page.goto(address)
    page.get_by_role("button", name="Job file", exact=True).click()
    page.get_by_role("complementary").filter(has_text="job.toml").first.wait_for()
    seconds = time.perf_counter() - begin
    found = {each["name"]: float(each["value"]) for each in session.send("Performance.getMetrics")["metrics"]}
    context.close()
    return seconds, found["TaskDuration"], sum(weights) / 1000, len(asked)


def main(addresses: list[str]) -> None:
    """Measure every address and print a line for each."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        found: dict[str, list[tuple[float, float, float, int]]] = {address: [] for address in addresses}
        for _ in range(TIMES):
            for address, several in found.items():
                several.append(opened(browser, address))
        browser.close()
    for address, several in found.items():
        seconds, busy, weight, requests = zip(*several, strict=True)
        seconds_told = f"answers after {statistics.median(seconds):.2f} s, at least {min(seconds):.2f}"
        busy_told = f"busy {statistics.median(busy):.2f} s, at least {min(busy):.2f}"
        name = address.partition("/?")[0]
        print(f"{name}: {seconds_told}; {busy_told}; {max(weight):.0f} kB; {max(requests)} requests")


if __name__ == "__main__":
    main(sys.argv[1:])
