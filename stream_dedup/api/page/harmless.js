// Invisible characters that have an effect. Knows characters; knows nothing of what a text says.

// Control characters and those that change the direction of writing, as on the command line (shown/plain.py).
const OBEYED = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]/gu;
const PICTURES = 0x2400; // the first of Unicode's pictures of the 32 lowest control characters
const BLANK = 0x20;

/** Return a text with pictures in place of such characters. */
export function harmless(text) {
  return text.replace(OBEYED, picture);
}

/** Do the same for a text of several lines, keeping its line breaks. */
export function harmlessLines(text) {
  return text.split("\n").map(harmless).join("\n");
}

function picture(character) {
  const code = character.codePointAt(0);
  return code < BLANK ? String.fromCodePoint(PICTURES + code) : "\ufffd";
}
