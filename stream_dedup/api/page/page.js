// The page: polls the service every two seconds, and sends its user's queries. Knows when and what is asked.

import { ask, hasToken, keepToken } from "./ask.js";
import { clusterOf, decisionOf, reasonOf } from "./article.js";
import { addressOf, at, foreign, make } from "./elements.js";
import { markCurrent, showLatest } from "./latest.js";
import { noteStatus } from "./now.js";
import { awaited, wrongWith } from "./said.js";
import { similarOf } from "./similar.js";
import { speak, word } from "./words.js";

const LOOK_MILLISECONDS = 2000;
const LINKS = 30;
const MEMBERS = 50;
const UNAUTHORISED = 401;
const BROKEN = 500; // the lowest status that means that something is wrong with the service or on the way to it
// Statuses that mean there is no reason to show: no second article, or its text is no longer in its topic.
const NO_REASON = [404, 409, 410];

let looking = 0;
let choosing = 0; // if several answers are pending, only the one chosen last is shown

speak(document);
at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepToken(at("token").value);
  at("token-form").hidden = true;
  look();
  choose();
});
at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const asked = new FormData(event.target);
  const address = addressOf(asked.get("id").trim(), asked.get("scope").trim(), asked.get("other").trim());
  if (location.hash === address) choose();
  else location.hash = address;
});
at("similar").addEventListener("submit", compare);
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the chosen article
  at("chosen").focus();
});
addEventListener("hashchange", () => choose().then(() => at("chosen").focus()));
document.addEventListener("visibilitychange", look);
look();
choose();

/** Poll the service now and again after a while, unless the page is hidden. */
async function look() {
  clearTimeout(looking);
  if (document.hidden) return;
  try {
    const status = await ask("status");
    noteStatus(status);
    showLatest(await ask("latest", { limit: LINKS }));
    // Told last: if the links cannot be read, the line would change to and fro.
    tellStateOf(status);
  } catch (error) {
    notice(error);
    if (error.status >= BROKEN) tell(wrongWith(error), "ill");
  }
  clearTimeout(looking);
  if (at("token-form").hidden) looking = setTimeout(look, LOOK_MILLISECONDS);
}

/** Show the article that the address names. */
async function choose() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const [id, scope, other] = ["id", "scope", "other"].map((name) => fillIn(name, asked.get(name) ?? ""));
  markCurrent();
  choosing += 1;
  const mine = choosing;
  const show = (...children) => mine === choosing && at("answer").replaceChildren(...children);
  show(make("p", { class: "quiet" }, word(id ? "looking" : "chooseOne")));
  if (!id) return;
  try {
    const [article, cluster] = await Promise.all([ask("article", { id, scope }), ask("cluster", { id, scope, limit: MEMBERS })]);
    const more = (offset) => ask("cluster", { id, scope, limit: MEMBERS, offset });
    const members = clusterOf(cluster, more);
    show(decisionOf(article), members);
    if (article.link || other) show(decisionOf(article), await reasoned(id, scope, other), members);
  } catch (error) {
    notice(error);
    show(problem(error));
  }
}

/** Show a part of the address in its field of the search form, where else the last one would be asked with; return it. */
function fillIn(name, value) {
  at(`search-${name}`).value = value;
  if (value) at(`search-${name}`).closest("details")?.setAttribute("open", "");
  return value;
}

/** Return why an article is a copy, or a message why that is no longer known. */
async function reasoned(id, scope, other) {
  try {
    return reasonOf(await ask("reason", { id, scope, other }), scope);
  } catch (error) {
    if (NO_REASON.includes(error.status)) return make("p", { class: "quiet" }, foreign(wrongWith(error)));
    return problem(error);
  }
}

/** Show the articles that the pasted text resembles. */
async function compare(event) {
  event.preventDefault();
  const asked = Object.fromEntries(new FormData(event.target));
  const answer = at("similar-answer");
  if (!asked.body.trim()) {
    answer.replaceChildren(make("p", { class: "problem" }, word("blank")));
    return;
  }
  answer.replaceChildren(make("p", { class: "quiet" }, word("looking")));
  try {
    answer.replaceChildren(similarOf(await ask("similar", {}, asked), asked.scope));
  } catch (error) {
    notice(error);
    answer.replaceChildren(problem(error));
  }
}

function problem(error) {
  return make("p", { class: "problem" }, foreign(wrongWith(error)));
}

/** Show at the top of the page what affects all of it: no API, or not the right token. */
function notice(error) {
  if (error.status === UNAUTHORISED) {
    at("token-form").hidden = false;
    tell(word(hasToken() ? "wrongToken" : "wantsToken"), "ill");
  } else if (!error.status) {
    tell(word("noApi"), "ill");
  }
}

function tellStateOf(status) {
  if (!status.running) tell(word(status.of_files ? "ofFiles" : "rests"), "");
  else if (status.ready === false) tell(word("waits", awaited(status.not_ready)), "waits");
  else tell(word("runs"), "well");
}

function tell(text, kind) {
  const state = at("state");
  // Set only when it changes: a screen reader would read it out every two seconds.
  if (state.textContent !== text) state.textContent = text;
  state.className = kind;
}
