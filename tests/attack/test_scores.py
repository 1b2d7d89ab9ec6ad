"""All attacks together: the headline, one row per attack, cells by risk."""

from __future__ import annotations

import numpy as np
import pytest

from tablesafe.attack import ATTACKS, Midpoint, Scores, SimplexVertex, VertexMean, attack
from tablesafe.attack.registry import choose
from tablesafe.core.errors import InvalidOption
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.sensitivity import Sensitivity
from tablesafe.core.table import Table


@pytest.fixture
def case() -> tuple[Problem, Release]:
    """s = a + b with 5 and 5 (the middle is the truth), t = c + d with 1 and 9, u alone is given away."""
    table = Table.from_equations(
        ["s = a + b", "t = c + d", "v = u + w"],
        {"s": 10, "a": 5, "b": 5, "t": 10, "c": 1, "d": 9, "v": 7, "u": 3, "w": 4},
    )
    hidden = np.array([0, 1, 1, 0, 1, 1, 0, 1, 0], dtype=np.bool_)
    problem = Problem(table, sensitivity=Sensitivity.of(hidden, 1.0))
    return problem, Release.from_suppression(problem, hidden)


def test_the_headline_is_about_the_attack_that_comes_nearest(case: tuple[Problem, Release]) -> None:
    scores = Scores.of(attack(*case, Midpoint(), SimplexVertex()))
    assert scores.worst.attack == "midpoint"
    assert scores.headline == (
        "An intruder using the midpoint lands within the protection interval of 3 of 5 sensitive cells "
        "(known exactly: 1)."
    )
    frame = scores.frame()
    assert frame["attack"].to_list() == ["midpoint", "simplex vertex"]
    assert frame["disclosed"].to_list()[0] == 3
    assert frame["share"].to_list()[0] == 0.6
    assert frame["exactly"].to_list() == [1, 1]


def test_cells_are_ranked_by_risk(case: tuple[Problem, Release]) -> None:
    ranking = Scores.of(attack(*case, Midpoint(), SimplexVertex())).ranking()
    assert ranking["cell"].to_list()[0] == "u"  # known exactly
    assert set(ranking["cell"].to_list()[1:3]) == {"a", "b"}
    assert ranking["nearest attack"].to_list()[1] == "midpoint"
    assert ranking["distance"].to_list()[1] == 0
    assert ranking["disclosed by"].to_list()[0] == 2


def test_a_density_also_guesses_by_its_peak(case: tuple[Problem, Release]) -> None:
    scores = Scores.of([attack(*case, VertexMean())])
    assert [e.attack for e in scores.estimates] == ["mean of vertices", "peak of vertices"]
    mean, peak = scores.estimates
    assert mean.density is not None
    assert peak.values[mean.unknown[0]] == pytest.approx(mean.density.peak[0])
    assert (peak.values[peak.known] == mean.values[peak.known]).all()
    assert np.isfinite(mean.variation[[0, 1, 2, 3]]).all()


def test_nothing_sensitive_and_nothing_to_score() -> None:
    table = Table.from_equations(["t = a + b"], {"a": 1, "b": 2, "t": 3})
    problem = Problem(table)
    estimate = attack(problem, Release.from_suppression(problem, np.zeros(3, np.bool_)), Midpoint())
    assert Scores.of([estimate]).headline == "There are no sensitive cells to guess."
    assert Scores.of([estimate]).ranking().height == 0
    with pytest.raises(InvalidOption):
        Scores.of([])


def test_attacks_are_chosen_by_name() -> None:
    assert [type(a) for a in choose()] == list(ATTACKS.values())
    assert [type(a) for a in choose(["all"])] == list(ATTACKS.values())
    assert [a.name for a in choose(["Hit and run", "analytic-centre"], seed=7)] == ["hit-and-run", "analytic centre"]
    assert choose(["hit-and-run"], seed=7)[0].seed == 7  # type: ignore[attr-defined]
    with pytest.raises(InvalidOption, match="did you mean"):
        choose(["midpont"])
