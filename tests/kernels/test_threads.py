import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from towpath.kernels import threads


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def count(part: int, parts: int, told: np.ndarray, values: np.ndarray) -> None:
    told[part] = parts
    values[len(values) * part // parts : len(values) * (part + 1) // parts] += 1


def shared_out(steps: int) -> tuple[list[int], list[int]]:
    told, values = np.zeros(4, dtype=int), np.zeros(101, dtype=int)
    threads.run(count, steps, told, values)
    return told.tolist(), np.unique(values).tolist()


def test_every_part_is_done_once_on_as_many_threads_as_torch_may_use() -> None:
    assert shared_out(10**9) == ([2, 2, 0, 0], [1])
    torch.set_num_threads(3)
    assert shared_out(10**9) == ([3, 3, 3, 0], [1])


def test_little_work_wakes_nobody() -> None:
    assert shared_out(1000) == ([1, 0, 0, 0], [1])


def test_several_threads_may_ask_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(shared_out, [10**9] * 20)) == [([2, 2, 0, 0], [1])] * 20


def test_what_goes_wrong_in_another_part_is_heard() -> None:
    def breaks(part: int, parts: int) -> None:
        if part == 1:
            raise ValueError("the second part")

    with pytest.raises(ValueError, match="the second part"):
        threads.run(breaks, 10**9)


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # that this process has threads is the point
def test_the_threads_of_a_parent_are_not_expected_in_a_child(start: str) -> None:
    shared_out(10**9)  # the parent has its own by now
    with multiprocessing.get_context(start).Pool(1, torch.set_num_threads, (2,)) as pool:
        assert pool.apply_async(shared_out, (10**9,)).get(timeout=60) == ([2, 2, 0, 0], [1])


def test_within_coarse_torch_has_one_thread_and_loops_keep_theirs() -> None:
    assert threads.at_once() == 1
    with threads.coarse():
        assert (torch.get_num_threads(), threads.at_once()) == (1, 2)
        assert shared_out(10**9) == ([2, 2, 0, 0], [1])
        with threads.coarse():  # a part of training within another
            assert (torch.get_num_threads(), threads.at_once()) == (1, 2)
        assert threads.each([torch.get_num_threads] * 2) == [1, 1]
    assert (torch.get_num_threads(), threads.at_once()) == (2, 1)


def test_calls_answer_in_their_order_and_their_errors_are_heard() -> None:
    with threads.coarse():
        assert threads.each([lambda: 1]) == [1]
        assert threads.each([lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]
        with pytest.raises(ZeroDivisionError):
            threads.each([lambda: 1, lambda: 1 // 0])
    assert torch.get_num_threads() == 2
