"""Off-policy evaluation of the six tasks of the Open Bandit sample, as a page.

python -m benchmarks.open_bandit DATA [--out docs/results/open-bandit]

DATA holds {random,bts}/{men,women,all}/ as the publisher's small version has them. Each task estimates one
policy's click rate from the other's log and is held against what that policy's own log earned.
"""

import argparse
import json
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from towpath.bandit.evaluate import UNBIASED, Evaluating, OffPolicyEvaluation, evaluate_policy
from towpath.bandit.log import BanditLog, LogColumns, item_shares, read_bandit_log, read_items
from towpath.bandit.policies import Policy, TablePolicy, uniform_policy
from towpath.files import write_text
from towpath.stats.estimate import Estimate
from towpath.stats.intervals import gamma_interval

CAMPAIGNS, POLICIES = ("men", "women", "all"), ("random", "bts")
COLUMNS = LogColumns("item_id", "click", "position", "propensity_score")
SHOWN = ("gamma", "betting", "normal")
INTRODUCTION = """
The [Open Bandit Dataset](https://research.zozo.com/data.html) (Saito et al., small version) has logs of two
policies on one fashion site: `random` shows every item alike, `bts` is Thompson sampling. Every log has
10,000 rows, three positions, the propensity of what was shown, and clicks in about one of 200 rows. Each task
estimates what one policy earns from the log of the other. The other policy's own log tells what it did earn.

- The target `random` is uniform over the items of the campaign. The target `bts` changed over time; its item
  shares per position in its own log stand in for it.
- Rows count as independent. The propensities are the publisher's. The reward model is fitted on all rows;
  `tau` is 10, `lambda` of dros 100, `M` 10, `lambda` of sub-gaussian .01, none of them chosen on these data.
- Intervals are at 95 %. A star marks estimators whose interval is around a biased mean.
- How often such intervals hold is on the page [Off-policy evaluation](../../off-policy.md).
"""


Task = dict[str, Any]  # what a page says of one task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("docs/results/open-bandit"))
    options = parser.parse_args()
    tasks = [task for campaign in CAMPAIGNS for task in campaign_tasks(options.data, campaign)]
    write_text(options.out / "tasks.json", json.dumps(tasks, indent=1) + "\n")
    write_text(options.out / "results.md", page(tasks))
    print(options.out / "results.md")


def campaign_tasks(data: Path, campaign: str) -> Iterator[Task]:
    """Both tasks of one campaign."""
    items = read_items(data / "random" / campaign / "item_context.csv", "item_id")
    logs = {p: read_bandit_log(data / p / campaign / f"{campaign}.csv", COLUMNS, items) for p in POLICIES}
    for source, target in (("random", "bts"), ("bts", "random")):
        own = gamma_interval(logs[target].rewards * 0 + 1, logs[target].rewards)
        result = evaluate_policy(logs[source], policy_of(target, logs), Evaluating())
        yield numbers_of(f"{campaign.capitalize()}: from the log of {source} to {target}", result, own)


def policy_of(name: str, logs: dict[str, BanditLog]) -> Policy:
    """The policy of this name on a campaign."""
    log = logs[name]
    if name == "random":
        return uniform_policy(log.n_positions, log.n_actions)
    return TablePolicy(item_shares(log, log.position_ids), "the item shares per position of bts")


def numbers_of(title: str, result: OffPolicyEvaluation, own: Estimate) -> Task:
    """What the page says of one task, as JSON."""
    overlap = result.overlap
    return {
        "title": title,
        "level": overlap.level,
        "ess_share": overlap.ess_share,
        "unsupported_mass": overlap.unsupported_mass,
        "unsupported_mass_se": overlap.unsupported_mass_se,
        "largest_weight": overlap.largest_weight,
        "own": [own.mean, own.low, own.high],
        "logged": result.logged_value.mean,
        "warnings": list(result.warnings),
        "values": dict(result.values),
        "intervals": {
            name: {how: [found[how].low, found[how].high] for how in SHOWN if how in found}
            for name, found in result.estimates.items()
        },
    }


def page(tasks: Sequence[Task]) -> str:
    """The whole page in Markdown, lines of at most 120 columns."""
    parts = [
        "# Off-policy evaluation on the Open Bandit sample\n",
        INTRODUCTION.strip() + "\n",
        "    python -m benchmarks.open_bandit DATA\n",
        *(section(task) for task in tasks),
    ]
    return "\n".join(parts)


def section(task: Task) -> str:
    """A heading, what diagnosis says, and a table."""
    mean, low, high = task["own"]
    facts = (
        f"Effective sample size {task['ess_share']:.2%} of the rows ({task['level']}), unsupported mass "
        f"{task['unsupported_mass']:.3f} (standard error {task['unsupported_mass_se']:.3f}), largest weight "
        f"{task['largest_weight']:,.1f}. The target's own log earned {mean:.4f} "
        f"({low:.4f} to {high:.4f}); the log earned {task['logged']:.4f}."
    )
    warnings = task["warnings"] or ("Nothing stands out: the log covers the target.",)
    points = [textwrap.fill(f"- {one}", 118, subsequent_indent="  ") for one in warnings]
    header = "| estimator | value | " + " | ".join(SHOWN) + " |"
    table = [header, "|:--|--:|" + ":--|" * len(SHOWN), *(row(name, task) for name in task["values"])]
    return "\n".join([f"## {task['title']}", "", textwrap.fill(facts, 118), "", *points, "", *table, ""])


def row(name: str, task: Task) -> str:
    """One estimator."""
    found = task["intervals"][name]
    spans = [f"{found[how][0]:.4f} to {found[how][1]:.4f}" if how in found else "" for how in SHOWN]
    star = "" if name in UNBIASED else " *"
    return f"| {name}{star} | {task['values'][name]:.4f} | " + " | ".join(spans) + " |"


if __name__ == "__main__":
    main()
