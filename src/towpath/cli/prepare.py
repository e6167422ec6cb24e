"""From the options about data to a split, with everything that was guessed or dropped said aloud."""

import os
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, cast

from towpath.cli.options import DataOptions, Preparation, names_in
from towpath.cli.output import Output
from towpath.errors import ConfigError

if TYPE_CHECKING:
    from towpath import SplitStrategy
    from towpath.data.cleaning import Step
    from towpath.data.interactions import Interactions
    from towpath.data.meaning import Positive
    from towpath.data.sources import Encode, Reading
    from towpath.data.split import Split


def read_data(
    data: str,
    options: DataOptions,
    output: Output,
    *,
    complete: bool = True,
    encode: "Encode | None" = None,
) -> "Reading":
    """The cleaned data; guesses and what each cleaning step dropped go to standard error."""
    from towpath.data.cleaning import Cleaning
    from towpath.data.columns import Columns
    from towpath.data.feature_kinds import FeatureFiles
    from towpath.data.sources import read

    columns = Columns(**{role: getattr(options, f"{role}_col") for role in _names_of(Columns)})
    cleaning = Cleaning(**{name: getattr(options, name) for name in _names_of(Cleaning)})
    features = FeatureFiles(options.user_features, options.item_features, _kinds_in(options.feature))
    with output.working(f"Reading {data}"):
        reading = read(
            data,
            data_dir=options.data_dir,
            columns=columns,
            positive=positive_of(options),
            cleaning=cleaning,
            features=features,
            complete=complete,
            engine=options.engine,
            **({} if encode is None else {"encode": encode}),
        )
    for note in reading.notes:
        output.say(note)
    for step in reading.steps:
        output.say(f"{step.name}: {_outcome(step)}")
    for report in reading.features:
        for sentence in report.sentences():
            output.say(sentence)
    return reading


def positive_of(options: DataOptions) -> "Positive":
    """What the options say about positives."""
    from towpath.data.meaning import Positive

    events = names_in(options.positive_events, "--positive-events") if options.positive_events else ()
    return Positive(options.positive, tuple(events), _weights_in(options.event_weight))


def _weights_in(pairs: list[str] | None) -> dict[str, float]:
    """{"purchase": 3.0} of ["purchase=3"]."""
    weights = {}
    for pair in pairs or ():
        name, equals, weight = pair.rpartition("=")
        try:
            weights[name.strip()] = float(weight)
        except ValueError:
            equals = ""
        if not (name and equals):
            raise ConfigError(
                f"--event-weight takes NAME=WEIGHT, such as purchase=3, and {pair!r} was given."
            )
    return weights


def _kinds_in(pairs: list[str] | None) -> dict[str, str]:
    """{"tags": "multivalued"} of ["tags=multivalued"]."""
    kinds = {}
    for pair in pairs or ():
        name, equals, kind = pair.partition("=")
        if not (name and equals):
            raise ConfigError(
                f"--feature takes NAME=KIND, such as --feature age=numeric, and {pair!r} was given."
            )
        kinds[name.strip()] = kind.strip()
    return kinds


def _outcome(step: "Step") -> str:
    """What a step of cleaning did; that of reading is no more than what it found."""
    if step.name != "read" and not step.dropped_rows:
        return "nothing to drop"
    dropped = f"dropped {step.dropped_rows:,}, left " if step.dropped_rows else ""
    return f"{dropped}{step.rows:,} rows of {step.users:,} users and {step.items:,} items"


def split_data(interactions: "Interactions", options: Preparation) -> "Split":
    """The split that the options ask for."""
    from towpath import split

    return split(
        interactions,
        cast("SplitStrategy", options.split),  # checked when the options were made
        validation_share=options.validation_share,
        test_share=options.test_share,
        seed=options.split_seed,
        engine=options.engine,
    )


def record_of(reading: "Reading", options: Preparation) -> dict[str, Any]:
    """Where the data came from, what was asked for, what was noticed and what was dropped; any JSON."""
    asked = {name: value for name, value in asdict(options).items() if name not in ("data_dir", "engine")}
    said = [*reading.notes, *(sentence for report in reading.features for sentence in report.sentences())]
    steps = [asdict(step) for step in reading.steps]
    return {"source": reading.source, **asked, "roles": dict(reading.roles), "notes": said, "steps": steps}


def use_threads(count: int) -> None:
    """Hold torch and the BLAS of numpy and scipy to this many threads; call it before they are imported."""
    set_thread_variables(count)
    import torch

    torch.set_num_threads(count)


def set_thread_variables(count: int) -> None:
    """The part of `use_threads` that is read when a library is loaded.

    Threads sleep while they wait for each other, unless OMP_WAIT_POLICY says otherwise: those that spin take
    the processor from the one they wait for as soon as another program is busy too.
    """
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(count)
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _names_of(settings: type) -> list[str]:
    return [field.name for field in fields(settings)]
