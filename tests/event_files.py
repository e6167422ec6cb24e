"""Event files for tests, made on the spot."""

from pathlib import Path

import numpy as np

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


def write_slates(folder: Path, rows: int = 300) -> Path:
    """Two files of slates with labels, positions, propensities and policies; a text with a line break."""
    folder.mkdir()
    draw = np.random.default_rng(0)
    lines = [
        f"u{draw.integers(20)},{draw.integers(30)},2024-03-0{draw.integers(1, 9)}T10:{n % 60:02}:00+02,"
        f'{int(draw.random() < 0.4)},r{n // 3},{n % 3 + 1},{(n % 10 + 1) / 10},"{"a" if n % 2 else "b"}"'
        for n in range(rows)
    ]
    lines[7] = lines[7].removesuffix('"') + '\nc"'
    head = "user,item,time,label,request,position,propensity,policy\n"
    (folder / "part 1.csv").write_text(head + "\n".join(lines[:170]) + "\n")
    (folder / "part 2.csv").write_text(head + "\n".join(lines[170:]) + "\n")
    return folder
