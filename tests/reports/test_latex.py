"""Tables in LaTeX say what the others say, and nothing in them is taken for a command."""

from towpath.reports.latex import escaped, to_latex
from towpath.reports.page import Page, Section, to_html
from towpath.reports.tables import Ranked, Table, to_csv, to_markdown
from towpath.stats.estimate import Estimate
from towpath.stats.spread import mean_and_deviation

TABLE = Table(
    ("method", "Hit@10", "gap"),
    (
        ("MCF", Ranked(mean_and_deviation(8.06, 0.26, n=3), 2), "—"),
        ("DT_MCF", Ranked(mean_and_deviation(8.73, None, n=1), 1), Estimate(0.67, 0.33, 1.01, 9, "by hand")),
    ),
    "95 % intervals",
    decimals=2,
)


def test_the_best_and_the_second_are_marked_everywhere() -> None:
    assert r"\underline{8.06 $\pm$ 0.26} & — \\" in to_latex(TABLE)
    assert r"\textbf{8.73} & 0.67 (0.33 to 1.01) \\" in to_latex(TABLE)
    assert "| _8.06 ± 0.26_ |" in to_markdown(TABLE)
    assert "**8.73**" in to_markdown(TABLE)
    page = to_html(Page("t", "l", (Section("h", tables=(TABLE,)),)))
    assert '<td class="number second">8.06 ± 0.26</td>' in page
    assert '<td class="number best">8.73</td>' in page


def test_commands_are_made_harmless() -> None:
    assert escaped(r"50 % & \input{x}_1^2 ~#$") == (
        r"50 \% \& \textbackslash{}input\{x\}\_1\textasciicircum{}2 \textasciitilde{}\#\$"
    )
    assert r"DT\_MCF" in to_latex(TABLE)


def test_csv_gives_a_mean_its_spread_in_a_column_of_its_own() -> None:
    assert to_csv(TABLE).splitlines() == [
        "method,Hit@10,Hit@10 sd,gap,gap low,gap high",
        "MCF,8.06,0.26,—,,",
        "DT_MCF,8.73,,0.67,0.33,1.01",
    ]
