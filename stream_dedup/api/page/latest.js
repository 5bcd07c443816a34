// The latest links as a list. Knows links as they are published; knows nothing of how one is explained.

import { addressOf, at, foreign, make } from "./elements.js";
import { briefTimeOf, timeOf, word } from "./words.js";

let shown = "";

/** Show links, newest first. The list does not change while the pointer or the focus is in it. */
export function showLatest(links) {
  const list = at("latest");
  at("latest-none").hidden = links.length > 0;
  const now = JSON.stringify(links.map((link) => [link.id, link.decided_at, link.relation]));
  if (now === shown || (shown && list.matches(":hover, :focus-within"))) return;
  shown = now;
  list.replaceChildren(...links.map(item));
  markCurrent();
}

/** Mark the link whose article is chosen. */
export function markCurrent() {
  for (const link of at("latest").querySelectorAll("a")) {
    if (link.getAttribute("href") === location.hash) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function item(link) {
  return make("li", {},
    make("a", { href: addressOf(link.id, link.scope) },
      make("span", { class: `relation ${link.relation}` }, word(link.relation)),
      make("b", {}, foreign(link.id)),
      make("small", {}, make("span", {}, foreign(link.source || word("unknownSource"))), make("time", { title: timeOf(link.decided_at) }, briefTimeOf(link.decided_at)))));
}
