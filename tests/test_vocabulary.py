"""Words that the project no longer uses; the usual term of the field is used instead (CONTRIBUTING.md).

Every rule is a pattern of whole words with the term to use. ALLOWED lists what a pattern would hit but may
stay: keys of JSON output that scripts read. The changelog is not searched, since it names what was renamed.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# They name old words to refuse them.
OLD_ON_PURPOSE = (Path(__file__), ROOT / "tests/test_older_versions.py")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "docs").glob("*.py")),
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "benchmarks").glob("*.py")),
    *sorted((ROOT / "fuzz").glob("*.py")),
    *sorted((ROOT / "src").rglob("*.py")),
    *sorted((ROOT / "src").rglob("*.j2")),
    *(path for path in sorted((ROOT / "tests").rglob("*.py")) if path not in OLD_ON_PURPOSE),
]
# "taken" and "head" are ordinary English in other phrases ("taken from", "attention head"), so only the
# phrases in which they were private terms are rules.
RULES = {
    r"untaken|(has|have|had|not|already|most|being) taken|taken (items?|pairs?)|taken_\w+": "interacted with",
    r"(what|that) (a |the )?users? took|what they took": "positives, interacted with",
    r"blind(ly)?": "random, at random",
    r"in vain": "shown but not clicked",
    r"head_negatives|(from|in) (its|the) head|head of (its|their|f's|the|each user's) (own |current )?ranking"
    r"|proposals from the head|--set head=\w+": "hard negatives, top of the ranking",
    r"last_rate|walk_at|pace|paced": "final_lr_factor, set_lr_scale, lr_scale",
    r"beside": "next to, with, compared with; auxiliary_state",
    r"judg(e|es|ed|ing|ement)": "evaluate",
    r"arenas?|Arena\w*": "benchmark",
    r"towpath curve|CurveOptions|curve_page": "sweep",
    r"simulate (make|show|loop)": "simulate create, describe, run",
    r"named (public )?sets?|NamedSet|named-sets": "built-in dataset",
    r"deal|deals|dealt|dealing|Deal|deal_column": "assign, batch_shuffle",
    r"Kept(Cells|Pairs|Rounds)|kept cells?": "ResultStore, stored result",
    r"places in (its |their |the )?lists?|k places|empty places|all places of": "slots",
    r"learns_from_windows|knows_gradients|taken_matrix": "trains_on_sequences, has_manual_backward",
    r"thinned|wish_of|past_of": "subsample_columns, parse_feature_spec, serving_history_of",
    r"charged? for long vectors|points of a hundred|Killed, and again|killed\?": "plain English",
    r"Departures( from)?|Worlds whose truth": "Deviations from the paper, Simulation",
    r"ess_penalty=\w+|relaxation=straight-through|lipschitz=spectral|order=[fwg]{3}": "(removed settings)",
}
ALLOWED = ('"blind choice"', '"arena"', '"arenas"')


def old_words(text: str) -> list[str]:
    """Every old word in a text with its line and what to use instead."""
    for phrase in ALLOWED:
        text = text.replace(phrase, "")
    found = []
    for pattern, instead in RULES.items():
        spaced = rf"(?<![\w-])({pattern})(?!\w)".replace(" ", r"\s+")
        for hit in re.finditer(spaced, text):
            line = text.count("\n", 0, hit.start()) + 1
            found.append(f"line {line}: {hit[0]!r}; use: {instead}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_old_word_is_left(page: Path) -> None:
    assert old_words(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "users are judged", "shown in vain", "a blind list", "what the user has not\n    taken",
        "the named sets", "towpath simulate make --out world", "it lies beside the run",
        "12 places in its lists", "head_negatives=1", "items that a user took",
    ],
)  # fmt: skip
def test_an_old_word_is_found(text: str) -> None:
    assert len(old_words(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "taken from the data",
        "an attention head",
        "besides",
        "placed",
        "spaces",
        '{"blind choice": 1}',
        "ideal",
    ],
)
def test_ordinary_english_is_not(text: str) -> None:
    assert old_words(text) == []
