// The worker's page: show a question, send the answer, prefetch the next question.

import { Refusal, newKey, send } from "./api.js";
import { draw, prefetch, spoken } from "./item.js";
import { Outbox } from "./outbox.js";

const HOLD = 4000; // milliseconds before the last answer is sent, while it can be undone here
const GUARD = 200; // a second click of a double click must not answer the next question
const WAIT = 20;
const AHEAD = 2;
const WORDS = { yes: "Yes", no: "No", skip: "Can’t tell" };
const PAUSES = {
  wait: ["No work right now", "Other people have the questions, or have to answer first. There may be more soon: this page continues automatically."],
  paused: ["Not open now", "The work is paused or has not started yet. This page continues automatically."],
  budget: ["No work right now", "All the answers that can be paid for now have been given. If there is more, this page continues automatically."],
  "worker paused": ["Your work is paused", "You get no questions at the moment. Please ask the person who sent you the link."],
};

const ENDED = "There is no more work for you here."; // unlike the pauses above

const body = document.body;
const find = (id) => document.getElementById(id);
const tasks = []; // the first one is on the screen
let last = null; // the last answer, as long as it can be undone
let shownAt = 0;
let given = Number(body.dataset.answers);
let asking = null; // the request for the next question that is on its way
let holdTimer = null;
let askTimer = null;
let over = false;
let told = false; // the page says why there is no question, so that a request may wait for one

const outbox = new Outbox(`crowdtree-${body.dataset.campaign}-${body.dataset.worker}`, heard);

// ---------------------------------------------------------------- showing

function screen(name) {
  for (const id of ["task", "between", "intro"]) find(id).hidden = id !== name;
}

function show() {
  const task = tasks[0];
  if (!task) {
    between("One moment", "Loading the next question.");
    return;
  }
  over = false;
  screen("task");
  find("question").textContent = task.question.text;
  draw(find("item"), task.item);
  find("item").setAttribute("aria-label", "Item");
  find("examples").hidden = true;
  for (const part of document.querySelectorAll(".example")) {
    part.hidden = part.dataset.question !== task.question.name;
    if (!part.hidden) find("examples").hidden = false;
  }
  find("voice").textContent = `${spoken(task.item)}. ${task.question.text}`;
  shownAt = performance.now();
  tasks.slice(1).forEach((next) => prefetch(next.item));
}

function between(title, text) {
  if (!find("intro").hidden) return;
  const focused = !find("task").hidden && find("task").contains(document.activeElement);
  screen("between");
  find("between-title").textContent = title;
  find("between-text").textContent = text;
  find("code").hidden = find("back").hidden = true;
  if (focused) {
    find("between-title").tabIndex = -1;
    find("between-title").focus();
  }
}

function end(found) {
  over = true;
  const { thanks, completion_code: code, return_url: back, complete } = found.end;
  between(thanks || (given ? "Thank you!" : "The work is finished"), ending(found));
  if (code) {
    find("code").hidden = false;
    find("code").querySelector("code").textContent = code;
  }
  if (back) {
    find("back").hidden = false;
    find("back").querySelector("a").href = back;
  }
  find("voice").textContent = `${find("between-title").textContent} ${complete && code ? `Your completion code is ${code}.` : find("between-text").textContent}`;
}

// What was done, whether there is more, and what is missing for the code.
function ending(found) {
  const counted = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  const { complete, accepted, least_answers: least } = found.end;
  const said = [];
  if (found.reason === "all answered") said.push("You have answered everything that you may answer here.");
  if (given) said.push(`You gave ${counted(given, "answer")}. All of them are saved.`);
  said.push(ENDED);
  if (!complete && body.dataset.code) {
    said.push(`A completion code is given after ${counted(least, "accepted answer")}; you have ${accepted}. If you came from a paid platform, return your submission there.`);
  }
  return said.join(" ");
}

function count() {
  const most = body.dataset.most;
  find("count").textContent = most ? `${given} of ${most}` : `${given} answered`;
  const undoable = last !== null;
  find("undo").disabled = !undoable;
  find("between-undo").hidden = !undoable;
  find("last").textContent = undoable ? `${WORDS[last.answer]}: ${last.task.question.text}` : "Nothing to undo yet";
}

let bannerTimer = null;
function banner(text, kind = "", milliseconds = 0) {
  clearTimeout(bannerTimer);
  const place = find("banner");
  place.hidden = !text;
  place.textContent = text;
  place.className = `banner ${kind}`;
  if (milliseconds) bannerTimer = setTimeout(() => banner(""), milliseconds);
}

// ---------------------------------------------------------------- asking

// Keep the next questions coming. A request waits at the server until there is one; an answer
// starts it anew. A question that was handed out meanwhile comes again, because the server knows
// which ones we say we hold.
function ask() {
  clearTimeout(askTimer);
  asking?.abort();
  asking = null;
  if (over || tasks.length >= AHEAD) return;
  const mine = new AbortController();
  asking = mine;
  request(mine).then((pause) => {
    if (asking !== mine) return;
    asking = null;
    if (pause !== null) askTimer = setTimeout(ask, pause);
  });
}

async function request(mine) {
  const holding = [...tasks.map((task) => task.lease), ...outbox.leases];
  const options = { seconds: WAIT + 10, signal: mine.signal };
  try {
    const found = await send("/work/next", { holding, wait: told || tasks.length ? WAIT : 0 }, options);
    if (asking !== mine) return null;
    if (find("banner").dataset.lost && !outbox.entries.length) online();
    return arrived(found);
  } catch (error) {
    return asking === mine ? failed(error) : null;
  }
}

// Handle a response; returns the milliseconds until the next request, or null for none.
function arrived(found) {
  told = !found.task;
  if (found.task) {
    const have = tasks.some((task) => task.lease === found.task.lease) || outbox.leases.includes(found.task.lease);
    if (!have) {
      tasks.push(found.task);
      if (tasks.length === 1 && find("intro").hidden) show();
      else prefetch(found.task.item);
    }
    return have ? 1000 : 0;
  }
  if (outbox.entries.length && (!tasks.length || found.reason === "holding")) {
    outbox.flush();
    return 300;
  }
  if (tasks.length) return found.reason === "wait" ? 500 : null; // asked again after the answer
  if (found.end) {
    end(found);
    return null;
  }
  const [title, text] = PAUSES[found.reason] ?? PAUSES.wait;
  between(title, text);
  return found.reason in { wait: 1, holding: 1, paused: 1 } ? 200 : 15000;
}

function failed(error) {
  if (error instanceof Refusal && (error.status === 401 || error.status === 403)) {
    between("This link no longer works", error.message);
    over = true;
    return null;
  }
  lost(error);
  return 3000;
}

// ---------------------------------------------------------------- answering

function answer(value) {
  const task = tasks[0];
  if (!task || find("task").hidden || performance.now() - shownAt < GUARD) return;
  tasks.shift();
  clearTimeout(holdTimer);
  const key = newKey();
  const skip = value === "skip";
  outbox.add({
    key,
    lease: task.lease,
    path: skip ? "/api/worker/skip" : "/api/worker/answer",
    body: skip ? { lease: task.lease, key } : { lease: task.lease, key, answer: value },
  });
  last = { key, answer: value, task };
  given += !skip;
  mark(value);
  show();
  count();
  if (outbox.offline) lost();
  if (tasks.length) {
    outbox.flush(1).then(ask);
    holdTimer = setTimeout(() => outbox.flush(), HOLD);
  } else {
    outbox.flush().then(ask);
  }
}

function mark(value) {
  const button = document.querySelector(`[data-answer="${value}"]`);
  button.classList.add("pressed");
  setTimeout(() => button.classList.remove("pressed"), 180);
}

async function undo() {
  const back = last;
  if (!back) return;
  last = null;
  clearTimeout(holdTimer);
  count();
  if (outbox.take(back.key)) {
    restored(back.task, back.answer);
    return;
  }
  try {
    if (outbox.sending) await outbox.sending;
    if (outbox.take(back.key)) {
      restored(back.task, back.answer);
      return;
    }
    const found = await send("/work/undo", { key: newKey() });
    restored(found.task, back.answer);
  } catch (error) {
    const words = error instanceof Refusal ? error.message : "No connection: this answer cannot be undone now.";
    banner(words, "bad", 6000);
  }
}

function restored(task, value) {
  given -= value !== "skip";
  tasks.unshift(task);
  show();
  shownAt = 0;
  count();
  find("voice").textContent = `Undone. ${find("voice").textContent}`;
}

// ---------------------------------------------------------------- connection

function heard(what, detail) {
  if (what === "offline") lost(detail);
  if (what === "login") failed(detail);
  if (what === "refused" && detail.code !== "answered") banner(detail.message, "", 6000);
  if (what !== "sent") return;
  if (detail.back) {
    online();
    ask();
  }
}

// The connection is lost, or the server says that it cannot save now; both are tried again.
function lost(error) {
  const words = error instanceof Refusal && error.status >= 500 ? "The server cannot save answers now." : "No connection.";
  const waiting = outbox.entries.length;
  const kept = waiting ? ` ${waiting} ${waiting === 1 ? "answer is" : "answers are"} kept here and will be sent automatically.` : "";
  banner(`${words}${kept}`, "bad");
  find("banner").dataset.lost = "1";
  if (!tasks.length && !over) between(words.slice(0, -1), "Leave this page open: it continues automatically.");
}

function online() {
  delete find("banner").dataset.lost;
  banner("Connected again. All answers are saved.", "good", 3000);
}

// ---------------------------------------------------------------- keys and buttons

function keysOn() {
  return find("keys").checked;
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !keysOn()) return;
  if (document.querySelector("dialog[open]") || event.target.closest("input, textarea, select")) return;
  const value = { y: "yes", n: "no", s: "skip" }[event.key.toLowerCase()];
  if (value) answer(value);
  else if (event.key.toLowerCase() === "u") undo();
  else return;
  event.preventDefault();
});
for (const button of document.querySelectorAll("[data-answer]")) {
  button.addEventListener("click", () => answer(button.dataset.answer));
}
find("undo").addEventListener("click", undo);
find("between-undo").querySelector("button").addEventListener("click", undo);
find("examples").addEventListener("click", () => {
  find("sheet").showModal();
  document.querySelector(".example:not([hidden])")?.scrollIntoView();
});
find("help").addEventListener("click", () => find("sheet").showModal());
find("copy").addEventListener("click", () => {
  const text = find("code").querySelector("code").textContent;
  navigator.clipboard?.writeText(text).then(() => { find("copy").textContent = "Copied"; });
});
find("keys").checked = localStorage.getItem("crowdtree-keys") !== "off";
find("keys").addEventListener("change", () => localStorage.setItem("crowdtree-keys", keysOn() ? "on" : "off"));
find("begin").addEventListener("click", () => {
  find("intro").hidden = true;
  localStorage.setItem(`${outbox.name}-begun`, "1");
  show();
  ask(); // nobody who still reads the instructions holds a question
});
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "hidden") outbox.flush();
});
addEventListener("pagehide", () => {
  outbox.leave();
  const leases = tasks.map((task) => task.lease).filter((lease) => !outbox.leases.includes(lease));
  if (leases.length) send("/api/worker/release", { leases }, { keepalive: true }).catch(() => {});
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// ---------------------------------------------------------------- begin

if (given || localStorage.getItem(`${outbox.name}-begun`)) find("intro").hidden = true;
find("between").hidden = !find("intro").hidden;
count();
outbox.flush().then(() => { if (find("intro").hidden) ask(); });
