"""Questions of newcomers, in their words, are answered by the index or by one search."""

from __future__ import annotations

import html
import importlib.util
import re
import tomllib
from typing import Any

from tests.docs.pages import DOCS

QUESTIONS = {
    "plot from python": "python.html#draw-and-plot",
    "precision of a label": "python.html#how-far-a-label-can-be-trusted",
    "error per cell": "files.html#errors-per-cell-shares-of-yes-answers",
    "cost of a mistake": "losses.html",
    "spammers": "howto/campaign.html#spammers",
    "several servers": "howto/postgresql.html",
    "tie": "policies.html#ties",
    "how many gold items": "learning.html#how-many-known-items",
    "re-run a figure": "gallery.html#figures-of-the-paper-and-of-these-pages",
    "undo a worker": "howto/campaign.html#undo-an-answer-exclude-a-worker",
    "undo an exclusion": "howto/campaign.html#undo-an-answer-exclude-a-worker",
    "keep strangers out": "howto/campaign.html#keep-strangers-out",
    "back up and restore": "howto/operate.html#backup-and-restore",
    "recruit on prolific": "howto/prolific.html",
    "environment variables": "reference/environment.html",
    "language of the page": "howto/languages.html",
    "delete personal data": "howto/people.html#delete-a-worker-s-personal-data",
    "stop early": "howto/campaign.html#stop-early-with-labels",
    "people disagree": "howto/campaign.html#when-people-disagree-or-cannot-tell",
    "images": "howto/campaign.html#show-images-audio-or-video",
    "cite": "start.html#cite-crowdtree",
}
FIRST = 5
"""Results of a search among which the page must be."""


def test_the_index_links_to_every_answer(site):
    index = (site / "index.html").read_text()
    links = set(map(html.unescape, re.findall(r'href="([^"]+)"', index)))
    assert set(QUESTIONS.values()) <= links


def test_a_search_from_the_index_finds_every_answer(site, browser):
    page = browser.new_page()
    for words, answer in QUESTIONS.items():
        page.goto((site / "index.html").as_uri())
        page.fill("input.sidebar-search", words)
        page.press("input.sidebar-search", "Enter")
        page.locator(".search-summary", has_text="finished").wait_for()
        links = page.locator("#search-results li > a").evaluate_all(
            "found => found.map(link => link.getAttribute('href'))"
        )
        pages = list(dict.fromkeys(re.split("[?#]", link)[0] for link in links))
        assert answer.partition("#")[0] in pages[:FIRST], words
    page.close()


TRACKERS = (
    # Label Studio, doccano, INCEpTION
    "multiple annotators", "compare annotators", "inter-annotator agreement", "kappa", "consensus",
    "agreement", "import csv", "column", "columns", "export", "json", "label studio", "skip",
    "hotkeys", "shortcuts", "undo", "next task", "permissions", "password", "roles", "statistics",
    "duplicate", "merge", "multi-label", "multiclass", "several answers", "instructions",
    "webhooks", "docker", "s3", "postgres", "api", "token", "images", "audio", "pre-annotation",
    # CVAT, Argilla, Prodigy, cleanlab
    "active learning", "honeypot", "ground truth", "quality control", "review", "confidence",
    "label errors", "annotator quality", "suggestions", "LLM", "GPT", "scikit-learn", "pandas",
    "notebook",
    # crowd-kit, rater, tools for Mechanical Turk
    "dawid-skene", "majority vote", "worker skills", "confusion matrix", "convergence",
    "Mechanical Turk", "mturk", "bonus", "payment", "qualification", "attention checks", "bots",
    "spammers", "prolific", "gdpr", "privacy", "consent", "I don't know", "unsure", "timeout",
)  # fmt: skip
"""Words from issues of other annotation tools, as people write them."""
SEARCH = """words => words.map(query => {
  const found = Search._performSearch(...Search._parseQuery(query));
  return found.reverse().map(result => result[0]);
})"""
"""Pages that the site's own search finds, best first."""


def search_words() -> dict[str, list[tuple[str, str]]]:
    path = DOCS / "_extension" / "search_words.py"
    spec: Any = importlib.util.spec_from_file_location("search_words", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.words()


def test_a_search_for_words_of_other_tools_is_never_empty(site, browser):
    page = browser.new_page()
    page.goto((site / "search.html").as_uri() + "?q=tree")
    page.locator(".search-summary", has_text="finished").wait_for()
    found = dict(zip(TRACKERS, page.evaluate(SEARCH, list(TRACKERS)), strict=True))
    assert len(found) >= 60
    assert [word for word, pages in found.items() if not pages] == []
    wanted = [(word, name) for name, words in search_words().items() for word, _ in words]
    results = page.evaluate(SEARCH, [word for word, _ in wanted])
    page.close()
    assert len(wanted) > 200
    far = [
        (*one, pages[:FIRST])
        for one, pages in zip(wanted, results, strict=True)
        if one[1] not in list(dict.fromkeys(pages))[:FIRST]
    ]
    assert far == []


def test_glossary_is_alphabetical_and_has_each_entry_once():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8").lower()
    terms = [row for row in re.findall(r"^\| ([^|]+) \|", text, re.M)[1:] if "---" not in row]
    assert len(terms) > 30
    assert terms == sorted(set(terms))


def test_words_of_the_search_are_sorted_and_lead_to_sections(site):
    path = DOCS / "_extension" / "search_words.toml"
    rows = [row.lower() for row in tomllib.loads(path.read_text(encoding="utf-8"))]
    assert rows == sorted(rows)
    single = [word for row in rows for word in row.split(", ")]
    assert sorted(single) == sorted(set(single))
    for name, linked in search_words().items():
        text = (site / f"{name}.html").read_text()
        assert [anchor for _, anchor in linked if anchor and f'id="{anchor}"' not in text] == []
