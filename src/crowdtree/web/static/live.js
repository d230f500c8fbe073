// The dashboard: numbers change in place as the server tells them.

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
  document.getElementById("lead").className = `lead ${found.mood}`;
}

function shares(found) {
  for (const rect of document.querySelectorAll("[data-share]")) {
    const before = (rect.dataset.after ?? "").split(" ").filter(Boolean);
    rect.setAttribute("x", `${before.reduce((sum, name) => sum + found.shares[name], 0)}%`);
    rect.setAttribute("width", `${found.shares[rect.dataset.share]}%`);
  }
}

// A part that has the focus is left alone until it is left, so that nobody loses their place.
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
  document.getElementById("stale").hidden = !yes;
}

function picture(event) {
  const found = JSON.parse(event.data);
  lastBeat = Date.now();
  stale(false);
  values(found);
  shares(found);
  parts(found);
  flow(found);
}

// The browser connects again by itself after a loss; the server begins with the whole picture.
function listen() {
  const source = new EventSource(root.dataset.events);
  source.addEventListener("picture", picture);
  source.addEventListener("error", () => setTimeout(() => stale(Date.now() - lastBeat > 3000), 3500));
  return source;
}

if (root) {
  let source = listen();
  document.addEventListener("changed", () => {
    source.close();
    source = listen();
  });
  setInterval(() => { if (Date.now() - lastBeat > 30000) stale(true); }, 5000);
}
