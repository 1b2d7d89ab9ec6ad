"""The cell key method as the metadata of τ-ARGUS describe it."""

from __future__ import annotations

from pathlib import Path

from tablesafe.core.errors import InvalidFile
from tablesafe.io.ptable import read_perturbation
from tablesafe.methods import CellKey
from tablesafe.methods.cell_key.magnitude import Magnitude
from tablesafe.methods.cell_key.table import PerturbationTable
from tablesafe.tauargus.metadata import CellKey as Described
from tablesafe.tauargus.metadata import Metadata, Role, Variable, read_metadata

_SIZES = {"T": "largest", "M": "mean", "V": "value"}


def cell_key_from_metadata(metadata: Metadata | str | Path, *, response: str | None = None) -> CellKey:
    """The method that the metadata of microdata describe: for counts, or for the magnitudes of a response.

    `<RECORDKEY>` names the keys and `<PFILE>` the perturbation table of counts. A response has `<CKM>` with what its
    noise is in proportion to (T(k) the k largest, M the mean, V the value), `<SCALING>` F(large, small, flex point,
    exponent, weights of the second and further contributions) or N(share, weights), `<PARITY>` and `<SEPARATION>`, and
    takes its tables from `<PFILE_CONT>` and `<PFILE_SEP>`.
    """
    found = metadata if isinstance(metadata, Metadata) else read_metadata(metadata, kind="micro")
    keys = found.having(Role.RECORD_KEY)
    if not keys:
        raise InvalidFile(
            f"{found.path.name} has no record key.", hint="add <RECORDKEY> to the variable that holds it."
        )
    if response is None:
        return CellKey(key=keys[0].name, perturbation=_table(found, keys[0], "frequency", "all"))
    return _of_response(found, keys[0], found.variable(response))


def _of_response(metadata: Metadata, key: Variable, variable: Variable) -> CellKey:
    described = variable.cell_key
    where = f"{metadata.path.name}, line {variable.line}"
    if described is None or described.method == "N":
        raise InvalidFile(f"{where}: {variable.name!r} has no noise by cell keys.", hint="add <CKM> T(1) to it.")
    if described.method not in _SIZES:
        raise InvalidFile(
            f"{where}: noise in proportion to <CKM> {described.method} is not known here.", hint="T(k), M or V are."
        )
    usual = _table(metadata, key, "continuous", "even" if described.parity else "all")
    options = Magnitude(
        by=_SIZES[described.method],  # type: ignore[arg-type]
        top=described.top,
        digits=key.decimals or 18,
        include_zeros=described.include_zeros,
        separation=described.separation,
        small_cells=_table(metadata, key, "separate", "small_cells") if described.separation else None,
        odd=_table(metadata, key, "continuous", "odd") if described.parity else None,
        **_scaling(described, where),  # type: ignore[arg-type]
    )
    return CellKey(key=key.name, perturbation=usual, magnitude=options)


def _scaling(described: Described, where: str) -> dict[str, float | tuple[float, ...]]:
    """The shares, the flex point and the weights of <SCALING>."""
    given = described.parameters
    needed = {"F": 4, "N": 1, None: 0}[described.scaling]
    if len(given) < needed:
        raise InvalidFile(
            f"{where}: <SCALING> {described.scaling} needs {needed} numbers, got {len(given)}.",
            hint="F(large, small, flex point, exponent), or N(share).",
        )
    weights = {"weights": (1.0, *given[needed:])} if given[needed:] else {}
    match described.scaling:
        case "F":
            large, small, flex_point, exponent = given[:4]
            return {"large": large, "small": small, "flex_point": flex_point, "exponent": exponent, **weights}
        case "N":
            return {"small": given[0], "large": min(given[0], Magnitude().large), **weights}
        case _:
            return {}


def _table(metadata: Metadata, key: Variable, purpose: str, kind: str) -> PerturbationTable:
    if purpose not in key.perturbation:
        keyword = {"frequency": "PFILE", "continuous": "PFILE_CONT", "separate": "PFILE_SEP"}[purpose]
        raise InvalidFile(
            f"{metadata.path.name}, line {key.line}: {key.name!r} names no perturbation table for this.",
            hint=f'add <{keyword}> "ptab.txt".',
        )
    return read_perturbation(metadata.file(key.perturbation[purpose], key.line), kind=kind)
