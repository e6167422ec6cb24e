"""Theorem 3 of the paper as a figure: transport on a bandit log over lambda, and the counterfactual risk.

python -m benchmarks.theorem_3 [--out docs/results/theorem-3]

Contexts are points in three dimensions, six actions have two features each, clicks follow a logistic model.
Three logs of 800 rows: one whose logging policy shows everything, one with weak overlap, one that never shows
three of the actions. Two policies are looked at in each: a good one, and one that avoids what was logged.
Objectives are evaluated, nothing is learned.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import expit, softmax

from towpath.bandit.estimators import LoggedRows, Scales, snips
from towpath.bandit.transport import (
    deployment_mass,
    lipschitz_constant,
    priced_objective,
    priced_transport_objective,
    transport_objective,
)
from towpath.files import write_text
from towpath.reports.lines import Axes, draw_lines
from towpath.reports.sweep_page import standalone_svg
from towpath.rng import Rng

Values = NDArray[np.float64]

ROWS, ACTIONS, PRICE = 800, 6, 1.0
LOGS = ("full overlap", "weak overlap", "three actions never logged")
POLICIES = ("a good policy", "a policy that avoids the log")
# lambda as a share of L_n, beyond which no row gains by being moved.
SHARES = (0.0, *np.geomspace(1e-4, 3, 40).tolist())
TABLE = (0, 10, 20, 30, 36, 40)  # of SHARES


@dataclass(frozen=True)
class Case:
    """A policy on a log: rows, and what the policy truly loses."""

    losses: Values
    propensities: Values
    chances: Values  # the policy's, of what was shown
    distances: Values
    true_risk: float


def cases(log: str, seed: int) -> dict[str, Case]:
    """Both policies on one log."""
    rng = Rng(seed).numpy("theorem 3")
    contexts, features = rng.normal(size=(ROWS, 3)), rng.normal(size=(ACTIONS, 2))
    taste = contexts @ rng.normal(size=(3, 2)) @ features.T
    click = expit(taste - 1)
    logits = {"full overlap": 0.5, "weak overlap": 3.0, "three actions never logged": 0.5}[log] * rng.normal(
        size=ACTIONS
    ) + 0 * taste
    logits[:, :3] = -np.inf if log == "three actions never logged" else logits[:, :3]
    logging = softmax(logits, axis=1)
    shown = (rng.random(ROWS)[:, None] > logging.cumsum(axis=1)).sum(axis=1).clip(max=ACTIONS - 1)
    rows = np.arange(ROWS)
    rewards = (rng.random(ROWS) < click[rows, shown]).astype(np.float64)
    points = np.c_[contexts, features[shown]]
    # Avoids: the less an action was logged, the more it is shown, whatever it earns.
    away = softmax(-3 * np.where(np.isinf(logits), -6.0, logits), axis=1)
    policies = {POLICIES[0]: softmax(2 * taste, axis=1), POLICIES[1]: away}
    return {
        name: Case(
            1 - rewards,
            logging[rows, shown],
            policy[rows, shown],
            cdist(points, points),
            float(1 - (policy * click).sum(axis=1).mean()),
        )
        for name, policy in policies.items()
    }


def curves(case: Case) -> dict[str, Any]:  # JSON
    """Both objectives over lambda, and the risks that they end in."""
    weights = case.chances / case.propensities
    mass = deployment_mass(case.chances, case.propensities)
    steepest = lipschitz_constant(case.losses, case.distances)
    nothing = 0 * weights
    counterfactual = 1 - snips(LoggedRows(weights, 1 - case.losses, nothing, nothing), Scales()).value
    lambdas = [share * steepest for share in SHARES]
    return {
        "L_n": steepest,
        "mean_weight": float(weights.mean()),
        "true_risk": case.true_risk,
        "snips_risk": counterfactual,
        "priced_risk": priced_objective(case.losses, weights, PRICE),
        "transport": [transport_objective(case.losses, mass, case.distances, lam) for lam in lambdas],
        "priced_transport": [
            priced_transport_objective(case.losses, weights, case.distances, lam, PRICE) for lam in lambdas
        ],
    }


def figure(log: str, found: dict[str, Any]) -> str:
    """Transport over lambda for both policies, normalised and priced."""
    lines = {}
    for policy, short in zip(POLICIES, ("good", "avoids the log"), strict=True):
        for key, name in (("transport", short), ("priced_transport", f"{short}, priced")):
            values = found[policy][key][1:]
            lines[name] = [(float(np.log10(s)), v) for s, v in zip(SHARES[1:], values, strict=True)]
    axes = Axes("log10(lambda / L_n)", "objective", whole=False, mark=("L_n", 0.0))
    return standalone_svg(draw_lines(lines, axes, log).svg or "")


def section(number: int, log: str, found: dict[str, Any]) -> str:
    """One log: the figure and its numbers."""
    header = (
        "| policy | objective | " + " | ".join(f"{SHARES[n]:.3g}" for n in TABLE) + " | ends in | true risk |"
    )
    rows = []
    for policy in POLICIES:
        one = found[policy]
        for key, name, end in (
            ("transport", "normalised", "snips_risk"),
            ("priced_transport", f"priced at {PRICE:g}", "priced_risk"),
        ):
            values = " | ".join(f"{one[key][n]:.4f}" for n in TABLE)
            rows.append(f"| {policy} | {name} | {values} | {one[end]:.4f} | {one['true_risk']:.4f} |")
    weights = "; ".join(f"{policy} {found[policy]['mean_weight']:.3f}" for policy in POLICIES)
    return "\n".join(
        [
            f"## {log.capitalize()}",
            "",
            f"![Transport over lambda, {log}](figure-{number}.svg)",
            "",
            f"Mean weight on the log: {weights}. L_n is {found[POLICIES[0]]['L_n']:.1f}.",
            "",
            header,
            "|:--|:--|" + "--:|" * (len(TABLE) + 2),
            *rows,
            "",
        ]
    )


INTRODUCTION = """# Theorem 3: transport in the bandit case, over lambda

With free weights and the exact distance, what transport minimises on a bandit log is known in closed form.
As lambda grows it rises from the least loss of any logged row to the counterfactual risk. From
`L_n = max |l_i - l_j| / d_ij` on it is that risk exactly: SNIPS if P_f is normalised over the logged rows,
IPS if the mass that falls off the log has a price. Columns of the tables are lambda / L_n; a loss is a row
without a click. The world is simulated, so the true risk of each policy is known.

- Below L_n transport is optimistic: it moves mass to rows with less loss.
  At lambda 0 the best row alone counts.
- Normalised, the objective does not notice that a policy has left the log. With weak overlap the policy that
  avoids the log has a mean weight near zero, and its objective is far below its true risk at every lambda.
- Priced, leaving the log is charged for. So is the part of a good policy that was never logged.

    python -m benchmarks.theorem_3
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/results/theorem-3"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    found = {log: {policy: curves(case) for policy, case in cases(log, options.seed).items()} for log in LOGS}
    sections = []
    for number, log in enumerate(LOGS, start=1):
        write_text(options.out / f"figure-{number}.svg", figure(log, found[log]))
        sections.append(section(number, log, found[log]))
    write_text(options.out / "results.md", "\n".join([INTRODUCTION, *sections]))
    numbers = {"lambda_over_L_n": list(SHARES), "price": PRICE, "logs": found}
    write_text(options.out / "numbers.json", json.dumps(numbers, indent=1) + "\n")
    print(options.out / "results.md")


if __name__ == "__main__":
    main()
