"""What differs between two jobs is told key by key, and nothing is told of equal ones."""

from __future__ import annotations

from tablesafe.job.dump import changes

JOB = """title = "Turnover"
[source]
file = "firms.csv"
[dimensions.region]
[[rules]]
rule = "threshold"
n = 3
"""


def test_equal_jobs_have_no_changes() -> None:
    assert changes(JOB, JOB) == ()


def test_a_value_that_changed_is_named_with_its_place() -> None:
    (found,) = changes(JOB, JOB.replace("n = 3", "n = 5"))
    assert found.path == ("rules", 0, "n")
    assert str(found) == "rules 1, n: 3 → 5"


def test_what_came_and_what_went_are_changes() -> None:
    more = JOB + '[[rules]]\nrule = "p_percent"\n[method]\nname = "round"\nbase = 5\n'
    assert [str(each) for each in changes(JOB, more)] == ["rules 2: not set → p_percent", "method: not set → round"]
    assert [str(each) for each in changes(more, JOB)] == ["rules 2: p_percent → not set", "method: round → not set"]


def test_a_table_that_came_is_told_key_by_key() -> None:
    more = JOB + '[problem]\napriori = "decisions.csv"\n'
    assert [str(each) for each in changes(JOB, more)] == ['problem, apriori: not set → "decisions.csv"']
    assert [str(each) for each in changes(more, JOB)] == ['problem, apriori: "decisions.csv" → not set']


def test_a_rule_that_changed_is_told_by_its_keys() -> None:
    one, other = ('[[rules]]\nrule = "threshold"\n', '[[rules]]\nrule = "threshold"\nn = 5\n')
    assert [str(each) for each in changes(one, other)] == ["rules 1, n: not set → 5"]


def test_a_list_of_values_is_one_value() -> None:
    (found,) = changes('[response]\nvalue = ["a"]\n', '[response]\nvalue = ["a", "b"]\n')
    assert str(found) == 'response, value: ["a"] → ["a", "b"]'
