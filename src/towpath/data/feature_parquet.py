"""Encoded features as a Parquet file: a column for each feature, and what the codes mean next to them."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa

from towpath.data.features import FIRST_VALUE, Feature, FeatureTable, Labels, pack
from towpath.data.parquet import read_table, write_table

_NOTE = b"towpath features"


def features_json(table: FeatureTable) -> str:
    """What the columns are and what their codes mean."""
    return json.dumps([asdict(feature) for feature in table.features], ensure_ascii=False)


def write_feature_table(table: FeatureTable, path: Path) -> None:
    """The file with this table: lists of codes, and numbers."""
    columns: dict[str, pa.Array] = {}
    for place, label in enumerate(table.labels):
        starts = np.zeros(len(table) + 1, dtype=np.int32)
        lengths = np.diff(table.starts).reshape(len(table), -1)[:, place]
        np.cumsum(lengths, out=starts[1:])
        columns[label.name] = pa.ListArray.from_arrays(starts, table.codes[table.columns == place])
    for place, number in enumerate(table.numeric):
        columns[number.name] = pa.array(table.numbers[:, place])
    arrow = pa.table({feature.name: columns[feature.name] for feature in table.features})
    write_table(arrow.replace_schema_metadata({_NOTE: features_json(table)}), path)


def read_feature_table(path: Path) -> FeatureTable:
    """What `write_feature_table` wrote."""
    arrow = read_table(path)
    stored = json.loads(arrow.schema.metadata[_NOTE])
    features = [Feature(**{**entry, "values": tuple(entry["values"])}) for entry in stored]
    labels, numbers = [], []
    for feature in features:
        column = arrow.column(feature.name).combine_chunks()
        if feature.kind == "numeric":
            numbers.append(column.to_numpy(zero_copy_only=False))
            continue
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        codes = column.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
        labels.append(Labels(np.repeat(np.arange(len(column)), lengths), codes - FIRST_VALUE))
    return pack(features, arrow.num_rows, labels, numbers)
