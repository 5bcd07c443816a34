// Elements of the page. Data from outside is inserted only as text: nothing here parses it as HTML.

import { harmless } from "./harmless.js";
import { word } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return a new element.
 * @param {string} name - name of the element.
 * @param {object} attributes - its attributes; null or undefined ones are left out.
 * @param {...(Node|string)} children - a string becomes text.
 */
export function make(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Return a new SVG element; see `make`. */
export function draw(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().filter((child) => child !== null));
  return element;
}

/** Return the element with an id. */
export const at = (id) => document.getElementById(id);

/** Return names and values as a list of definitions; those without a value are left out. */
export function facts(kind, values) {
  const known = Object.entries(values).filter(([, value]) => value !== null && value !== "");
  const named = ([name, value]) => [make("dt", {}, name), make("dd", {}, value)];
  const grouped = (pair) => (kind === "facts" ? named(pair) : [make("div", {}, ...named(pair))]);
  return make("dl", { class: kind }, known.flatMap(grouped));
}

/** Return the address of an article on this page, for the browser's history and for sharing. */
export function addressOf(id, scope, other) {
  const asked = new URLSearchParams({ id });
  if (scope) asked.set("scope", scope);
  if (other) asked.set("other", other);
  return `#${asked}`;
}

/** Return a link to an article. */
export function linkTo(id, scope) {
  return make("a", { href: addressOf(id, scope) }, foreign(id));
}

/** Return text from outside, isolated: whichever direction it is written in, the text around it keeps its order. */
export function foreign(text) {
  return make("bdi", {}, harmless(text));
}

/** Return a table that scrolls on its own, also by keyboard, if it is wider than the page. */
export function scrolled(table) {
  return make("div", { class: "scroll", tabindex: "0" }, table);
}

/** Return a cell with an article's source; a long name is cut short, and shown in full under the pointer. */
export function sourceCell(source) {
  return make("td", { class: "source", title: source ? harmless(source) : null }, foreign(source || word("unknownSource")));
}

/** Return a sentence of the page as children of an element, with texts from outside in place of {0}, {1}, ... */
export function sentence(words, ...values) {
  // Because the pattern has a group, the numbers are at the odd indices.
  return words.split(/\{(\d)\}/).map((part, index) => (index % 2 ? foreign(values[part] ?? "") : part));
}
