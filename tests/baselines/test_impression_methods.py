import numpy as np
import pytest
import torch

from small import small_split
from small_impressions import small_log
from towpath.baselines.conservative import ConservativeSettings, conservative_risk
from towpath.baselines.esmm import CounterfactualSettings, escm2_risk, esmm_risk, product_loss
from towpath.baselines.imitation import imitation_risk
from towpath.baselines.inverse_propensity import shown_risk as inverse_propensity_of_shown
from towpath.baselines.shown import shown_risk
from towpath.errors import ConfigError, DataError
from towpath.methods.recipe import Recipe
from towpath.methods.run import fit
from towpath.models.headed import with_heads
from towpath.models.registry import build
from towpath.models.scorer import Context, Scorer, Sizes, sizes_of
from towpath.ranking.lists import top_k_lists
from towpath.rng import Rng
from towpath.training.impressions import HardNegatives, ImpressionBatch, ImpressionBatches
from towpath.training.settings import TrainingSettings

LOG = small_log()
METHODS = ("shown", "imitation", "esmm", "escm2", "conservative")
FAST = {"epochs": 2, "embedding_dim": 4}


def constant(score: float) -> Scorer:
    """A factorisation that gives every pair this score."""
    scorer = build("mf", {"embedding_dim": 2}, Sizes(2, 4))
    with torch.no_grad():
        for parameter in scorer.parameters():
            parameter.zero_()
        scorer.bias.fill_(score)
    return scorer


def batch() -> ImpressionBatch:
    """Two impressions, the first clicked, each with two draws; one of the draws was shown as well."""
    context = Context(torch.tensor([0, 1]), torch.empty(2, 0, dtype=torch.long))
    shown = torch.tensor([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    return ImpressionBatch(
        np.array([0, 1]), context, torch.tensor([[0, 1, 2], [1, 0, 3]]), torch.tensor([1.0, 0.0]), shown
    )


def up(s: float) -> float:
    """Loss of a positive that scores s."""
    return float(np.log1p(np.exp(-s)))


def test_shown_pairs_only_by_hand() -> None:
    assert float(shown_risk(constant(2.0), batch())[0].detach()) == pytest.approx((up(2) + up(-2)) / 2)


def test_imitation_by_hand_leaves_out_draws_that_were_shown() -> None:
    wanted = (2 * up(2) + 3 * up(-2)) / 5
    assert float(imitation_risk(constant(2.0), batch())[0].detach()) == pytest.approx(wanted)


def test_esmm_by_hand() -> None:
    headed = with_heads(constant(2.0), 2, "product")
    chance = (1 / (1 + np.exp(-2))) ** 2
    entire = (3 * up(2) + 3 * up(-2) - np.log(chance) - 5 * np.log(1 - chance)) / 6
    assert float(esmm_risk(headed, batch())[0].detach()) == pytest.approx(entire, rel=1e-5)
    settings = CounterfactualSettings(counterfactual=0.5, floor=0.05)
    inverse = (up(2) + up(-2)) * (1 + np.exp(-2)) / 6
    found = float(escm2_risk(headed, batch(), settings)[0].detach())
    assert found == pytest.approx(entire + 0.5 * inverse, rel=1e-5)


def test_the_product_loss_is_finite_far_out() -> None:
    far = torch.tensor([60.0, -60.0])
    assert product_loss(far, far, torch.tensor([0.0, 1.0])).isfinite().all()


def test_conservative_by_hand_and_without_conservatism_it_is_shown_only() -> None:
    found = conservative_risk(constant(2.0), batch(), ConservativeSettings(conservatism=0.5))[0]
    assert float(found.detach()) == pytest.approx((up(2) + up(-2)) / 2 + 0.5 * np.log(3), rel=1e-5)
    none = conservative_risk(constant(2.0), batch(), ConservativeSettings(conservatism=0.0))[0]
    assert float(none.detach()) == pytest.approx(float(shown_risk(constant(2.0), batch())[0].detach()))


@pytest.mark.parametrize("method", METHODS)
def test_every_method_fits_and_gives_the_same_floats_again(method: str) -> None:
    # The weights of escm2 grow as its chances of being shown fall, and its loss with them, up to the floor.
    settings = FAST | ({"floor": 1.0} if method == "escm2" else {})
    one, again = (fit(LOG, Recipe("mf", method, settings)) for _ in range(2))
    for name, value in one.scorer.state_dict().items():
        assert torch.equal(value, again.scorer.state_dict()[name])
    assert one.history[-1]["loss"] < one.history[0]["loss"]


@pytest.mark.parametrize("method", METHODS)
def test_a_log_of_positives_is_refused(method: str) -> None:
    with pytest.raises(DataError, match="holds positives alone"):
        fit(small_split(), Recipe("mf", method, FAST))


@pytest.mark.parametrize("method", ["plain", "ipw", "doubly-robust", "adversarial"])
def test_methods_of_pairs_learn_from_what_was_shown(method: str) -> None:
    given = {"propensity": "given"} if method in ("ipw", "doubly-robust") else {}
    found = fit(LOG, Recipe("mf", method, FAST | given | {"pairs": "shown"}))
    other = fit(LOG, Recipe("mf", method, FAST | given))
    assert not torch.equal(found.scorer.items.weight, other.scorer.items.weight)
    with pytest.raises(DataError, match="holds positives alone"):
        fit(small_split(), Recipe("mf", method, FAST | {"pairs": "shown"}))


def test_inverse_propensity_on_shown_pairs_by_hand() -> None:
    found = inverse_propensity_of_shown(torch.zeros(2), torch.tensor([1.0, 0.0]), torch.tensor([0.5, 0.25]))
    assert float(found) == pytest.approx(np.log(2))  # the weights add up to one
    found = inverse_propensity_of_shown(
        torch.tensor([2.0, 0.0]), torch.tensor([1.0, 0.0]), torch.tensor([1.0, 0.5])
    )
    assert float(found) == pytest.approx((up(2) + 2 * np.log(2)) / 3)


def test_known_exposure_makes_expomf_doubt_less() -> None:
    settings = {"epochs": 3, "embedding_dim": 4}
    known, inferred = (
        fit(LOG, Recipe("mf", "expomf", settings | {"known_exposure": known})) for known in (True, False)
    )
    assert known.history[-1]["exposure"] > inferred.history[-1]["exposure"]


@pytest.mark.parametrize("method", [m for m in METHODS if m != "shown"])
def test_hard_negatives_come_from_the_top_of_the_ranking(method: str) -> None:
    hard = FAST | {"hard_negatives": 2, "hard_negative_depth": 5}
    usual, changed = (fit(LOG, Recipe("mf", method, s)).scorer for s in (FAST, hard))
    assert not torch.equal(*(next(iter(scorer.parameters())) for scorer in (usual, changed)))


def test_drawn_hard_negatives_are_those_of_the_ranking() -> None:
    settings = TrainingSettings(negatives=3, hard_negatives=2, hard_negative_depth=4)
    scorer = build("mf", {"embedding_dim": 4}, sizes_of(LOG.train))
    scorer.initialise(LOG.train, Rng(0))
    top = top_k_lists(scorer, np.arange(LOG.train.n_users), LOG.train.histories, 4).items
    batches = ImpressionBatches(LOG.train, 3, 50, HardNegatives(scorer, LOG.train, settings))
    batch = next(batches.epoch(1, Rng(0)))
    for user, items in zip(batch.context.users.tolist(), batch.items[:, 1:3].tolist(), strict=True):
        assert set(items) <= set(top[user].tolist())


def test_shown_pairs_alone_have_no_hard_negatives() -> None:
    with pytest.raises(ConfigError, match="draws no negatives"):
        Recipe("mf", "shown", {"hard_negatives": 1}).resolve()
