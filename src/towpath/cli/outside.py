"""Files given by --validation, --test and --candidates, read as the training data were."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from towpath.cli.options import DataOptions
from towpath.cli.output import Output
from towpath.cli.prepare import read_data

if TYPE_CHECKING:
    from towpath.data.interactions import Interactions


def read_outside(
    file: str, train: "Interactions", options: DataOptions, like: Mapping[str, Any], output: Output
) -> "Interactions":
    """The rows of the file whose users and items occur in training; how many do not is said.

    Columns and the rule for positives are those of the training data (`like`, the record of their reading),
    unless the options say otherwise. No row is cleaned away but exact repetitions of a pair.
    """
    from towpath.data.outside import align

    reading = read_data(file, _options_like(file, options, like), output, complete=False)
    events, unknown = align(reading.interactions, train)
    if unknown.rows:
        output.say(unknown.sentence())
    return events


def _options_like(file: str, options: DataOptions, like: Mapping[str, Any]) -> DataOptions:
    """The options, filled up with what the training data were read by."""
    from towpath.data.columns import Columns
    from towpath.data.sources import columns_among

    roles = like.get("roles", {})
    given = {field.name: getattr(options, f"{field.name}_col") for field in fields(Columns)}
    usual = columns_among(Columns(**{role: given[role] or roles.get(role, "") for role in given}), file)
    columns: dict[str, Any] = {f"{role}_col": given[role] or getattr(usual, role) for role in given}
    rules: dict[str, Any] = {  # as the options have them
        name: getattr(options, name) or like.get(name)
        for name in ("positive", "positive_events", "event_weight")
    }
    if not columns["value_col"] and not options.positive:
        rules["positive"] = None
    if not columns["event_col"] and not options.positive_events:
        rules["positive_events"] = rules["event_weight"] = None
    return replace(options, **columns, **rules, user_features=None, item_features=None, feature=None)
