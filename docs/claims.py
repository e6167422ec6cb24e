"""The page results/claims.md and the claims that README quotes, written from the committed results.

    python docs/claims.py        (or: make reference)

What held, and by how much, comes from the verdicts in docs/results/*/results.json. Which claims are not
computed yet comes from the declared experiments. Why a claim held is written here. A test compares both pages
with the files and checks that every verdict has its place.
"""

import csv
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from towpath.experiments.paper.benchmarks import benchmark_spec
from towpath.experiments.paper.catalogue import EXPERIMENTS
from towpath.experiments.paper.claims import Better, CatchesUp, Claim, WeightsAre
from towpath.experiments.paper.experiment import Experiment

DOCS = Path(__file__).parent
RESULTS, README = DOCS / "results", DOCS.parent / "README.md"
WIDTH = 116
_QUOTED = re.compile(r"(?<=<!-- claims -->\n).*?(?=<!-- end of claims -->)", re.S)


@dataclass(frozen=True)
class Group:
    """Claims of the paper that belong together, and why they held or not."""

    title: str
    pattern: str  # of the claims, as the pages state them
    why: str


@dataclass(frozen=True)
class Verdict:
    """What a committed page says about a claim."""

    folder: str
    claim: str
    data: str
    outcome: str
    evidence: str

    @property
    def line(self) -> str:
        """One entry of a list."""
        page = f"[page]({self.folder}/results.md)"
        return f"{self.claim}: **{self.outcome}** on {self.data} ({page}). {self.evidence}"


GROUPS = (
    Group(
        "The proposed method improves its base model",
        r"DT-(MCF|NCF|Attn)(, the paper's players)? is better than (MCF|NCF|Attn)",
        "On MovieLens 1M, tested on its own log, it does. Most of the gain comes from hard negatives: plain "
        "training with the same negatives has four fifths of it. In the simulation with the paper's click "
        "rule the lists are truly a little more relevant, and NDCG under the paper's protocol falls. Where "
        "clicks come by chance there is no gain: items without a click are then often relevant items that "
        "were not shown, and the game gives these the largest weights.",
    ),
    Group(
        "It is better than methods that were made against bias",
        r".*, which was made against bias",
        "On the log it is. A test on the log has the bias of the log, so a method that removes the bias is "
        "not expected to win there. By chance, weights by the true propensities are better than everything "
        "else; no log of a deterministic recommender has them.",
    ),
    Group(
        "The best of all methods is one of the proposed ones",
        r"The best of all methods, .*",
        "Among the methods of the paper it mostly is, on MovieLens 1M. EASE, which the paper does not have, "
        "is ahead of all factorisations there under full ranking.",
    ),
    Group(
        "Doubly robust learning and causal embeddings improve MCF, but less",
        r"(DR|CE)-MF .*",
        "Here they do not improve it. Their corrections cost accuracy on the log, and the log cannot show "
        "what they gain.",
    ),
    Group(
        "Mixing models as f, w and g is better than one model",
        r"DT-\(.*|Mixing models .*",
        "",
    ),
    Group(
        "What the weights learn",
        r".*: (weights|among|on (negatives|positives)).*",
        "With margin players, weights are largest on what f would show, as claimed. They are even among "
        "these pairs and rise with the score among the others, where the paper has no pattern: w is an "
        "increasing function of the margin that reaches its ceiling.",
    ),
    Group(
        "Without the regularisation training degenerates, and lambda matters little",
        r"Without the regularisation .*|Performance is steady .*",
        "The [appendix](appendix/transport.md) and [deviations](../deviations.md) have smaller "
        "measurements: within narrow bounds of w it does not degenerate, with wide bounds it does.",
    ),
    Group("More moves of w and g are better", r"More moves .*", ""),
    Group(
        "Less faith in small propensities is better",
        r"Less faith .*",
        "It is, up to no weighting at all: on a log without overlap small propensities do harm.",
    ),
    Group(
        "It reaches the quality of plain training in about the same time",
        r"DT-MCF reaches .*",
        "On two of three seeds it needed about the same time, on the third it never reached it.",
    ),
    Group(
        "A wide-and-deep model gains by IPW, and more by the proposed method",
        r"(IPW|DT)-D&W is better than .*",
        "",
    ),
    Group(
        "Where the two domains overlap more, less is to be gained",
        r"DT-MCF is better than IPW-MF, true propensities",
        "The [appendix](appendix/simulated-worlds.md#from-no-overlap-to-full-overlap) has an older "
        "measurement: on clicks alone transport helps most in a completely random log, the opposite of what "
        "the paper argues.",
    ),
)
_INTRO = """\
# Claims of the paper, and what held

The paper is "From Intervention to Domain Transportation: A Novel Perspective to Optimize Recommendation"
(Xu, Ye and Ruan, ICLR 2022, [arXiv:2203.13956](https://arxiv.org/abs/2203.13956)). Every line below comes
from a committed result file of `towpath paper`. Held: the whole 95 % interval is on the claim's side under
every measure; in part: under some, and against it under none; undecided: zero is in every interval; mixed:
both ways; did not hold: against it under some, for it under none. The paper learns from clicks alone, and
so do these tables. Where the log says what was shown, see [logs of impressions](impressions/results.md).
"""
_NOT_YET = "Not computed yet at full size: "
# Statistics of weights that need the true exposure, and those that need weights of positives.
_OF_EXPOSURE = ("rising with exposure", "even on positives")
_OF_POSITIVES = ("more on positives", "even on positives")
_ELSEWHERE = """\
## Theory: one recommender's log cannot vouch for another, and transport can

Proposition 1 (learning from a log is hopeless where the two domains do not overlap) is what the figure of
overlap is about. Theorem 3 (transport on a bandit log, over lambda) has
[a page of its own](theorem-3/results.md). The bounds are computed by `towpath diagnose`:
[how they differ from the print](../deviations/theory.md), and
[how often its intervals hold](evidence/results.md).

## The online test: a wide-and-deep model with transport wins an A/B/C test

The log and the traffic of that test are not public, so this cannot be checked. Its offline table is declared
as `table-wide-deep` and runs on MovieLens 1M. What transport earns where true clicks are known is on the page
[logs of impressions](impressions/results.md)."""
# What README quotes: the folder and the claim.
QUOTED = (
    ("table-1-ml-1m", "DT-MCF is better than MCF"),
    ("table-1-ml-1m-simulation", "DT-NCF is better than NCF"),
    ("simulation-by-chance-ml-1m", "DT-MCF is better than MCF"),
)
_WORLDS = "impressions/latent-small-exploration-0-taste-0.6.csv"


def verdicts() -> list[Verdict]:
    """All verdicts of committed pages, folder by folder, real data first."""
    found = []
    files = RESULTS.glob("*/results.json")
    for path in sorted(files, key=lambda path: ("simulation" in path.parent.name, path)):
        for one in json.loads(path.read_text(encoding="utf-8"))["verdicts"]:
            facts = (one[key] for key in ("claim", "arena", "outcome", "evidence"))
            found.append(Verdict(path.parent.name, *facts))
    return found


def group_of(claim: str) -> Group:
    """The first group that the claim fits."""
    return next(group for group in GROUPS if re.fullmatch(group.pattern, claim))


def declared() -> Iterator[tuple[str, str]]:
    """Every claim of every experiment with the data set that it is about."""
    for experiment in EXPERIMENTS.values():
        for benchmark in experiment.benchmarks:
            for claim in experiment.claims:
                if _applies(claim, experiment, benchmark):
                    yield claim.statement, benchmark_spec(benchmark).title


def _applies(claim: Claim, experiment: Experiment, benchmark: str) -> bool:
    """Whether the claim can be decided there: its columns are fitted, and what it is about is known."""
    columns = experiment.columns_on(benchmark)
    if isinstance(claim, Better):
        return {claim.better, claim.worse} <= columns.keys()
    if isinstance(claim, CatchesUp):
        return {claim.faster, claim.slower} <= columns.keys()
    if not isinstance(claim, WeightsAre):
        return True
    if claim.statistic in _OF_EXPOSURE and benchmark_spec(benchmark).simulated is None:
        return False
    of_positives = columns[claim.column].resolved()["settings"]["reweight"] == "all"
    return of_positives or claim.statistic not in _OF_POSITIVES


def not_yet(group: Group, known: list[Verdict]) -> str:
    """The claims of a group that are not computed yet, with the data sets."""
    decided = {(one.claim, one.data) for one in known}
    missing: dict[str, list[str]] = {}
    for claim, data in dict.fromkeys(declared()):
        if group_of(claim) is group and (claim, data) not in decided:
            missing.setdefault(claim, []).append(data)
    return "; ".join(f"{claim} ({', '.join(data)})" for claim, data in missing.items())


def claims_text() -> str:
    """The page of claims."""
    known = verdicts()
    title, about = _INTRO.split("\n\n")
    parts = [title, _wrap(" ".join(about.split()))]
    for group in GROUPS:
        own = [one for one in known if group_of(one.claim) is group]
        parts += [f"## {group.title}", *([_wrap(group.why)] if group.why else [])]
        parts += ["\n".join(_wrap(f"- {one.line}", "  ") for one in own)] if own else []
        missing = not_yet(group, known)
        parts += [_wrap(f"{_NOT_YET}{missing}.")] if missing else []
    parts += [_wrap(" ".join(part.split())) if part[0] != "#" else part for part in _ELSEWHERE.split("\n\n")]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def readme_text() -> str:
    """README with the quoted claims as the files have them."""
    return _QUOTED.sub(lambda _: quoted_lines(), README.read_text(encoding="utf-8"))


def quoted_lines() -> str:
    """The claims that README quotes, and what transport earns on impressions."""
    known = {(one.folder, one.claim): one for one in verdicts()}
    lines = [_impressions_line()]
    for key in QUOTED:
        one = known[key]
        numbers = re.sub(r"\. \d+ seeds.*", "", one.evidence)
        lines.append(f"- {one.claim}: **{one.outcome}** on {one.data} ({numbers}).")
    return "".join(_wrap(line, "  ") + "\n" for line in lines)


def _impressions_line() -> str:
    with (RESULTS / _WORLDS).open(encoding="utf-8", newline="") as file:
        rows = {row["method"]: row for row in csv.DictReader(file)}
    earns = {name: f"{float(row['true clicks']):.2f}" for name, row in rows.items()}
    others = {"plain": "plain training", "shown": "shown pairs alone", "esmm": "ESMM, the best rival,"}
    listed = ", ".join(f"{text} {earns[name]}" for name, text in others.items() if name in earns)
    return (
        f"- On logs of what was shown, in {rows['transport']['worlds']} simulated worlds, it earns "
        f"**{earns['transport']} true clicks** on a list of ten ({listed})."
    )


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def write() -> None:
    """Write both pages."""
    (RESULTS / "claims.md").write_text(claims_text(), encoding="utf-8")
    README.write_text(readme_text(), encoding="utf-8")


if __name__ == "__main__":
    write()
