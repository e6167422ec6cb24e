"""A real browser without a window, for tests that look at a page as a reader would."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium found (chromium, google-chrome)")


@dataclass(frozen=True)
class Rendered:
    """What the browser made of a page."""

    dom: str
    log: str
    picture: bytes

    def console(self) -> list[str]:
        """What the page wrote to the console, which is only ever complaints."""
        return [line for line in self.log.splitlines() if "CONSOLE" in line]


def render(page: Path, scratch: Path, width: int) -> Rendered:
    """The page as it stands after loading, from disk and without a network, with a picture of its top."""
    picture = scratch / "page.png"
    log, dom = "", ""
    for what in ("--dump-dom", f"--screenshot={picture}"):
        done = subprocess.run(
            [
                str(BROWSER), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--enable-logging=stderr", "--v=0", "--host-resolver-rules=MAP * ~NOTFOUND",
                f"--user-data-dir={scratch / 'profile'}", f"--window-size={width},1200", what, page.as_uri(),
            ],
            capture_output=True, text=True, check=True, timeout=240,
        )  # fmt: skip
        log, dom = log + done.stderr, dom or done.stdout
    return Rendered(dom, log, picture.read_bytes())
