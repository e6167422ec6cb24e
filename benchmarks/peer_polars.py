"""What Polars takes to read, clean, encode and split events with string ids. Run by its own interpreter.

    build/peers/polars/bin/python benchmarks/peer_polars.py EVENTS.parquet [codes|strings]

The same steps as `benchmarks.ingest --measure`: of repeated pairs the first, items and then users with at
least five events, codes in the order of the ids, rows by user and time (then by row of the file), each user's
last row for test and the one before for validation, with times and ratings. Two plans, both lazy on the
streaming engine: `codes` encodes the ids first and cleans integers, `strings` cleans first and encodes what
is left. The split is by shifted columns of the sorted table, which is faster than windows over users. Answers
with a line of JSON.
"""

import json
import resource
import sys
import time

import polars as pl

MIN_EVENTS = 5
USER, ITEM = "user_id", "item_id"


def main() -> None:
    path, plan = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "codes"
    began = time.perf_counter()
    events = pl.scan_parquet(path).with_row_index("row")
    # Time and row of the file in one number, which is what is compared.
    order = pl.col("timestamp") * 2**32 + pl.col("row").cast(pl.Int64)
    events = events.select(USER, ITEM, order.alias("order"))
    # Codes are given once more after cleaning, to close the gaps.
    first = encoded(events, events) if plan == "codes" else events
    ordered = encoded(cleaned(first)).sort(USER, "order").collect(engine="streaming")
    parts = split(with_values(ordered, path))
    seconds = time.perf_counter() - began
    usage = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "rows": len(ordered),
        "users": ordered[USER].n_unique(),
        "items": ordered[ITEM].n_unique(),
        "test": len(parts["test"]),
        "seconds": round(seconds, 2),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "peak_gigabytes": round(usage.ru_maxrss * 1024 / 1e9, 3),
    }
    print(json.dumps(found))


def cleaned(events: pl.LazyFrame) -> pl.LazyFrame:
    """The first of repeated pairs, then items and then users with enough of them."""
    kept = events.group_by(USER, ITEM).agg(pl.col("order").min())
    for side in (ITEM, USER):
        kept = kept.collect(engine="streaming").lazy()  # once, not once for the counts and once for the rows
        enough = kept.group_by(side).len().filter(pl.col("len") >= MIN_EVENTS).select(side)
        kept = kept.join(enough, on=side, how="semi")
    return kept.collect(engine="streaming").lazy()


def with_values(ordered: pl.DataFrame, path: str) -> pl.DataFrame:
    """The same with times and ratings, looked up by row: faster than to carry them through all steps."""
    ratings = pl.scan_parquet(path).select("rating").collect(engine="streaming")["rating"]
    order = ordered["order"]
    return ordered.drop("order").with_columns(
        (order // 2**32).alias("time"), ratings.gather(order & (2**32 - 1)).alias("rating")
    )


def encoded(events: pl.LazyFrame, ids_from: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """The same with integers for ids, in the order of the ids."""
    for side in (USER, ITEM):
        ids = (events if ids_from is None else ids_from).select(pl.col(side).unique().sort())
        known = ids.with_row_index("code").with_columns(pl.col("code").cast(pl.Int32)).collect().lazy()
        events = events.join(known, on=side).drop(side).rename({"code": side})
    return events


def split(ordered: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Training, validation and test rows; users with fewer than three stay in training."""
    user = pl.col(USER)

    def same(places: int) -> pl.Expr:
        return (user == user.shift(places)).fill_null(False)

    part = (
        pl.when(~same(-1) & same(2)).then(2).when(same(-1) & ~same(-2) & same(1)).then(1).otherwise(0)
    ).alias("part")
    marked = ordered.with_columns(part)
    return {
        name: marked.filter(pl.col("part") == number)
        for number, name in enumerate(("train", "validation", "test"))
    }


if __name__ == "__main__":
    main()
