// Choosing a plan: the chart, the table and the tree show the same choice.

import { fold, hint } from "./owner.js";

const form = document.querySelector("form[data-plan]");
const tree = document.getElementById("tree");
const radios = form ? [...form.querySelectorAll('input[name="choice"]')] : [];
const marks = form ? [...form.querySelectorAll("path.choice")] : [];
let drawn = null;

function chosen() {
  return radios.find((radio) => radio.checked);
}

function mark() {
  const key = chosen()?.value;
  for (const path of marks) path.classList.toggle("chosen", path.dataset.choice === key);
  for (const radio of radios) radio.closest("td").classList.toggle("chosen", radio.checked);
}

function costs() {
  const price = Number(form.price.value.replace(",", "."));
  const currency = form.currency.value.trim();
  for (const radio of radios) {
    const total = (1000 * price * Number(radio.dataset.answers)).toLocaleString("en", { maximumFractionDigits: 0 });
    const words = price > 0 ? `${total} ${currency} for 1,000 items` : "";
    radio.closest("label").querySelector("[data-cost]").textContent = words;
  }
}

async function draw() {
  const key = chosen()?.value;
  if (!key || key === drawn) return;
  drawn = key;
  tree.setAttribute("aria-busy", "true");
  const response = await fetch(`${form.dataset.plan}?choice=${encodeURIComponent(key)}`);
  if (response.ok && drawn === key) {
    tree.innerHTML = await response.text();
    fold();
    hint();
  }
  tree.setAttribute("aria-busy", "false");
}

async function estimate() {
  const box = document.getElementById("checks");
  const asked = new URLSearchParams({ choice: chosen()?.value ?? "", certify: form.certify.value, items: document.getElementById("many").value });
  if (!form.certify.value.trim() || !asked.get("choice")) {
    box.replaceChildren();
    return;
  }
  box.setAttribute("aria-busy", "true");
  box.textContent = "Simulating…";
  const key = (box.dataset.key = asked.toString());
  const response = await fetch(`${form.querySelector("[data-checks]").dataset.checks}?${asked}`);
  const text = await response.text();
  if (box.dataset.key !== key) return; // another choice since
  if (response.ok) box.innerHTML = text;
  else box.textContent = "Enter a percentage between 0 and 100, and a number of items up to 5,000.";
  box.setAttribute("aria-busy", "false");
}

if (form) {
  drawn = chosen()?.value;
  for (const radio of radios) radio.addEventListener("change", () => { mark(); draw(); estimate(); });
  for (const path of marks) {
    path.addEventListener("click", () => {
      const radio = radios.find((found) => found.value === path.dataset.choice);
      radio.checked = true;
      radio.dispatchEvent(new Event("change"));
    });
  }
  form.price.addEventListener("input", costs);
  form.currency.addEventListener("input", costs);
  form.certify.addEventListener("change", estimate);
  form.querySelector("#many").addEventListener("change", estimate);
  mark();
  costs();
  estimate();
}
