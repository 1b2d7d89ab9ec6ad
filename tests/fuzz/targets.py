"""Every reader of a file, with a valid file to begin from, and all that a user would do with what was read."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl

from tablesafe.audit.audit import audit
from tablesafe.audit.intervals import Checkpoint
from tablesafe.audit.system import System
from tablesafe.core.hierarchy import Hierarchy
from tablesafe.core.problem import Problem
from tablesafe.core.release import Release
from tablesafe.core.table import Table
from tablesafe.files.read import read_source
from tablesafe.io.apriori import apply_cells
from tablesafe.io.dataset import Dataset
from tablesafe.io.frames import read_frame, write_frame
from tablesafe.io.jj import jj_text, read_jj
from tablesafe.io.jsonstat import jsonstat, read_jsonstat
from tablesafe.io.patterns import read_pattern, read_release, read_values
from tablesafe.io.ptable import read_perturbations
from tablesafe.io.px import px_text, read_px
from tablesafe.io.sdmx import read_sdmx, sdmx_csv, write_sdmx
from tablesafe.job.load import load_job
from tablesafe.linked_views.reading import read_cube
from tablesafe.methods import Suppress
from tablesafe.pipeline.hierarchies import hierarchy_of_source, read_labels
from tablesafe.rules import PPercent, Threshold
from tablesafe.tabulate import tabulate
from tablesafe.tabulate.readstat import value_labels
from tablesafe.tauargus.apriori import apply_hst
from tablesafe.tauargus.batch import parse_arb
from tablesafe.tauargus.codes import read_code_list, read_recode, recode_codes, recode_tree
from tablesafe.tauargus.metadata import read_metadata
from tablesafe.tauargus.microdata import read_microdata
from tablesafe.tauargus.table import read_code_value, read_tab
from tablesafe.verify import verify

RECORDS = """region,size,turnover,firm,group,weight
NO1,small,120.5,f1,g1,1
NO1,large,80,f2,g1,2
NO2,small,3,f3,,1.5
NO2,large,1000,f4,g2,1
SO1,small,17,f5,g3,1
SO1,large,44,f6,g4,3
SO1,large,9,f1,g1,1
SO2,small,2500,f7,g5,1
"""
CELLS = """region,size,value,n,status
Total,Total,60,12,safe
Total,a,25,6,safe
Total,b,35,6,safe
N,Total,20,4,safe
N,a,5,1,unsafe
N,b,15,3,safe
S,Total,40,8,safe
S,a,20,5,safe
S,b,20,3,safe
"""
HRC = "NO\n@NO1\n@NO2\nSO\n@SO1\n@SO2\n"
MICRO_RDA = """region 1 3
  <RECODEABLE>
  <HIERARCHICAL>
  <HIERCODELIST> "tree.hrc"
  <HIERLEADSTRING> "@"
size 4 2 99
  <RECODEABLE>
weight 6 4
  <WEIGHT>
turnover 10 6
  <NUMERIC>
  <DECIMALS> 1
group 16 3
  <HOLDING>
"""
MICRO_ASC = """NO1 1 1.0 120.5 h1
NO1 2 2.5  80.0 h1
NO2 1 1.0   3.0 h2
NO2 2 1.0 999.9 h3
SO1 1 1.0  17.0 h4
SO2 2 4.0  44.0 h5
"""
TAB_RDA = """<SEPARATOR> ";"
region
  <RECODEABLE>
  <TOTCODE> "Total"
size
  <RECODEABLE>
  <TOTCODE> "Total"
value
  <NUMERIC>
n
  <FREQUENCY>
status
  <STATUS>
<SAFE> "S"
<UNSAFE> "U"
<PROTECT> "P"
"""
TAB = "\n".join(
    line.replace(",", ";").replace("unsafe", "U").replace("safe", "S") for line in CELLS.splitlines()[1:]
) + "\n"  # fmt: skip
HST = "N;a;u\nN;b;c;5\nS;a;pl;3;4\nS;a;u\nS;b;ab;0;100\nTotal;a;s\n"
APRIORI = "region,size,status,cost\nN,a,unsafe,3\nS,b,protected,1\n"
GRC_CODES = '1: a, b\n<MISSING> "9" "99"\n'
GRC_TREE = "<TREERECODE>\nNO\n"
PTABLE = "i;j;p;v;p_int_ub\n0;0;1;0;1\n1;0;0.5;-1;0.5\n1;2;0.5;1;1\n2;1;0.25;-1;0.25\n2;2;0.5;0;0.75\n2;3;0.25;1;1\n"
PATTERN = "region,size,status\n" + "".join(
    f"{r},{s},{'suppressed' if (r in 'NS' and s in 'ab') else 'published'}\n"
    for r in ("Total", "N", "S") for s in ("Total", "a", "b")
)  # fmt: skip
TAU_PATTERN = """"Total","Total",60,1
"Total","a",25,1
"Total","b",35,1
"N","Total",20,1
"N","a",x,5
"N","b",x,11
"S","Total",40,1
"S","a",x,11
"S","b",x,11
"""
RELEASED = "region,size,value,status,from,to\n" + "".join(
    f"{r},{s},{v},published,{'' if r == 'Total' else 0},{'' if r == 'Total' else 100}\n"
    for r, s, v in (("Total", "Total", 60), ("Total", "a", 25), ("Total", "b", 35), ("N", "Total", 20), ("N", "a", 6),
                    ("N", "b", 14), ("S", "Total", 40), ("S", "a", 19), ("S", "b", 21))
)  # fmt: skip
PAIRS = "parent,child\nT,N\nT,S\nN,N1\nN,N2\nS,S1\n"
LEVELS = "country,region,town\nNO,N,N1\nNO,N,N2\nNO,S,S1\n"
EQUATIONS = "13=4+5+6; 12=1+6; 11=3+4; net = gross - tax"
LABELS = "code,label\nN,North\nS,South\n"
JOB = """title = "Turnover"
[source]
file = "records.csv"
respondent = "firm"
holding = "group"
where = "turnover > 0"
[dimensions.region]
hierarchy = "tree.hrc"
[dimensions.size]
[response]
value = "turnover"
[[rules]]
rule = "threshold"
n = 3
[[rules]]
rule = "p_percent"
p = 10
[problem]
within_percent = 50.0
[method]
name = "suppress"
algorithm = "sequential"
time_limit_s = 1
[audit]
unions = true
coalition = 1
[attack]
attacks = ["midpoint"]
time_limit_s = 1.0
[output]
release = ["public/table.csv"]
internal = "internal"
[run]
executor = "here"
"""
ARB = """// a batch job
<OPENMICRODATA> "micro.asc"
<OPENMETADATA> "micro.rda"
<SPECIFYTABLE> "region""size"|"turnover"||
<SAFETYRULE> P(10,1)|FREQ(2,20)
<READMICRODATA>
<SUPPRESS> MOD(1,1)
<WRITETABLE> (1,1,AS+,"out.csv")
"""
BESIDE = {
    "records.csv": RECORDS,
    "tree.hrc": HRC,
    "micro.rda": MICRO_RDA,
    "micro.asc": MICRO_ASC,
    "table.rda": TAB_RDA,
    "table.tab": TAB,
}
"""Files that others name; each target writes those that it needs."""


@dataclass(frozen=True)
class Target:
    """A reader: the name of its file, a valid content, and what is done with a path."""

    name: str
    seed: Callable[[], bytes]
    read: Callable[[Path], object]
    beside: tuple[str, ...] = ()
    sealed: bool = field(default=False)
    """Whether damage must be covered up by a right checksum, or nothing behind it would be reached."""

    def lay_out(self, folder: Path, content: bytes) -> Path:
        """Write the file, and the sound files that go with it."""
        for name in self.beside:
            (folder / name).write_text(BESIDE[name], encoding="utf-8")
        path = folder / self.name
        path.write_bytes(content)
        return path


@cache
def problem() -> Problem:
    """The table of CELLS, with one sensitive cell."""
    source = read_source(pl.read_csv(io.BytesIO(CELLS.encode())))
    trees = {"region": Hierarchy.flat(["N", "S"]), "size": Hierarchy.flat(["a", "b"])}
    return Problem(Table.from_cells(source, dimensions=trees, value="value", count="n"), [Threshold(n=3)])


@cache
def release() -> Release:
    return Suppress().protect(problem())


def cells_of(path: Path) -> object:
    source = read_frame(path)
    trees = {"region": Hierarchy.flat(["N", "S"]), "size": Hierarchy.flat(["a", "b"])}
    table = Table.from_cells(source, dimensions=trees, value="value", count="n")
    return Problem(table, [Threshold(n=3)])


def records_of(path: Path) -> object:
    table = tabulate(
        path, dimensions={"region": Hierarchy.from_pairs(_pairs()), "size": None}, value="turnover", respondent="firm",
        holding="group", weight="weight", missing="other",
    )  # fmt: skip
    return Problem(table, [Threshold(n=3), PPercent(p=10)])


def _pairs() -> list[tuple[str, str]]:
    return [("Total", "NO"), ("Total", "SO"), *(("NO", f"NO{i}") for i in (1, 2)), *(("SO", f"SO{i}") for i in (1, 2))]


def _frame(text: str, ending: str) -> bytes:
    frame = pl.read_csv(io.BytesIO(text.encode()))
    buffer = io.BytesIO()
    if ending == ".parquet":
        frame.write_parquet(buffer, compression="uncompressed")
        return buffer.getvalue()
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_frame(frame, Path(folder) / "x.xlsx")
        return (Path(folder) / "x.xlsx").read_bytes()


@cache
def certificate() -> bytes:
    found = audit(problem(), release()).certificate
    assert found is not None
    return json.dumps(found.document()).encode()


def sealed(content: bytes) -> bytes:
    """A certificate with the checksum that its content should have, as a forger would write it; other bytes stay."""
    try:
        document = json.loads(content)
        document.pop("sha256", None)
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        digest = hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()
        return json.dumps({**document, "sha256": digest}).encode()
    except (ValueError, AttributeError, TypeError, RecursionError):
        return content


def published() -> bytes:
    return release().frame().write_csv().encode()


def _verify_release(path: Path) -> object:
    sound = path.with_name("sound.json")
    sound.write_bytes(certificate())
    return verify(sound, release=path)


def _checkpoint() -> bytes:
    import tempfile

    system = System.of(problem(), release())
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(Path(folder) / "c.npz", system)
        checkpoint.put(np.array([0]), np.array([0.0]), np.array([1.0]))
        checkpoint.save(now=True)
        return (Path(folder) / "c.npz").read_bytes()


def _recoded_tree(path: Path) -> object:
    found, tree = read_recode(path), Hierarchy.from_pairs(_pairs())
    return recode_codes(tree, found, "region", ()) if found.collapsed is None else recode_tree(tree, found, "region")


def _recoded_codes(path: Path) -> object:
    found, tree = read_recode(path), Hierarchy.flat(["a", "b", "9"])
    return recode_codes(tree, found, "size", ()) if found.collapsed is None else recode_tree(tree, found, "size")


def _cube(path: Path) -> object:
    return read_cube(path, dimensions={"region": None, "size": None}, value="value", total="Total")


def _text(content: str) -> Callable[[], bytes]:
    return content.encode


def _sdmx_ml() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_sdmx(release(), Path(folder) / "table.xml")
        return (Path(folder) / "table.xml").read_bytes()


def _of_package(ending: str) -> Callable[[], bytes]:
    """Records as Stata, SPSS or SAS keep them, with value labels where these have them."""

    def content() -> bytes:
        import tempfile

        import pyreadstat

        frame = pl.read_csv(io.StringIO(RECORDS)).with_columns(
            pl.col("size").replace_strict({"small": 1.0, "large": 2.0})
        )
        write = {"dta": pyreadstat.write_dta, "sav": pyreadstat.write_sav, "xpt": pyreadstat.write_xport}[ending]
        labels = {} if ending == "xpt" else {"variable_value_labels": {"size": {1: "small", 2: "large"}}}
        with tempfile.TemporaryDirectory() as folder:
            write(frame.to_pandas(), f"{folder}/x.{ending}", **labels)
            return (Path(folder) / f"x.{ending}").read_bytes()

    return content


def _with_labels(path: Path) -> object:
    return value_labels(path), records_of(path)


TARGETS: Mapping[str, Target] = {
    "cells.csv": Target("cells.csv", _text(CELLS), cells_of),
    "records.csv": Target("data.csv", _text(RECORDS), records_of),
    "records.csv.gz": Target("data.csv.gz", lambda: gzip.compress(RECORDS.encode(), mtime=0), records_of),
    "cells.parquet": Target("cells.parquet", lambda: _frame(CELLS, ".parquet"), cells_of),
    "records.parquet": Target("data.parquet", lambda: _frame(RECORDS, ".parquet"), records_of),
    "cells.xlsx": Target("cells.xlsx", lambda: _frame(CELLS, ".xlsx"), cells_of),
    "px": Target("table.px", lambda: px_text(Dataset.of_release(release())).encode(), read_px),
    "json-stat": Target(
        "table.json", lambda: json.dumps(jsonstat(Dataset.of_release(release()))).encode(), read_jsonstat
    ),
    "sdmx-csv": Target("table.sdmx.csv", lambda: sdmx_csv(Dataset.of_release(release())).encode(), read_sdmx),
    "jj": Target("table.jj", lambda: jj_text(problem()).encode(), read_jj),
    "jj.gz": Target("table.jj.gz", lambda: gzip.compress(jj_text(problem()).encode(), mtime=0), read_jj),
    "hrc": Target("other.hrc", _text(HRC), Hierarchy.from_hrc),
    "micro rda": Target(
        "micro.rda", _text(MICRO_RDA), lambda path: read_microdata(path.with_suffix(".asc")), ("micro.asc", "tree.hrc")
    ),
    "micro asc": Target("micro.asc", _text(MICRO_ASC), read_microdata, ("micro.rda", "tree.hrc")),
    "table rda": Target("table.rda", _text(TAB_RDA), lambda path: read_tab(path.with_suffix(".tab")), ("table.tab",)),
    "tab": Target("table.tab", _text(TAB), read_tab, ("table.rda",)),
    "rda": Target("lone.rda", _text(TAB_RDA), read_metadata),
    "hst": Target("known.hst", _text(HST), lambda path: apply_hst(problem(), path)),
    "hst, errors ignored": Target(
        "known.hst", _text(HST), lambda path: apply_hst(problem(), path, ignore_unknown=True, ignore_errors=True)
    ),
    "apriori": Target("known.csv", _text(APRIORI), lambda path: apply_cells(problem(), path)),
    "grc codes": Target("recode.grc", _text(GRC_CODES), _recoded_codes),
    "grc tree": Target("recode.grc", _text(GRC_TREE), _recoded_tree),
    "ptable": Target("ptable.csv", _text(PTABLE), read_perturbations),
    "pattern": Target("pattern.csv", _text(PATTERN), lambda path: read_pattern(path, problem())),
    "pattern of τ-ARGUS": Target("pattern.csv", _text(TAU_PATTERN), lambda path: read_pattern(path, problem())),
    "pattern jj": Target(
        "pattern.jj", lambda: jj_text(problem()).encode(), lambda path: read_pattern(path, problem())
    ),
    "output of τ-ARGUS": Target("out.csv", _text(TAU_PATTERN), read_code_value),
    "released": Target("released.csv", _text(RELEASED), lambda path: read_release(path, problem())),
    "values": Target("last.csv", _text(CELLS), lambda path: read_values(path, problem())),
    "cube": Target("cube.csv", _text("region,size,value\nN,a,5\nN,b,15\nS,a,20\nS,b,20\n"), _cube),
    "certificate": Target("certificate.json", certificate, verify, sealed=True),
    "certificate.gz": Target("certificate.json.gz", lambda: gzip.compress(certificate(), mtime=0), verify),
    "published": Target("published.csv", published, _verify_release),
    "published px": Target("p.px", lambda: px_text(Dataset.of_release(release())).encode(), _verify_release),
    "published json-stat": Target(
        "p.json", lambda: json.dumps(jsonstat(Dataset.of_release(release()))).encode(), _verify_release
    ),
    "published sdmx-csv": Target(
        "p.sdmx.csv", lambda: sdmx_csv(Dataset.of_release(release())).encode(), _verify_release
    ),
    "checkpoint": Target(
        "c.npz", _checkpoint, lambda path: Checkpoint(path, System.of(problem(), release()))
    ),
    "pairs": Target("pairs.csv", _text(PAIRS), lambda path: hierarchy_of_source(read_source(path))),
    "levels": Target("levels.csv", _text(LEVELS), lambda path: hierarchy_of_source(read_source(path))),
    "equations": Target(
        "equations.txt", _text(EQUATIONS),
        lambda path: Hierarchy.from_equations(path.read_bytes().decode("utf-8", "replace")),
    ),
    "prefixes": Target(
        "codes.csv", _text(LABELS),
        lambda path: Hierarchy.from_prefixes(read_source(path).text("code").drop_nulls().to_list()),
    ),
    "labels": Target("labels.csv", _text(LABELS), read_labels),
    "code list": Target("labels.cdl", _text("N,North\nS,South\n"), read_code_list),
    "job": Target("job.toml", _text(JOB), load_job, ("records.csv", "tree.hrc")),
    "batch": Target("job.arb", _text(ARB), lambda path: parse_arb(path.read_bytes().decode("utf-8", "replace"), path)),
    **(
        {}
        if find_spec("pysdmx") is None
        else {
            "sdmx-ml": Target("table.xml", _sdmx_ml, read_sdmx),
            "published sdmx-ml": Target("p.xml", _sdmx_ml, _verify_release),
        }
    ),
    **(
        {}
        if find_spec("pyreadstat") is None
        else {ending: Target(f"data.{ending}", _of_package(ending), _with_labels) for ending in ("dta", "sav", "xpt")}
    ),
}  # fmt: skip
