"""Public sets by name: where they come from, how to know them again, and how to read them."""

from dataclasses import dataclass, field
from pathlib import Path

from towpath.data.columns import Columns
from towpath.data.feature_kinds import FeatureForm
from towpath.errors import DataError, unknown_name


@dataclass(frozen=True, kw_only=True)
class BuiltinDataset:
    """One public set."""

    name: str
    title: str
    address: str  # of the publisher
    checksum: str | None  # "sha256:..." or "md5:..."; None where the publisher gives none
    licence: str
    member: str | None  # the file of events inside the archive; None if the download is that file
    columns: Columns = field(default_factory=Columns)
    missing_value: float | None = None  # a value that means "none given"
    member_checksum: str | None = None  # "sha256:..." of the file of events, to know an unpacked copy by
    most_bytes: int = 1 << 26  # a download that is longer is something else
    user_features: FeatureForm | None = None
    item_features: FeatureForm | None = None

    @property
    def file_name(self) -> str:
        """The name of the downloaded file."""
        return self.address.rsplit("/", 1)[1]


_GROUPLENS = "https://files.grouplens.org/datasets"
# What the READMEs of the sets say, in short.
_MOVIELENS_LICENCE = (
    "Research use, to be acknowledged in publications (Harper and Konstan 2015); no redistribution and no "
    "commercial use without permission of GroupLens, and no hint that they endorse the user."
)

# 'Toy Story (1995)' was made in the five years from 1995.
_FIVE_YEARS = r"CAST(TRY_CAST(regexp_extract(title, '\((\d{4})\)\s*$', 1) AS INTEGER) // 5 * 5 AS VARCHAR)"
_REGION = "zip[1]"  # the first digit of a zip code: a group of states
_LABELS = ("gender", "age", "occupation", "region", "years")
_GENRES = (
    "unknown", "action", "adventure", "animation", "childrens", "comedy", "crime", "documentary", "drama",
    "fantasy", "noir", "horror", "musical", "mystery", "romance", "scifi", "thriller", "war", "western",
)  # fmt: skip
_CATEGORIES = {**dict.fromkeys(_LABELS, "categorical"), "genres": "multivalued"}

BUILTIN_DATASETS = {
    entry.name: entry
    for entry in (
        BuiltinDataset(
            name="ml-100k",
            title="MovieLens 100K: 100,000 ratings, 943 users, 1,682 movies",
            address=f"{_GROUPLENS}/movielens/ml-100k.zip",
            checksum="sha256:50d2a982c66986937beb9ffb3aa76efe955bf3d5c6b761f4e3a7cd717c6a3229",
            member_checksum="sha256:06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
            licence=_MOVIELENS_LICENCE,
            member="ml-100k/u.data",
            columns=Columns(user="1", item="2", value="3", time="4"),
            user_features=FeatureForm(
                member="ml-100k/u.user",
                names=("user", "age", "gender", "occupation", "zip"),
                delimiter="|",
                columns={
                    "gender": "gender",
                    "age": "CAST(TRY_CAST(age AS INTEGER) // 10 * 10 AS VARCHAR)",
                    "occupation": "occupation",
                    "region": _REGION,
                },
                kinds=_CATEGORIES,
            ),
            item_features=FeatureForm(
                member="ml-100k/u.item",
                names=("item", "title", "released", "released_on_video", "address", *_GENRES),
                delimiter="|",
                columns={
                    "genres": "concat_ws('|', "
                    + ", ".join(f"CASE {genre} WHEN '1' THEN '{genre}' END" for genre in _GENRES)
                    + ")",
                    "years": _FIVE_YEARS,
                },
                kinds=_CATEGORIES,
            ),
        ),
        BuiltinDataset(
            name="ml-1m",
            title="MovieLens 1M: 1,000,209 ratings, 6,040 users, 3,706 movies",
            address=f"{_GROUPLENS}/movielens/ml-1m.zip",
            checksum="sha256:a6898adb50b9ca05aa231689da44c217cb524e7ebd39d264c56e2832f2c54e20",
            member_checksum="sha256:506d64ca44484487c11dc2d9a28de5c54948213e6b96285e298afe28d6ea4e0f",
            licence=_MOVIELENS_LICENCE,
            member="ml-1m/ratings.dat",
            columns=Columns(user="1", item="2", value="3", time="4"),
            user_features=FeatureForm(
                member="ml-1m/users.dat",
                names=("user", "gender", "age", "occupation", "zip"),
                delimiter="::",
                columns={
                    **{column: column for column in ("gender", "age", "occupation")},
                    "region": _REGION,
                },
                kinds=_CATEGORIES,
            ),
            item_features=FeatureForm(
                member="ml-1m/movies.dat",
                names=("item", "title", "genres"),
                delimiter="::",
                columns={"genres": "genres", "years": _FIVE_YEARS},
                kinds=_CATEGORIES,
            ),
        ),
        BuiltinDataset(
            name="lastfm-2k",
            title="Last.fm (HetRec 2011): 186,479 tag events, 1,892 users, 12,523 artists",
            address=f"{_GROUPLENS}/hetrec2011/hetrec2011-lastfm-2k.zip",
            checksum="sha256:6738f48195667ff03caaab4d32ca9a3133d8cc026b7c3cdaf6ce1010e913c59c",
            licence="Non-commercial use, citing Last.fm (www.last.fm), whose staff to ask for any other.",
            # In the archive the file lies at the top; an unpacked copy may have a folder around it.
            member="user_taggedartists-timestamps.dat",
            columns=Columns(user="userID", item="artistID", time="timestamp"),
        ),
        BuiltinDataset(
            name="goodreads-history-biography",
            title="GoodReads reviews of history and biography (UCSD Book Graph)",
            address="https://mcauleylab.ucsd.edu/public_datasets/gdrive/goodreads/byGenre/"
            "goodreads_reviews_history_biography.json.gz",
            # None is published: that of the first download is kept next to the file and checked ever after.
            checksum=None,
            licence="Academic use only, citing Wan and McAuley (RecSys 2018) and Wan et al. (ACL 2019); "
            "no redistribution, no commercial use.",
            member=None,
            columns=Columns(user="user_id", item="book_id", value="rating", time="date_updated"),
            missing_value=0.0,
            most_bytes=1 << 33,
        ),
    )
}


def builtin_dataset(name: str) -> BuiltinDataset:
    """The entry of this name."""
    if name not in BUILTIN_DATASETS:
        raise unknown_name("dataset", name, BUILTIN_DATASETS)
    return BUILTIN_DATASETS[name]


def local_copy(entry: BuiltinDataset, data_dir: Path | None) -> Path:
    """Where the set lies in `data_dir`: the archive, the unpacked file, or raises with what to do."""
    if data_dir is not None:
        for candidate in _candidates(entry, data_dir):
            if candidate.is_file():
                return candidate
    where = f"in {data_dir}" if data_dir is not None else "here, since no data directory was given"
    raise DataError(
        f"{entry.name} is not {where}; get it with `towpath data fetch {entry.name} --data-dir "
        f"{data_dir or 'FOLDER'}`, or name the folder that has it with --data-dir."
    )


def _candidates(entry: BuiltinDataset, data_dir: Path) -> list[Path]:
    """Places where a copy may lie; unpacked ones first, since they need no unpacking."""
    download = data_dir / entry.file_name
    plain = download.with_suffix("") if entry.member is None else data_dir / entry.member
    unpacked = [plain]
    if entry.member is not None:
        stem = download.stem
        unpacked += [data_dir / stem / Path(entry.member).name, data_dir / Path(entry.member).name]
    return [*unpacked, download]
