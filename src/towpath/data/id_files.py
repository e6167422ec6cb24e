"""Ids out of a file: one column of a Parquet, CSV or text file."""

from pathlib import Path

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

from towpath.boundary import reading
from towpath.data.columns import usual_indices
from towpath.data.vocabulary import Id
from towpath.errors import DataError

_SEPARATORS = {".tsv": "\t"}


def read_id_file(path: Path, role: str) -> list[Id]:
    """The ids in the column of this role ("user", "item"), found by its usual names, else the first column.

    A first line of a text file is a heading if one of its fields is a usual name for the role; ids of text
    files are text. Each id is given once, in the order of the file.
    """
    if not path.is_file():
        raise DataError(f"There is no file {path} with ids of {role}s; check the path.")
    with reading(f"The file of {role} ids {path}"):
        ids = _from_parquet(path, role) if path.suffix == ".parquet" else _from_text(path, role)
    found = list(dict.fromkeys(one for one in ids if one is not None and one != ""))
    if not found:
        raise DataError(f"{path} should hold ids of {role}s but has none.")
    return found


def _from_parquet(path: Path, role: str) -> list[Id]:
    names = pq.read_schema(path).names
    column = (usual_indices(role, names) or [0])[0]
    return pq.read_table(path, columns=[names[column]]).column(0).to_pylist()


def _from_text(path: Path, role: str) -> list[Id]:
    parsing = csv.ParseOptions(delimiter=_SEPARATORS.get(path.suffix, ","))
    lines = csv.read_csv(
        path,
        read_options=csv.ReadOptions(autogenerate_column_names=True),
        parse_options=parsing,
        convert_options=csv.ConvertOptions(column_types=_as_text(path, parsing)),
    )
    first = [str(column[0].as_py()) for column in lines.columns] if lines.num_rows else []
    named = usual_indices(role, first)
    ids = lines.column(named[0] if named else 0).to_pylist()
    return ids[1:] if named else ids


def _as_text(path: Path, parsing: csv.ParseOptions) -> dict[str, pa.DataType]:
    """Every column as text: 007 is an id, not the number 7."""
    reading = csv.ReadOptions(autogenerate_column_names=True)
    with csv.open_csv(path, read_options=reading, parse_options=parsing) as reader:
        return dict.fromkeys(reader.schema.names, pa.string())
