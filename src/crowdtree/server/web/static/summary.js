// What a worker has done and earned, and what is said at the end.

import { money, say, shown } from "./texts.js";

const find = (id) => document.getElementById(id);
const facts = document.body.dataset;

// How many answers were given, and what the server has accepted and will pay.
export function summarise(standing, given) {
  const { skips, accepted, earned } = standing;
  const [most, least] = [Number(facts.most), Number(facts.least)];
  const amount = money(earned, facts.currency);
  find("count").textContent = most ? say("count.of", { count: given, most }) : say("count.given", { count: given });
  if (most) find("progress").value = Math.min(given, most);
  find("you-answers").textContent = shown(given);
  find("you-skips").textContent = shown(skips);
  find("you-accepted").textContent = facts.code ? say("you.needed", { accepted, least }) : shown(accepted);
  find("you-money").hidden = find("earned").hidden = !earned;
  find("amount").textContent = find("you-earned").textContent = amount;
}

// What was done, whether there is more, and what is missing for the code.
export function ending(found, given) {
  const { complete, accepted, least_answers: least } = found.end;
  const said = [];
  if (found.reason === "all answered") said.push(say("end.all"));
  if (given) said.push(say("end.given", { count: given }));
  said.push(say("end.no_more"));
  if (!complete && facts.code) {
    said.push(say("end.least", { count: least, accepted }));
  }
  return said.join(" ");
}
