"""RECODE: the variables of a table in a coarser coding, before its records are added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tablesafe.core.errors import InvalidFile
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.io.tauargus_meta import Variable, find_beside
from tablesafe.io.tauargus_micro import Microdata
from tablesafe.io.tauargus_recode import Recoding, read_recode, recode_codes, recode_level, recode_tree
from tablesafe.job.arb.model import Batch, Command, Recode, WriteTable
from tablesafe.pipeline.batch.journal import Journal
from tablesafe.pipeline.batch.tables import Specified


@dataclass(frozen=True, slots=True)
class Recodes:
    """The recodes of one table."""

    batch: Batch
    journal: Journal
    table: Specified
    records: Microdata

    def of(self, commands: Sequence[Command]) -> dict[str, Recoding]:
        """How each variable is recoded: by every RECODE of the session, in their order."""
        found: dict[str, Recoding] = {}
        written = any(isinstance(each, WriteTable) and each.table == self.table.number for each in commands)
        for command in commands:
            if isinstance(command, Recode) and command.table == self.table.number:
                with self.journal.at(command.line):
                    self._apply(command, found, written=written)
        return found

    def _apply(self, command: Recode, found: dict[str, Recoding], *, written: bool) -> None:
        variable = self._variable(command)
        before = found.get(variable.name)
        tree = self.records.dimensions[variable.name] if before is None else before.tree
        new = self._recoded(command, variable, tree, written=written)
        if new is None:
            return
        for remark in new.remarks:
            self.journal.warn(command.line, remark)
        becomes = dict(new.becomes)
        if before is not None:
            becomes = {old: new.becomes.get(code, code) for old, code in before.becomes.items()}
        found[variable.name] = replace(new, remarks=(), becomes=becomes)

    def _variable(self, command: Recode) -> Variable:
        variable, own = self.table.metadata.variable(command.variable), self.table.variables()
        if variable not in own:
            raise InvalidFile(
                f"{variable.name!r} does not span table {self.table.number} ({self.table.title}).\n\n"
                f"Hint: name one of {', '.join(each.name for each in own)}."
            )
        return variable

    def _recoded(self, command: Recode, variable: Variable, tree: Hierarchy, *, written: bool) -> Recoding | None:
        if command.level is not None:
            return recode_level(tree, command.level, variable.name)
        path = self._file(command, written=written)
        if path is None:
            return None
        file = read_recode(path)
        if file.collapsed is not None:
            return recode_tree(tree, file, variable.name)
        return recode_codes(tree, file, variable.name, variable.missing)

    def _file(self, command: Recode, *, written: bool) -> Path | None:
        """The file of a recode. Where it is not there and nothing is written, the table is looked at as it is."""
        assert command.file is not None
        try:
            return find_beside(command.file, self.batch.path)
        except InvalidFile as error:
            if written:
                raise
            what = str(error).partition("\n\n")[0]
            self.journal.warn(command.line, f"{what} {command.variable} is not recoded; no file of it is written.")
            return None
