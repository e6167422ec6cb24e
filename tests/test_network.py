"""Training over a network: two hosts, each a network namespace of this machine with an address of its own.

Part of `make test-cluster`; needs root and the command `ip` (iproute2).
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from event_files import write_events
from towpath.serving.together import NEW_STORE_EACH_TIME
from training.test_distributed import fit_words, losses

HOSTS = {"towpath-a": "10.213.7.1", "towpath-b": "10.213.7.2"}
PORT = "29431"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def network() -> Iterator[None]:
    """Two namespaces and a cable between them."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("two network namespaces need root and the command ip (apt install iproute2)")
    made = []
    try:
        for host in HOSTS:
            ip("netns", "add", host)
            made.append(host)
        first, second = HOSTS
        ip("link", "add", "cable", "netns", first, "type", "veth", "peer", "name", "cable", "netns", second)
        for host, address in HOSTS.items():
            ip("-n", host, "addr", "add", f"{address}/24", "dev", "cable")
            for device in ("cable", "lo"):
                ip("-n", host, "link", "set", device, "up")
        yield
    finally:
        for host in made:
            ip("netns", "del", host)


def start(host: str, run: Path) -> subprocess.Popen[str]:
    """torchrun on one of the hosts, as docs/cluster.md says."""
    leader, address = next(iter(HOSTS)), HOSTS[host]
    words = ["--nnodes", "2", "--nproc-per-node", "1", "--max-restarts", "3", "--rdzv-backend", "c10d"]
    words += ["--rdzv-endpoint", f"{HOSTS[leader]}:{PORT}", "--local-addr", address]
    words += ["--rdzv-conf", f"is_host={str(host == leader).lower()}", "-m", "towpath.serving.together"]
    return subprocess.Popen(
        ["ip", "netns", "exec", host, sys.executable, "-m", "torch.distributed.run", *words, str(run)],
        env={**os.environ, **NEW_STORE_EACH_TIME, "GLOO_SOCKET_IFNAME": "cable", "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.timeout(900)
@pytest.mark.parametrize("tables", ["copied", "sharded"])
def test_two_hosts_train_as_one_process_does(tmp_path: Path, network: None, tables: str) -> None:
    write_events(tmp_path / "e.csv")
    more = ("--set", "epochs=3", "--set", "hard_negatives=1")
    subprocess.run(fit_words(tmp_path, "one", *more), check=True, capture_output=True)
    together = ("--workers", "0", "--tables", tables)
    subprocess.run(fit_words(tmp_path, "two", *more, *together), check=True, capture_output=True)
    started = [start(host, tmp_path / "two") for host in HOSTS]
    said = [process.communicate()[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], "\n".join(said)
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), abs=1e-6)
