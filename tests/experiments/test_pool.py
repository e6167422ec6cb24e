"""Work shared out over processes."""

import os
import signal
import time
from multiprocessing import active_children

import pytest

from towpath.errors import ConfigError, TrainingError
from towpath.experiments.pool import workers


def work(shared: int, piece: int) -> tuple[int, int]:
    """Every way to end: well, with an error, killed, or never."""
    if piece == 13:
        raise ConfigError("thirteen is refused.")
    if piece == 99:
        os.kill(os.getpid(), signal.SIGKILL)
    if piece > 1000:
        time.sleep(piece)
    return shared + piece, os.getpid()


def test_one_job_is_done_here() -> None:
    with workers(work, 10, 1) as results:
        assert list(results([1, 2])) == [(11, os.getpid()), (12, os.getpid())]


def test_several_jobs_stay_for_several_batches_and_pass_errors_on() -> None:
    done: list[tuple[int, int]] = []
    batches = (range(6), range(6, 12), [5000, 13])  # the sleeper is not waited for
    with pytest.raises(ConfigError, match="thirteen"), workers(work, 10, 2) as results:
        done.extend(result for pieces in batches for result in results(pieces))
    assert sorted(value for value, _ in done) == list(range(10, 22))
    pids = {pid for _, pid in done}
    assert os.getpid() not in pids
    assert len(pids) <= 2  # nobody was started anew for the second batch
    assert not active_children()


def test_a_worker_that_is_killed_is_one_sentence() -> None:
    with pytest.raises(TrainingError, match="use a lower --jobs"), workers(work, 10, 2) as results:
        list(results([99]))
