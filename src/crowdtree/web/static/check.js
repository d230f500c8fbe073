// The auditor's page: one item, its class, the next item.

import { Refusal, send } from "./api.js";
import { draw, spoken } from "./item.js";

const WAIT = 10000; // milliseconds until an item that somebody else holds may be free
const ENDS = {
  done: ["Thank you!", "There is nothing left to check."],
  waiting: ["Please wait", "Other people hold the items that are left. This page continues automatically."],
  "asking again": ["Please wait", "People are being asked again about some items. This page continues automatically."],
  "not started": ["Not started yet", "There is nothing to check at the moment. This page continues automatically."],
};

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
  find("count").textContent = `${found.checked} checked`;
  if (!found.item) {
    between(...(ENDS[found.reason] ?? ENDS.done));
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
    banner("No connection. Trying again.");
    setTimeout(again, 3000);
  } else if (error.status === 401 || error.status === 403) {
    between("This link does not work", error.message);
  } else {
    banner(error.message);
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
next();
