"""Routes besides the pages: uploads into the workspace, and files of finished runs. The guard stands before them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.background import BackgroundTask
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from tablesafe.core.errors import InvalidFile, TablesafeError
from tablesafe.web.answers import REPORT_POLICY, SCOPE
from tablesafe.web.saved import save
from tablesafe.web.sessions import Session
from tablesafe.web.speech import spoken_by
from tablesafe.web.tasks.saving import SUFFIX
from tablesafe.web.uploads import TooLarge, file_parts


def add_routes(app: FastAPI) -> None:
    """`POST /upload` (multipart, as browsers send it), `GET /files/{run}/{name}`, `GET /job.toml`, `GET /session`."""
    app.add_api_route("/upload", upload, methods=["POST"], include_in_schema=False)
    app.add_api_route("/files/{run}/{name:path}", file, methods=["GET"], include_in_schema=False)
    app.mount("/assets", GZipMiddleware(StaticFiles(directory=Path(__file__).parent / "static")))
    app.add_api_route("/job.toml", job_file, methods=["GET"], include_in_schema=False)
    app.add_api_route("/session", saved_session, methods=["GET"], include_in_schema=False)


def session_of(request: Request) -> Session:
    """The session that the guard found."""
    session = request.scope[SCOPE]
    assert isinstance(session, Session)
    return session


async def upload(request: Request) -> Response:
    """Store every file of a form in the workspace as it comes in; the names under which the job may use them."""
    workspace = session_of(request).workspace
    names: list[str] = []
    try:
        async for name, chunks in file_parts(request.headers.get("content-type", ""), request.stream()):
            names.append(await workspace.receive(name, chunks))
    except TooLarge as error:
        return _error(request, 413, error)
    except ClientDisconnect:
        return _error(request, 400, InvalidFile("The upload was broken off."))
    except TablesafeError as error:
        return _error(request, 400, error)
    return JSONResponse({"files": names})


def _error(request: Request, status: int, error: TablesafeError) -> JSONResponse:
    """What is wrong, in the language of whoever asked."""
    message, hint = map(spoken_by(session_of(request), request).say, error.words)
    return JSONResponse({"message": message, "hint": hint}, status_code=status)


async def file(request: Request, run: str, name: str) -> Response:
    """A file of a finished run, to download; with `?show`, a report in the browser, shut off from the app."""
    session = session_of(request)
    try:
        path = session.runs.get(run).file(name)
    except TablesafeError:
        return PlainTextResponse("There is no such file.", status_code=404)
    if "show" in request.query_params and path.suffix == ".html":
        return FileResponse(path, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})
    return FileResponse(
        path, media_type="application/octet-stream", filename=path.name, content_disposition_type="attachment"
    )


async def job_file(request: Request) -> Response:
    """The job as it is now, to download."""
    text = session_of(request).workspace.job_text()
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote('job.toml')}"}
    return Response(text, media_type="application/toml", headers=headers)


async def saved_session(request: Request) -> Response:
    """The session as one file, to download: the job, its files and all decisions as they are now."""
    try:
        path = await save(session_of(request).workspace)
    except TablesafeError as error:
        return _error(request, 400, error)
    gone = BackgroundTask(path.unlink, missing_ok=True)
    return FileResponse(
        path, media_type="application/octet-stream", filename=f"session{SUFFIX}", content_disposition_type="attachment",
        background=gone,
    )  # fmt: skip
