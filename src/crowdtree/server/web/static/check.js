// The auditor's page: one item, its class, the next item.

import { Refusal, send } from "./api.js";
import { draw, spoken } from "./item.js";
import { refused, say } from "./texts.js";

const WAIT = 10000; // milliseconds until an item that somebody else holds may be free
const ENDS = { done: "done", waiting: "waiting", "asking again": "asking", "not started": "not_started" };

const find = (id) => document.getElementById(id);
const form = find("form");
let number = null; // the item on the screen

function screen(name) {
  for (const id of ["task", "between"]) find(id).hidden = id !== name;
}

function between(title, text) {
  screen("between");
  find("between-title").textContent = title;
  find("between-text").textContent = text;
  find("between-title").focus();
}

function banner(text) {
  find("banner").hidden = !text;
  find("banner").textContent = text;
}

async function next() {
  number = null;
  try {
    show(await send("/check/next"));
  } catch (error) {
    failed(error, next);
  }
}

function show(found) {
  banner("");
  find("count").textContent = say("check.count", { count: found.checked });
  if (!found.item) {
    const end = ENDS[found.reason] ?? ENDS.done;
    between(say(`check.${end}.title`), say(`check.${end}.text`));
    if (found.reason !== "done") setTimeout(next, WAIT);
    return;
  }
  number = found.number;
  form.reset();
  find("record").disabled = true;
  screen("task");
  draw(find("item"), found.item);
  find("voice").textContent = spoken(found.item);
  form.querySelector("input").focus({ preventScroll: true });
}

function failed(error, again) {
  if (!(error instanceof Refusal)) {
    banner(say("offline.again"));
    setTimeout(again, 3000);
  } else if (error.status === 401 || error.status === 403) {
    between(say("title.link"), refused(error));
  } else {
    banner(refused(error));
    if (error.status !== 422) setTimeout(next, 2500);
  }
}

async function record() {
  const chosen = form.querySelector("input:checked");
  if (number === null || !chosen) return;
  const body = { item: number, truth: "unsure" in chosen.dataset ? null : chosen.value };
  find("record").disabled = true;
  try {
    await send("/api/auditor/record", body);
    next();
  } catch (error) {
    failed(error, record); // sent again, the same result changes nothing
  }
}

form.addEventListener("change", () => { find("record").disabled = number === null; });
form.addEventListener("submit", (event) => {
  event.preventDefault();
  record();
});
document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || find("task").hidden) return;
  if (document.querySelector("dialog[open]") || !/^[0-9]$/.test(event.key)) return;
  const all = [...form.querySelectorAll("input")];
  const chosen = event.key === "0" ? all.at(-1) : all.slice(0, -1)[Number(event.key) - 1];
  if (!chosen) return;
  chosen.checked = true;
  chosen.focus();
  form.dispatchEvent(new Event("change"));
});
find("lang").addEventListener("change", () => find("lang").form.submit());
next();
