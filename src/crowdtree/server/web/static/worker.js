// The worker's page: show a question, send the answer, prefetch the next question.

import { Refusal, newKey, send } from "./api.js";
import { draw, prefetch, spoken } from "./item.js";
import { Outbox } from "./outbox.js";
import { Training, introduce } from "./preparing.js";
import { ending, summarise } from "./summary.js";
import { asked, own, refused, say } from "./texts.js";

const HOLD = 5000; // milliseconds before the last answer is sent, while it can be undone
const BRIEF = 1500; // the same where there is no other question to show meanwhile
const GUARD = 200; // a second click of a double click must not answer the next question
const WAIT = 20;
const AHEAD = 2;
const LOOK = 8000; // milliseconds between looks whether the work was paused, and what was earned
const PAUSES = { paused: "paused", budget: "budget", "worker paused": "worker" };
const SCREENS = ["task", "between", "intro", "consent", "declined"];

const body = document.body;
const find = (id) => document.getElementById(id);
const tasks = []; // the first one is on the screen
let shownAt = 0;
let standing = JSON.parse(body.dataset.state); // as the server knows it
let given = standing.answers;
let started = false; // consent and instructions are done
let asking = null; // the request for the next question that is on its way
let holdTimer = null;
let askTimer = null;
let over = false;
let paused = ""; // why the work is paused, as far as the page knows
let told = false; // the page says why there is no question, so that a request may wait for one

const outbox = new Outbox(`crowdtree-${body.dataset.campaign}-${body.dataset.worker}`, heard);
const training = new Training(put, trained, untaught);

// ---------------------------------------------------------------- showing

function screen(name) {
  for (const id of SCREENS) find(id).hidden = id !== name;
}

function show() {
  const task = tasks[0];
  if (!task) {
    between(say("wait.title"), say("wait.next"));
    return;
  }
  over = false;
  put(task);
  tasks.slice(1).forEach((next) => prefetch(next.item));
}

// Put an item and a question on the screen.
function put(task) {
  const text = asked(task.question);
  screen("task");
  find("question").textContent = text;
  draw(find("item"), task.item);
  find("item").setAttribute("aria-label", say("item.name"));
  find("examples").hidden = true;
  for (const part of document.querySelectorAll(".example")) {
    part.hidden = part.dataset.question !== task.question.name;
    if (!part.hidden) find("examples").hidden = false;
  }
  find("voice").textContent = `${spoken(task.item)}. ${text}`;
  shownAt = performance.now();
}

function between(title, text) {
  if (!started) return;
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
  between(own("thanks", thanks) || say(given ? "end.thanks" : "end.finished"), ending(found, given));
  if (code) {
    find("code").hidden = false;
    find("code").querySelector("code").textContent = code;
  }
  if (back) {
    find("back").hidden = false;
    find("back").querySelector("a").href = back;
  }
  find("voice").textContent = `${find("between-title").textContent} ${complete && code ? `${say("end.code")} ${code}` : find("between-text").textContent}`;
  look();
}

function count() {
  const last = outbox.pending;
  find("undo").disabled = !last;
  find("between-undo").hidden = !last;
  find("last").textContent = last
    ? say("undo.what", { answer: say(`answer.${last.answer}`), question: `\u2068${asked(last.task.question)}\u2069` })
    : say("undo.nothing");
  summarise(standing, given);
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
      if (tasks.length > 1) {
        prefetch(found.task.item);
      } else {
        show();
        submitLater();
      }
    }
    return have ? 1000 : 0;
  }
  if (!tasks.length && outbox.pending) return null; // what comes next may depend on that answer
  if (outbox.entries.length && (!tasks.length || found.reason === "holding")) {
    outbox.send();
    return 300;
  }
  if (found.reason === "consent") {
    location.reload(); // the text has changed
    return null;
  }
  if (found.reason === "training") {
    training.next();
    return null;
  }
  if (tasks.length) return found.reason === "wait" ? 500 : null; // asked again after the answer
  if (found.end) {
    end(found);
    return null;
  }
  pause(found.reason);
  return found.reason in { wait: 1, holding: 1, paused: 1 } ? 200 : 15000;
}

function pause(reason) {
  const name = PAUSES[reason] ?? "wait";
  between(say(`pause.${name}.title`), say(`pause.${name}.text`));
}

// See how the worker stands: nobody should answer once more to learn that the work is paused.
async function look() {
  if (!started || document.visibilityState !== "visible") return;
  try {
    standing = await send("/api/worker/state", null, { method: "GET" });
  } catch (error) {
    if (error instanceof Refusal && error.status < 500) failed(error);
    return;
  }
  summarise(standing, given);
  const reason = standing.worker !== "active" ? "worker paused" : standing.campaign === "paused" ? "paused" : "";
  if (!reason || over) {
    if (!over && paused) ask();
    paused = "";
    return;
  }
  if (reason === paused) return;
  paused = reason;
  told = true;
  giveBack();
  tasks.length = 0;
  pause(reason);
  find("voice").textContent = `${find("between-title").textContent} ${find("between-text").textContent}`;
  submit();
}

function failed(error) {
  if (error instanceof Refusal && (error.status === 401 || error.status === 403)) {
    between(say(error.code === "blocked" ? "title.other" : "title.link"), refused(error));
    over = true;
    tasks.length = 0;
    return null;
  }
  lost(error);
  return 3000;
}

// ---------------------------------------------------------------- answering

function answer(value) {
  if (find("task").hidden || performance.now() - shownAt < GUARD) return;
  mark(value);
  if (training.on) training.answer(value);
  else if (value === "skip") give(value, "/api/worker/skip", {});
  else give(value, "/api/worker/answer", { answer: value });
}

// Hold back what was said about the question on the screen, and show the next one.
function give(value, path, more) {
  const task = tasks.shift();
  if (!task) return false;
  const key = newKey();
  const entry = { key, lease: task.lease, path, body: { lease: task.lease, key, ...more } };
  outbox.hold(entry, { answer: value, task }).then(ask);
  given += value !== "skip";
  show();
  count();
  if (outbox.offline) lost();
  submitLater();
  return true;
}

// Send the last answer, and see what there is to do after it.
function submit() {
  clearTimeout(holdTimer);
  return outbox.flush().then(ask);
}

function submitLater() {
  clearTimeout(holdTimer);
  if (outbox.pending) holdTimer = setTimeout(submit, tasks.length ? HOLD : BRIEF);
}

function mark(value) {
  const button = document.querySelector(`[data-answer="${value}"]`);
  button.classList.add("pressed");
  setTimeout(() => button.classList.remove("pressed"), 180);
}

// Show the last question again, as long as its answer has not been sent.
function undo() {
  const back = outbox.discard();
  if (!back) return;
  clearTimeout(holdTimer);
  given -= back.answer !== "skip";
  tasks.unshift(back.task);
  show();
  shownAt = 0;
  count();
  find("voice").textContent = `${say("undo.done")} ${find("voice").textContent}`;
}

// ---------------------------------------------------------------- connection

function heard(what, detail) {
  if (what === "offline") lost(detail);
  if (what === "login") failed(detail);
  if (what === "released") count();
  if (what === "refused") banner(refused(detail), "", 6000);
  if (what !== "sent") return;
  if (detail.back) {
    online();
    ask();
  }
}

// The connection is lost, or the server says that it cannot save now; both are tried again.
function lost(error) {
  const refusal = error instanceof Refusal && error.status >= 500;
  const words = [say(refusal ? "offline.server" : "offline")];
  if (outbox.unsent.length) words.push(say("offline.kept", { count: outbox.unsent.length }));
  banner(words.join(" "), "bad");
  find("banner").dataset.lost = "1";
  if (!tasks.length && !over) between(say("offline.title"), say("offline.stay"));
}

function online() {
  delete find("banner").dataset.lost;
  banner(say("online"), "good", 3000);
}

// ---------------------------------------------------------------- before the first question

function trained(finished) {
  if (finished) banner(say("training.done"), "good", 8000);
  between(say("wait.title"), say("wait.first"));
  ask();
}

function untaught(error, again) {
  if (error instanceof Refusal && error.status < 500) {
    if (error.code === "consent") location.reload();
    else failed(error);
    return;
  }
  banner(say("offline.again"), "bad", 3000);
  setTimeout(again, 3000);
}

// `late`: answers of an earlier page have just been sent, which the page does not count yet.
async function start(late) {
  started = true;
  between(say("wait.title"), say("wait.first"));
  if (late) {
    await look();
    given = standing.answers;
    count();
  }
  if (tasks.length) show();
  ask();
}

// ---------------------------------------------------------------- keys and buttons

const KEYS = Object.fromEntries(["yes", "no", "skip", "undo"].map((name) => [say(`key.${name}`).toLowerCase(), name]));

function keysOn() {
  return find("keys").checked;
}

document.addEventListener("keydown", (event) => {
  if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !keysOn()) return;
  if (document.querySelector("dialog[open]") || event.target.closest("input, textarea, select")) return;
  const key = event.key > "\u024f" ? event.code.replace("Key", "") : event.key; // not a Latin layout
  const value = KEYS[key.toLowerCase()];
  if (value === "undo") undo();
  else if (value) answer(value);
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
  navigator.clipboard?.writeText(text).then(() => { find("copy").textContent = say("end.copied"); });
});
find("keys").checked = localStorage.getItem("crowdtree-keys") !== "off";
find("keys").addEventListener("change", () => localStorage.setItem("crowdtree-keys", keysOn() ? "on" : "off"));
find("lang").addEventListener("change", () => find("lang").form.submit());
find("report").addEventListener("click", () => find("report-sheet").showModal());
find("report-cancel").addEventListener("click", () => find("report-sheet").close());
find("report-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const { reason, words } = Object.fromEntries(new FormData(event.target));
  event.target.reset();
  find("report-sheet").close();
  const sent = give("skip", "/api/worker/report", { reason, words: words.trim() });
  if (sent) banner(say("report.sent"), "good", 4000);
});
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") look();
  else if (outbox.pending) submit();
});
addEventListener("focus", look);
setInterval(look, LOOK);

// Give back the questions that will not be answered, so that others get them at once.
function giveBack() {
  const leases = tasks.map((task) => task.lease).filter((lease) => !outbox.leases.includes(lease));
  if (leases.length) send("/api/worker/release", { leases }, { keepalive: true }).catch(() => {});
}
addEventListener("pagehide", () => {
  outbox.leave();
  giveBack();
});
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

// ---------------------------------------------------------------- begin

count();
introduce(screen, {
  begun: () => given || localStorage.getItem(`${outbox.name}-begun`),
  begin: () => localStorage.setItem(`${outbox.name}-begun`, "1"),
  failed: (error) => (error instanceof Refusal ? refused(error) : say("offline")),
}, () => { // nobody who still reads the instructions holds a question
  const late = outbox.entries.length > 0;
  outbox.flush().then(() => start(late));
});
