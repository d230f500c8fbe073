// Render one item: text, safe HTML, image with zoom, audio, video.

import { say } from "./texts.js";

const campaign = document.body.dataset.campaign;

function address(value) {
  return value.startsWith("https://") ? value : `/media/${campaign}/${encodeURIComponent(value)}`;
}

function made(tag, values) {
  return Object.assign(document.createElement(tag), values);
}

export function prefetch(item) {
  if (item.image) new Image().src = address(item.image);
}

export function draw(place, item) {
  const parts = [];
  if (item.image) parts.push(picture(item));
  if (item.video) parts.push(made("video", { src: address(item.video), controls: true, preload: "metadata" }));
  if (item.audio) parts.push(made("audio", { src: address(item.audio), controls: true, preload: "auto" }));
  if (item.html) parts.push(made("div", { className: "prose", dir: "auto", innerHTML: item.html }));
  if (item.text) parts.push(made("p", { className: `words${item.text.length < 90 ? " large" : ""}`, dir: "auto", textContent: item.text }));
  if (!parts.length) parts.push(made("p", { className: "words large", textContent: item.task }));
  place.replaceChildren(...parts);
  place.scrollTop = 0;
}

// Show a picture enlarged, in the dialog of the page.
function zoom(source, words) {
  const dialog = document.getElementById("zoom");
  const image = made("img", { src: source, alt: words });
  image.addEventListener("click", () => image.classList.toggle("full"));
  dialog.querySelector(".pan").replaceChildren(image);
  dialog.showModal();
}

function picture(item) {
  const button = made("button", { type: "button", className: "picture" });
  const image = made("img", { src: address(item.image), alt: item.alt ?? say("item.image") });
  image.addEventListener("error", () => {
    button.replaceWith(made("p", { className: "words", textContent: say("item.unloaded") }));
  });
  button.append(image, made("span", { className: "small", textContent: say("item.enlarge") }));
  button.addEventListener("click", () => zoom(image.src, image.alt));
  return button;
}

// The text of an item for screen readers.
export function spoken(item) {
  return item.text ?? (item.html ? "" : item.image ? item.alt ?? say("item.image") : item.task);
}
