// The dashboard: numbers are updated in place by server-sent events.

import { refresh } from "./owner.js";

const FIRST_PAUSE = 1000;
const LONGEST_PAUSE = 15000;
const root = document.querySelector("[data-events]");
const seen = new Map();
let lastBeat = Date.now();

function values(found) {
  for (const place of document.querySelectorAll("[data-live]")) {
    const text = found.values[place.dataset.live];
    if (text !== undefined && place.textContent !== text) place.textContent = text;
  }
  const status = document.querySelector('[data-live="status"]');
  if (status) status.className = `status ${found.status}`;
  const lead = document.getElementById("lead");
  if (lead) lead.className = `lead ${found.mood}`;
}

function shares(found) {
  for (const rect of document.querySelectorAll("[data-share]")) {
    const before = (rect.dataset.after ?? "").split(" ").filter(Boolean);
    rect.setAttribute("x", `${before.reduce((sum, name) => sum + found.shares[name], 0)}%`);
    rect.setAttribute("width", `${found.shares[rect.dataset.share]}%`);
  }
}

// Do not replace a part that has the focus.
function parts(found) {
  for (const place of document.querySelectorAll("[data-part]")) {
    const html = found.parts[place.dataset.part];
    if (html === undefined || html === seen.get(place) || place.contains(document.activeElement)) continue;
    seen.set(place, html);
    place.innerHTML = html;
  }
}

function flow(found) {
  if (!found.flow) return;
  for (const place of document.querySelectorAll("[data-flow]")) {
    const text = found.flow.text[place.dataset.flow];
    if (text !== undefined && place.textContent !== text) place.textContent = text;
  }
  for (const edge of document.querySelectorAll("[data-edge]")) {
    edge.setAttribute("stroke-width", found.flow.thick[edge.dataset.edge]);
  }
}

function stale(yes) {
  const place = document.getElementById("stale");
  if (place) place.hidden = !yes;
}

// A page with a list fetches that list again, at a limited rate.
let fetched = Date.now();
function list() {
  const part = root.dataset.refresh;
  if (!part || Date.now() - fetched < 3000) return;
  fetched = Date.now();
  refresh(part);
}

function picture(event) {
  const found = JSON.parse(event.data);
  lastBeat = Date.now();
  stale(false);
  values(found);
  shares(found);
  parts(found);
  flow(found);
  list();
}

// The browser connects again after a loss, but gives up when something between answers with an
// error (a proxy, while the server starts again): then we try. The server begins with the whole
// picture, so nothing is missed.
let source = null;
let pause = FIRST_PAUSE;
function listen() {
  source?.close();
  const mine = new EventSource(root.dataset.events);
  source = mine;
  mine.addEventListener("picture", (event) => { pause = FIRST_PAUSE; picture(event); });
  mine.addEventListener("error", () => {
    setTimeout(() => stale(Date.now() - lastBeat > 3000), 3500);
    if (mine !== source || mine.readyState !== EventSource.CLOSED) return;
    setTimeout(() => { if (mine === source) listen(); }, pause);
    pause = Math.min(2 * pause, LONGEST_PAUSE);
  });
}

if (root) {
  listen();
  document.addEventListener("changed", listen);
  setInterval(() => {
    if (Date.now() - lastBeat > 15000) stale(true);
    if (Date.now() - lastBeat > 30000) { lastBeat = Date.now() - 16000; listen(); } // silent: begin anew
  }, 5000);
}
