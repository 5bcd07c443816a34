// Elements of the page. What comes from outside goes in as text alone: nothing here reads it as HTML.

import { harmless } from "./harmless.js";
import { word } from "./words.js";

const SVG = "http://www.w3.org/2000/svg";

/**
 * Return a new element.
 * @param {string} name - of it.
 * @param {object} attributes - of it; those that are null or undefined are left out.
 * @param {...(Node|string)} children - a string becomes text.
 */
export function make(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** Return a new element of a drawing; see `make`. */
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

/** Return the element of an id. */
export const at = (id) => document.getElementById(id);

/** Return names and values as a list of definitions; those without a value are left out. */
export function facts(kind, values) {
  const known = Object.entries(values).filter(([, value]) => value !== null && value !== "");
  const named = ([name, value]) => [make("dt", {}, name), make("dd", {}, value)];
  const grouped = (pair) => (kind === "facts" ? named(pair) : [make("div", {}, ...named(pair))]);
  return make("dl", { class: kind }, known.flatMap(grouped));
}

/** Return the address on this page of an article, so that it can be gone back to and handed on. */
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

/** Return text from outside on its own: whichever way it is written, what stands around it keeps its order. */
export function foreign(text) {
  return make("bdi", {}, harmless(text));
}

/** Return a table that is scrolled by itself, by keyboard too, where it is wider than the page. */
export function scrolled(table) {
  return make("div", { class: "scroll", tabindex: "0" }, table);
}

/** Return a cell with who published an article; of a long name the beginning is seen, and all of it under the pointer. */
export function sourceCell(source) {
  return make("td", { class: "source", title: source ? harmless(source) : null }, foreign(source || word("unknownSource")));
}

/** Return a sentence of the page as children of an element, with texts from outside in the place of {0}, {1}, ... */
export function sentence(words, ...values) {
  // Split at a group, the numbers stand at the odd places.
  return words.split(/\{(\d)\}/).map((part, index) => (index % 2 ? foreign(values[part] ?? "") : part));
}
