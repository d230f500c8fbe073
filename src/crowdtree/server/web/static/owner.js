// Owner pages: forms that show errors in place, buttons that ask for confirmation, links to copy.

import { Refusal, send } from "./api.js";

const said = document.getElementById("said");
let saidTimer = null;

export function say(words, bad = false, milliseconds = bad ? 9000 : 3500) {
  clearTimeout(saidTimer);
  said.textContent = words;
  said.className = words ? `said shown${bad ? " bad" : ""}` : "said";
  if (words) saidTimer = setTimeout(() => say(""), milliseconds);
}

const reason = (error) => (error instanceof Refusal ? error.message || `The server answered ${error.status}.` : "The server cannot be reached. Nothing was changed; try again.");

// ---------------------------------------------------------------- asking once

function sure(button) {
  if (!button.dataset.ask) return Promise.resolve(true);
  const dialog = document.getElementById("ask");
  document.getElementById("ask-title").textContent = button.dataset.ask;
  document.getElementById("ask-text").textContent = button.dataset.text ?? "";
  document.getElementById("ask-yes").textContent = button.dataset.yes ?? "Yes";
  dialog.returnValue = "no";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// What a button sends; one that says first what would change, or that sends its fields, sends what is filled in on its form as well.
function values(button) {
  const form = ("dryRun" in button.dataset || "fields" in button.dataset) && button.form ? [...new FormData(button.form)] : [];
  const given = form.filter(([, value]) => value !== "");
  return { ...Object.fromEntries(given), ...JSON.parse(button.dataset.body ?? "{}") };
}

async function post(button) {
  const body = values(button);
  button.disabled = true;
  try {
    if ("dryRun" in button.dataset) {
      const found = await send(button.dataset.post, { ...body, dry_run: true }, { seconds: 60 });
      button.dataset.text = found.text;
    }
    if (!(await sure(button))) return;
    if ("saveFirst" in button.dataset) await save(document.querySelector("form[data-stay]"));
    await send(button.dataset.post, body, { method: button.dataset.method ?? "POST", seconds: 60 });
    if (button.dataset.go) location.assign(button.dataset.go);
    else if ("reload" in button.dataset) location.reload();
    else if (button.dataset.said) say(button.dataset.said);
    button.blur(); // a part of the page that has the focus is not replaced
    document.dispatchEvent(new Event("changed"));
  } catch (error) {
    say(reason(error), true);
  } finally {
    button.disabled = false;
  }
}

// Make something whose secret is shown once: a link, a token, a webhook's secret.
async function link(source, values) {
  if (!(await sure(source))) return;
  try {
    const found = await send(source.dataset.link, values);
    const place = document.getElementById(source.dataset.show);
    const field = source.dataset.field ?? "link";
    place.hidden = false;
    const input = place.querySelector("input");
    input.value = field === "link" ? new URL(found.link, base()).href : found[field];
    if (found.qr) card(place, found.qr, input.value);
    if (source instanceof HTMLFormElement) source.reset();
    if (source.dataset.refresh) {
      source.blur(); // a part of the page that has the focus is not replaced
      await refresh(source.dataset.refresh);
    }
    input.focus();
    input.select();
  } catch (error) {
    say(reason(error), true);
  }
}

// Show the QR code of a link, on a card that can be printed.
function card(place, svg, words) {
  const made = place.querySelector(".card");
  if (!made) return;
  const picture = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  made.hidden = false;
  const image = new Image(240, 240);
  image.alt = "QR code of the link";
  image.src = picture;
  made.querySelector("[data-code]").replaceChildren(image);
  made.querySelector("[data-picture]").href = picture;
  made.querySelector("[data-written]").textContent = words;
}

function print(made) {
  made.classList.add("printed");
  window.print();
  made.classList.remove("printed");
}

function base() {
  return document.querySelector('meta[name="base"]')?.content ?? location.href;
}

// Fetch this page again and put one part of it in place; a part that has the focus is left alone.
export async function refresh(id) {
  const place = document.getElementById(id);
  const response = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
  if (!response?.ok || place.contains(document.activeElement)) return;
  const made = new DOMParser().parseFromString(await response.text(), "text/html").getElementById(id);
  if (made && made.innerHTML !== place.innerHTML) place.replaceChildren(...made.childNodes);
}

const here = document.querySelector("[data-only-here]");
if (here) here.hidden = !["localhost", "127.0.0.1", "[::1]"].includes(new URL(base()).hostname);

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.post) post(button);
  else if (button.dataset.link) link(button, JSON.parse(button.dataset.values ?? "{}"));
  else if ("copy" in button.dataset) copy(button);
  else if ("print" in button.dataset) print(button.closest(".card"));
});

function copy(button) {
  const input = button.parentElement.querySelector("input");
  input.select();
  const done = () => say("Copied.");
  if (navigator.clipboard) navigator.clipboard.writeText(input.value).then(done, () => {});
  else if (document.execCommand("copy")) done();
}

// ---------------------------------------------------------------- roles

// What a role may not do is hidden by the style sheet; forms that viewers may read cannot be edited.
if (document.body.dataset.role === "viewer") {
  for (const form of document.querySelectorAll('form[method="post"][data-least="viewer"]:not([data-now])')) {
    for (const field of form.elements) field.disabled = true;
  }
}

// ---------------------------------------------------------------- forms

// Send a form; long texts go as files. Uploads report progress.
function save(form, submitter = null) {
  const data = new FormData(form, submitter);
  for (const area of form.querySelectorAll("[data-as-file]")) {
    data.delete(area.name);
    if (area.value.trim()) data.append(area.name, new Blob([area.value]), "pasted.txt");
  }
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const bar = form.querySelector("progress.sending");
    request.open("POST", form.action);
    request.setRequestHeader("accept", "application/json");
    request.setRequestHeader("x-csrf-token", document.querySelector('meta[name="csrf"]').content);
    request.responseType = "json";
    if (bar) {
      request.upload.addEventListener("progress", (event) => {
        bar.hidden = event.total < 1e6;
        bar.value = (100 * event.loaded) / event.total;
      });
    }
    request.addEventListener("load", () => {
      if (bar) bar.hidden = true;
      const found = request.response ?? {};
      if (request.status < 400) resolve(found);
      else reject(new Refusal(request.status, found));
    });
    request.addEventListener("error", () => reject(new Error("unreachable")));
    request.send(data);
  });
}

// Send a form whose response comes line by line: progress, then where to go.
async function followed(form, submitter) {
  const headers = { accept: "application/json", "x-csrf-token": document.querySelector('meta[name="csrf"]').content };
  const sent = fetch(form.action, { method: "POST", headers, body: new FormData(form, submitter) });
  working(form, 0, "Reading");
  const response = await sent;
  if (!response.headers.get("content-type")?.startsWith("application/x-ndjson")) {
    const found = await response.json().catch(() => ({}));
    throw new Refusal(response.status, found);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("unreachable");
    text += value;
    const lines = text.split("\n");
    text = lines.pop();
    for (const line of lines.map((found) => JSON.parse(found))) {
      if (line.go) return line;
      if (line.error) throw new Refusal(422, line);
      working(form, line.share, line.words);
    }
  }
}

function working(form, share, words) {
  const place = form.querySelector(".working");
  if (!place) return;
  place.hidden = share === null;
  place.querySelector("progress").value = share ?? 0;
  if (place.querySelector("span").textContent !== words) place.querySelector("span").textContent = words;
}

async function submitted(form, submitter) {
  const problem = form.querySelector(".problem");
  problem.textContent = "";
  // before the buttons are off: a disabled one has no value
  const sending = "stream" in form.dataset ? followed(form, submitter) : save(form, submitter);
  const buttons = form.querySelectorAll("button");
  buttons.forEach((button) => { button.disabled = true; });
  submitter?.setAttribute("aria-busy", "true");
  try {
    const found = await sending;
    if (form.dataset.stay) {
      say(form.dataset.stay);
      if (found.seen) form.elements.seen.value = found.seen; // the next save starts from here
    } else if (found.go === location.pathname) location.reload();
    else if (found.go) location.assign(found.go);
  } catch (error) {
    working(form, null, "");
    problem.textContent = reason(error);
    problem.scrollIntoView({ block: "center" });
    say("");
  } finally {
    buttons.forEach((button) => { button.disabled = false; });
    submitter?.removeAttribute("aria-busy");
  }
}

for (const form of document.querySelectorAll("form[data-send], form[data-stream]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submitted(form, event.submitter);
  });
  if ("now" in form.dataset) submitted(form, null);
}
for (const form of document.querySelectorAll("form[data-link]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    link(form, Object.fromEntries(new FormData(form)));
  });
}

// Upload media one after the other; one that is refused is named, the others go on.
async function uploaded(form) {
  const problem = form.querySelector(".problem");
  const done = form.querySelector("[data-done]");
  const files = [...form.querySelector('input[type="file"]').files];
  problem.textContent = files.length ? "" : "Choose files first.";
  const names = [];
  for (const file of files) {
    done.textContent = `${names.length} of ${files.length} uploaded`;
    const name = file.name.replace(/[^\p{L}\p{N}_. -]/gu, "_").replace(/^[. ]+/, "_");
    const where = `${form.dataset.media}?name=${encodeURIComponent(name)}`;
    const headers = { "x-csrf-token": document.querySelector('meta[name="csrf"]').content };
    headers["content-type"] = "application/octet-stream";
    const response = await fetch(where, { method: "POST", headers, body: file }).catch(() => null);
    if (response?.ok) names.push(name);
    else problem.textContent = `${file.name}: ${(await response?.json().catch(() => null))?.message ?? "not uploaded"}`;
  }
  if (files.length) done.textContent = `${names.length} of ${files.length} uploaded`;
  if (names.length && form.each.checked) await made(form, names, problem);
  else if (names.length && !problem.textContent) location.reload(); // what is missing has changed
}

// Make an item of each uploaded file, named after it.
async function made(form, names, problem) {
  const kinds = JSON.parse(form.dataset.kinds);
  const kind = (name) => kinds[name.split(".").pop().toLowerCase()];
  const lines = names.map((name) => JSON.stringify({ task: name, [kind(name)]: name }));
  const data = new FormData();
  data.append("pasted", new Blob([lines.join("\n")]), "items.jsonl");
  try {
    const found = await send(form.dataset.items, data, { seconds: 120 });
    if (!problem.textContent) location.assign(found.go);
    else form.querySelector("[data-done]").textContent += `, ${names.length} items created`;
  } catch (error) {
    problem.textContent = reason(error);
  }
}

for (const form of document.querySelectorAll("form[data-media]")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const button = form.querySelector('button[type="submit"]');
    button.disabled = true;
    uploaded(form).finally(() => { button.disabled = false; });
  });
}

// Show the name of the chosen file.
for (const input of document.querySelectorAll('.drop input[type="file"]')) {
  input.addEventListener("change", () => {
    input.closest("form").querySelector(".problem").textContent = "";
    input.closest(".drop").classList.toggle("full", input.files.length > 0);
  });
}

// Preview Markdown before it is saved.
for (const area of document.querySelectorAll("[data-preview]")) {
  const place = area.nextElementSibling;
  const button = Object.assign(document.createElement("button"), { type: "button", className: "plain", textContent: "Preview" });
  area.after(button);
  const words = area.labels[0]?.textContent ?? "";
  button.setAttribute("aria-label", `Preview: ${words.trim()}`);
  button.addEventListener("click", async () => {
    try {
      const found = await send("/preview", { text: area.value });
      place.innerHTML = found.html; // made safe by the server
      place.hidden = !found.html;
    } catch (error) {
      say(reason(error), true);
    }
  });
}

// ---------------------------------------------------------------- folded trees

export function fold() {
  for (const group of document.querySelectorAll(".tree-views")) {
    const views = [...group.children];
    const wanted = views.find((view) => `#${view.id}` === location.hash) ?? views[0];
    views.forEach((view) => { view.hidden = view !== wanted; });
  }
}
addEventListener("hashchange", () => { fold(); hint(); });
fold();

// ---------------------------------------------------------------- wide drawings

export function hint() {
  for (const region of document.querySelectorAll(".scroll")) {
    const drawing = region.querySelector(":scope > svg");
    if (!drawing || region.dataset.hinted || !region.clientWidth) continue;
    region.dataset.hinted = "1";
    const root = drawing.querySelector("g.question")?.getBoundingClientRect();
    if (root) region.scrollTop = root.top + root.height / 2 - region.getBoundingClientRect().top - region.clientHeight / 2;
    if (region.scrollWidth <= region.clientWidth + 8) continue;
    const words = document.createElement("p");
    words.className = "small";
    words.append("");
    const fit = Object.assign(document.createElement("button"), { type: "button", className: "plain inline" });
    const set = (small) => {
      region.classList.toggle("fit", small);
      words.firstChild.textContent = small ? "Scaled to fit: " : "The drawing is wider than the page: scroll, or ";
      fit.textContent = small ? "show it in full size" : "fit it to the page";
    };
    fit.addEventListener("click", () => set(!region.classList.contains("fit")));
    words.append(fit);
    set(region.scrollWidth > 3 * region.clientWidth || region.scrollHeight > 4 * region.clientHeight);
    region.before(words);
  }
}
hint();
