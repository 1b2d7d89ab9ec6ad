"""What goes wrong, in a real browser: bad input, failing and stopped runs, strangers, hostile files, no mouse."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsing import Visitor, firms
from serving import served

from tablesafe.core.errors import InvalidJob, InvalidOption
from tablesafe.job import parse_job
from tablesafe.pipeline import run

Newcomer = Callable[[], Visitor]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return firms(tmp_path_factory.mktemp("data") / "firms.csv")


def test_bad_input_gets_the_message_of_the_command_line_beside_its_field(visitor: Visitor, data: Path) -> None:
    visitor.upload(data)
    visitor.step("Rules")
    visitor.write("p", "150")
    field = visitor.page.locator(".ts-field", has=visitor.page.get_by_role("slider", name="p", exact=True))
    said = field.get_by_role("alert").inner_text()
    (data.parent / "bad.toml").write_text(visitor.job())
    with pytest.raises(InvalidJob) as error:
        parse_job((data.parent / "bad.toml").read_text(), data.parent / "bad.toml")
    assert said.removeprefix("✕ ") in str(error.value)
    assert "150" in said
    steps = visitor.page.get_by_role("navigation", name="Steps")
    steps.get_by_role("link", name="Rules has errors").wait_for()
    visitor.step("Method")
    visitor.page.get_by_role("button", name="Run the job").click()
    visitor.page.get_by_role("region", name="Run").get_by_text(said.removeprefix("✕ ")).wait_for()
    assert visitor.page.locator('section[aria-label="run-1"]').count() == 0


LANGUAGES = {
    "de-DE": ("leer.csv ist leer.", "Hinweis: ist es die richtige Datei", "muss eine Zahl sein, über 0", "Regeln"),
    "fr-FR": ("leer.csv est vide.", "Conseil : est-ce le bon fichier", "doit être un nombre supérieur à 0", "Règles"),
    "es-ES": ("leer.csv está vacío.", "Sugerencia: ¿es el archivo correcto", "un número mayor que 0", "Reglas"),
}
"""What is said of a file that is empty, the hint, and of a number that is too large."""


@pytest.mark.parametrize("locale", list(LANGUAGES))
def test_what_is_wrong_is_said_in_the_language_of_the_page(
    locale: str, app: Any, chromium: Any, data: Path, tmp_path: Path
) -> None:
    """And whoever brought the wrong file first need not begin anew: the next one takes its place."""
    empty, hint, number, rules = LANGUAGES[locale]
    context = chromium.new_context(viewport={"width": 1400, "height": 900}, locale=locale)
    visitor = Visitor(context.new_page(), app)
    page = visitor.page
    visitor.enter()
    (tmp_path / "leer.csv").touch()
    page.set_input_files("input[type=file]", [str(tmp_path / "leer.csv")])
    page.get_by_role("alert").get_by_text(empty).first.wait_for()
    page.get_by_text(hint).first.wait_for()
    page.set_input_files("input[type=file]", [str(data)])
    visitor.until_job(lambda job: job["source"].get("file") == data.name and job.get("dimensions"))
    page.get_by_text(empty).first.wait_for(state="hidden")
    page.get_by_role("link", name=rules).click()
    page.get_by_label("p", exact=True).and_(page.locator("input:not([type=range])")).first.fill("150")
    page.get_by_role("alert").get_by_text(number).first.wait_for()
    assert "must be" not in page.locator("main.ts-main").inner_text()
    context.close()


def test_a_run_that_fails_says_why_as_the_command_line_does_beside_the_field(
    visitor: Visitor, data: Path, tmp_path: Path
) -> None:
    text = """title = "Bad"
[source]
file = "firms.csv"
respondent = "firm"
where = "turnovr > 3"
[dimensions.nace]
[dimensions.region]
[response]
value = "turnover"
[[rules]]
rule = "threshold"
"""
    (tmp_path / "job.toml").write_text(text)
    (tmp_path / "firms.csv").write_bytes(data.read_bytes())
    with pytest.raises(InvalidOption) as error:
        run(tmp_path / "job.toml")
    message, _, hint = str(error.value).partition("\n\nHint: ")
    visitor.upload(tmp_path / "firms.csv")
    visitor.page.set_input_files("input[type=file]", str(tmp_path / "job.toml"))  # it fills the app
    visitor.page.get_by_text("Bad", exact=True).wait_for()
    visitor.step("Method")
    section = visitor.run()
    section.get_by_role("alert").wait_for()
    said = section.get_by_role("alert").inner_text().splitlines()
    assert said == [message, f"Hint: {hint}", "Go to the page Data"]
    assert "failed" in section.inner_text()
    visitor.step("Data")
    visitor.page.get_by_text("Every option of the source").click()
    field = visitor.page.locator(".ts-field", has=visitor.page.get_by_label("where", exact=True))
    assert message in field.get_by_role("alert").inner_text()


def test_what_fails_can_be_mended_where_it_is_told(visitor: Visitor, tmp_path: Path) -> None:
    """A hierarchy of something else, and decisions that leave a cell no room: each message has buttons that help."""
    page = visitor.page
    lines = ["firm;region;turnover", *(f"f{i};{'East' if i == 0 else 'West'};{100 + i}" for i in range(9))]
    (tmp_path / "two.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "nace.hrc").write_text("A\n@A01\n@A02\nB\n")
    visitor.upload(tmp_path / "two.csv", tmp_path / "nace.hrc")
    page.get_by_role("button", name="Remove nace.hrc").wait_for()
    visitor.step("Dimensions")
    visitor.choose("kind", "from a hierarchy file (.hrc)")
    visitor.choose("hierarchy", "nace.hrc")
    asked = page.get_by_role("region", name="Codes that region does not have")
    asked.get_by_text("None of the codes of region is in this hierarchy").wait_for()
    asked.get_by_role("button", name="Do without it").click()
    visitor.until_job(lambda job: "hierarchy" not in job["dimensions"]["region"])
    visitor.step("Rules")
    page.get_by_role("button", name="Look at the table").click()  # while it is still counted
    for code in ("West", "Total"):
        _never_withheld(visitor, code)
    visitor.step("Method")
    section = visitor.run()
    section.get_by_text("Sensitive cell (region=East) cannot be protected").first.wait_for()
    section.get_by_role("button", name="Propose codes to merge").click()
    proposals = section.get_by_role("list", name="Proposals").or_(section.get_by_text("No merge would make fewer"))
    proposals.first.wait_for()  # the job that failed can be looked at nevertheless
    section.get_by_role("button", name="Decide on East").click()
    panel = page.get_by_role("complementary", name="Cell")
    panel.get_by_text("region East", exact=True).wait_for()
    panel.get_by_role("button", name="Close").click()
    section.get_by_role("button", name="Take back: West").click()
    page.get_by_text("The decision on West is taken back.").wait_for()
    page.get_by_role("button", name="Run the job").click()
    page.locator('section[aria-label="run-2"]').get_by_role("button", name="Look at the result").wait_for()
    visitor.step("Rules")
    visitor.page.get_by_role("button", name="Take back: Total").click()
    visitor.step("Result")
    old = page.get_by_role("status", name="Outdated")
    old.get_by_text("Total: protected → not decided").wait_for()
    old.get_by_role("button", name="Run again").wait_for()
    assert not visitor.complaints


def _never_withheld(visitor: Visitor, code: str) -> None:
    page = visitor.page
    page.locator(".ts-line", has=page.get_by_role("rowheader", name=code)).locator(".ts-cell").first.click()
    panel = page.get_by_role("complementary", name="Cell")
    panel.get_by_text(f"region {code}", exact=True).wait_for()
    visitor.choose("It is", "protected: must be published: never withheld to protect another")
    panel.get_by_role("button", name="Decide", exact=True).click()
    panel.get_by_text("Noted in the job").wait_for()


def test_a_stopped_run_keeps_a_safe_answer(visitor: Visitor, tmp_path: Path) -> None:
    visitor.upload(_many(tmp_path / "many.csv"))
    visitor.step("Method")
    visitor.choose("algorithm", "optimal")
    visitor.write("time_limit_s", "900")
    section = visitor.run()
    section.get_by_text(re.compile("at most [0-9]+ s left")).wait_for()
    section.locator("svg").wait_for()  # there is a best answer
    section.get_by_role("button", name="Stop and keep the best answer").click()
    visitor.look(section)
    assert visitor.page.get_by_role("status", name="Verdict").inner_text().startswith("✓ SAFE")
    visitor.page.get_by_role("link", name="Release (CSV)").wait_for()


def _many(path: Path) -> Path:
    """A table that an exact search does not finish in a moment."""
    import random

    draw = random.Random(3)
    lines = ["firm,branch,area,amount"]
    for number in range(420):
        lines.append(f"f{number},b{draw.randrange(14)},a{draw.randrange(12)},{int(draw.lognormvariate(6, 1.5)) + 1}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_two_users_see_only_their_own(newcomer: Newcomer, data: Path, tmp_path: Path) -> None:
    one, other = newcomer(), newcomer()
    one.upload(data)
    assert other.page.get_by_text("firms.csv").count() == 0
    other.upload(firms(tmp_path / "others.csv", n=40, seed=1))
    one.step("Method")
    one.choose("method", "withhold")
    section = one.run()
    section.get_by_role("button", name="Look at the result").wait_for()
    other.step("Result")
    other.page.get_by_text("There is no finished run yet").wait_for()
    address = f"{one.app.home}/files/run-1/job.toml"
    assert one.page.context.request.get(address).ok
    assert other.page.context.request.get(address).status == 404
    assert "firms.csv" in one.job()
    assert "firms.csv" not in other.job()
    one.page.reload()
    one.page.get_by_text("run-1").first.wait_for()  # what is done stays, whatever the browser does


def test_hostile_names_in_a_file_stay_text(visitor: Visitor, tmp_path: Path) -> None:
    head = ['"<img src=x onerror=window.hacked=1>"', '"x"" :onclick=""window.hacked=2"', "amount"]
    rows = [f'<b>{i % 3}</b>,"q"" :style=""hacked {i % 2}",{i + 1}' for i in range(40)]
    path = tmp_path / "hostile.csv"
    path.write_text("\n".join([",".join(head), *rows]) + "\n", encoding="utf-8")
    visitor.upload(path)
    for step in ("Dimensions", "Rules", "Method", "Data"):
        visitor.step(step)
        visitor.page.wait_for_load_state("networkidle")
    assert visitor.page.evaluate("window.hacked") is None
    assert visitor.page.locator("img[src=x], td b").count() == 0


FOCUSED = """() => { const e = document.activeElement, s = getComputedStyle(e), c = e.closest('.q-field__control');
  if (e === document.body) return ['BODY', true];
  const ring = s.outlineStyle !== 'none' && s.outlineWidth !== '0px' || s.boxShadow.includes('rgb(230, 159, 0)');
  const around = c && getComputedStyle(c).outlineStyle !== 'none';
  return [e.getAttribute('aria-label') || e.textContent.trim() || e.title || e.tagName, Boolean(ring || around)] }"""


def tab_to(visitor: Visitor, name: str, *, most: int = 120) -> None:
    """Press Tab until something of this name has the focus; whatever has it on the way is visibly marked."""
    for _ in range(most):
        visitor.page.keyboard.press("Tab")
        found, marked = visitor.page.evaluate(FOCUSED)
        assert marked, f"the focus on {found[:80]!r} cannot be seen"
        if re.search(name, found):
            return
    pytest.fail(f"{name!r} cannot be reached with the keyboard")


def test_everything_can_be_done_without_a_mouse(visitor: Visitor) -> None:
    page = visitor.page
    page.keyboard.press("Tab")
    assert "Skip to the content" in page.evaluate(FOCUSED)[0]
    tab_to(visitor, "Use the demo data$")
    page.keyboard.press("Enter")
    page.get_by_role("combobox", name="What STATE is").wait_for()
    page.evaluate("document.activeElement.blur()")
    tab_to(visitor, "Rules")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:text-is('Rules')")
    before = visitor.number()
    tab_to(visitor, "^p$")
    for _ in range(5):
        page.keyboard.press("PageUp")
    page.wait_for_function(f"document.querySelector('.ts-big').textContent !== '{before:,}'")
    page.evaluate("document.activeElement.blur()")
    tab_to(visitor, "Method")
    page.keyboard.press("Enter")
    page.wait_for_selector("h1:text-is('Method')")
    tab_to(visitor, "Run the job")
    page.keyboard.press("Enter")
    page.locator('section[aria-label="run-1"]').wait_for()
    tab_to(visitor, "Stop and keep")
    page.keyboard.press("Enter")
    assert [rule["rule"] for rule in tomllib.loads(visitor.job())["rules"]] == ["threshold", "p_percent"]


def test_a_page_of_an_app_that_was_started_anew_stops_trying(chromium: Any, tmp_path: Path) -> None:
    """It says so once, offers what helps, and asks no more."""
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    page = chromium.new_page()
    with served(tmp_path / "first") as first:
        visitor = Visitor(page, first)
        visitor.enter()
        first.stop()
    with served(tmp_path / "second", "--port", str(first.port)):
        told = page.get_by_role("alertdialog", name="The connection has ended")
        told.wait_for()
        assert "started anew" in told.inner_text()
        asked = len(visitor.asked)
        page.wait_for_function("() => !window.socket.active && !window.socket.connected")
        assert len(visitor.asked) == asked
        told.get_by_role("button", name="Try again").click()
        page.get_by_text("needs the address that was printed").wait_for()
    page.close()
