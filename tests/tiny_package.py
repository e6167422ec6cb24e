"""A package of somebody else that registers models and a method by entry points."""

from pathlib import Path

SOURCE = '''
from towpath.methods.method import Method
from towpath.models.popularity import Popularity, PopularitySettings
from towpath.models.factorization import Factorization
from towpath.training.plain import PlainLearner, PlainSettings


class Rare(Popularity):
    """The least popular items first."""

    def score(self, context, items):
        return -super().score(context, items)


class Mine(Factorization):
    """A factorisation under another name."""


class Loud(PlainLearner):
    """Plain training that says so."""

    def epoch(self, number):
        return super().epoch(number) | {"loud": 1.0}


LOUD = Method("loud", PlainSettings, Loud)
NOT_A_MODEL = 3
'''
ENTRY_POINTS = """
[towpath.models]
rare = oddments:Rare
mine = oddments:Mine
broken = oddments.nowhere:Broken
number = oddments:NOT_A_MODEL
mf = oddments:Rare

[towpath.methods]
loud = oddments:LOUD
"""


def install(folder: Path, name: str = "oddments", entry_points: str = ENTRY_POINTS) -> Path:
    """The package in this folder, as pip would install it: a module, and a dist-info next to it."""
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "oddments.py").write_text(SOURCE)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entry_points)
    return about
