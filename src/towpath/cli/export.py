"""towpath export: vectors of users and items for a vector index."""

from pathlib import Path
from typing import Annotated, Any

import typer

from towpath.cli.options import HowMany, RunFolder
from towpath.cli.output import Listing, Output
from towpath.cli.prepare import use_threads
from towpath.errors import ConfigError, unknown_name


def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to make.", show_default=False)],
    output: Output,
    index: Annotated[
        str | None,
        typer.Option(
            help="Also write an index of the items, and report its recall: faiss.", show_default=False
        ),
    ] = None,
    k: HowMany = 10,
) -> None:
    """Write item and user vectors whose inner products are the scores, as Parquet and NumPy."""
    use_threads(1)
    from towpath.files import refuse_unwritable
    from towpath.serving.catalogue import check_k
    from towpath.serving.export import write_vectors
    from towpath.serving.recommender import load

    if index not in (None, "faiss"):
        raise unknown_name("index", str(index), ("faiss",))
    refuse_unwritable(out)
    if out.exists():
        raise ConfigError(f"{out} already exists; choose another --out.")
    artifact = load(run).artifact
    check_k(k, len(artifact.item_ids))
    with output.working(f"Exporting {run}"):
        report = write_vectors(artifact, out, index=index is not None, k=k)
    result: dict[str, Any] = {  # any JSON
        "out": str(out),
        "items": len(artifact.item_ids),
        "users": int(artifact.history.trained.sum()),
    }
    if report is not None:
        result |= {"index": index, "k": report.k, "asked_users": report.users, "recall": report.recall}
    output.show(result, Listing("Vectors", ("", ""), list(result.items())))
