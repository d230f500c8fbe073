// What comes before the first question: consent, instructions, and training with feedback.

import { send } from "./api.js";
import { asked, own, say } from "./texts.js";

const find = (id) => document.getElementById(id);
const mark = document.body.dataset.consent;

function put(id, text) {
  find(id).textContent = text;
  find(id).hidden = !text;
}

// Show the consent and then the instructions, where there are any; `then` goes on.
export function introduce(screen, { begun, begin, failed }, then) {
  const instructions = () => {
    if (begun() || !find("intro").dataset.needed) then();
    else screen("intro");
  };
  find("begin").addEventListener("click", () => {
    begin();
    then();
  });
  find("agree").addEventListener("click", async () => {
    find("agree").disabled = true;
    try {
      await send("/api/worker/consent", { mark });
      instructions();
    } catch (error) {
      find("consent-problem").textContent = failed(error);
    }
    find("agree").disabled = false;
  });
  find("decline").addEventListener("click", () => screen("declined"));
  find("consent-again").addEventListener("click", () => screen("consent"));
  if (mark) screen("consent");
  else instructions();
}

// The training: the same page as the work, with the right answer after each item.
export class Training {
  constructor(show, over, failed) {
    this.show = show; // shows an item and a question
    this.over = over; // called when the training is finished
    this.failed = failed;
    this.task = null;
    this.waiting = false;
    find("continue").addEventListener("click", () => this.next());
  }

  get on() {
    return this.task !== null;
  }

  async next() {
    let found;
    try {
      found = await send("/work/training", null, { method: "GET" });
    } catch (error) {
      this.failed(error, () => this.next());
      return;
    }
    const finished = this.on && !found.task;
    this.task = found.task;
    for (const part of document.querySelectorAll("[data-work]")) part.hidden = this.on;
    find("practice").hidden = !this.on;
    this.ask(true);
    if (!this.on) {
      this.over(finished);
      return;
    }
    find("practice-title").textContent = say("training.title", { number: found.task.number, total: found.total });
    this.show(found.task);
  }

  // Show the buttons, or the feedback.
  ask(open) {
    find("answers").hidden = !open;
    find("feedback").hidden = open;
  }

  async answer(value) {
    if (this.waiting || find("answers").hidden) return;
    this.waiting = true;
    try {
      this.tell(await send("/api/worker/training", { number: this.task.number, answer: value }));
    } catch (error) {
      this.failed(error, () => {});
    }
    this.waiting = false;
  }

  tell(found) {
    const verdict = found.correct === null ? "training.skipped" : found.correct ? "training.right" : "training.wrong";
    find("feedback-verdict").textContent = say(verdict);
    find("feedback-verdict").className = found.correct ? "good" : "bad";
    find("feedback-answer").textContent = say("training.answer", { answer: say(`answer.${found.right}`) });
    put("feedback-class", own(`class:${found.truth}`, ""));
    put("feedback-why", found.of_class ? own(`explanation:${found.truth}`, found.explanation) : found.explanation);
    this.ask(false);
    find("voice").textContent = `${asked(this.task.question)} ${find("feedback").innerText}`;
    find("continue").focus();
  }
}
