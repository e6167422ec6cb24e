"""Scripts outside the package ask it only for names that it has."""

import ast
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from small import small_split
from towpath.evaluation.evaluate import evaluate
from towpath.models.registry import build
from towpath.models.scorer import sizes_of
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(
    str(p.relative_to(ROOT)) for d in ("benchmarks", "docs", "examples") for p in (ROOT / d).glob("*.py")
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_imported_name_exists(script: str) -> None:
    tree = ast.parse((ROOT / script).read_text(encoding="utf-8"))
    missing = [
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "towpath"
        for name in node.names
        if not _has(str(node.module), name.name)
    ]
    assert missing == []


def _has(module: str, name: str) -> bool:
    if hasattr(import_module(module), name):
        return True
    try:
        import_module(f"{module}.{name}")
    except ModuleNotFoundError:
        return False
    return True


def test_a_row_of_the_peers_table_has_medians_ranges_and_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    peers = import_module("benchmarks.peer_lines")
    lines = [peers.Line("epoch", ours, theirs, "RecBole", 0.5) for ours, theirs in ((1, 4), (2, 4), (3, 4))]
    assert (
        peers.to_row(lines)
        == "| epoch | 2 s (1 to 3) | 4 s (4 to 4) | RecBole | 0.5 (0.25 to 0.75) | 0.5 | yes |"
    )
    assert peers.to_cells(lines) == ["epoch", "2 s", "4 s", "RecBole", "0.5", "0.25", "0.75", "0.5", "yes"]
    assert peers.to_row([peers.Line("epoch", 3, 4, "RecBole", 0.5)]).endswith(
        "| 3 s | 4 s | RecBole | 0.75 | 0.5 | **no** |"
    )
    assert peers.to_row([peers.Line("epoch", 3, None, "RecBole", 0.5)]).endswith("| – | 0.5 | not measured |")
    assert peers.to_row([peers.Line("epoch", 3, 4, "RecBole", None)]).endswith("| 0.75 | – | – |")


def test_networks_are_compared_by_parts_together_and_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    peers = import_module("benchmarks.peer_lines")
    found = {
        "neumf": {"epoch": {"seconds": 1}, "evaluation": {"seconds": 2}},
        "recbole-neumf": {"epoch_seconds": 10, "evaluation_seconds": 20},
        "neumf-one": {"epoch": {"processor_seconds": 2}, "evaluation": {"processor_seconds": 3}},
        "recbole-neumf-one": {"epoch_processor_seconds": 20, "evaluation_processor_seconds": 30},
    }
    rows = [(line.what, line.ours, line.theirs, line.wanted) for line in peers.networks(found)]
    assert rows[:4] == [
        ("epoch of NeuMF", 1, 10, None),
        ("evaluation of NeuMF", 2, 20, None),
        ("NeuMF, both", 3, 30, 0.2),
        ("NeuMF, both on one thread, processor s", 5, 50, 0.2),
    ]
    assert all(line.ratio is None for line in peers.networks(found)[4:])


def test_lists_of_all_packages_are_scored_like_the_full_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    scored = import_module("benchmarks.default_models").scored
    split = small_split()
    scorer = build("mf", {"embedding_dim": 4}, sizes_of(split.train))
    scorer.initialise(split.train, Rng(0))
    lists = top_k_lists(scorer, split.test.users.astype(np.int64), split.before_test.histories, 10).items
    found, expected = scored(split, lists), evaluate(scorer, split)
    assert found["users"] == expected.users.tolist()
    np.testing.assert_allclose(found["hits"], expected.per_user["hit"])
    np.testing.assert_allclose(found["ndcgs"], expected.per_user["ndcg"])
    assert 0 < np.mean(found["hits"]) < 1


def test_what_was_tried_is_compared_with_the_default_by_the_lowest_round() -> None:
    tried = import_module("benchmarks.attention_tried")
    head, default, slower = tried.rows_of({tried.DEFAULT: [2.0, 1.0], "all items": [4.0, 2.5]})
    assert head[-1] == "times the default"
    assert default == [tried.DEFAULT, "1.00", "1.00 to 2.00", "1.00"]
    assert slower == ["all items", "2.50", "2.50 to 4.00", "2.50"]
