"""The loop of the paper's figure 1 with real parts.

Models are trained on a world's log and served over HTTP on loopback; simulated visitors click and order;
every night the log is exported, each arm is trained again with what it has shown itself, and swapped in.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import Field

from towpath.abtest.experiment import Experiment, run_experiment
from towpath.abtest.from_log import Window, experiment_log
from towpath.abtest.metrics import metrics_named
from towpath.abtest.sequences import Sequence
from towpath.abtest.visitors import Server, Shown, Visitors, VisitorSettings
from towpath.abtest.weekly_models import WEEK, Candidates, SharedTask, WeeklyModels, served_on
from towpath.data.interactions import Interactions
from towpath.data.joining import join
from towpath.data.policies import without_policy
from towpath.data.split import split_leave_last_two
from towpath.data.whole import all_for_training
from towpath.errors import ConfigError, TowpathError
from towpath.files import is_free, new_folder
from towpath.methods.recipe import Recipe
from towpath.methods.run import FixedEpochs, fit
from towpath.models.scorer import Settings
from towpath.rng import Rng
from towpath.serving.artifact import artifact_of, save_artifact
from towpath.serving.exposure_log.export import export_log
from towpath.serving.exposure_log.read import read_log
from towpath.serving.exposure_log.store import LogSettings
from towpath.serving.http.listening import listen
from towpath.serving.http.server import make_server
from towpath.serving.http.service import Service
from towpath.serving.http.settings import ArmSettings, Exploration, Place, ServerSettings
from towpath.transport.warm_start import epochs_by_part
from towpath.worlds.world import World

_DAY = 86_400_000_000  # microseconds
# The loop begins on a day that any calendar has, after all times of the world's own log.
_FIRST_DAY = 20_454  # 2026-01-01


class ServedLoopSettings(Settings):
    """How the served loop goes."""

    days: int = Field(default=21, ge=1, description="How many days are simulated.")
    retrain_every: int = Field(
        default=1, ge=0, description="Train and swap all arms every so many nights; 0: never."
    )
    epsilon: float = Field(default=0.05, ge=0, le=1, description="Exploration of the server.")
    visitors: VisitorSettings = Field(default_factory=VisitorSettings, description="How visitors behave.")


@dataclass(frozen=True)
class Start:
    """The world, the arms, how the loop goes, the seed, and the folder that keeps log and models."""

    world: World
    arms: Mapping[str, Recipe]
    settings: ServedLoopSettings
    seed: int
    folder: Path


@dataclass(frozen=True)
class ArmDay:
    """What one arm did on one day; means over its lists."""

    arm: str
    day: int
    lists: int
    clicks: float
    relevance: float  # true clicks to expect on a list
    of_best: float  # as a share of those on the best list that could have been shown
    worth: float  # true value of orders to expect from a list


@dataclass(frozen=True)
class ServedLoop:
    """The days, and what the A/B test says next to the truth."""

    days: tuple[ArmDay, ...]
    experiment: Experiment
    models: Mapping[str, WeeklyModels]  # of each arm, like for like

    def weeks(self) -> dict[str, list[float]]:
        """Each arm's `of_best`, week by week."""
        found: dict[str, list[float]] = {}
        for arm in dict.fromkeys(day.arm for day in self.days):
            mine = [day for day in self.days if day.arm == arm]
            weeks = sorted({day.day // WEEK for day in mine})
            found[arm] = [_mean([d for d in mine if d.day // WEEK == week], "of_best") for week in weeks]
        return found

    def true_lifts(self) -> dict[str, dict[str, float]]:
        """The lift over the control to expect from what was shown: of clicks, and of the value of orders."""
        names = list(dict.fromkeys(day.arm for day in self.days))
        means = {
            arm: [_mean([d for d in self.days if d.arm == arm], what) for what in ("relevance", "worth")]
            for arm in names
        }
        clicks, worth = means[self.experiment.control]
        return {
            arm: {"click_rate": found[0] / clicks - 1, "value_per_list": found[1] / worth - 1}
            for arm, found in means.items()
            if arm != self.experiment.control
        }


def run_served_loop(start: Start, watch: Callable[[str], None]) -> ServedLoop:
    """The whole loop; `watch` hears of every night and every day."""
    _check(start)
    clock = SimulatedClock()
    rng = Rng(start.seed)
    visitors = Visitors(start.world, start.settings.visitors, rng)
    folders: dict[str, dict[int, Path]] = {}  # of each arm, by night
    epochs: dict[str, tuple[int, ...]] = {}
    for name in start.arms:
        epochs[name] = _chosen_epochs(start, name)
        folders[name] = {0: _trained(start, name, start.world.exposures, (0, epochs[name]))}
        watch(f"{name} is trained on the world's log")
    days: list[ArmDay] = []
    before = visitors.candidates.copy()
    with _serving(start, {name: nights[0] for name, nights in folders.items()}, clock) as server:
        for day in range(start.settings.days):
            shown = _one_day(visitors, day, clock, server)
            days += _summed(start, day, shown)
            watch(f"day {day + 1}: {len(shown):,} visits, {sum(one.clicks for one in shown):,} clicks")
            every = start.settings.retrain_every
            if every and (day + 1) % every == 0 and day + 1 < start.settings.days:
                for name, folder in _one_night(start, day + 1, epochs, server).items():
                    folders[name][day + 1] = folder
                watch(f"night {day + 1}: all arms are trained again and swapped in")
    log = experiment_log(read_log(str(start.folder / "log")), Window())
    task = SharedTask(
        start.world.relevance, Candidates(before, visitors.candidates), start.settings.visitors.k
    )
    models = {
        arm: task.weekly([served_on(day, nights) for day in range(start.settings.days)], visitors.of_arm(arm))
        for arm, nights in folders.items()
        if len(visitors.of_arm(arm))
    }
    return ServedLoop(tuple(days), run_experiment(log, metrics_named(None), Sequence()), models)


class SimulatedClock:
    """A clock that is set, and otherwise moves a little at every look, so that no two rows have one time."""

    def __init__(self) -> None:
        self._time = _FIRST_DAY * _DAY

    def __call__(self) -> int:
        """Microseconds since 1970."""
        self._time += 1
        return self._time

    def set(self, day: int, share: float) -> None:
        """Set it to this share of a day of the loop; it never goes back."""
        self._time = max(self._time + 1, round((_FIRST_DAY + day + share) * _DAY))


def _check(start: Start) -> None:
    if len(start.arms) < 2:
        raise ConfigError("An experiment needs two arms or more; name them in --arms, with commas.")
    for recipe in start.arms.values():
        recipe.resolve()  # what cannot be is said before the first fit, not after it


def _one_day(visitors: Visitors, day: int, clock: SimulatedClock, server: Server) -> list[Shown]:
    coming = visitors.on_day(day).tolist()
    shown = []
    for place, user in enumerate(coming):
        clock.set(day, (place + 0.5) / (len(coming) + 1))
        shown.append(visitors.visit(user, day, server))
    return shown


def _one_night(
    start: Start, night: int, epochs: Mapping[str, tuple[int, ...]], server: Server
) -> dict[str, Path]:
    """Export, train every arm on the world's log and on what it has shown itself, swap: the new folders."""
    folders = {}
    file = start.folder / "shown.parquet"
    export_log(read_log(str(start.folder / "log")), file)
    for name in start.arms:
        own = served_interactions(start.world.exposures, file, name)
        log = join(without_policy(start.world.exposures), own)
        folders[name] = _trained(start, name, log, (night, epochs[name]))
        server.close()  # the server has let go of it if training took long
        server.post("/admin/models", {"arm": name, "run": str(folders[name])})
    return folders


def served_interactions(like: Interactions, file: Path, policy: str) -> Interactions:
    """The exported rows of one policy with the codes of `like`, later than all of its rows."""
    table = pq.read_table(file)
    table = table.filter(pc.equal(table["policy"], policy))
    latest = 0 if like.times is None else int(like.times.max(initial=0))
    requests = pc.rank(table["time"], tiebreaker="dense").to_numpy()
    labels = table["label"].to_numpy() == 1
    return Interactions(
        users=like.user_ids.codes(table["user"].to_pylist()).astype(np.int32),
        items=like.item_ids.codes(table["item"].to_pylist()).astype(np.int32),
        user_ids=like.user_ids,
        item_ids=like.item_ids,
        times=latest + requests.astype(np.int64),
        values=labels.astype(np.float32),
        labels=labels,
        propensities=table["propensity"].to_numpy().astype(np.float32),
        exposures=np.ones(len(labels), dtype=np.bool_),
        policies=np.zeros(len(labels), dtype=np.int32),
    )


def _chosen_epochs(start: Start, name: str) -> tuple[int, ...]:
    """For how many epochs this arm is trained: what validation chooses on the world's own log."""
    done = fit(split_leave_last_two(start.world.exposures), _recipe(start, name, 0))
    return epochs_by_part(done.history, done.best_epoch)


def _trained(start: Start, name: str, exposures: Interactions, night: tuple[int, tuple[int, ...]]) -> Path:
    """The folder of a model of this arm, trained on everything for so many epochs.

    A test part would keep back the latest clicks, and what was shown but not clicked since: exactly what the
    model of tomorrow should know. night: its number, and the epochs.
    """
    number, epochs = night
    split = all_for_training(exposures.positives, f"all rows of night {number}")
    fitted = fit(split, _recipe(start, name, number), fixed=FixedEpochs(epochs))
    folder = start.folder / "models" / f"{name}-{number:03d}"
    save_artifact(artifact_of(fitted, split), folder)
    return folder


def _recipe(start: Start, name: str, night: int) -> Recipe:
    return replace(start.arms[name], seed=start.seed + night)


@contextmanager
def _serving(start: Start, folders: Mapping[str, Path], clock: SimulatedClock) -> Iterator[Server]:
    """A client of a server with these models, in a thread of this process."""
    settings = ServerSettings(
        arms=tuple(ArmSettings(name, str(folder)) for name, folder in folders.items()),
        log=LogSettings(str(start.folder / "log")),
        exploration=Exploration(epsilon=start.settings.epsilon),
    )
    server = make_server(Service(settings, Place(seed=start.seed, clock=clock)))
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            thread.join(0.01)
            if not thread.is_alive():
                raise TowpathError("The server of the loop could not start; the lines above say why.")
        client = Server(listening.getsockname()[1])
        try:
            yield client
        finally:
            client.close()
            server.should_exit = True
            thread.join()


def _summed(start: Start, day: int, shown: list[Shown]) -> list[ArmDay]:
    rows = []
    for arm in start.arms:
        mine = [one for one in shown if one.arm == arm]
        if mine:
            relevance = float(np.mean([one.relevance for one in mine]))
            best = float(np.mean([one.best for one in mine]))
            clicks = float(np.mean([one.clicks for one in mine]))
            worth = float(np.mean([one.worth for one in mine]))
            rows.append(ArmDay(arm, day, len(mine), clicks, relevance, relevance / best, worth))
    return rows


def _mean(days: list[ArmDay], what: str) -> float:
    """The mean over lists."""
    return float(np.average([getattr(day, what) for day in days], weights=[day.lists for day in days]))


def fresh_folder(folder: Path) -> Path:
    """The folder, made new; one that has something in it is refused."""
    if not is_free(folder):
        raise ConfigError(f"{folder} already exists; choose another --out.")
    with new_folder(folder):
        pass
    return folder
