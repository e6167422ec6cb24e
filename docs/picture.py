"""The picture of the README, coverage.svg: `python docs/picture.py` (about half a minute).

It is the demonstration's world of seed 0 with plain matrix factorisation. Left: which share of all pairs of a
user and an item the log has shown, and which share of the model's own lists. Right: four rounds in which the
model is trained on the log of what it showed itself; Hit@10 as the usual offline test measures it, and as the
world's true relevance gives it.
"""

from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from towpath.experiments.demo import Demonstration, demonstrate, recipes
from towpath.worlds.latent import LatentWorld

SEED = 0
INK, ACCENT, QUIET = "#24292f", "#0b6b53", "#9a6700"  # readable on the white ground that the picture brings


def draw(demo: Demonstration) -> str:
    """Both panels as SVG."""
    both = alt.hconcat(_coverage(demo), _promise(demo), spacing=50, padding=14, background="white")
    styled = both.configure_view(stroke=None).configure_axis(
        labelColor=INK, titleColor=INK, gridColor="#e4e6e8"
    )
    return vl_convert.vegalite_to_svg(styled.to_json())


def _coverage(demo: Demonstration) -> Any:  # altair has no types
    shown = {
        "all user-item pairs": demo.world.shown_share(),
        "pairs in new top-10 lists": demo.results[0].tried_share,
    }
    rows = [{"pairs": name, "share": share, "text": f"{share:.1%}"} for name, share in shown.items()]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        y=alt.Y("pairs:N", title=None, sort=list(shown), axis=alt.Axis(labelLimit=200, labelFontSize=12))
    )
    whole = base.mark_bar(color=INK, opacity=0.1).encode(x=alt.datum(1))
    bars = base.mark_bar(color=ACCENT).encode(
        x=alt.X("share:Q", title="share that the log has shown", scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%", tickCount=5, grid=False))
    )  # fmt: skip
    text = base.mark_text(align="left", dx=5, color=INK, fontSize=12).encode(x="share:Q", text="text:N")
    return _titled(whole + bars + text, "The log covers little of what a new model shows", 230)


def _promise(demo: Demonstration) -> Any:  # altair has no types
    rounds = demo.rounds_of("plain")
    lines = {"offline test": [r.promised_hit for r in rounds], "truth": [r.true_hit for r in rounds]}
    rows = [
        {"round": number, "value": value, "which": which}
        for which, values in lines.items()
        for number, value in enumerate(values, 1)
    ]
    colour = alt.Color("which:N", legend=None, scale=alt.Scale(domain=list(lines), range=[QUIET, ACCENT]))
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("round:O", title="round of deployment", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("value:Q", title="Hit@10", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(tickCount=5)),
        color=colour,
    )
    last = alt.Chart(alt.InlineData(values=[row for row in rows if row["round"] == len(rounds)]))
    names = last.mark_text(align="right", dy=-12, fontSize=12).encode(
        x="round:O", y="value:Q", text="which:N", color=colour
    )
    drawn = base.mark_line(strokeWidth=2) + base.mark_point(filled=True, size=55, opacity=1) + names
    return _titled(drawn, "The offline test promises far more than is true", 280)


def _titled(chart: Any, title: str, width: int) -> Any:  # altair has no types
    heading = alt.TitleParams(title, color=INK, fontWeight="normal", fontSize=14, anchor="start")
    return chart.properties(width=width, height=150, title=heading)


if __name__ == "__main__":
    demo = demonstrate(LatentWorld(), SEED, compared={"plain": recipes()["plain"]})
    (Path(__file__).parent / "coverage.svg").write_text(draw(demo), encoding="utf-8")
