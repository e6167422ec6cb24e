"""The whole exposure log as Arrow tables, also while servers are writing to it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from towpath.boundary import reading
from towpath.errors import DataError
from towpath.serving.exposure_log.check import refuse_bad_rows
from towpath.serving.exposure_log.store import LogSettings
from towpath.serving.exposure_log.tables import TABLES, LogTables, columns_of, table_of

FILES = "exposures-*.sqlite"


def read_log(log: str) -> LogTables:
    """The log at this place: a folder of files, one for each worker, or the address of a PostgreSQL database.

    A folder is read file by file, each as it stood when its reading began. Every row is checked.
    """
    if LogSettings(log).in_postgresql:
        from towpath.serving.exposure_log.postgresql import read_postgresql

        found, place = read_postgresql(log), "the PostgreSQL database"  # whose address may hold a password
    else:
        files, place = files_of(Path(log)), log
        with reading(log, "restore it from a copy"):
            found = LogTables(**{table: _read_files(files, table) for table in TABLES})
    refuse_bad_rows(found, place)
    return found


def files_of(folder: Path) -> list[Path]:
    """The files of a log folder, in the order of their workers."""
    found = sorted(folder.glob(FILES)) if folder.is_dir() else []
    if not found:
        why = "there are no exposures-*.sqlite files in it" if folder.is_dir() else "there is no such folder"
        raise DataError(f"There is no exposure log at {folder}: {why}; give the --log of towpath serve.")
    for file in found:
        if not file.is_file():  # a pipe would keep its reader waiting for ever
            raise DataError(
                f"{file} should be a file of an exposure log, but it is something else; remove it."
            )
    return found


def _read_files(files: list[Path], table: str) -> pa.Table:
    return pa.concat_tables([table_of(table, _rows(file, table)) for file in files])


def _rows(file: Path, table: str) -> list[tuple[object, ...]]:
    query = f"SELECT {', '.join(columns_of(table))} FROM {table} ORDER BY number"
    kind = f"SELECT type FROM sqlite_master WHERE name = '{table}'"
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            if connection.execute(kind).fetchall() == [("view",)]:  # which could compute without end
                raise DataError(f"{file} is no exposure log: {table} is not a table; give another.")
            return connection.execute(query).fetchall()
    except sqlite3.Error as error:
        raise DataError(
            f"{file} cannot be read as an exposure log ({error}); restore it from a copy."
        ) from error
