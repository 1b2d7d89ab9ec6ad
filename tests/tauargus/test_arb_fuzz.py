"""Whatever a batch file holds, it is read or refused with its line; never anything else."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tablesafe.core.errors import InvalidJob
from tablesafe.tauargus.batch import parse_arb
from tablesafe.tauargus.batch.parse import COMMANDS

PIECES = ['"', "|", ",", "(", ")", "<freq>", "P", "NK", "FREQ", "MOD", "GH", "RND", "1", "0", "-1", "2.5", "x.asc", " ",
          "AS+", "//", "\\", "\n", "é", "\x1a", ";", "A", "1e400", "nan", "٣"]  # fmt: skip
ARGUMENTS = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
LINES = st.tuples(st.sampled_from([*COMMANDS, "NOSUCH"]), ARGUMENTS).map(lambda pair: f"<{pair[0]}> {pair[1]}")


def refusal(text: str) -> str | None:
    """What is said against a text; None where it is read."""
    try:
        parse_arb(text)
    except InvalidJob as error:
        return str(error)
    return None


@settings(max_examples=20)
@given(st.lists(st.one_of(LINES, ARGUMENTS, st.text(max_size=30)), max_size=8).map("\n".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    said = refusal(text)
    if said is not None:
        assert "job.arb" in said
        return
    batch = parse_arb(text)
    lines = [command.line for command in batch.commands]
    assert lines == sorted(lines)
    assert set(lines) == set(batch.texts)


START = '<OPENMICRODATA> "a"\n<SPECIFYTABLE> "A"|"v"\n<READMICRODATA>\n'


@given(st.sampled_from(["SUPPRESS", "WRITETABLE", "RECODE", "APRIORI"]), ARGUMENTS)
def test_commands_that_need_a_table(name: str, arguments: str) -> None:
    said = refusal(f"{START}<{name}> {arguments}")
    assert said is None or "Hint: " in said
