"""A session as one file: the job, every file that it reads, and what was decided. Confidential, as the data are.

It is a zip file, packed and unpacked in the worker process of a session. Unpacked by hand, `tablesafe run job.toml`
beside the files makes the same release. Results are not in it: the job makes them anew.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from tablesafe.core.errors import InvalidFile
from tablesafe.core.language import text
from tablesafe.web.child import Desk
from tablesafe.web.drafts import JOB_FILE
from tablesafe.web.uploads import RESERVED, plain_name

SUFFIX = ".tablesafe"
STATE = "session.json"
SAVED = "tmp/session.zip"
"""Where a session is packed, in the folder of the workspace."""
OPENED = "tmp/opened"
"""Where one is unpacked."""
MOST_STATE = 64 << 20
"""Bytes of what is told of a session beside its files."""
STRANGE = "{name} is no session that the app saved."


def pack(desk: Desk, job: str, state: Mapping[str, Any], files: Sequence[str]) -> str:
    """Write the job, what was decided, and the files into one; where it is."""
    target = desk.folder / SAVED
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(JOB_FILE, job)
        packed.writestr(STATE, json.dumps(state, ensure_ascii=False))
        for name in files:
            packed.write(desk.folder / name, name)
    return SAVED


def unpack(desk: Desk, name: str, most_files: int, most_bytes: int) -> dict[str, Any]:
    """Unpack a session into a folder of its own: its job, what was decided, and the names of its files."""
    place = desk.folder / OPENED
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    try:
        with zipfile.ZipFile(desk.folder / name) as packed:
            inside = {each.filename: each for each in packed.infolist()}
            if not {JOB_FILE, STATE} <= inside.keys() or len(inside) != len(packed.infolist()):
                raise InvalidFile(text(STRANGE, name=name), hint="a session is saved on the page Data.")
            files = [each for each in inside if each not in {JOB_FILE, STATE}]
            if len(files) > most_files or not all(map(_is_plain, files)):
                raise InvalidFile(
                    text(STRANGE, name=name), hint="it holds files under names that the app does not use."
                )
            left = most_bytes
            for each in files:
                left = _taken(packed, each, place, left, name)
            told = {each: _text(packed, each, name) for each in (JOB_FILE, STATE)}
        return {"job": told[JOB_FILE], "state": json.loads(told[STATE]), "files": files}
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        raise InvalidFile(text(STRANGE, name=name), hint="perhaps it was cut off on the way.") from error


def _is_plain(name: str) -> bool:
    """Whether a file has a name that an upload could have, or a path of such names."""
    parts = PurePosixPath(name).parts
    return bool(parts) and parts[0] not in RESERVED and all(plain_name(part) == part for part in parts)


def _taken(packed: zipfile.ZipFile, name: str, place: Any, left: int, session: str) -> int:
    """Unpack one file, whatever size was announced; the bytes that are left for others."""
    target = place / name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with packed.open(name) as source, target.open("xb") as file:
        while chunk := source.read(1 << 20):
            left -= len(chunk)
            if left < 0:
                raise InvalidFile(text("{session} holds more than may be uploaded.", session=session))
            file.write(chunk)
    return left


def _text(packed: zipfile.ZipFile, name: str, session: str) -> str:
    with packed.open(name) as source:
        data = source.read(MOST_STATE + 1)
    if len(data) > MOST_STATE:
        raise InvalidFile(text(STRANGE, name=session), hint="what it tells of its decisions is too long.")
    return data.decode("utf-8")
