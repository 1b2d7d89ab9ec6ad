"""Who does the work of a run: this process, others of this machine, or a cluster; with a memory, if one is kept."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager

from tablesafe.job.model import Job
from tablesafe.pipeline.checkpoint import Checkpoint
from tablesafe.work.dask import cluster
from tablesafe.work.memo import Remembering
from tablesafe.work.processes import Processes


@contextmanager
def executing(job: Job, kept: Checkpoint) -> Iterator[Executor | None]:
    """The executor that the job asks for; none means this process. New processes are fresh: forking copies locks."""
    asked = job.run
    with ExitStack() as stack:
        executor: Executor | None = None
        if asked.executor == "processes":
            executor = stack.enter_context(Processes(asked.workers))
        elif asked.executor == "dask":
            keys = None if asked.certificates is None else job.resolve(asked.certificates)
            temporary = None if asked.temporary is None else job.resolve(asked.temporary)
            executor = stack.enter_context(cluster(asked.workers, asked.scheduler, keys, temporary))
        yield Remembering(executor, kept) if kept.wanted else executor
