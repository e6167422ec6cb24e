"""The whole exposure log as Arrow tables, also while servers are writing to it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from towpath.errors import DataError
from towpath.serving.exposure_log.store import LogSettings
from towpath.serving.exposure_log.tables import TABLES, LogTables, columns_of, table_of

FILES = "exposures-*.sqlite"


def read_log(log: str) -> LogTables:
    """The log at this place: a folder of files, one for each worker, or the address of a PostgreSQL database.

    A folder is read file by file, each as it stood when its reading began.
    """
    if LogSettings(log).in_postgresql:
        from towpath.serving.exposure_log.postgresql import read_postgresql

        return read_postgresql(log)
    return LogTables(**{table: _read_files(files_of(Path(log)), table) for table in TABLES})


def files_of(folder: Path) -> list[Path]:
    """The files of a log folder, in the order of their workers."""
    found = sorted(folder.glob(FILES)) if folder.is_dir() else []
    if not found:
        why = "there are no exposures-*.sqlite files in it" if folder.is_dir() else "there is no such folder"
        raise DataError(f"There is no exposure log at {folder}: {why}; give the --log of towpath serve.")
    return found


def _read_files(files: list[Path], table: str) -> pa.Table:
    return pa.concat_tables([table_of(table, _rows(file, table)) for file in files])


def _rows(file: Path, table: str) -> list[tuple[object, ...]]:
    query = f"SELECT {', '.join(columns_of(table))} FROM {table} ORDER BY number"
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.Error as error:
        raise DataError(
            f"{file} cannot be read as an exposure log ({error}); restore it from a copy."
        ) from error
