"""Event files for tests, made on the spot."""

from pathlib import Path

from small import small_interactions


def write_events(path: Path, users: int = 300, items: int = 80, per_user: int = 12) -> Path:
    """A CSV file with columns user, item, rating, time; users u0.., items i0.., tastes as in small.py."""
    events = small_interactions(users=users, items=items, per_user=per_user)
    assert events.times is not None
    names = zip(events.user_ids.ids(events.users), events.item_ids.ids(events.items), strict=True)
    rows = [
        f"{user},{item},{1 + n % 5},{time}"
        for n, ((user, item), time) in enumerate(zip(names, events.times.tolist(), strict=True))
    ]
    path.write_text("\n".join(["user,item,rating,time", *rows]) + "\n")
    return path
