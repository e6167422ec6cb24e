"""What the paper's bounds come to on data: each with its terms, and whether it is a number or an order.

`explicit`: every constant is known and the bound holds with probability 1 - delta. `order only`: the
statement hides constants, or its proof does not hold as printed; the number says how terms compare, no more.
docs/deviations/theory.md lists what is wrong in the statements.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from towpath.bandit.transport import lipschitz_constant, transport_objective
from towpath.errors import ConfigError

Values = NDArray[np.float64]
Kind = Literal["explicit", "order only"]

DELTA = 0.05  # a bound holds with probability 1 - DELTA


@dataclass(frozen=True)
class Bound:
    """An upper bound as the sum of its terms."""

    name: str
    kind: Kind
    terms: Mapping[str, float]
    says: str  # what is bounded, and under which assumptions

    @property
    def value(self) -> float:
        """The bound itself."""
        return float(sum(self.terms.values()))

    @property
    def vacuous(self) -> bool:
        """Whether it says nothing about a risk within [0, 1]."""
        return self.value >= 1

    def to_json(self) -> dict[str, Any]:  # a JSON object
        """Everything, with the sum."""
        return {**vars(self), "terms": dict(self.terms), "value": self.value, "vacuous": self.vacuous}


@dataclass(frozen=True)
class Sample:
    """What a bound for importance weighting needs to know of a sample."""

    risk: float  # mean of w l
    n: int
    max_weight: float  # M
    divergence: float = 1.0  # d(Q||P)
    delta: float = DELTA

    def __post_init__(self) -> None:
        """Refuse a probability that is none."""
        if not 0 < self.delta < 1 or self.n < 2:
            raise ConfigError(
                f"A bound needs delta within 0 and 1 and at least 2 rows; got {self.delta:g} and {self.n}."
            )


def divergence(target: Values, source: Values) -> float:
    """d(Q||P) = sum Q^2 / P = E_P[w^2], 1 where both are equal; infinite where P misses some of Q.

    The paper writes it with P and Q swapped; this is the form that its sources and its proofs use.
    """
    here = target > 0
    if (source[here] == 0).any():
        return float("inf")
    return float((target[here] ** 2 / source[here]).sum())


def empirical_divergence(weights: Values) -> float:
    """The divergence of a sample, n sum w^2 / (sum w)^2: n over the effective sample size."""
    return float(len(weights) * (weights @ weights) / weights.sum() ** 2)


def importance_weighting_bound(sample: Sample, hypotheses: int = 1) -> Bound:
    """R + 2 M L / (3 n) + sqrt(2 d L / n), L = log(N / delta), for N hypotheses (Cortes et al. 2010)."""
    length = np.log(hypotheses / sample.delta)
    terms = {
        "weighted risk": sample.risk,
        "largest weight": float(2 * sample.max_weight * length / (3 * sample.n)),
        "divergence": float(np.sqrt(2 * sample.divergence * length / sample.n)),
    }
    says = "risk on the target; losses within [0, 1], true weights, independent rows, the true divergence"
    return Bound("importance weighting", "explicit", terms, says)


def proposition_1_bound(sample: Sample, hypotheses: int) -> Bound:
    """R + 9 M t / n + sqrt(18 d t / n) + 1 / n, t = log(8 N / delta): the form in Proposition 1's proof."""
    t = np.log(8 * hypotheses / sample.delta)
    terms = {
        "weighted risk": sample.risk,
        "largest weight": float(9 * sample.max_weight * t / sample.n),
        "divergence": float(np.sqrt(18 * sample.divergence * t / sample.n)),
        "covering": 1 / sample.n,
    }
    return Bound(
        "Proposition 1, importance weighting", "explicit", terms, "as above, with the paper's constants"
    )


def lower_order(divergence_value: float, n: int) -> Bound:
    """sqrt((d - 1) / n): the gap that some hypothesis has with positive probability (Proposition 1)."""
    terms = {"spread": float(np.sqrt(max(0.0, divergence_value - 1) / n))}
    return Bound(
        "Proposition 1, lower", "order only", terms, "the constant and the probability are not given"
    )


def empirical_bernstein_bound(values: Values, most: float, delta: float = DELTA) -> Bound:
    """Mean + sqrt(2 V L / n) + 7 M L / (3 (n - 1)), L = log(2 / delta) (Maurer and Pontil 2009).

    values: (n,) within [0, most], such as w l; V is their sample variance. Needs no divergence.
    """
    n, length = len(values), np.log(2 / delta)
    terms = {
        "mean": float(values.mean()),
        "variance": float(np.sqrt(2 * values.var(ddof=1) * length / n)),
        "range": float(7 * most * length / (3 * (n - 1))),
    }
    return Bound("empirical Bernstein", "explicit", terms, "mean; independent values within [0, M]")


def pac_bayes_bound(sample: Sample, kl: float, uncovered: float = 0.0) -> Bound:
    """M kl^-1(R / M, (KL + log(2 sqrt(n) / delta)) / n) + uncovered mass (Maurer, Seeger).

    `kl` is that of the posterior from the prior over hypotheses, `uncovered` the target's mass outside the
    log, where the loss may be anything up to one. The paper's step with d(P||Q) inside is not proven.
    """
    most = sample.max_weight
    budget = (kl + np.log(2 * np.sqrt(sample.n) / sample.delta)) / sample.n
    terms = {"inverted kl": most * inverse_kl(sample.risk / most, float(budget)), "uncovered mass": uncovered}
    says = "mean risk of the posterior on the target; w l within [0, M], true weights, independent rows"
    return Bound("PAC-Bayes", "explicit", terms, says)


def inverse_kl(p: float, budget: float) -> float:
    """The largest q >= p with kl(p, q) <= budget, where kl is that of two coins.

    >>> round(inverse_kl(0.0, 0.1), 6)  # 1 - exp(-.1)
    0.095163
    """
    if _binary_kl(p, 1 - 1e-15) <= budget:
        return 1.0
    return float(brentq(lambda q: _binary_kl(p, q) - budget, p, 1 - 1e-15, xtol=1e-14)) if budget > 0 else p


def theorem_1_terms(weights: Values, losses: Values, n: int | None = None, delta: float = DELTA) -> Bound:
    """9 M L / n and C_n = sqrt(18 M R_w^2 L / n), L = log(4 / delta), with the learned w plugged in.

    R_w^2 = mean(w^2 l^2), M the largest weight. log(1 / (2 delta)) of the paper turns negative; B_n is left
    out: S_G is undefined and n^(-1 / (d_Z + 1)) close to 1 for any embedding.
    """
    rows, most, length = n or len(weights), float(weights.max()), np.log(4 / delta)
    second_moment = float((weights**2 * losses**2).mean())
    terms = {
        "linear": float(9 * most * length / rows),
        "C_n": float(np.sqrt(18 * most * second_moment * length / rows)),
    }
    return Bound("Theorem 1", "order only", terms, "gap of the constrained minimum, without B_n")


def theorem_2_terms(
    losses: Values, mass: Values, distances: Values, rho: float, steepest: float | None = None
) -> Bound:
    """The transported risk on the sample less lam rho, and the two terms with known constants.

        max over lam in [0, L_n] of  -lam rho + E_{P_n,f} min_z' [l(z') + lam |z - z'|]
        + M_F sqrt(log(4 / delta) / n) + sqrt(log(lam + 1) / n),   delta = .05

    losses: (n,) where they are known. mass: (m,) of P_f, distances: (m, n) from there. `steepest` is L_n;
    None where both are the same points, and an infinite one (two losses in one place) counts as 10. The paper
    takes the minimum over lam, which is minus infinity. The entropy integral is left out.
    """
    n = len(losses)
    steepest = lipschitz_constant(losses, distances) if steepest is None else steepest
    tried = np.linspace(0, steepest if np.isfinite(steepest) else 10.0, 201)
    risks = [-lam * rho + transport_objective(losses, mass, distances, lam) for lam in tried]
    lam = float(tried[int(np.argmax(risks))])
    terms = {
        "transported risk": float(max(risks)),
        "deviation": float(losses.max() * np.sqrt(np.log(4 / DELTA) / n)),
        "multiplier": float(np.sqrt(np.log(lam + 1) / n)),
    }
    return Bound(
        "Theorem 2", "order only", terms, "constrained risk on the target, without the entropy integral"
    )


def rademacher_complexity(outputs: Values, rng: np.random.Generator, draws: int = 200) -> float:
    """E sup over hypotheses of |mean(sigma f)| for a finite class: outputs (hypotheses, n), by simulation."""
    signs = 2.0 * rng.integers(2, size=(draws, outputs.shape[1])) - 1
    return float(np.abs(signs @ outputs.T / outputs.shape[1]).max(axis=1).mean())


@dataclass(frozen=True)
class SgnsDivergence:
    """How far two domains are apart for skip-gram with negative sampling, per pair.

    `kl` is the paper's quantity. The gap of the joint optimum over the two separate ones is `two_js`; the
    paper's inequality with `kl` fails (joint optimum 1.136 where kl is 1.614).
    """

    kl: float
    two_js: float
    joint_optimum: float


def sgns_divergence(first: Values, second: Values) -> SgnsDivergence:
    """Means over pairs, from co-occurrence statistics C within (0, 1) of two domains, (n,) each."""
    middle = (first + second) / 2
    two_js = _coin_kl(first, middle) + _coin_kl(second, middle)
    joint = _entropy(first) + _entropy(second) + two_js
    return SgnsDivergence(float(_coin_kl(first, second).mean()), float(two_js.mean()), float(joint.mean()))


def co_occurrence(counts: Values, negatives: int = 1, smoothing: float = 0.5) -> Values:
    """C_ui = N_ui / (N_ui + k N_u N_i / N) of (weighted) counts (users, items), smoothed."""
    smoothed = counts + smoothing
    by_user, by_item = smoothed.sum(axis=1, keepdims=True), smoothed.sum(axis=0, keepdims=True)
    return np.asarray(smoothed / (smoothed + negatives * by_user * by_item / smoothed.sum()))


def _binary_kl(p: float, q: float) -> float:
    return float(_coin_kl(np.array([p]), np.array([q]))[0])


def _coin_kl(p: Values, q: Values) -> Values:
    """The kl of two coins, elementwise; 0 log 0 is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(p > 0, p * np.log(p / q), 0.0)
        tails = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return np.asarray(heads + tails)


def _entropy(p: Values) -> Values:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(
            -np.where(p > 0, p * np.log(p), 0.0) - np.where(p < 1, (1 - p) * np.log(1 - p), 0.0)
        )
