// Two texts side by side with their differences. Knows pieces; knows nothing of where texts come from.

import { BOTH, FIRST, SECOND, differences, shortened } from "./differences.js";
import { foreign, linkTo, make } from "./elements.js";
import { harmlessLines } from "./harmless.js";
import { timeOf, word } from "./words.js";

const AROUND = 60; // shared characters shown on either side of a difference

/** Return two texts of /v1/reason side by side. */
export function besides(first, second, scope) {
  const { pieces, whole } = differences(first.body, second.body);
  const same = pieces.every((piece) => piece.side === BOTH);
  const short = shortened(pieces, AROUND);
  const bodies = [FIRST, SECOND].map(() => make("div", { class: "body", dir: "auto", tabindex: "0" }));
  const show = (shown) => [FIRST, SECOND].forEach((side, index) => bodies[index].replaceChildren(...sideOf(shown, side)));
  const notes = [same ? "sameTexts" : "", whole ? "tooLong" : ""].filter(Boolean).map((name) => make("p", { class: "quiet" }, word(name)));
  const cut = short.some((piece) => piece.gap);
  show(cut ? short : pieces);
  return make("div", {}, ...notes,
    make("div", { class: "texts" }, textOf(first, scope, bodies[0]), textOf(second, scope, bodies[1])),
    cut ? switchOf(() => show(pieces), () => show(short)) : null);
}

function sideOf(pieces, side) {
  return pieces.filter((piece) => piece.side === BOTH || piece.side === side).map((piece) => {
    if (piece.gap) return make("span", { class: "gap" }, " ⋯ ");
    if (piece.side === BOTH) return document.createTextNode(harmlessLines(piece.text));
    return make(side === FIRST ? "del" : "ins", {}, harmlessLines(piece.text));
  });
}

function textOf(text, scope, body) {
  const beside = [foreign(text.source || word("unknownSource")), " · ", timeOf(text.published_at)];
  if (text.title) beside.unshift(foreign(text.title), " · ");
  return make("article", {}, make("h4", {}, linkTo(text.id, scope)), make("p", {}, ...beside), body);
}

function switchOf(showWhole, showShort) {
  const button = make("button", { type: "button" }, word("whole"));
  let whole = false;
  button.addEventListener("click", () => {
    whole = !whole;
    (whole ? showWhole : showShort)();
    button.textContent = word(whole ? "around" : "whole");
  });
  return make("p", {}, button);
}
