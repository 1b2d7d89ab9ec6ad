"""Real processes that are really killed, asked to end, and run out of disk and memory."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_disk import EVERY, leftovers

from tablesafe.pipeline import run
from tablesafe.verify import verify

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and limits as Linux has them")
PATIENCE_S = 300.0
"""Longer than anything takes on a busy machine; only a failure waits for it."""
RUN = (
    "import sys; from tablesafe.cli import main; from tablesafe.report import writing; "
    "writing.pictures = lambda *args, **options: {}; main(sys.argv[1:])"
)
"""Without drawings, which take longer than all the rest."""
KILLED = """
import os, signal, sys
from tablesafe.cli import main
from tablesafe.report import writing
writing.pictures = lambda *args, **options: {}
job, name = sys.argv[1:]
def hook(event, args):
    made = str({"os.rename": args[1:2], "os.mkdir": args[:1]}.get(event, ("",))[0])
    if made.startswith(os.path.dirname(job)) and name in made[len(os.path.dirname(job)):]:
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(hook)
main(["run", job, "--quiet"])
"""
POOL = """
import os, sys, time
from pathlib import Path
from tablesafe.work.processes import Processes
def wait(folder):
    (Path(folder) / str(os.getpid())).touch()
    time.sleep(3600)
if __name__ == "__main__":
    with Processes(2, method=sys.argv[2]) as pool:
        futures = [pool.submit(wait, sys.argv[1]) for _ in range(2)]
        futures[0].result()
"""


def start(job: Path, *options: str, limit: str = "") -> subprocess.Popen[str]:
    """A run in a process of its own, which limits itself first: after a fork nobody can, where threads are at work."""
    command = [sys.executable, "-c", limit + RUN, "run", str(job), *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def require_sound(folder: Path) -> bool:
    """A complete release with its proof, or none; whether there is one."""
    there = [(folder / "public" / name).exists() for name in ("table.csv", "copy.csv")]
    if any(there):
        verify(folder / "internal/certificate.json.gz", release=folder / "public/table.csv")
    return all(there)


MOMENTS = ["noted-in", "public/copy.csv"]
MORE = ["scratch", "public", "internal", "moves.json", "internal/cells.csv", "certificate.json.gz", "public/table.csv"]


@pytest.mark.parametrize("name", MOMENTS + MORE if EVERY else MOMENTS)
def test_a_kill_in_the_middle(job: Path, name: str) -> None:
    """By the system, when a file or folder is about to get its name: a moment that no clock has to find."""
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(job), name], stderr=subprocess.PIPE, text=True)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors
    require_sound(job.parent)
    assert run(job).published, "another process goes on"
    assert require_sound(job.parent)
    assert leftovers(job.parent) == []


def test_a_wish_to_end_is_granted_cleanly(job: Path) -> None:
    """At the moment in which there is most to clean up: the records are being read."""
    fifo = job.parent / "wait"
    script = (
        "import sys, time\nfrom importlib import import_module\nmodule = import_module('tablesafe.tabulate.run')\n"
        "real = module.survey\n"
        "def slow(scan):\n"
        f"    open({str(fifo)!r}, 'w').close()\n"
        "    time.sleep(3600)\n"
        "module.survey = slow\n"
        "from tablesafe.cli import main\n"
        "main(['run', sys.argv[1]])\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(job)], stderr=subprocess.PIPE, text=True)
    while not fifo.exists():
        assert process.poll() is None
        time.sleep(0.05)
    fifo.unlink()
    assert list((job.parent / "scratch").iterdir()), "there is something to clean up"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 130
    assert "nothing was written" in errors
    assert not (job.parent / "public").exists()
    assert leftovers(job.parent) == []


def test_a_wish_to_end_that_a_library_takes_for_an_error_of_its_own(job: Path) -> None:
    """As DuckDB does, when it comes while it asks Python for something."""
    script = (
        "import os, signal, sys\nfrom importlib import import_module\n"
        "def swallowing(scan):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        signal.sigtimedwait([], 3600)\n"
        "    except BaseException as error:\n"
        "        raise ValueError(f'the object cannot be read: {error!r}') from None\n"
        "import_module('tablesafe.tabulate.run').survey = swallowing\n"
        "from tablesafe.cli import main\n"
        "main(['run', sys.argv[1]])\n"
    )
    process = subprocess.run([sys.executable, "-c", script, str(job)], stderr=subprocess.PIPE, text=True, check=False)
    assert process.returncode == 130, process.stderr
    assert "nothing was written" in process.stderr
    assert leftovers(job.parent) == []


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_workers_end_with_their_parent(tmp_path: Path, method: str) -> None:
    script = tmp_path / "pool.py"
    script.write_text(POOL, encoding="utf-8")
    seen = tmp_path / "seen"
    seen.mkdir()
    parent = subprocess.Popen([sys.executable, str(script), str(seen), method])
    while len(list(seen.iterdir())) < 2:
        assert parent.poll() is None
        time.sleep(0.05)
    workers = [int(path.name) for path in seen.iterdir()]
    parent.kill()
    parent.wait()
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end and any(alive(pid) for pid in workers):
        time.sleep(0.05)
    assert [pid for pid in workers if alive(pid)] == []


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.parametrize("size", [0, 300, 20_000] if EVERY else [300])
def test_files_that_may_not_grow(job: Path, size: int) -> None:
    """As on a full disk, in the middle of a file, for whoever writes it."""
    ignored = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    process = start(job, "--quiet", limit=f"{ignored}resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size})); ")
    _, errors = process.communicate()
    assert process.returncode != 0
    assert "Traceback" not in errors
    assert not require_sound(job.parent)
    shutil.rmtree(job.parent / "public", ignore_errors=True)
    assert leftovers(job.parent) == []


@pytest.mark.parametrize("megabytes", [450, 1200])
def test_too_little_memory(job: Path, megabytes: int) -> None:
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({megabytes << 20},) * 2); "
    process = start(job, "--quiet", limit=limit)
    process.communicate()
    there = require_sound(job.parent)
    assert there == (process.returncode == 0)


def test_an_input_that_may_not_be_read(job: Path) -> None:
    (job.parent / "firms.csv").unlink()
    (job.parent / "firms.csv").symlink_to("/proc/self/mem")
    process = start(job, "--quiet")
    _, errors = process.communicate()
    assert process.returncode == 2, errors
    assert "Traceback" not in errors
    assert not (job.parent / "public").exists()


def test_the_folder_of_a_living_process_is_not_touched(tmp_path: Path) -> None:
    from tablesafe.files.private import HIDDEN, private_folder, sweep

    script = (
        "import sys, time\nfrom tablesafe.files.private import HIDDEN, private_folder\n"
        "with private_folder(sys.argv[1], prefix=HIDDEN) as made:\n"
        "    (made / 'secret').write_text('x')\n    print(made, flush=True)\n    time.sleep(3600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    made = Path(process.stdout.readline().strip())
    sweep(tmp_path, HIDDEN)
    with private_folder(tmp_path, prefix=HIDDEN) as own:
        assert own.exists()
        assert (made / "secret").exists(), "its process lives"
    process.kill()
    process.communicate()
    assert (made / "secret").exists(), "nobody was there to remove it"
    with private_folder(tmp_path, prefix=HIDDEN):
        assert not made.exists()
    assert os.listdir(tmp_path) == []  # noqa: PTH208
