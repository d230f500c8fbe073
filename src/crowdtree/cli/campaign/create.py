"""The verb `campaign create`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from crowdtree.cli import inputs, render
from crowdtree.cli.campaign.database import HERE, Database, import_server, next_step, opened
from crowdtree.cli.options import (
    AllowGroups,
    AsJson,
    ExtraWorkers,
    File,
    Seed,
    flag,
    option,
    share_option,
    with_options,
)
from crowdtree.cli.policy import check_target, chosen_policy, refuse_unused
from crowdtree.cli.streams import STANDARD_INPUT
from crowdtree.core.errors import CrowdtreeError
from crowdtree.core.fixed_plan import Plan
from crowdtree.core.votes import Stopping
from crowdtree.policies.spec import PolicySpec, make_policy


@dataclass(frozen=True)
class PolicyOptions:
    """Options of the policy."""

    adaptive: Annotated[bool, flag("--adaptive", "Choose each question by the answers so far.")] = (
        False
    )
    target_error: Annotated[
        float, share_option("--target-error", help="Adaptive: stop at this error.")
    ] = 0.05
    target_loss: Annotated[
        float | None, option("Adaptive: stop at this expected loss instead.")
    ] = None
    max_answers: Annotated[int, option("Adaptive: maximum answers per item.")] = 50
    workers: ExtraWorkers = None
    answers: Annotated[float | None, option("Plan: expected answers per item.")] = None
    stopping: Annotated[Stopping, option("When a vote stops.")] = "curtailed"
    allow_groups: AllowGroups = False
    seed: Seed = 0

    def spec(self) -> PolicySpec:
        """The policy that the options describe."""
        return PolicySpec(
            "adaptive" if self.adaptive else "plan",
            self.stopping,
            allow_groups=self.allow_groups,
            workers=self.workers,
            answers=self.answers,
            target_error=self.target_error,
            target_loss=self.target_loss,
            max_answers=self.max_answers,
            seed=self.seed,
        )


@with_options
def create_verb(
    file: File,
    *,
    name: Annotated[str, option("Name of the campaign.")] = "",
    who: Annotated[
        str, option("Who will answer: colleagues, open, platform or models.", "WHO")
    ] = "open",
    setting: Annotated[
        list[str] | None,
        option("A setting, such as checks.gold_rate=0.1; may be repeated.", "NAME=VALUE", "--set"),
    ] = None,
    options: PolicyOptions,
    database: Database = HERE,
    as_json: AsJson = False,
) -> None:
    """Create a campaign from a problem or a plan.

    FILE is ideally what crowdtree plan -o writes, which holds the policy.

    Examples:

      crowdtree campaign create plan.json --name Birds

      crowdtree campaign create example:animals --workers 20 --name Birds

      crowdtree campaign create plan.json --who colleagues

      crowdtree campaign create plan.json --set money.price=0.05 --set money.budget=100
    """
    presets = import_server("crowdtree.server.settings.presets")
    campaigns = import_server("crowdtree.server.store.owner.campaigns")
    policy = _policy(file, options)
    policy.problem.require_yes_no("campaign")  # before a database is made
    settings = presets.settings_for(who).changed(_settings(setting or []))
    with opened(database, new=True) as store:
        number = store.write(
            lambda c: campaigns.create(c, name or _named(file), policy, settings, store.clock())
        )

    def show(console: Any) -> None:
        console.print(f"[bold]Campaign {number} is created.[/]")
        if settings.finish.max_wrong_labels is not None:
            kind = {"none": "plan"}.get(options.stopping, options.stopping)
            words = ["--policy", "adaptive", "--adapt"] if options.adaptive else ["--policy", kind]
            told = render.command(
                "simulate", file, *words, "--certify", settings.finish.max_wrong_labels
            )
            console.print(f"[dim]How many checks that takes: {told}[/]")

    then = next_step(database, "campaign", "items", number, "items.csv")
    render.emit(as_json, {"campaign": number}, show, then=then)


def _policy(file: str, options: PolicyOptions) -> Any:
    """The policy that `plan` chose, or the one that the options describe."""
    chosen = chosen_policy(file, options)
    if chosen is not None:
        return chosen
    plan = inputs.read_plan(file)
    source = inputs.read_problem(file) if plan is None else plan
    fix = "leave out --adaptive" if options.adaptive else "add --adaptive"
    refuse_unused(options, options.adaptive, fix, plan is not None)
    if options.adaptive:
        check_target(
            source.tree.problem if isinstance(source, Plan) else source, options.target_error
        )
    return make_policy(source, options.spec())


def _named(file: str) -> str:
    """The name of a campaign without one: that of its file, without folder and extension."""
    return "Standard input" if file == STANDARD_INPUT else Path(file).stem


def _settings(pairs: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise CrowdtreeError(f"--set: expected NAME=VALUE, got {pair}")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found
