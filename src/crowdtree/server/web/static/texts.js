// The texts of the page in the worker's language, which the server puts into the page.

const texts = JSON.parse(document.getElementById("texts").dataset.texts);
const language = document.documentElement.lang;
const plurals = new Intl.PluralRules(language);
const numbers = new Intl.NumberFormat(language);

export const shown = (value) => (typeof value === "number" ? numbers.format(value) : value);

// Write a text; `count` chooses the plural form.
export function say(key, values = {}) {
  const text = texts[key];
  const form = typeof text === "string" ? text : text[plurals.select(values.count)] ?? text.other;
  return form.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? shown(values[name]) : whole));
}

// A text of the owner in this language, or the one that the campaign has.
export const own = (key, text) => texts[key] ?? text;

export const asked = (question) => own(`question:${question.name}`, question.text);

export function money(amount, currency) {
  const code = /^[A-Z]{3}$/.test(currency);
  const digits = amount && Math.abs(amount) < 0.01 ? 4 : 2;
  const style = { minimumFractionDigits: 2, maximumFractionDigits: digits };
  if (code) Object.assign(style, { style: "currency", currency });
  const text = new Intl.NumberFormat(language, style).format(amount);
  return code ? text : `${text} ${currency}`.trim();
}

// What to tell about a request that the server refused.
export function refused(error) {
  const key = [`refused.${error.case}`, `refused.${error.code}`].find((name) => name in texts);
  return key ? say(key) : say("refused.other", { status: error.status });
}
