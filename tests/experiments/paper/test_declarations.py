"""Every table and figure of the paper is declared, can be fitted, and its claims speak of what is there."""

from pathlib import Path

import pytest

from towpath.experiments.paper.benchmarks import BENCHMARKS, OVERLAP, BenchmarkLocation, open_benchmark
from towpath.experiments.paper.catalogue import EXPERIMENTS, experiment_named
from towpath.experiments.paper.claims import Better, WeightsAre
from towpath.experiments.paper.experiment import Experiment, quick_version, restrict, select_columns
from towpath.experiments.paper.published import PUBLISHED, published_difference, published_value
from towpath.experiments.paper.weights import STATISTICS
from towpath.stats.spread import deviation_of

ALL = [*EXPERIMENTS.values(), *map(quick_version, EXPERIMENTS.values())]


@pytest.mark.parametrize("experiment", ALL, ids=[f"{n}-{e.name}" for n, e in enumerate(ALL)])
def test_what_is_declared_can_be_fitted(experiment: Experiment) -> None:
    assert set(experiment.benchmarks) <= set(BENCHMARKS)
    assert set(experiment.not_on) <= set(experiment.benchmarks)
    for recipe in experiment.columns.values():
        recipe.resolve()
    columns = set(experiment.columns)
    assert {name for pair in experiment.pairs for name in pair} <= columns
    assert all(reference in columns for sweep in experiment.sweeps for reference in sweep.references)


def test_claims_speak_of_declared_columns() -> None:
    for one in EXPERIMENTS.values():
        for claim in one.claims:
            if isinstance(claim, Better):
                assert {claim.better, claim.worse} <= set(one.columns), one.name
            if isinstance(claim, WeightsAre):
                assert claim.column in one.columns
                assert claim.statistic in STATISTICS


def test_all_that_the_issue_names_is_there() -> None:
    assert set(experiment_named("table-1").methods) >= {
        "Pop", "IPW-MF", "ExpoMF", "AC-MF", "MCF", "DT-MCF", "NCF", "DT-NCF", "Attn", "DT-Attn",
    }  # fmt: skip
    assert not [c for c in experiment_named("table-1").columns_on("ml-1m-simulation") if "Attn" in c]
    for base in ("MCF", "NCF", "Attn"):
        assert {f"{base}, same hard negatives", f"DT-{base}, the paper's players"} <= set(
            experiment_named("table-1").methods
        )
    assert set(experiment_named("simulation-by-chance").benchmarks) == {
        "ml-1m-by-chance", "goodreads-by-chance",
    }  # fmt: skip
    assert list(experiment_named("table-wide-deep").methods) == ["D&W", "IPW-D&W", "DT-D&W"]
    assert len(experiment_named("figure-overlap").benchmarks) == 6
    assert set(experiment_named("table-movielens-more").methods) >= {
        "DT-(M/N/N)", "DT-(M/M/N)", "DT-(N/M/M)", "DR-MF", "CE-MF",
    }  # fmt: skip
    settings = {sweep.setting for one in EXPERIMENTS.values() for sweep in one.sweeps}
    assert settings == {"penalty", "steps_w", "steps_g", "floor"}
    assert {picture for one in EXPERIMENTS.values() for picture in one.pictures} == {"weights", "time"}


def test_the_paper_s_numbers() -> None:
    """A few cells of its tables, and the gains that its text talks about."""
    pop = published_value("ml-1m", "Pop", "hit")
    assert pop is not None
    assert (pop.mean, deviation_of(pop), pop.n) == (43.67, 0.10, 10)
    other = published_value("goodreads-simulation", "DT-NCF", "ndcg")
    assert other is not None
    assert (other.mean, deviation_of(other)) == (29.78, 0.13)
    assert published_value("ml-1m", "MCF, same hard negatives", "hit") is None
    gains = [published_difference("ml-1m", ("DT-MCF", "MCF"), metric) for metric in ("rel", "hit", "ndcg")]
    assert gains == pytest.approx([0.63, 1.68, 1.92])
    assert sum(map(len, PUBLISHED.values())) == 15 + 13 + 12 + 12 + 10


def test_the_two_readings_differ_in_who_plays() -> None:
    methods = experiment_named("table-1").methods
    for base in ("MCF", "NCF", "Attn"):
        ours, paper = (methods[name].resolved() for name in (f"DT-{base}", f"DT-{base}, the paper's players"))
        assert (ours["settings"]["players"], paper["settings"]["players"]) == ("margin", "models")
        assert ours["model"] == paper["model"]
        plain, hard = (
            methods[name].resolved()["settings"] for name in (base, f"{base}, same hard negatives")
        )
        assert {k for k in plain if plain[k] != hard[k]} == {"hard_negatives"}


def test_worlds_of_the_overlap_figure_differ_in_what_is_random(tmp_path: Path) -> None:
    first, last = (
        open_benchmark(BenchmarkLocation(OVERLAP[place], None, tmp_path)).world for place in (0, -1)
    )
    assert first is not None
    assert last is not None
    assert (first.relevance == last.relevance).all()
    assert first.overlap()["never_share"] > 0.5 > last.overlap()["never_share"]


def test_quick_is_small_and_says_what_it_stands_for() -> None:
    quick = quick_version(experiment_named("table-1"))
    assert quick.benchmarks == ("ml-100k", "ml-100k-simulation", "lastfm-2k", "goodreads")
    assert quick.published_as("ml-100k") == "ml-1m"
    assert "Attn" not in quick.columns_on("ml-100k-simulation")
    assert quick.seeds == 2
    settings = quick.columns["NCF"].resolved()["settings"]
    assert (settings["epochs"], settings["pretrain_epochs"]) == (3, 1)


def test_a_restricted_experiment_keeps_what_its_sweep_is_drawn_next_to() -> None:
    one = select_columns(restrict(experiment_named("figure-2c"), ["ml-1m"]), ["margin players"])
    assert list(one.methods) == ["MCF"]
    assert [sweep.name for sweep in one.sweeps] == ["margin players"]
    assert one.benchmarks == ("ml-1m",)
