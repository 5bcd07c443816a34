// The articles that a pasted text resembles. Knows the answer's fields; knows nothing of how it is asked for.

import { linkTo, make, scrolled, sentence, sourceCell } from "./elements.js";
import { briefTimeOf, measureOf, numberOf, timeOf, word } from "./words.js";

/** Return the articles that a text resembles, as a sentence and a table. */
export function similarOf(similar, scope) {
  const found = similar.articles;
  const copied = similar.decision === "duplicate";
  const notes = similar.unseen_entries ? [make("p", { class: "quiet" }, word("unseen", numberOf(similar.unseen_entries)))] : [];
  return make("div", {},
    make("p", { class: "verdict" }, ...(copied ? sentence(word("wouldBe"), found[0]?.canonical) : [word("wouldBeUnique")])), ...notes,
    found.length ? tableOf(found, scope) : make("p", { class: "quiet" }, word("likeNothing")));
}

function tableOf(found, scope) {
  const names = ["article", "relation", "jaccard", "containment", "hamming", "source", "published", "canonical"];
  const heads = names.map((name) => make("th", { scope: "col" }, word(name)));
  const rows = found.map((one) => make("tr", {},
    make("td", { class: "name" }, linkTo(one.id, scope)),
    make("td", {}, make("span", { class: `relation ${one.relation ?? "new"}` }, one.relation ? word(one.relation) : `${word("noCopy")}: ${word(one.ground)}`)),
    make("td", { class: "number" }, measureOf(one.jaccard)),
    make("td", { class: "number" }, measureOf(one.containment)),
    make("td", { class: "number" }, numberOf(one.hamming)),
    sourceCell(one.source),
    make("td", { title: timeOf(one.published_at) }, briefTimeOf(one.published_at)),
    make("td", { class: "name" }, linkTo(one.canonical, scope))));
  return scrolled(make("table", {}, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows)));
}
