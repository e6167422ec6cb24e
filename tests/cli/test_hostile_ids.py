"""Ids that try to run as a script: in the pages that show them, nothing runs, in a real browser."""

import json
import re
from pathlib import Path

from chromium import needs_browser, render

RUNS = "document.documentElement.id='pwned'"
HOSTILE = (
    f"<script>{RUNS}</script>",
    f'<img src=x onerror="{RUNS}">',
    f'"><svg onload="{RUNS}">',
    f"</style></title><script>{RUNS}</script>",
    f"javascript:{RUNS}",
    "{{ 7 * 7 }}",
    "<!-- ",
    "\x1b[31m",
)


def hostile_events(path: Path) -> Path:
    """Events whose users and items all carry markup."""
    ids = [f"{HOSTILE[n % len(HOSTILE)]}{n}" for n in range(24)]
    rows = [
        (f"u{user}{HOSTILE[user % 3]}", ids[(user * 5 + n * 7) % 24], n)
        for user in range(60)
        for n in range(6)
    ]
    path.write_text("".join(json.dumps({"user": u, "item": i, "time": t}) + "\n" for u, i, t in rows))
    return path


@needs_browser
def test_nothing_in_a_page_runs(towpath, tmp_path: Path) -> None:
    events = hostile_events(tmp_path / "<script>x<script>.jsonl")
    run, page = tmp_path / "<b onclick=x>run", tmp_path / "page.html"
    assert towpath("fit", events, "--model", "ease", "--out", run, "--quiet").code == 0
    assert towpath("report", run, "--out", page, "--quiet").code == 0
    html = page.read_text()
    assert not re.search(r"<script|<svg onload|<img src=x", html)
    (tmp_path / "scratch").mkdir()
    shown = render(page, tmp_path / "scratch", 1200)
    assert 'id="pwned"' not in shown.dom
    assert shown.console() == []


@needs_browser
def test_the_browser_would_notice(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>x</title><p>{HOSTILE[0]}</p>")
    assert 'id="pwned"' in render(page, tmp_path, 400).dom


def test_ids_do_not_steer_a_terminal(towpath, tmp_path: Path) -> None:
    events = hostile_events(tmp_path / "a.jsonl")
    assert towpath("fit", events, "--model", "ease", "--out", tmp_path / "run", "--quiet").code == 0
    answer = towpath("similar", tmp_path / "run", "--item", f"{HOSTILE[0]}0")
    assert answer.code == 0, answer.err
    assert "\x1b[31m" not in answer.out + answer.err
