import pytest

from towpath.reports.bands import BandStyle, draw_band
from towpath.reports.figures import charts_available
from towpath.reports.lines import Axes
from towpath.stats.estimate import Estimate

BANDS = {1: (1.0, 0.8, 1.2), 10: (1.5, 1.1, 1.9), 1000: (2.0, 1.5, 2.5)}
POINTS = [(x, Estimate(*band, 9, "by hand")) for x, band in BANDS.items()]
needs_charts = pytest.mark.skipif(not charts_available(), reason="the extra `report` is not installed")


@needs_charts
def test_a_band_has_its_axes_and_the_name_of_its_level():
    axes = Axes("training events", "weight", small=True)
    figure = draw_band(POINTS, axes, "Weights.", BandStyle(("average", 1.0), ratios=True))
    assert figure.small
    assert figure.caption == "Weights."
    assert all(word in figure.svg for word in ("training events", "weight", "average"))
    assert ">1,000<" in figure.svg  # in equal ratios every power of ten has its mark


@needs_charts
def test_without_ratios_the_axis_goes_in_equal_steps():
    figure = draw_band(POINTS, Axes("x", "y"), "")
    assert not figure.small
    assert ">500<" in figure.svg or ">400<" in figure.svg
    assert "average" not in figure.svg


def test_without_charts_the_caption_is_left(monkeypatch):
    monkeypatch.setattr("towpath.reports.bands.charts_available", lambda: False)
    figure = draw_band(POINTS, Axes("x", "y", small=True), "Weights.")
    assert (figure.svg, figure.caption, figure.small) == (None, "Weights.", True)
