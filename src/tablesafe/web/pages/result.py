"""Parts of the page Result, each drawn when it is first looked at: table, sensitive cells, plots, attacks, loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from nicegui import ui

from tablesafe.core.errors import TablesafeError
from tablesafe.core.language import Text, thawed
from tablesafe.web.pages.attacking import attacks
from tablesafe.web.pages.merging import offer
from tablesafe.web.pages.panel import CellPanel, decision_list
from tablesafe.web.pages.screen import Screen, heading, repair_button, show_error
from tablesafe.web.pages.tables import CellList, TableView, table
from tablesafe.web.pages.waiting import computed
from tablesafe.web.runs import Run, pattern_file
from tablesafe.web.speech import aria, numeral, say
from tablesafe.web.tasks import results as outcomes
from tablesafe.web.tasks import windows

LEVELS = "Level 0 is the total of a dimension; the higher the number, the finer."
LOST = "{withheld:,} withheld of {cells:,} cells ({share:.1%}), {value:.1%} of the value"
LOST_AND_CHANGED = (
    "{withheld:,} withheld and {changed:,} changed of {cells:,} cells ({share:.1%}), {value:.1%} of the value"
)
LOSSES = ("By level, the finest first", "By size of the change")
PLOTS = {
    "intervals": "How far is each sensitive cell hidden?",
    "changes": "Changes of published values",
    "heat": "The table at a glance",
}


async def _table(screen: Screen, run: Run, holder: ui.element) -> None:
    panel = CellPanel.of(screen, {"run": run.id})
    panel.table = view = TableView(screen, holder, panel.open)
    await view.show({run.id: {"of": {"run": run.id}}})


async def _cells(screen: Screen, run: Run, holder: ui.element) -> None:
    about = await computed(screen, holder, windows.about, {"of": {"run": run.id}})
    if about is None:
        return
    with holder.clear():
        kinds = {word: number for word, _, _, _, number in about["kinds"]}
        CellList(screen, {"run": run.id}, kinds, CellPanel.of(screen, {"run": run.id}).open)


async def _decisions(screen: Screen, run: Run, holder: ui.element) -> None:
    with holder.clear():
        decision_list(screen)


async def _plots(screen: Screen, run: Run, holder: ui.element) -> None:
    with holder:
        for name, title in PLOTS.items():
            svg = await computed(screen, ui.element("div"), outcomes.plot, run.id, name)
            if svg and not holder.is_deleted:
                with holder, ui.element("section").classes("pb-6").props(aria(title)):
                    ui.html(svg, sanitize=False).classes("ts-plot")


async def _loss(screen: Screen, run: Run, holder: ui.element) -> None:
    found = await computed(screen, holder, outcomes.loss_of, run.id)
    if found is None:
        return
    with holder.clear():
        ui.html(say("Finest level"), tag="h3")
        ui.label(f"{_lost(found['finest'])}.").classes("text-lg pb-2")
        ui.label(
            say(
                "All levels together: {whole}. There a total counts what its parts count already: it looks small.",
                whole=_lost(found["whole"]),
            )
        ).classes("ts-note pb-3")
        for title, part in zip(LOSSES, (found["levels"], found["changes"]), strict=True):
            if part:
                ui.html(say(title), tag="h3")
                if part is found["levels"]:
                    ui.label(say(LEVELS)).classes("ts-note")
                table(
                    part["columns"],
                    part["rows"],
                    numbers=[i for i, is_number in enumerate(part["numbers"]) if is_number],
                )


def _lost(part: Mapping[str, float]) -> str:
    """How much of a part of the table its users miss."""
    return say(LOST_AND_CHANGED if part["changed"] else LOST, **part)


SECTIONS = {
    "Table": _table,
    "Cells": _cells,
    "Decisions": _decisions,
    "Plots": _plots,
    "Attacks": attacks,
    "Loss": _loss,
}
"""The parts by their titles."""


# The page Result: the verdict, the table, the sensitive cells, plots, attacks, loss, and files to download.


FACTS = ("cells", "sensitive", "withheld", "open", "method", "answer", "gap", "seconds")
LOOSE = (
    "The gap is measured from what hiding from outsiders alone costs, which is proven to be the least. What hiding "
    "from the others costs at least is not known, so the answer may be better than the gap says."
)
STOPPED_EARLY = (
    "The run was stopped before there was a safe pattern. To withhold every cell is safe, and of no use: run it again, "
    "and give it more time."
)
TOO_SHORT = (
    "No safe pattern that publishes anything was found. Give the method more time, merge codes on the page Rules, or "
    "ask for less."
)
MORE = 9
"""The rank of files that are listed below the others."""
MOST_CHANGES = 6
"""Changes of the job that are listed."""
SHOWN = 3
"""Lines of the verdict that are always shown: in short, of outsiders, and of the next attackers."""
PATTERN = "Pattern that it began with, for the job file"
INTERNAL = {"report.html": "Internal report", "certificate.json.gz": "Certificate"}
PUBLIC = "Public report"
BESIDE = {"job.toml": "Job file", "decisions.csv": "Decisions, for the job file"}
NAMES = {".csv": "Release (CSV)", ".xlsx": "Release (Excel)", ".parquet": "Release (Parquet)"}


def page(screen: Screen) -> None:
    """Build the page."""
    heading(say("Result"), say("What came out of a run. All of this page is for the office only."))
    finished = {run.id: run for run in screen.runs.runs.values() if run.facts}
    if not finished:
        ui.label(say("There is no finished run yet: start one on the page Method.")).classes("ts-card")
        return
    shown = screen.shown_run if screen.shown_run in finished else next(reversed(finished))
    titles = {name: f"{name}: {run.facts['method']}, {run.facts['status']}" for name, run in finished.items()}

    @ui.refreshable
    def content(name: str) -> None:
        screen.shown_run = name
        _run(screen, finished[name])

    if len(finished) > 1:
        ui.select(titles, value=shown, label=say("Run"), on_change=lambda e: content.refresh(str(e.value))).props(
            "outlined dense"
        ).classes("mb-4 min-w-80")
    content(shown)


def _run(screen: Screen, run: Run) -> None:
    CellPanel.of(screen, {"run": run.id}).close()  # it lies beside all parts

    @ui.refreshable
    def verdict() -> None:
        changed = screen.runs.outdated(run)
        if changed:
            _outdated(screen, run, changed)
        if run.facts["nothing"]:
            _nothing(screen, run, old=bool(changed))
        _verdict(screen, run, old=bool(changed))
        _possibly(run)

    verdict()
    screen.on_page.append(verdict.refresh)
    with ui.element("div").classes("ts-cols wide"):
        _facts(run)
        _downloads(run)
    with ui.tabs().props("align=left no-caps active-color=primary indicator-color=primary") as tabs:
        for name in SECTIONS:
            ui.tab(name, label=say(name))
    drawn: set[str] = set()
    with ui.tab_panels(tabs, value="Table", animated=False).classes("w-full").props("keep-alive"):
        holders = {}
        for name in SECTIONS:
            with ui.tab_panel(name):
                holders[name] = ui.element("div").classes("w-full")

    async def draw(name: str) -> None:
        if name not in drawn:
            drawn.add(name)
            with holders[name]:
                await SECTIONS[name](screen, run, holders[name])

    tabs.on_value_change(lambda e: draw(str(e.value)))
    ui.timer(0.01, lambda: draw("Table"), once=True)


def _outdated(screen: Screen, run: Run, changed: Sequence[Text]) -> None:
    """Say that a result is of another job than the one that is edited, what differs, and how to go on."""

    def show(name: str) -> None:
        screen.shown_run = name
        ui.navigate.reload()

    def back() -> None:
        screen.replace_draft(screen.runs.go_back(run))
        screen.say(say("The job is that of {run} again.", run=run.id))

    with ui.element("section").classes("ts-verdict old").props("role=status " + aria("Outdated")):
        ui.html(say("↻ Outdated"), tag="strong")
        ui.label(say("This result is of another job than the one that you have now. Since then:"))
        with ui.element("ul").classes("m-0"):
            for line in changed[:MOST_CHANGES]:
                with ui.element("li"):
                    ui.label(say(line))
        if len(changed) > MOST_CHANGES:
            ui.label(say("and {many:,} more.", many=len(changed) - MOST_CHANGES))
        row = ui.element("div").classes("ts-row pt-2")
        problem = ui.element("div")
        with row:
            newer = [each.id for each in screen.runs.runs.values() if each.facts and not screen.runs.outdated(each)]
            if newer:
                words = say("Show {run}: it is of the job as it is now", run=newer[-1])
                ui.button(words, on_click=lambda: show(newer[-1])).props("color=primary")
            else:
                _again(screen, problem)
            if run.facts["method"] == "suppress":
                repair_button(screen, run, problem)
            ui.button(say("Go back to the job of {run}", run=run.id), on_click=back).props("outline color=primary")


def _again(screen: Screen, problem: ui.element) -> None:
    """A button that runs the job as it is now."""

    def again() -> None:
        try:
            started = screen.runs.start()
        except TablesafeError as error:
            with problem.clear():
                show_error(error)
            return
        screen.say(say("{run} has started.", run=started.id))
        ui.navigate.to("/method")

    ui.button(say("Run again"), icon="play_arrow", on_click=again).props("color=primary")


def _nothing(screen: Screen, run: Run, *, old: bool) -> None:
    """Say that a release is safe because it is empty: nobody shall take it for an answer."""
    with ui.element("section").classes("ts-verdict possibly").props("role=status " + aria("Nothing is published")):
        ui.html(say("! Nothing is published but zeros"), tag="strong")
        ui.label(say(STOPPED_EARLY if run.asked_to_stop else TOO_SHORT))
        if not old:
            row, problem = ui.element("div").classes("ts-row pt-2"), ui.element("div")
            with row:
                _again(screen, problem)
                ui.button(
                    say("Go to the page {page}", page=say("Method")), on_click=lambda: ui.navigate.to("/method")
                ).props("outline color=primary")


def _verdict(screen: Screen, run: Run, *, old: bool) -> None:
    safe = run.safe
    look = "old" if old else "possibly" if run.facts["nothing"] else "safe" if safe else "open"
    with ui.element("section").classes(f"ts-verdict {look}").props("role=status " + aria("Verdict")):
        if old:
            ui.label(say("What was found of the job of {run}:", run=run.id))
        word = say(run.facts["verdict"])
        ui.html(f"{'✓' if safe else '!'} {word}", tag="strong")
        lines = [say(thawed(line)).removeprefix(f"{word}: ") for line in run.facts["lines"]]
        lines = [line[:1].upper() + line[1:] for line in lines]
        ui.label("\n".join(lines[:SHOWN]))
        if len(lines) > SHOWN:
            with ui.element("details"):
                with ui.element("summary"):
                    ui.label(say("More of what was found")).classes("inline")
                ui.label("\n".join(lines[SHOWN:])).classes("text-sm")
        if not run.facts["release_written"]:
            ui.label(say("The release was not written.")).classes("font-medium")
        elif not safe:
            ui.label(say("The release was written because you insisted: do not publish it.")).classes("font-medium")
        if not safe and not old:
            ui.label(say("A coarser table may be easier to hide:"))
            offer(screen)


def _possibly(run: Run) -> None:
    """Cells that are possibly open, never in a fold: somebody must decide."""
    many, named = int(run.facts["possibly_open"]), run.facts["possibly"]
    if not many:
        return
    accepted = say("You accepted them in the audit, so they do not count as open.") + " " if run.safe else ""
    with ui.element("section").classes("ts-verdict possibly").props("role=status " + aria("Possibly open")):
        ui.html(say("? {many:,} possibly open", many=many), tag="strong")
        ui.label(accepted + say("To settle them: {how}.", how=run.facts["settled_by"]))
        with ui.element("ul").classes("m-0 text-sm"):
            for line in named:
                with ui.element("li"):
                    ui.label(line)
        if many > len(named):
            ui.label(say("and {many:,} more: the table marks them with ?.", many=many - len(named))).classes("text-sm")


def _facts(run: Run) -> None:
    facts, solution = run.facts, run.facts.get("solution") or {}
    gap = numeral(solution["gap"], ".1%") if solution.get("gap") is not None and solution.get("bound") else ""
    prices = solution.get("attackers") or []
    alone = prices[0]["cost"] if len(prices) > 1 and prices[0]["proved"] else 0.0
    loose = bool(gap) and solution["gap"] > 0 and solution["bound"] <= alone * (1 + 1e-9)
    told = (
        *(numeral(facts[name]) for name in ("cells", "sensitive", "withheld", "open")),
        say(facts["method"].replace("_", " ")), say(str(solution.get("status", ""))), gap,
        numeral(sum(facts["seconds"].values()), ",.1f"),
    )  # fmt: skip
    rows = dict(zip(FACTS, told, strict=True))
    with ui.element("section").classes("ts-card").props(aria("In numbers")):
        ui.html(say("In numbers"), tag="h2")
        with ui.element("dl").classes("ts-facts"):
            for name, text in rows.items():
                if text:
                    with ui.element("div"):
                        ui.html(say(name), tag="dt")
                        with ui.element("dd"):
                            ui.label(text)
        if loose:
            ui.label(say(LOOSE)).classes("ts-note pt-2")


def _downloads(run: Run) -> None:
    with ui.element("section").classes("ts-card").props(aria("Download")):
        ui.html(say("Download"), tag="h2")
        names = sorted(run.files(), key=lambda name: _rank(run, name))
        main = [name for name in names if _rank(run, name) < MORE]
        with ui.element("ul").classes("list-none p-0 m-0"):
            for name in main:
                _file(run, name)
        if len(main) < len(names):
            with ui.element("details"):
                with ui.element("summary").classes("ts-note"):
                    ui.label(say("More internal files")).classes("inline")
                with ui.element("ul").classes("list-none p-0 m-0"):
                    for name in names[len(main) :]:
                        _file(run, name)


def _file(run: Run, name: str) -> None:
    address = f"/files/{quote(run.id)}/{quote(name)}"
    with ui.element("li").classes("py-0.5"):
        ui.link(say(_title(run, name)), address).props["download"] = Path(name).name
        if name.endswith(".html"):
            ui.link(say("look"), f"{address}?show", new_tab=True).classes("ml-3 text-sm")
        if _is_internal(run, name):
            ui.label(say("internal")).classes("ts-note inline ml-2")


def _is_internal(run: Run, name: str) -> bool:
    """Whether a file stays in the office: all do but those that the job calls public."""
    return name not in run.facts["public"]


def _rank(run: Run, name: str) -> int:
    """Where a file stands in the list: the release, the public report, job, certificate, internal report, the rest."""
    if not _is_internal(run, name):
        return int(name.endswith(".html"))
    if name == pattern_file(run.id):
        return 2
    return {"job.toml": 2, "decisions.csv": 2, "certificate.json.gz": 3, "report.html": 4}.get(Path(name).name, MORE)


def _title(run: Run, name: str) -> str:
    file = Path(name)
    if name in BESIDE or name == pattern_file(run.id):
        return BESIDE.get(name, PATTERN)
    if _is_internal(run, name):
        return INTERNAL.get(file.name, file.name)
    return PUBLIC if file.suffix == ".html" else NAMES.get(file.suffix, file.name)
