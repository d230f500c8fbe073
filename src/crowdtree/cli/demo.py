"""The verb `demo`: from a table to audited labels, with a live campaign."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from crowdtree import io as files
from crowdtree.audit import Audit
from crowdtree.cli import render
from crowdtree.cli.campaign.database import import_server
from crowdtree.cli.options import AsJson, Folder, check_folder
from crowdtree.cli.render.progress import counting, job_words, progress
from crowdtree.core.text import amount, number, percent, percent_range, plural
from crowdtree.designs.designers import design
from crowdtree.designs.frontiers import Goal
from crowdtree.learning import learn
from crowdtree.planning import best_adaptive, plan
from crowdtree.show.output import load
from crowdtree.show.report import Example, write_report
from crowdtree.simulation import simulate

if TYPE_CHECKING:
    from crowdtree.planning import PlanChoices
    from crowdtree.show.report import LiveCampaign

EXAMPLE, SEVERAL, MIXED = "animals", "leaves", "triage"
LOSS = 0.2
ERROR, PRICE = 0.01, 0.02
ITEMS, KNOWN = 120, 20
PEOPLE, SPAMMERS = 25, 2
SIMULATED = 10_000
CHECKS = 50


class Demo:
    """The steps of the demo. Each prints the command that does it, and one or two lines."""

    def __init__(self, out: Path, quiet: bool) -> None:
        self.out, self.quiet = out, quiet
        self.console = render.console()
        self.problem = files.example(EXAMPLE)
        self.results: dict[str, Any] = {"out": str(out)}
        self.steps = 0
        self.truth: dict[str, str] = {}

    def run(self) -> None:
        """Plan, simulate, run a campaign, learn, audit and report."""
        choices = self.plan()
        self.simulate(choices)
        examples = [self.several(), self.mixed()]
        live = self.campaign(choices)
        notes = [("Learned from the answers", self.learn()), ("Audited", self.audit())]
        self.begin("Report", "report", self.path("plan.json"))
        live = replace(live, notes=notes)
        page = write_report(self.out / "report.html", choices, live=live, examples=examples)
        self.say(f"Open [bold]{page}[/] in a browser.")

    def begin(self, title: str, *words: object) -> None:
        """Print the number of a step, its title and its command."""
        self.steps += 1
        verb, file, *more = words
        if not self.quiet:
            self.console.print(f"[bold]{self.steps}. {title}[/]")
            line = render.command(str(verb), str(file), *more)
            self.console.print(f"$ {line}", style="dim", markup=False, soft_wrap=True)

    def say(self, *lines: str) -> None:
        """Print the result of a step."""
        if not self.quiet:
            for line in lines:
                self.console.print(line)
            self.console.print()

    def path(self, name: str) -> str:
        """Path of a file of the demo."""
        return str(self.out / name)

    def plan(self) -> PlanChoices:
        """Plan for an error."""
        goal = ("--error", ERROR, "--price", PRICE, "-o", self.path("plan.json"))
        self.begin("Plan: how to ask people", "plan", f"example:{EXAMPLE}", *goal)
        with progress(job_words) as watch:
            choices = plan(self.problem, error=ERROR, price=PRICE, progress=watch)
        choices.save(self.out / "plan.json")
        self.results["plan"] = choices.to_dict()
        self.say(
            f"{self.problem.n_classes} classes, {self.problem.n_questions} yes/no questions, at "
            f"most {percent(ERROR)} wrong labels, {PRICE} per answer.",
            f"[bold]{choices.headline}[/]",
            choices.reason,
        )
        return choices

    def simulate(self, choices: PlanChoices) -> None:
        """Try the plan on simulated items."""
        self.begin("Simulate: try it first", "simulate", self.path("plan.json"))
        run = simulate(self.problem, choices.policy, items=SIMULATED)
        self.results["simulation"] = run.to_dict()
        wrong = run.misclassification
        self.say(
            f"{SIMULATED:,} simulated items: {percent(wrong)} wrong "
            f"({percent_range(*wrong.interval)}) with {amount(run.answers_per_item, 'answer')} "
            "per item."
        )

    def several(self) -> Example:
        """Compare questions with several answers with a yes/no question about each answer."""
        problem, title = files.example(SEVERAL), "Several answers per question"
        self.begin(title, "plan", f"example:{SEVERAL}", "--error", ERROR)
        shown = []
        for name, table in (("several_answers", problem), ("yes_no", problem.as_yes_no())):
            found = best_adaptive(table, Goal(error=ERROR))
            assert found is not None
            self.results[name] = {"answers": float(found.answers), "error": float(found.error)}
            each = f"{amount(found.answers, 'answer')} per item"
            shown.append(f"{each} ({percent(found.error)} wrong)")
        most = problem.n_answers.max()
        words = (
            f"{problem.n_classes} classes, {problem.n_questions} questions with up to {most} "
            f"answers: {shown[0]}.",
            f"The same people, asked yes/no questions about every answer: {shown[1]}. Both are "
            "simulated.",
        )
        self.say(*words)
        return Example(title, " ".join(words), design(problem))

    def mixed(self) -> Example:
        """Find the cheapest mix of people, models and an expert."""
        problem, title = files.example(MIXED), "People, models and an expert"
        self.begin(title, "plan", f"example:{MIXED}", "--max-loss", LOSS)
        with progress(job_words) as watch:
            choices = plan(problem, max_loss=LOSS, time_limit=1, progress=watch)
        self.results["mixed"] = choices.to_dict()
        chosen, people = choices.mixes[0], choices.mixes[choices.mix_names.index("people only")]
        assert chosen.performance is not None
        assert people.performance is not None
        parts = ", ".join(f"{name} {number(cost)}" for name, cost in chosen.cost.items() if cost)
        words = (
            f"{problem.n_classes} kinds of e-mails, {plural(len(problem.sources), 'source')} whose "
            f"errors have causes in common, and an expert. Expected loss at most {LOSS}.",
            f"{number(chosen.performance.cost)} per item for answers with a mix "
            f"({parts}); {number(people.performance.cost)} with people only. Both are simulated.",
        )
        self.say(*words)
        return Example(title, " ".join(words), choices)

    def campaign(self, choices: PlanChoices) -> LiveCampaign:
        """Run the plan as a live campaign, with simulated workers."""
        rehearsal = import_server("crowdtree.cli.rehearsal.rehearsal")
        from crowdtree.cli.rehearsal.example import example_items

        rng = np.random.default_rng(0)
        items = example_items(self.problem, ITEMS, rng, KNOWN)
        crowd = rehearsal.people(PEOPLE, SPAMMERS, rng)
        self.truth = {item["task"]: item["class"] for item in items}
        self._write_known(items)
        database = self.out / "campaign.db"
        for old in self.out.glob("campaign.db*"):
            old.unlink()
        self.begin("Campaign: ask people, here simulated", "serve", "--database", database)
        with rehearsal.served(database) as owner, progress(counting("labels")) as watch:
            live: LiveCampaign = rehearsal.rehearse(
                owner, choices.policy, items, crowd, self.out, price=PRICE, rng=1, report=watch
            )
        self.results["campaign"] = live.to_dict()
        random, others = live.found_out
        self.say(
            f"{ITEMS} items and {PEOPLE} workers, {SPAMMERS} of whom answer at random; a server on "
            "this machine.",
            f"[bold]{percent(live.wrong)} wrong[/] ({percent_range(*live.wrong.interval)}; the "
            f"server estimates {percent(live.estimated_error)}) with "
            f"{amount(live.answers_per_item, 'answer')} per item, {number(live.cost or 0)} paid "
            "in all.",
            f"Paused: {random} of the {SPAMMERS} who answer at random, {others} of the others. "
            f"Labels: {self.path('labels.csv')}",
        )
        return live

    def _write_known(self, items: Sequence[dict[str, str]]) -> None:
        with (self.out / "known.csv").open("w", newline="", encoding="utf-8") as file:
            known = [(item["task"], item["gold"]) for item in items if "gold" in item]
            csv.writer(file).writerows([("task", "label"), *known])

    def learn(self) -> str:
        """Learn labels and workers from the answers."""
        answers, known = self.path("answers.csv"), self.path("known.csv")
        options = ("--gold", known, "--problem", f"example:{EXAMPLE}")
        self.begin("Learn: what the answers say by themselves", "learn", answers, *options)
        learned = learn(answers, known, problem=self.problem)
        worst = sorted(learned.workers, key=lambda name: learned.workers[name].skill)[:SPAMMERS]
        right, who = learned.accuracy, " and ".join(name.partition(" ")[2] for name in worst)
        self.results["learned"] = {"accuracy": right.value, "least_skilled": worst}
        words = (
            f"{percent(right.value)} of the labels are right (estimate, "
            f"{percent_range(right.low, right.high)}). The least skilled workers: {who}."
        )
        self.say(words)
        return words

    def audit(self) -> str:
        """Check some labels, and certify how many of all are wrong."""
        path, labels = self.path("audit.json"), self.path("labels.csv")
        self.begin("Audit: certify the labels", "audit show", path)
        audit = Audit(*load(labels), planned=CHECKS, seed=0)
        for item in audit.next(CHECKS):
            audit.record(item, self.truth[item])
        audit.save(path)
        self.results["audit"] = audit.to_dict()
        words = (
            f"An expert checks {plural(CHECKS, 'label')}, drawn at random, and finds "
            f"{audit.to_dict()['wrong']} wrong: at most {percent(audit.upper)} of all labels are "
            "wrong, with 95 % confidence, whatever the table and the workers did."
        )
        self.say(words)
        return words


def demo_verb(out: Folder = Path("out/demo"), as_json: AsJson = False) -> None:
    """Go from a table to audited labels, with a live campaign.

    Plans, simulates, runs a campaign, learns from its answers and audits its labels, and writes a
    report. The campaign runs over HTTP on this machine; only its workers are simulated.

    Example:

      crowdtree demo --out out/demo
    """
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    demo = Demo(out, as_json)
    demo.run()
    render.emit(as_json, demo.results, ())
