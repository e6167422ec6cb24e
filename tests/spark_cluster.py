"""A Spark cluster of this machine: a standalone master and two workers, each a process of its own."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from towpath.data.spark_session import java_environment

ADDRESS = "127.0.0.1"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = f"""
spark.driver.host {ADDRESS}
spark.driver.bindAddress {ADDRESS}
spark.driver.memory 512m
spark.executor.memory 512m
spark.sql.shuffle.partitions 2
spark.default.parallelism 2
spark.python.worker.reuse true
# Small tables: no time is spent on compiling and on planning twice.
spark.sql.codegen.wholeStage false
spark.sql.codegen.factoryMode NO_CODEGEN
spark.sql.adaptive.enabled false
spark.driver.extraJavaOptions {QUICK_START}
spark.executor.extraJavaOptions {QUICK_START}
"""


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of the master, and the variables with which a process uses it."""
    variables = {**os.environ, **_variables(folder)}
    started: list[subprocess.Popen[bytes]] = []
    try:
        name = "org.apache.spark.deploy.master.Master"
        started.append(_start(folder / "master.log", variables, name, "--host", ADDRESS, "--port", "0"))
        master = _said(folder / "master.log", r"Starting Spark master at (spark://\S+)")
        for number in range(workers):
            log, name = folder / f"worker-{number}.log", "org.apache.spark.deploy.worker.Worker"
            place = (
                "--host",
                ADDRESS,
                "--cores",
                "1",
                "--memory",
                "1g",
                "--work-dir",
                str(folder / f"w{number}"),
            )
            started.append(_start(log, variables, name, *place, master))
        for number in range(workers):
            _said(folder / f"worker-{number}.log", "(Successfully registered with master)")
        yield master, variables
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _variables(folder: Path) -> dict[str, str]:
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "spark-defaults.conf").write_text(SETTINGS)
    return {
        **java_environment(),
        "SPARK_HOME": str(_folder_of("pyspark")),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": ADDRESS,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "PYSPARK_PYTHON": sys.executable,
        # Executors import towpath as this process does.
        "PYTHONPATH": str(_folder_of("towpath").parent),
        "OMP_NUM_THREADS": "1",
    }


def _folder_of(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    return Path(str(spec.origin)).parent


def _start(log: Path, variables: dict[str, str], *words: str) -> subprocess.Popen[bytes]:
    spark = Path(variables["SPARK_HOME"]) / "bin" / "spark-class"
    with log.open("wb") as out:
        return subprocess.Popen(
            [str(spark), *words, "--webui-port", "0"] if "Master" in words[0] else [str(spark), *words],
            env=variables,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _said(log: Path, pattern: str, seconds: float = 120) -> str:
    """What a log says, once it does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text())
        if found:
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(f"{log} does not say {pattern!r}: {log.read_text()[-2000:]}")
