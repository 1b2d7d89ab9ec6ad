"""A newcomer in a real browser: awkward names, several files at once, sheets, two windows, a narrow window."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import xlsxwriter
from browsing import Visitor, firms
from serving import Served

from tablesafe.core.language import language
from tablesafe.job.model import Source

PROBLEM = "0\n3\n0 9 9 s 0 20 0 0 0\n1 4 4 u 0 20 2 2 0\n2 5 5 s 0 20 0 0 0\n1\n0 3 : 0 (-1) 1 (1) 2 (1)\n"


def column(visitor: Visitor, name: str) -> str:
    """The line of a column in the list of columns."""
    row = visitor.page.locator("table.ts-list tr").filter(has=visitor.page.get_by_role("rowheader", name=name))
    return str(row.inner_text())


def test_several_files_at_once_keep_their_names_and_the_first_is_the_source(visitor: Visitor, tmp_path: Path) -> None:
    data = firms(tmp_path / "Umsätze & Co. 2025 (vorläufig).csv")
    (tmp_path / "länder liste.csv").write_text("land,region\nX,North\nX,South\nY,West\n", encoding="utf-8")
    (tmp_path / "nace.hrc").write_text("A\n@A01\n@A02\nB\n@B05\n@B06\nC\n@C10\n@C11\n")
    uploads: list[Any] = []

    def first_comes_last(route: Any) -> None:
        uploads.append(route)
        if len(uploads) == 3:
            for one in reversed(uploads):
                one.continue_()

    visitor.page.route("**/upload", first_comes_last)
    visitor.upload(data, tmp_path / "länder liste.csv", tmp_path / "nace.hrc")
    visitor.page.get_by_role("button", name="Remove nace.hrc").wait_for()
    draft = tomllib.loads(visitor.job())
    assert draft["source"]["file"] == data.name  # beside the same file, the shell runs the same job
    visitor.step("Dimensions")
    panel = visitor.page.locator(".q-tab-panel:visible")
    assert "how the hierarchy is written" in panel.inner_text().lower()
    panel.get_by_text("10 codes").wait_for()  # the file that came along fits the codes, and is used
    assert draft["dimensions"]["nace"]["hierarchy"] == "nace.hrc"
    visitor.choose("kind", "one total over all codes")
    panel.get_by_text("7 codes").wait_for()
    visitor.choose("kind", "from a hierarchy file (.hrc)")
    panel.locator(".ts-fault", has_text="names no file").first.wait_for()
    visitor.page.get_by_role("link", name="Dimensions has errors").wait_for()
    visitor.choose("hierarchy", "nace.hrc")
    panel.get_by_text("10 codes").wait_for()
    panel.locator(".ts-fault:visible").first.wait_for(state="hidden")
    assert not visitor.complaints


def test_what_the_data_leave_to_decide_is_asked(visitor: Visitor, tmp_path: Path) -> None:
    data = firms(tmp_path / "firms.csv")
    data.write_text(re.sub(r",\d+\n", ",\n", data.read_text(), count=1))
    visitor.upload(data)
    asked = visitor.page.get_by_role("region", name="To decide")
    asked.get_by_text("1 record has no 'turnover': it is left out.").wait_for()
    visitor.page.get_by_role("link", name="Data has a question").wait_for()
    visitor.page.get_by_text("Every option of the source").click()
    visitor.write("where", "firm <> 'nobody'")
    asked.get_by_text("the run stops there").wait_for()
    visitor.step("Rules")
    visitor.page.get_by_role("link", name="Data has errors").wait_for()
    visitor.step("Data")
    visitor.page.locator("table.ts-list .ts-fault:visible").wait_for()
    assert "Column 'turnover' is empty at firms.csv, line 2 (1 record in all)." in column(visitor, "turnover")
    asked.get_by_role("button", name="Leave out the record without a turnover").click()
    visitor.until_job(lambda job: job["source"]["where"] == "firm <> 'nobody' AND \"turnover\" IS NOT NULL")
    visitor.step("Rules")
    assert visitor.number() > 0
    visitor.page.get_by_role("link", name="Data done").wait_for()


def test_a_workbook_with_several_sheets_asks_for_one(visitor: Visitor, tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "firms.xlsx") as book:
        book.add_worksheet("Read me").write_row(0, 0, ["nothing"])
        sheet = book.add_worksheet("Data of 2025")
        for at, line in enumerate(firms(tmp_path / "firms.csv").read_text().splitlines()):
            *codes, value = line.split(",")
            sheet.write_row(at, 0, [*codes, value if at == 0 else int(value)])
    page = visitor.page
    page.set_input_files("input[type=file]", str(tmp_path / "firms.xlsx"))
    field = page.locator(".ts-field").filter(has=page.get_by_label("sheet", exact=True))
    field.locator(".ts-fault", has_text="has 2 sheets: 'Read me', 'Data of 2025'").wait_for()
    visitor.write("sheet", "Data of 2025")
    page.get_by_role("combobox", name="What turnover is").wait_for()  # and its columns are guessed
    assert tomllib.loads(visitor.job())["response"]["value"] == ["turnover"]
    assert not page.locator(".ts-fault:visible").count()


PRINTED = """Table 3: turnover by region and size, 2025
in thousand euros

Region;Total;1-9;10-49;50+
Total;3021,5;600,5;1201;1220
Süd;1720,5;300,5;700;720
Nord;1301;300;501;500

Source: our own survey
"""


def test_a_printed_table_is_shown_as_it_was_understood(visitor: Visitor, tmp_path: Path) -> None:
    """As CSV and as Excel: what is heading, label, number and note, and again when the area is said otherwise."""
    page = visitor.page
    (tmp_path / "printed.csv").write_text(PRINTED, encoding="utf-8")
    with xlsxwriter.Workbook(tmp_path / "printed.xlsx") as book:
        sheet = book.add_worksheet("Table 3")
        for at, line in enumerate(PRINTED.splitlines()):
            for column, text in enumerate(line.split(";")):
                number = re.fullmatch(r"[\d,]+", text)
                sheet.write(at, column, float(text.replace(",", ".")) if number else text)
    for name in ("printed.csv", "printed.xlsx"):
        visitor.upload(tmp_path / name)
        understood = page.get_by_role("region", name="What was understood")
        understood.get_by_text(f"{name}: 12 cells in B5:E7").or_(understood.get_by_text("12 cells in B5:E7")).wait_for()
        assert understood.locator("th.heading").all_inner_texts() == ["Region", "Total", "1-9", "10-49", "50+"]
        assert understood.locator("th.label").all_inner_texts() == ["Total", "Süd", "Nord"]
        assert understood.locator("td.number").count() == 12
        assert understood.locator("td.note").first.inner_text().startswith("Table 3")
        job = tomllib.loads(visitor.job())
        assert (job["source"]["layout"], job["source"]["kind"]) == ("crosstab", "cells")
        if name == "printed.csv":
            visitor.write("area", "A4:D7")
            understood.get_by_text("9 cells in B5:D7").wait_for()
            page.get_by_role("button", name="New job").click()
            understood.wait_for(state="detached")
    visitor.step("Dimensions")
    page.get_by_role("region", name="Tree of Region").get_by_text("3 codes, 2 of them at the bottom").wait_for()
    visitor.step("Rules")
    page.get_by_role("button", name="Do without rule 1, threshold").click()  # it tells nothing of contributors
    page.locator(".ts-note", has_text="of 12 cells").wait_for()  # and its sums hold
    page.get_by_role("button", name="Look at the table").click()
    page.locator(".ts-cell.k-published").last.click()
    panel = page.get_by_role("complementary", name="Cell")
    panel.get_by_role("button", name="Decide", exact=True).click()  # that it is sensitive
    panel.get_by_text("Noted in the job").wait_for()
    page.locator(".ts-big", has_text="1").wait_for()
    page.get_by_role("link", name="Rules has errors").wait_for(state="detached")
    assert not visitor.complaints


def test_two_windows_of_one_session_tell_each_other(visitor: Visitor, tmp_path: Path) -> None:
    visitor.upload(firms(tmp_path / "firms.csv"))
    visitor.step("Rules")
    other = Visitor(visitor.page.context.new_page(), visitor.app)
    other.page.goto(f"{visitor.app.home}/rules")
    other.page.get_by_role("button", name="Remove rule 2").wait_for()
    visitor.page.get_by_role("button", name="Remove rule 2").click()
    news = other.page.get_by_text("The job was changed in another window.").first
    news.wait_for()
    assert not visitor.page.get_by_text("The job was changed in another window.").first.is_visible()
    other.write("p", "20", noted=False)  # of a rule that is not there any more
    other.page.get_by_role("button", name="Show it as it is now").click()
    other.page.get_by_role("button", name="Remove rule 2").wait_for(state="detached")
    news.wait_for(state="hidden")
    visitor.step("Method")
    other.step("Method")
    visitor.run()
    section = other.page.locator('section[aria-label="run-1"]')
    section.wait_for()  # what one window starts, the other shows
    visitor.page.locator('section[aria-label="run-1"]').get_by_role(
        "button", name=re.compile("Remove|Look")
    ).first.wait_for()
    visitor.page.get_by_role("button", name="Remove run-1").click()
    section.wait_for(state="detached")
    assert not [*visitor.complaints, *other.complaints]


def test_a_link_that_is_pressed_while_the_job_changes_is_followed(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.page
    visitor.upload(firms(tmp_path / "firms.csv"))
    visitor.step("Rules")
    page.get_by_role("navigation", name="Steps").get_by_role("link", name="Method").hover()
    page.mouse.down()
    remove = page.get_by_role("button", name="Remove rule 2")
    remove.evaluate("button => button.click()")
    remove.wait_for(state="detached")
    page.mouse.up()
    page.wait_for_selector("h1:text-is('Method')")
    assert page.locator("nav [aria-current=page]").inner_text().endswith("Method")
    assert not visitor.complaints


@pytest.mark.parametrize("width", [400, 700])  # a telephone; a window at 200 %
def test_nothing_is_cut_off_in_a_narrow_window(visitor: Visitor, tmp_path: Path, width: int) -> None:
    visitor.page.set_viewport_size({"width": width, "height": 800})
    visitor.upload(firms(tmp_path / "firms.csv"))
    for step in ("Data", "Dimensions", "Rules", "Method"):
        visitor.step(step)
        visitor.page.locator(".ts-field").first.wait_for()
        assert visitor.page.evaluate("document.documentElement.scrollWidth") <= width, step
    boxes = visitor.page.locator(".ts-field .ts-help:visible").evaluate_all("all => all.map(e => e.offsetWidth)")
    assert min(boxes) > 120  # a help text that can be read


def test_a_file_that_says_all_itself_leaves_nothing_to_do(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "small.jj").write_text(PROBLEM)
    page = visitor.page
    page.set_input_files("input[type=file]", str(tmp_path / "small.jj"))
    page.get_by_text("describes its cells itself").wait_for()
    visitor.step("Dimensions")
    assert page.get_by_text("there is nothing to do here").is_visible()
    visitor.step("Rules")
    assert page.get_by_text("says itself which cells are sensitive").is_visible()
    page.get_by_role("button", name="Job file", exact=True).click()
    panel = page.get_by_role("complementary", name="Job file")
    panel.wait_for()
    page.keyboard.press("Escape")
    panel.wait_for(state="hidden")


NAMES = {"de": "Deutsch", "fr": "Français", "es": "Español"}
"""Languages as the list of them has them."""
AS_IN_THE_JOB = {"published", "respondents", "suppress", *(each.name for each in fields(Source))}
"""Keys, and what options are set to, as the job file has them."""


STEPS = ("Data", "Dimensions", "Rules", "Method", "Result", "Compare")


def _english_on(page: Any, code: str, *steps: str) -> set[str]:
    """What the catalogue of a language has, and pages say in English all the same, with all that is folded away."""
    texts = language(code).texts
    english = {key for key, other in texts.items() if "{" not in key and len(key) > 6 and other != key}
    left: set[str] = set()
    for step in steps:
        page.locator("nav.ts-steps").get_by_role("link", name=texts[step], exact=True).or_(
            page.locator("nav.ts-steps").get_by_role("link", name=re.compile(f"^{texts[step]} "))
        ).first.click()
        page.wait_for_selector(f"h1:text-is('{texts[step]}')")
        page.evaluate("() => document.querySelectorAll('main details').forEach(each => { each.open = true; })")
        page.wait_for_function("() => !document.querySelector('.q-spinner')")
        shown = {line.strip() for line in page.locator("body").inner_text().splitlines()}
        names = page.locator("[aria-label]").evaluate_all("all => all.map(e => e.ariaLabel)")
        left |= {key.replace("`", "") for key in english} & {*shown, *names}
    return left


def test_the_app_speaks_the_language_of_its_visitor(chromium: Any, app: Served, tmp_path: Path) -> None:
    """From upload to result in German, then every page in the others: nowhere is English left, folded or not."""
    context = chromium.new_context(viewport={"width": 1400, "height": 900}, locale="de-AT")
    visitor = Visitor(context.new_page(), app)
    visitor.enter()
    page = visitor.page
    page.set_input_files("input[type=file]", str(firms(tmp_path / "firms.csv")))
    page.get_by_role("combobox", name="Was turnover ist").wait_for()
    assert page.locator("html").get_attribute("lang") == "de"
    assert _english_on(page, "de", "Data", "Dimensions", "Rules", "Method") <= AS_IN_THE_JOB
    page.get_by_role("button", name="Auftrag ausführen").click()
    section = page.locator('section[aria-label="run-1"]')
    said = set()
    while not section.get_by_role("button", name="Ergebnis ansehen").is_visible():
        said |= {line.strip() for line in section.inner_text().splitlines()}
    assert not {line for line in said if re.search("Protecting|Reading|Attacking|Writing|Starting|Waiting", line)}
    section.get_by_role("button", name="Ergebnis ansehen").click()
    page.wait_for_selector(".ts-cell")
    assert "SICHER" in page.get_by_role("status", name=language("de").texts["Verdict"]).inner_text()
    for code, name in NAMES.items():
        if page.locator("html").get_attribute("lang") != code:
            page.locator(".ts-language").click()
            page.get_by_role("option", name=name).click()
            page.wait_for_selector(f"html[lang={code}] h1")
        assert _english_on(page, code, *STEPS) <= AS_IN_THE_JOB, code
    assert not visitor.complaints
    context.close()
