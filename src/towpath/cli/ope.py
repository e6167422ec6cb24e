"""towpath ope: what another policy would have earned, from a log with propensities."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from towpath.cli.output import Listing, Output
from towpath.cli.prepare import use_threads
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath.bandit.evaluate import Evaluating, OffPolicyEvaluation
    from towpath.bandit.log import BanditLog, LogColumns
    from towpath.bandit.policies import Policy
    from towpath.bandit.slate_evaluation import SlateEvaluation
    from towpath.bandit.slates import Reading
    from towpath.data.vocabulary import Vocabulary

_COLUMNS, _TARGET, _HOW = "Columns", "Target", "Estimates"

LogFile = Annotated[str, typer.Argument(metavar="LOG", help="A file, glob or folder with logged rows.")]


@dataclass(frozen=True)
class OpeColumns:
    """Which column says what; usual names are found without being told."""

    item_col: Annotated[str | None, typer.Option(help="Column of item ids.", rich_help_panel=_COLUMNS)] = None
    position_col: Annotated[
        str | None, typer.Option(help="Column of positions.", rich_help_panel=_COLUMNS)
    ] = None
    label_col: Annotated[
        str | None, typer.Option(help="Column of rewards within 0 and 1.", rich_help_panel=_COLUMNS)
    ] = None
    propensity_col: Annotated[
        str | None,
        typer.Option(help="Column of the chances of what was shown.", rich_help_panel=_COLUMNS),
    ] = None
    user_col: Annotated[
        str | None, typer.Option(help="Column of user ids, for run: targets.", rich_help_panel=_COLUMNS)
    ] = None
    request_col: Annotated[
        str | None,
        typer.Option(help="Column that says which rows were shown together.", rich_help_panel=_COLUMNS),
    ] = None
    items: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="All items that could be shown: the action space.", rich_help_panel=_COLUMNS
        ),
    ] = None


@dataclass(frozen=True)
class OpeTarget:
    """The policy to evaluate."""

    target: Annotated[
        str,
        typer.Option(
            metavar="uniform|shares:FILE|run:RUN",
            help="Every item alike; the item shares per position of another log; a saved run.",
            rich_help_panel=_TARGET,
        ),
    ]
    softmax: Annotated[
        float | None,
        typer.Option(
            metavar="TEMPERATURE",
            help="run: show by the softmax of its scores instead of its list.",
            rich_help_panel=_TARGET,
        ),
    ] = None
    top: Annotated[
        int, typer.Option(min=1, help="run: length of its list, without positions.", rich_help_panel=_TARGET)
    ] = 1
    epsilon: Annotated[
        float, typer.Option(help="run: chance of showing any item at random.", rich_help_panel=_TARGET)
    ] = 0.0


@dataclass(frozen=True)
class OpeHow:
    """How it is estimated."""

    estimate_propensities: Annotated[
        bool,
        typer.Option(
            "--estimate-propensities",
            help="Estimate the chances of what was shown instead of reading them.",
            rich_help_panel=_HOW,
        ),
    ] = False
    feature_col: Annotated[
        list[str] | None,
        typer.Option(help="Column that estimated propensities depend on; repeat.", rich_help_panel=_HOW),
    ] = None
    clip: Annotated[float, typer.Option(help="M of clipped.", rich_help_panel=_HOW)] = 10.0
    tau: Annotated[float, typer.Option(help="tau of switch-dr.", rich_help_panel=_HOW)] = 10.0
    dros_lambda: Annotated[float, typer.Option(help="lambda of dros.", rich_help_panel=_HOW)] = 100.0
    sub_gaussian_lambda: Annotated[
        float, typer.Option(help="lambda of sub-gaussian.", rich_help_panel=_HOW)
    ] = 0.01
    tune: Annotated[
        str | None,
        typer.Option(
            metavar="slope|bias-variance",
            help="Choose these four on the log by a published rule.",
            rich_help_panel=_HOW,
        ),
    ] = None
    cross_fit: Annotated[
        int, typer.Option(min=1, help="Folds of the reward model; 1 fits on all rows.", rich_help_panel=_HOW)
    ] = 1
    max_weight: Annotated[
        float | None, typer.Option(help="Largest possible weight, where known.", rich_help_panel=_HOW)
    ] = None
    interval: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="gamma, betting, empirical-bernstein, normal, bootstrap; repeat or separate by commas.",
            rich_help_panel=_HOW,
        ),
    ] = None
    slate: Annotated[
        str | None,
        typer.Option(
            metavar="independent|cascade",
            help="Also estimate clicks per request. independent: a click depends on the item at its own "
            "position; cascade: on everything above it too. Needs --request-col.",
            rich_help_panel=_HOW,
        ),
    ] = None
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.", rich_help_panel=_HOW)] = 0


def ope(log: LogFile, columns: OpeColumns, target: OpeTarget, how: OpeHow, output: Output) -> None:
    """Estimate what another policy would have earned on a log with propensities (off-policy evaluation)."""
    use_threads(1)
    from towpath.bandit.evaluate import evaluate_policy
    from towpath.bandit.slate_evaluation import evaluate_slates

    kind, _, name = target.target.partition(":")
    if (kind, bool(name)) not in (("uniform", False), ("shares", True), ("run", True)):
        raise ConfigError(
            f"--target should be uniform, shares:FILE or run:RUN, and {target.target!r} was given."
        )
    asked = _evaluating(how)
    with output.working(f"Reading {log}"):
        rows, policy = _prepare(log, columns, target, how)
    with output.working("Estimating"):
        result = evaluate_policy(rows, policy, asked)
        slates = how.slate and evaluate_slates(rows, result.weights, cast("Reading", how.slate), how.seed)
    _show(log, result, slates or None, output)


def _evaluating(how: OpeHow) -> "Evaluating":
    from towpath.bandit.estimators import Scales
    from towpath.bandit.evaluate import INTERVALS, Evaluating

    names = [name for part in how.interval or () for name in part.replace(",", " ").split()]
    scales = Scales(how.clip, how.tau, how.dros_lambda, how.sub_gaussian_lambda)
    return Evaluating(scales, how.tune, how.cross_fit, how.max_weight, names or INTERVALS, how.seed)


def _prepare(path: str, columns: OpeColumns, target: OpeTarget, how: OpeHow) -> "tuple[BanditLog, Policy]":
    """The log and the target, over the same items."""
    from towpath.bandit.log import LogColumns, read_bandit_log, read_items
    from towpath.bandit.policies import uniform_policy
    from towpath.bandit.propensity import with_estimated_propensities

    named = LogColumns(
        columns.item_col,
        columns.label_col,
        columns.position_col,
        columns.propensity_col,
        columns.user_col,
        tuple(how.feature_col or ()),
        columns.request_col,
    )
    items = None if columns.items is None else read_items(columns.items, columns.item_col)
    log = read_bandit_log(path, named, items, skip=["propensity"] if how.estimate_propensities else [])
    kind, _, name = target.target.partition(":")
    policy: Policy
    if kind == "shares":
        log, policy = _shares(log, name, named, items)
    elif kind == "run":
        log, policy = _run(log, name, target, items)
    else:
        policy = uniform_policy(log.n_positions, log.n_actions)
    return with_estimated_propensities(log) if how.estimate_propensities else log, policy


def _shares(
    log: "BanditLog", path: str, columns: "LogColumns", items: "Vocabulary | None"
) -> "tuple[BanditLog, Policy]":
    import numpy as np

    from towpath.bandit.log import item_shares, read_bandit_log, union
    from towpath.bandit.policies import TablePolicy

    other = read_bandit_log(path, columns, items, skip=["label", "propensity"])
    if items is None:
        together = union(log.item_ids, other.item_ids.ids(np.arange(other.n_actions)))
        log, other = log.over(together), other.over(together)
    shares = item_shares(other, log.position_ids)
    return log, TablePolicy(shares, f"the item shares per position of {Path(path).name}")


def _run(
    log: "BanditLog", folder: str, target: OpeTarget, items: "Vocabulary | None"
) -> "tuple[BanditLog, Policy]":
    from dataclasses import replace

    from towpath.bandit.log import union
    from towpath.serving.policy import Showing, item_ids_of, policy_of, seen_warning
    from towpath.serving.recommender import load

    recommender = load(folder)
    if items is None:
        log = log.over(union(log.item_ids, item_ids_of(recommender)))
    log = replace(log, warnings=seen_warning(recommender, log))
    if log.contexts is None:
        note = "the log names no users, so the run shows everyone its fallback for unknown users"
        log = replace(log, notes=(*log.notes, note))
    showing = Showing(
        "top" if target.softmax is None else "softmax", target.top, target.softmax or 1.0, target.epsilon
    )
    return log, policy_of(recommender, log, showing)


def _show(log: str, result: "OffPolicyEvaluation", slates: "SlateEvaluation | None", output: Output) -> None:
    for note in result.notes:
        output.say(f"Note: {note}.")
    for warning in (*result.warnings, *(slates.warnings if slates else ())):
        output.say(f"Warning: {warning}")
    found = result.to_json()
    if slates is not None:
        found["slates"] = slates.to_json()
        found["warnings"] += slates.warnings
    tables = [_estimates_table(log, result), *([_slates_table(slates)] if slates else [])]
    output.show(found, *tables)


def _slates_table(slates: "SlateEvaluation") -> Listing:
    """Clicks per request."""
    rows = [
        ("ips", f"{slates.ips['betting'].mean:.5f}", *(_span(one) for one in slates.ips.values())),
        ("snips", f"{sum(slates.snips):.5f}", *("" for _ in slates.ips)),
    ]
    title = f"Clicks per request, {slates.requests:,} requests, {slates.reading} reading of slates"
    return Listing(title, ("estimator", "value", *slates.ips), rows)


def _estimates_table(log: str, result: "OffPolicyEvaluation") -> Listing:
    """Every estimator with three of its intervals."""
    from towpath.bandit.evaluate import ASSUMPTIONS, UNBIASED

    overlap = result.overlap
    # Three columns fit a terminal; --json has all of them.
    names = list(dict.fromkeys(how for found in result.estimates.values() for how in found))[:3]
    rows = [
        (
            name + ("" if name in UNBIASED else " *"),
            f"{result.values[name]:.5f}",
            *(_span(found.get(how)) for how in names),
        )
        for name, found in result.estimates.items()
    ]
    title = (
        f"{log}: {overlap.rows:,} rows that earned {result.logged_value.mean:.5f}; target: {result.target}\n"
        f"effective sample size {overlap.ess_share:.2%} of the rows, unsupported mass "
        f"{overlap.unsupported_mass:.3f} (standard error {overlap.unsupported_mass_se:.3f})\n"
        "95 % intervals; those of estimators with a * are around a biased mean\n"
        + "\n".join(f"{name}: {ASSUMPTIONS[name]}" for name in names)
    )
    return Listing(title, ("estimator", "value", *names), rows)


def _span(estimate: object) -> str:
    from towpath.stats.estimate import Estimate

    return f"{estimate.low:.4f}–{estimate.high:.4f}" if isinstance(estimate, Estimate) else ""
