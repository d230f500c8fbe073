"""Questions of newcomers, in their words, are answered by the index or by one search."""

from __future__ import annotations

import html
import re

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
