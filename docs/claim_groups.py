"""What the paper claims, where it says so, and why a claim may hold or not.

docs/claims.py puts the numbers to it. A reason is printed only where a committed page has the outcome that it
explains, so the texts here never say what was measured.
"""

from dataclasses import dataclass

FOR, AGAINST = ("held", "held in part"), ("mixed", "undecided", "did not hold")


@dataclass(frozen=True)
class Reason:
    """Why claims came out as they did; printed if a claim on a page has one of these outcomes."""

    text: str
    outcomes: tuple[str, ...]
    folder: str = ".*"  # of the pages that it explains
    claim: str = ".*"


@dataclass(frozen=True)
class Group:
    """Claims of the paper that belong together."""

    title: str
    said: str  # where the paper says it
    pattern: str  # of the claims, as the pages state them
    reasons: tuple[Reason, ...] = ()


_BASE = "MCF|NCF|Attn"
GROUPS = (
    Group(
        "The proposed method improves its base model",
        "Section 6, result analysis; Appendix, analysis of the complete results",
        rf"DT-({_BASE})(, the paper's players)? is better than ({_BASE})",
        (
            Reason(
                "where it held, part of the gain is due to hard negatives, which plain training can have as "
                "well (listed below).",
                FOR,
            ),
            Reason(
                "Where clicks come by chance, an item without a click is often a relevant item that was "
                "not shown. The game gives such items the largest weights, which teaches f to avoid them.",
                AGAINST,
                "simulation-by-chance-.*",
            ),
            Reason(
                "Under the paper's click rule every shown item is clicked, so exposure and relevance "
                "cannot be separated; the measures then disagree, because the `paper` protocol ranks "
                "clicks and Rel@10 the truth.",
                AGAINST,
                "table-.*-simulation",
            ),
            Reason(
                "In latent worlds clicks are drawn and many relevant items were never shown: on clicks "
                "alone the game weighs down what the log does not know. With impressions this is "
                "different (last section).",
                AGAINST,
                "figure-overlap-.*",
            ),
            Reason(
                "With models as players w can single out pairs, which takes weight from what f should "
                "learn; the margin players, which are our default, cannot.",
                AGAINST,
                claim=".*the paper's players.*",
            ),
        ),
    ),
    Group(
        "It is better than methods that were made against bias",
        "Section 6, result analysis",
        r".*, which was made against bias",
        (
            Reason(
                "A test on the log has the bias of the log. A method that removes the bias is not "
                "expected to win there, so a lead over such methods on real data says little about the "
                "truth.",
                FOR,
                r"table-1-(ml-1m|lastfm-2k|goodreads)",
            ),
            Reason(
                "In simulations the truth is known, and there the rivals correct what the game does not "
                "see: it has no estimate of exposure.",
                AGAINST,
                ".*(simulation|by-chance).*",
            ),
        ),
    ),
    Group(
        "The best of all methods is one of the proposed ones",
        "Section 6, result analysis",
        r"The best of all methods, .*",
        (
            Reason(
                "Only methods that the paper has are compared. EASE, which it does not have, is on the "
                "pages too, and is often ahead of all factorisations under full ranking.",
                FOR,
            ),
        ),
    ),
    Group(
        "Doubly robust learning and causal embeddings improve MCF, but less",
        "Appendix, analysis of the complete results",
        r"(DR|CE)-MF .*",
        (
            Reason(
                "Their corrections cost accuracy on the log, and a test on the log cannot show what they "
                "gain.",
                AGAINST,
                claim="(DR|CE)-MF is better.*",
            ),
        ),
    ),
    Group(
        "Mixing models as f, w and g is better than one model",
        "Appendix, analysis of the complete results",
        r"DT-\(.*|Mixing models .*",
    ),
    Group(
        "What the weights learn",
        "Section 6, analysis on w; Figures 2a and 2b",
        r".*: (weights|among|on (negatives|positives)).*",
        (
            Reason(
                "With margin players w is an increasing function of the margin that reaches its ceiling: "
                "weights are largest on what f would show, even among these pairs, and rise with the "
                "score among the others.",
                (*FOR, *AGAINST),
                claim="DT-(MCF|NCF): .*",
            ),
        ),
    ),
    Group(
        "Without the regularisation training degenerates, and lambda matters little",
        "Section 6, ablation and sensitivity; Figure 2c",
        r"Without the regularisation .*|Performance is steady .*",
        (
            Reason(
                "Within narrow bounds of w little can degenerate; with wide bounds it does "
                "([settings of the game](../deviations/game.md#settings-of-the-game-on-movielens-100k)).",
                AGAINST,
                claim="Without the regularisation .*",
            ),
        ),
    ),
    Group("More moves of w and g are better", "Appendix, steps of w and g", r"More moves .*"),
    Group(
        "Less faith in small propensities is better",
        "Appendix, threshold of the propensities",
        r"Less faith .*",
        (
            Reason(
                "A threshold of one is no weighting at all: on a log without overlap small propensities "
                "do harm, as Proposition 1 says.",
                FOR,
            ),
        ),
    ),
    Group(
        "It reaches the quality of plain training in less time",
        "Appendix, efficiency analysis",
        r"DT-MCF reaches .*",
        (
            Reason(
                "It needs fewer epochs, and each costs more ([time and memory](appendix/cost.md)).",
                AGAINST,
            ),
        ),
    ),
    Group(
        "A wide-and-deep model gains by IPW, and more by the proposed method",
        "Appendix, deployment to a real-world system",
        r"(IPW|DT)-D&W is better than .*",
    ),
    Group(
        "Where the two domains overlap more, less is to be gained",
        "Section 3, Proposition 1; Section 4, Theorem 3",
        r"DT-MCF is better than IPW-MF, true propensities",
    ),
)
INTRO = """\
The paper is "From Intervention to Domain Transportation: A Novel Perspective to Optimize Recommendation"
(Xu, Ye and Ruan, ICLR 2022, [arXiv:2203.13956](https://arxiv.org/abs/2203.13956)). Each section is a
claim of it. Every line below comes from a committed result file, and the page is written again when a
table or figure is computed.

**Held**: the whole 95 % interval is on the claim's side under every measure. **In part**: under some, and
against it under none. **Undecided**: zero is in every interval. **Mixed**: both ways. **Did not hold**:
against it under some, for it under none. Numbers are percentage points, for Rel@10 of simulations
expected relevant items. The paper learns from clicks alone, and so do all sections but the last. *Earlier
code*: the page is older than the committed fits and [will be computed again](index.md)."""
# Claims that are no comparison of numbers in a table of ours.
ELSEWHERE = """\
## Theory: bounds, consistency and the bandit case

*Section 3, Proposition 1; Section 4, Theorems 1 to 3.* Theorem 3 (on a bandit log transport becomes the
counterfactual risk as lambda grows) holds exactly from a lambda that can be computed; the figures are on
[a page of their own](theorem-3/results.md). The other statements cannot all be used as printed: [what was
changed](../deviations/theory.md). The bounds are computed by `towpath diagnose`, and [how often its
intervals hold](evidence/results.md) was counted.

## The online test: a wide-and-deep model with transport wins an A/B/C test

*Appendix, deployment to a real-world system.* The log and the traffic of that test are not public, so
this cannot be checked. Its offline table is declared as `table-wide-deep` and runs on MovieLens 1M. A
served test on simulated visitors, whose truth is known, is on the page [simulation](../simulation.md)."""
