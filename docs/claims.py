"""The page results/claims.md and the claims that README quotes, written from the committed results.

    python docs/claims.py        (or: make reference)

What held, and by how much, comes from the verdicts in docs/results/*/results.json and from the files of
docs/results/impressions. Which claims are not computed yet comes from the declared experiments. What the
paper says, and why a claim may hold or not, is in claim_groups.py. A test compares both pages with the files
and checks that every verdict has its place.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import impression_claims
import published
from claim_groups import ELSEWHERE, GROUPS, INTRO, Group

from towpath.experiments.paper.benchmarks import benchmark_spec
from towpath.experiments.paper.catalogue import EXPERIMENTS
from towpath.experiments.paper.claims import Better, CatchesUp, Claim, WeightsAre
from towpath.experiments.paper.experiment import Experiment

DOCS = Path(__file__).parent
RESULTS, README = DOCS / "results", DOCS.parent / "README.md"
WIDTH = 116
OUTCOMES = ("held", "held in part", "mixed", "undecided", "did not hold", "not tested")
_QUOTED = re.compile(r"(?<=<!-- claims -->\n).*?(?=<!-- end of claims -->)", re.S)
_VERDICTS = re.compile(r"(<!-- verdicts: (\S+) -->\n).*?(?=<!-- end of verdicts -->)", re.S)
_RELEVANCE = re.compile(r"Rel@10 \(full\) ([-+.\d]+) \(([-+.\d]+) to ([-+.\d]+)\)")
_LATENT = re.compile(r"latent world, (\d+) % random exposures")
# Statistics of weights that need the true exposure, and those that need weights of positives.
_OF_EXPOSURE = ("rising with exposure", "even on positives")
_OF_POSITIVES = ("more on positives", "even on positives")
# What README quotes: the folder and the claim. Of each line the first that is computed.
QUOTED = (
    (("table-1-ml-1m", "DT-MCF is better than MCF"),),
    (
        ("table-1-ml-1m-simulation", "DT-NCF is better than NCF"),
        ("table-1-ml-1m-simulation", "DT-MCF is better than MCF"),
    ),
    (
        ("simulation-by-chance-ml-1m", "DT-MCF is better than MCF"),
        ("figure-overlap-latent-exploration-0", "DT-MCF is better than MCF"),
    ),
)


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
        earlier = ", earlier code" if published.is_earlier(self.folder) else ""
        page = f"[page]({self.folder}/results.md){earlier}"
        return f"{self.claim}: **{self.outcome}** on {self.data} ({page}). {self.evidence}"


def verdicts() -> list[Verdict]:
    """All verdicts of committed pages, folder by folder, real data first."""
    found = []
    files = RESULTS.glob("*/results.json")
    for path in sorted(
        files, key=lambda path: ("simulation" in path.parent.name, _natural(path.parent.name))
    ):
        for one in json.loads(path.read_text(encoding="utf-8"))["verdicts"]:
            facts = (one[key] for key in ("claim", "arena", "outcome", "evidence"))
            found.append(Verdict(path.parent.name, *facts))
    return found


def _natural(name: str) -> list[str]:
    """To sort by: numbers by their size."""
    return [part.zfill(4) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


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


def missing(group: Group, known: Iterable[Verdict]) -> dict[str, list[str]]:
    """The claims of a group that are not computed yet, with the data sets."""
    decided = {(one.claim, one.data) for one in known}
    found: dict[str, list[str]] = {}
    for claim, data in dict.fromkeys(declared()):
        if group_of(claim) is group and (claim, data) not in decided:
            found.setdefault(claim, []).append(data)
    return found


def claims_text() -> str:
    """The page of claims."""
    known = verdicts()
    parts = ["# Claims of the paper, and what held", *map(_wrap, INTRO.split("\n\n"))]
    parts += ["## At a glance", *_glance(known)]
    for group in GROUPS:
        parts += _section(group, known)
    parts += [_wrap(part) if part[0] != "#" else part for part in ELSEWHERE.split("\n\n")]
    parts += impression_claims.section(_wrap)
    return "\n\n".join(part for part in parts if part) + "\n"


def _glance(known: Sequence[Verdict]) -> Iterator[str]:
    """Of each group, on how many data sets which outcome was found."""
    head = ["claim", *OUTCOMES[:-1], "not computed"]
    lines = [head, ["---"] * len(head)]
    for group in GROUPS:
        own = [one for one in known if group_of(one.claim) is group]
        counts = [sum(one.outcome == outcome for one in own) for outcome in OUTCOMES[:-1]]
        left = sum(map(len, missing(group, known).values())) + sum(one.outcome == "not tested" for one in own)
        lines.append([group.title, *(str(count or "") for count in counts), str(left or "")])
    yield _wrap(
        "Each number counts statements of a section, one for each method and data set that it is about."
    )
    yield "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _section(group: Group, known: Sequence[Verdict]) -> Iterator[str]:
    """What is claimed, what was found and why, and what is not computed."""
    own = [one for one in known if group_of(one.claim) is group]
    yield f"## {group.title}"
    yield _wrap(f"*{group.said}.* {_summary(own)}")
    reasons = [
        reason.text
        for reason in group.reasons
        if any(
            one.outcome in reason.outcomes
            and re.fullmatch(reason.folder, one.folder)
            and re.fullmatch(reason.claim, one.claim)
            for one in own
        )
    ]
    yield _wrap(f"Why, as far as we know: {' '.join(reasons)}") if reasons else ""
    if group is GROUPS[0]:
        yield from _hard_negatives()
    if group is GROUPS[-1]:
        yield from _overlap(known)
    ordered = sorted(own, key=lambda one: OUTCOMES.index(one.outcome))
    yield "\n".join(_wrap(f"- {one.line}", "  ") for one in ordered)
    left = missing(group, known)
    yield "Not computed yet at full size:" if left else ""
    yield "\n".join(_wrap(f"- {claim}: {_listed(data)}.", "  ") for claim, data in left.items())


def _summary(own: Sequence[Verdict]) -> str:
    """Where the claims of a group came out how, in one sentence."""
    found = []
    for outcome in OUTCOMES:
        data = list(dict.fromkeys(one.data for one in own if one.outcome == outcome))
        found += [f"**{outcome.capitalize()}** on {_listed(data)}."] if data else []
    return " ".join(found) or "No page is computed yet."


def _listed(data: Sequence[str]) -> str:
    """Data sets by name, and the latent worlds as one.

    >>> _listed(["LastFM", "latent world, 5 % random exposures", "latent world, 50 % random exposures"])
    'LastFM; latent worlds with 5, 50 % random exposures'
    """
    shares = [found[1] for one in data if (found := _LATENT.fullmatch(one))]
    if len(shares) < 2:
        return "; ".join(data)
    others = [one for one in data if not _LATENT.fullmatch(one)]
    return "; ".join([*others, f"latent worlds with {', '.join(shares)} % random exposures"])


def _hard_negatives() -> Iterator[str]:
    """Which part of the gain plain training with the same negatives has."""
    files = sorted(RESULTS.glob("*/results.json"), key=lambda path: _natural(path.parent.name))
    lines = [line for path in files for line in _shares(path)]
    if lines:
        yield "The share of hard negatives, by Rel@10 (full):"
        yield "\n".join(_wrap(f"- {line}", "  ") for line in lines)


def _shares(path: Path, above: str = "") -> list[str]:
    """Of a page, what hard negatives alone add to each base model, and what the proposed method adds."""
    (numbers,) = json.loads(path.read_text(encoding="utf-8"))["arenas"].values()
    found = [_share(base, numbers, path.parent.name, above) for base in ("MCF", "NCF", "Attn")]
    return [line for line in found if line]


def _share(base: str, numbers: dict[str, Any], folder: str, above: str) -> str:
    wanted = (base, f"{base}, same hard negatives", f"DT-{base}")
    if not all(column in numbers["columns"] for column in wanted):
        return ""
    plain, hard, game = (mean(numbers["columns"][column]["Rel@10 (full)"]) for column in wanted)
    earlier = ", earlier code" if published.is_earlier(folder) else ""
    share = (
        f", which is {100 * (hard - plain) / (game - plain):.0f} % of it"
        if game > plain and hard > plain
        else ""
    )
    return (
        f"DT-{base} {game - plain:+.2f} over {base}, plain training with the same hard negatives "
        f"{hard - plain:+.2f}{share} ([{folder}]({above}{folder}/results.md){earlier})."
    )


def _overlap(known: Sequence[Verdict]) -> Iterator[str]:
    """The lead of transport by the share of random exposures."""
    for rival in ("IPW-MF, true propensities", "MCF"):
        found = {}
        for one in known:
            share = _LATENT.fullmatch(one.data)
            numbers = _RELEVANCE.search(one.evidence)
            if share and numbers and one.claim == f"DT-MCF is better than {rival}":
                found[int(share[1])] = tuple(float(number) for number in numbers.groups())
        if len(found) > 1:
            spans = "; ".join(
                f"{share} %: {gap:+.2f} ({low:+.2f} to {high:+.2f})"
                for share, (gap, low, high) in sorted(found.items())
            )
            yield _wrap(
                f"DT-MCF less {rival}, Rel@10, by the share of exposures that were random: {spans}. "
                f"{_trend(found)}"
            )
    yield _wrap(
        "An [older measurement](appendix/simulated-worlds.md#from-no-overlap-to-full-overlap), with "
        "settings that were searched in one kind of world only, had transport behind plain training "
        "without overlap and ahead with full overlap. What the lead is where the log says what was shown "
        "is in the last section."
    )


def _trend(found: dict[int, tuple[float, ...]]) -> str:
    """Whether the lead falls with overlap, by the intervals at both ends."""
    (_, low, high), (_, last_low, last_high) = found[min(found)], found[max(found)]
    if low > last_high:
        return "The lead falls as overlap grows, as the paper argues."
    if high < last_low:
        return "The lead grows with overlap, the opposite of what the paper argues."
    return "The intervals at both ends overlap, so no trend is certain."


def with_verdicts(text: str) -> str:
    """A page with what each named folder says of the first group of claims, and of hard negatives."""
    return _VERDICTS.sub(lambda found: f"{found[1]}\n{_of_folder(found[2])}\n\n", text)


def _of_folder(folder: str) -> str:
    own = [one for one in verdicts() if one.folder == folder and group_of(one.claim) is GROUPS[0]]
    lines = [_quoted(one) for one in own] or [f"- {folder} is not computed yet."]
    lines += [f"- {line}" for line in _shares(RESULTS / folder / "results.json", "results/")] if own else []
    return "\n".join(_wrap(line, "  ") for line in lines)


def readme_text() -> str:
    """README with the quoted claims as the files have them."""
    return _QUOTED.sub(lambda _: quoted_lines(), README.read_text(encoding="utf-8"))


def quoted_lines() -> str:
    """The claims that README quotes, and what transport earns on impressions."""
    known = {(one.folder, one.claim): one for one in verdicts()}
    chosen = [next((known[key] for key in keys if key in known), None) for keys in QUOTED]
    lines = [impression_claims.readme_line(), *(_quoted(one) for one in chosen if one)]
    return "".join(_wrap(line, "  ") + "\n" for line in lines)


def _quoted(one: Verdict) -> str:
    """The claim, the outcome and the mean differences."""
    numbers = re.findall(r"(\w+@\d+) \(\w+\) ([-+][.\d]+)", one.evidence)
    shown = ", ".join(f"{measure} {value}" for measure, value in numbers)
    return f"- {one.claim}: **{one.outcome}** on {one.data} ({shown})."


def _wrap(text: str, indent: str = "") -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def write() -> None:
    """Write the page of claims, and what README and the main page of results quote of it."""
    (RESULTS / "claims.md").write_text(claims_text(), encoding="utf-8")
    README.write_text(readme_text(), encoding="utf-8")
    main = DOCS / "results.md"
    main.write_text(with_verdicts(main.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
