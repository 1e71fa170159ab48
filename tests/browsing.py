"""A browser for tests: a Chromium that is installed, by Playwright. They are skipped where either is missing.

pip install playwright && apt-get install chromium
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The browser."""
    playwright = pytest.importorskip("playwright.sync_api")
    programs = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    if (chromium := next(filter(None, programs), None)) is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def browse(browser: Any) -> Iterator[Callable[..., Any]]:
    """A function that opens a page. The test fails if the page logs a message or makes a request elsewhere.

    Messages of the types ``tolerated`` are no failure.
    """
    wrong: list[str] = []
    with contextlib.ExitStack() as stack:

        def open_page(
            address: str, viewport: Any = DESKTOP, tolerated: tuple[str, ...] = (), **options: Any
        ) -> Any:
            page = stack.enter_context(browser.new_context(viewport=viewport, **options)).new_page()
            page.on("console", lambda each: None if each.type in tolerated else wrong.append(each.text))
            page.on("pageerror", lambda error: wrong.append(str(error)))
            own = (address, "data:", "blob:")
            page.on("request", lambda each: None if each.url.startswith(own) else wrong.append(each.url))
            page.goto(address)
            return page

        yield open_page
    assert wrong == []
