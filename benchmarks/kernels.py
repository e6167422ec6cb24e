"""What every kernel brings: itself against the plain version, side by side in one run.

    python -m benchmarks.kernels

The two take turns, and the best of several turns counts, in processor time, so that what else the machine
does falls on both alike. Sizes are those of a batch of MovieLens 1M, or of a large catalogue where that is
what a kernel is for. One thread, but for the row about threads, which is timed by the wall clock and needs
two free cores.
"""

import time
from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from towpath.kernels import batch_shuffle, compiled, heads, inner_products, lazy_adam, ordering
from towpath.kernels.batch_shuffle import BatchAssignment, assign_batches
from towpath.kernels.catalogue import rank_catalogue
from towpath.kernels.impression_rows import ImpressionColumns, impression_rows, impression_rows_plainly
from towpath.kernels.inner_products import arrays
from towpath.kernels.lazy_adam import Rates, move_rows
from towpath.kernels.margin_game import MarginPairs, level_weights, line_slopes
from towpath.kernels.pair_layers import Layer, Parts, pair_scores
from towpath.kernels.pair_search import PairSearch
from towpath.kernels.ridge import gram_matrices
from towpath.kernels.softmax_loss import weighted_softmax_loss
from towpath.kernels.threads import run
from towpath.models.scorer import Context
from towpath.ranking.top_k import top_k_in_torch
from towpath.rng import Rng
from towpath.transport.game_batch import CandidatePairs
from towpath.transport.line import potential_in_torch, transport_on_line
from towpath.transport.objective import mass, mean_one, payoff_slopes
from towpath.transport.weights import MarginWeights

Work = Callable[[], Any]
Row = tuple[str, Work, Work]
Batch = tuple[Tensor, Tensor, Tensor, Tensor]  # tables of users and items, users (b,), items (b, k)
ROUNDS = 7
USERS, ITEMS, MANY, DIM, BATCH, WIDTH = 6_000, 3_700, 200_000, 32, 4_096, 5


def main() -> None:
    torch.set_num_threads(1)
    print(f"{'kernel':<58}{'kernel ms':>10}{'plain ms':>10}{'ratio':>7}")
    for make in (
        products,
        sparse_rows,
        sorting,
        pairs,
        batches,
        catalogues,
        lists,
        library_of_heads,
        prefetching,
        perceptrons,
    ):
        for row in make():
            print(line(*row), flush=True)
    torch.set_num_threads(2)
    print(line("threads: two, against one (wall clock)", *threads(), clock=time.perf_counter))


def line(name: str, kernel: Work, plain: Work, clock: Callable[[], float] = time.process_time) -> str:
    fast, slow = best_of(kernel, plain, clock)
    return f"{name:<58}{1e3 * fast:>10.2f}{1e3 * slow:>10.2f}{slow / fast:>7.2f}"


def best_of(kernel: Work, plain: Work, clock: Callable[[], float]) -> tuple[float, float]:
    """The shortest time of each, in seconds, turn by turn; the first turn compiles and does not count."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS + 1):
        for times, work in zip(found, (kernel, plain), strict=True):
            began = clock()
            work()
            times.append(clock() - began)
    fast, slow = (min(times[1:]) for times in found)
    return fast, slow


def draws() -> torch.Generator:
    return Rng(0).torch("kernels")


def batch_of(rows: int) -> Batch:
    """Tables of vectors with biases, and a batch of users, in order, with items."""
    rng = draws()
    P, Q = (torch.empty(rows, DIM + 1).normal_(generator=rng) for _ in range(2))
    return P, Q, *codes_of(rows, 0)


def codes_of(rows: int, seed: int) -> tuple[Tensor, Tensor]:
    rng = Rng(seed).torch("codes")
    users = torch.randint(rows, (BATCH,), generator=rng).sort().values
    return users, torch.randint(rows, (BATCH, WIDTH), generator=rng)


def plain_products(P: Tensor, Q: Tensor, users: Tensor, items: Tensor, sparse: bool) -> tuple[Tensor, Tensor]:
    p, q = (
        functional.embedding(users[:, None], P, sparse=sparse),
        functional.embedding(items, Q, sparse=sparse),
    )
    scores = (p[..., :-1] * q[..., :-1]).sum(-1) + p[..., -1] + q[..., -1]
    return scores, (p[..., :-1].square().sum(-1) + q[..., :-1].square().sum(-1)).mean()


def plain_step(batch: Batch, slopes: Tensor, sparse: bool) -> Any:
    P, Q, users, items = batch
    tables = [t.detach().requires_grad_() for t in (P, Q)]
    scores, norm = plain_products(*tables, users, items, sparse)
    gradients = torch.autograd.grad((scores * slopes).sum() + 0.1 * norm, tables)
    return [g.coalesce() if sparse else g for g in gradients]  # each row once, as the optimiser wants them


def fused_step(batch: Batch, slopes: Tensor, sparse: bool) -> Any:
    inner_products.inner_products(*batch, torch.zeros(()))
    return inner_products.gradients(*batch, slopes, 0.1, sparse=(sparse, sparse))


def products() -> list[Row]:
    """Large tables are trained by the rows of a batch, small ones as a whole."""
    found: list[Row] = []
    for size, rows, sparse in (("small tables", ITEMS, False), ("large tables", MANY, True)):
        batch = batch_of(rows)
        slopes = torch.randn(batch[3].shape, generator=draws())
        scored = partial(inner_products.inner_products, *batch, torch.zeros(()))
        steps = (partial(step, batch, slopes, sparse) for step in (fused_step, plain_step))
        found += [
            (f"inner products, scores, {size}", scored, partial(plain_products, *batch, sparse)),
            (f"inner products, scores and gradients, {size}", *steps),
        ]
    return found


def sparse_rows() -> list[Row]:
    P, _, _, codes = batch_of(MANY)
    rows, _ = inner_products.numbered(codes)
    values = torch.randn(len(rows), DIM + 1, generator=draws())
    gradient = torch.sparse_coo_tensor(rows[None], values, P.shape, is_coalesced=True, check_invariants=False)
    means, squares = torch.zeros_like(P), torch.ones_like(P)
    rates = Rates(0.1, 0.001, 1e-4, 1e-8)

    def move() -> None:
        move_rows(P, gradient, means, squares, rates)

    return [
        (
            "numbering the rows of a batch",
            lambda: inner_products.numbered(codes),
            lambda: codes.unique(return_inverse=True),
        ),
        ("lazy Adam", move, without(lazy_adam, "usable", lambda *tables: False, move)),
    ]


def without(module: Any, name: str, other: Any, work: Work) -> Work:
    """The same work while something in a module is replaced."""

    def changed() -> Any:
        kept = getattr(module, name)
        setattr(module, name, other)
        try:
            return work()
        finally:
            setattr(module, name, kept)

    return changed


def sorting() -> list[Row]:
    scores = torch.randn(256, ITEMS, generator=draws())
    points, masses = torch.randn(16_384, generator=draws()), torch.randn(16_384, generator=draws()) / 16_384
    rows: list[Row] = [
        (
            f"best {k} of {ITEMS:,}",
            partial(ordering.best_of_rows, scores, k),
            partial(top_k_in_torch, scores, k),
        )
        for k in (10, 200)
    ]
    both = (partial(solve, points, masses) for solve in (ordering.line_potential, potential_in_torch))
    return [*rows, ("transport on the line", *both), margin_moves()]


def margin_moves() -> Row:
    """Moves of w and g, and f's weights (compiled_margins), against torch: a fifth of the pairs is shown."""
    margins, losses = torch.randn(2, BATCH, WIDTH, generator=draws()) - torch.tensor([0.8, 0]).view(2, 1, 1)
    pairs, bounds = MarginPairs(margins, losses.abs(), losses > -1), (0.7, 1.5)
    w = MarginWeights(*bounds)
    seen, mask = CandidatePairs(Context(*torch.empty(2, 0)), margins, margins), pairs.mask

    def in_torch() -> Tensor:
        weights = w(seen)
        measures = (mass(of.detach(), mask).view(-1) for of in (weights, (margins >= 0).float()))
        critic = transport_on_line(margins.view(-1), *measures).at_points.view(margins.shape)
        slopes = payoff_slopes(weights.detach(), pairs.losses, critic, 1.0, mask)
        torch.autograd.grad((weights * slopes).sum(), w.line)
        return mean_one(w(seen).detach(), mask)

    def in_loops() -> Tensor:
        line_slopes(pairs, w.line, bounds, 1.0)
        return level_weights(pairs, w.line, bounds)

    return "a round of w and g, margins", in_loops, in_torch


def pairs() -> list[Row]:
    rng = Rng(0).numpy("kernels")
    found: list[Row] = []
    for kind, users, items in (("a bit for every pair", USERS, ITEMS), ("a filter", MANY, MANY)):
        search = PairSearch(np.unique(rng.integers(users * items, size=1_000_000)), users, items)
        who, what = rng.integers(users, size=50_000), rng.integers(items, size=50_000)
        asks = (partial(ask, who, what) for ask in (search.contains, search.contains_plainly))
        draws = (partial(drawn, draw, who) for draw in (search.draw_unknown, search.draw_unknown_plainly))
        found += [(f"known pairs, {kind}", *asks), (f"draws of unknown pairs, {kind}", *draws)]
    return found


def drawn(draw: Callable[..., Any], users: NDArray[np.int64]) -> Any:
    return draw(users, np.empty((len(users), 4), dtype=np.int64), 0, Rng(0).numpy("draw"), 10)


def batches() -> list[Row]:
    """An epoch of batches: rows in random order, those of a batch by user, three columns."""
    rows = 1_000_000
    values = np.arange(rows, dtype=np.int32)

    def assign() -> BatchAssignment:
        return assign_batches(rows, BATCH, Rng(0).numpy("order"))

    def gather() -> None:
        assignment = assign()
        for _ in range(3):
            assignment.column(values)

    def shuffle() -> None:
        order = Rng(0).numpy("order").permutation(rows).astype(np.int32)
        for start in range(0, rows, BATCH):
            order[start : start + BATCH].sort()
        for _ in range(3):
            values[order]

    plainly = without(batch_shuffle, "AVAILABLE", False, gather)
    return [
        ("batch shuffle, against numpy", gather, plainly),
        ("batch shuffle, against permutation and sort", gather, shuffle),
    ]


def catalogues() -> list[Row]:
    rng = draws()
    states, table = torch.randn(2_048, DIM, generator=rng), torch.randn(20_000, DIM, generator=rng) / 6
    weights, targets = torch.full((len(states),), 1 / len(states)), torch.arange(len(states))
    chances, vectors = torch.rand(512, ITEMS, generator=rng), torch.randn(ITEMS, DIM, generator=rng)

    def gradients(risk: Callable[[Tensor, Tensor], Tensor]) -> Any:
        given = [t.detach().requires_grad_() for t in (states, table)]
        return torch.autograd.grad(risk(*given), given)

    def gram() -> Tensor:
        return torch.einsum("ri,ij,ik->rjk", chances, vectors, vectors)

    return [
        (
            "softmax over a catalogue, with gradients",
            lambda: gradients(lambda s, t: weighted_softmax_loss(s, t, targets, weights)),
            lambda: gradients(lambda s, t: functional.cross_entropy(s @ t.T, targets)),
        ),
        ("Gram matrices of ridge regressions", lambda: gram_matrices(chances, vectors), gram),
    ]


def lists() -> list[Row]:
    """The list of one user, a hundred times, as the server makes it (compiled_catalogue)."""
    rng, times = np.random.default_rng(0), 100
    vector = rng.normal(size=DIM + 1).astype(np.float32)
    items, biases = (rng.normal(size=size).astype(np.float32) for size in ((DIM, ITEMS), ITEMS))
    hidden = rng.choice(ITEMS, 165, replace=False).astype(np.int32)

    def plain() -> None:
        scores = vector[:-1] @ items
        scores += biases
        scores += vector[-1]
        scores[hidden] = -np.inf
        values, columns = np.empty((1, 11), np.float32), np.empty((1, 11), np.int64)
        compiled.few_best_of_rows(0, 1, scores[None], values, columns)
        values[0].tolist(), columns[0].tolist()

    return [
        (
            "one list of a catalogue, 100 times",
            lambda: [rank_catalogue(vector, items, biases, hidden, 11) for _ in range(times)],
            lambda: [plain() for _ in range(times)],
        )
    ]


@njit
def _nothing(table: Any, row: Any) -> None:
    """Asks for no row."""


def no_prefetch(loop: Any) -> Any:
    """The same loop, compiled anew without asking for rows ahead."""
    own = loop.py_func
    text = {**own.__globals__, "prefetch": _nothing}
    options = {"fastmath": compiled._FAST, "nogil": True, "error_model": "numpy"}
    return njit(**options)(FunctionType(own.__code__, text, own.__name__))


def library_of_heads() -> list[Row]:
    """A batch of the library of transport on impressions: 9 members with three heads.

    compiled_heads, with eights, and compiled_block; and impression_rows, which gathers the batch.
    """
    rng, members, n_heads, dim = draws(), 9, 3, 16
    width = members * (dim + n_heads)
    tables = heads.Tables(
        *(torch.randn(rows, width, generator=rng) for rows in (700, 400)), torch.zeros(n_heads, members)
    )
    users, items = torch.randint(700, (670,), generator=rng), torch.randint(400, (670, 1), generator=rng)
    targets = torch.rand(670, 1, n_heads, generator=rng).round()
    task = heads.HeadTask(users, items, targets, torch.ones(670, 1, n_heads))
    each = heads.MemberTask(torch.ones(n_heads, members), torch.full((members,), 0.02))
    block = heads.BlockTask(torch.arange(430), torch.arange(16), torch.ones(16, n_heads, 430))
    pairs, whole = (tables, task, each, (False, False), None), (tables, task, each, (False, False), block)
    log = ImpressionColumns(
        np.sort(Rng(0).numpy("users").integers(700, size=28_000)),
        Rng(0).numpy("items").integers(400, size=28_000),
        *np.ones((2, 28_000), "f4"),
    )
    rows = np.arange(0, 28_000, 41)
    gather = (
        "impression_rows",
        partial(impression_rows, log, rows),
        partial(impression_rows_plainly, log, rows),
    )
    return [
        gather,
        *(
            (what, partial(heads.head_gradients, *given), partial(heads._by_autograd, *given))
            for what, given in (
                ("gradients of heads, pairs", pairs),
                ("gradients of heads, with a block", whole),
            )
        ),
    ]


def prefetching() -> list[Row]:
    """Several batches in turn: the rows of a batch that comes again would be at hand."""
    found: list[Row] = []
    loops = [(one, no_prefetch(one)) for one in (compiled.scores_and_lengths, compiled.adam_rows)]
    rates = tuple(np.float32(r) for r in (0.1, 0.001, 1e-4, 1e-8))
    for rows in (ITEMS, MANY, 1_000_000):
        P, Q, _, _ = batch_of(rows)
        means, squares = torch.zeros_like(P), torch.ones_like(P)
        scored, moved = [], []
        for number in range(8):
            users, codes = codes_of(rows, number)
            out = arrays(torch.empty(codes.shape), torch.empty(len(users)))
            scored.append((0, 1, *arrays(P, Q, users, codes), np.float32(0), *out))
            touched, _ = inner_products.numbered(codes)
            values = torch.ones(len(touched), DIM + 1)
            moved.append((0, 1, *arrays(P, means, squares, touched, values), rates))
        for name, pair, given in zip(("scores", "lazy Adam"), loops, (scored, moved), strict=True):
            found.append(
                (f"prefetch in {name}, tables of {rows:,}", *(partial(each, loop, given) for loop in pair))
            )
    return found


def each(loop: Callable[..., None], given: list[tuple[Any, ...]]) -> None:
    for one in given:
        loop(*one)


def perceptrons() -> list[Row]:
    """pair_layers, with compiled_layers and tile_products: scores and gradients of layers over pairs."""
    return [perceptron(widths) for widths in ((32, 16, 8), (128, 64, 32))]


def perceptron(widths: tuple[int, ...]) -> Row:
    rng, (_, items) = draws(), codes_of(ITEMS, 0)
    user, item = (torch.empty(n, widths[0]).normal_(generator=rng) for n in (BATCH, ITEMS))
    layers = [
        Layer(torch.empty(n, m).normal_(generator=rng), torch.zeros(n))
        for m, n in zip(widths, (*widths[1:], 1), strict=True)
    ]
    own = [t.requires_grad_() for t in (user, item, *(t for layer in layers for t in layer))]

    def plain() -> Any:
        above = (user[:, None] + functional.embedding(items, item)).relu_()
        for weight, bias in layers[:-1]:
            above = functional.linear(above, weight, bias).relu_()
        return torch.autograd.grad(functional.linear(above, *layers[-1]).sum(), own)

    def kernel() -> Any:
        parts = Parts(user, item, None, torch.arange(BATCH), items)
        return torch.autograd.grad(pair_scores(parts, layers)[0].sum(), own)

    return f"pair_layers: {widths} over {items.numel():,} pairs", kernel, plain


def threads() -> tuple[Work, Work]:
    scores = torch.randn(2_048, ITEMS, generator=draws())
    found = arrays(scores, torch.empty(len(scores), 10), torch.empty(len(scores), 10, dtype=torch.long))
    loop = compiled.few_best_of_rows
    return lambda: run(loop, 16 * scores.numel(), *found), lambda: loop(0, 1, *found)


if __name__ == "__main__":
    main()
