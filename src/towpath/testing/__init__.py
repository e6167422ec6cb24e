"""The contracts of models and methods as suites of tests, for authors of either.

Make a class of a suite in a test file, and pytest runs one test for each law:

    from towpath.testing import MethodContract, ScorerContract

    class TestMyScorer(ScorerContract):
        model = MyScorer

    class TestMyMethod(MethodContract):
        method = MY_METHOD
"""

from towpath.testing.data import small_split
from towpath.testing.methods import MethodContract
from towpath.testing.scorers import ScorerContract

__all__ = ["MethodContract", "ScorerContract", "small_split"]
