// Where two texts differ: sentence by sentence, then character by character within what was edited.
// After Myers, An O(ND) difference algorithm, 1986. Bounded in time: what takes longer is marked as replaced as a whole.

export const BOTH = "both";
export const FIRST = "first";
export const SECOND = "second";

const MILLISECONDS = 250;
const MOST_EDITS = 2000;
const LONGEST_STRETCH = 20000; // characters of both texts, compared one by one
const SHORTEST_SHARED = 2; // characters: a single shared one between two differences is a coincidence
const LEAST_SHARED = 0.3; // share of a passage: below it, neither was made from the other
const SENTENCE = /[^。！？；!?;\n]*[。！？；!?;\n]+|[^。！？；!?;\n]+/g;

/**
 * Return two texts as pieces, in order: { side, text }; those of the first text come before those of the second.
 * @returns {{pieces: {side: string, text: string}[], whole: boolean}} `whole`: the comparison hit its limits.
 */
export function differences(first, second) {
  const deadline = performance.now() + MILLISECONDS;
  const pieces = [];
  let whole = false;
  for (const stretch of aligned(first.match(SENTENCE) ?? [], second.match(SENTENCE) ?? [], deadline)) {
    whole ||= stretch.whole;
    if (stretch.both) pieces.push({ side: BOTH, text: stretch.a.join("") });
    else pieces.push(...within(stretch.a.join(""), stretch.b.join(""), deadline));
  }
  return { pieces: joined(pieces), whole };
}

/** Return pieces without the middle parts of shared passages; `gap` marks what was left out. */
export function shortened(pieces, around) {
  return pieces.flatMap((piece, at) => {
    const characters = Array.from(piece.text);
    const before = at > 0 ? around : 0;
    const after = at < pieces.length - 1 ? around : 0;
    if (piece.side !== BOTH || pieces.length === 1 || characters.length <= 2 * (before + after)) return [piece];
    const cut = (from, to) => ({ side: BOTH, text: characters.slice(from, to).join("") });
    return [cut(0, before), { side: BOTH, text: "", gap: true }, cut(characters.length - after)].filter((one) => one.text || one.gap);
  });
}

function within(first, second, deadline) {
  const replaced = [{ side: FIRST, text: first }, { side: SECOND, text: second }];
  if (!first || !second || first.length + second.length > LONGEST_STRETCH) return replaced;
  const a = Array.from(first);
  const b = Array.from(second);
  const stretches = aligned(a, b, deadline);
  const last = stretches.length - 1;
  const kept = (stretch, at) => stretch.both && (stretch.a.length >= SHORTEST_SHARED || at === 0 || at === last);
  const shared = stretches.reduce((sum, stretch, at) => sum + (kept(stretch, at) ? stretch.a.length : 0), 0);
  if (shared < LEAST_SHARED * Math.min(a.length, b.length)) return replaced;
  return stretches.flatMap((stretch, at) =>
    kept(stretch, at)
      ? [{ side: BOTH, text: stretch.a.join("") }]
      : [{ side: FIRST, text: stretch.a.join("") }, { side: SECOND, text: stretch.b.join("") }]);
}

/** Split two lists into stretches that are the same (`both`) and stretches that differ. */
function aligned(a, b, deadline) {
  let begin = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin += 1;
  let end = 0;
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middleA = a.slice(begin, a.length - end);
  const middleB = b.slice(begin, b.length - end);
  const same = (items) => (items.length ? [{ both: true, a: items, b: items }] : []);
  return [...same(a.slice(0, begin)), ...middle(middleA, middleB, deadline), ...same(end ? a.slice(-end) : [])];
}

function middle(a, b, deadline) {
  if (!a.length && !b.length) return [];
  const trace = a.length && b.length ? edits(a, b, deadline) : [];
  if (trace === null || !trace.length) return [{ both: false, a, b, whole: trace === null }];
  const stretches = [];
  let x = 0;
  let y = 0;
  for (const [fromX, fromY, length] of runs(trace, a.length, b.length)) {
    if (fromX > x || fromY > y) stretches.push({ both: false, a: a.slice(x, fromX), b: b.slice(y, fromY) });
    if (length) stretches.push({ both: true, a: a.slice(fromX, fromX + length), b: b.slice(fromY, fromY + length) });
    x = fromX + length;
    y = fromY + length;
  }
  return stretches;
}

/** Return for each number of edits how far each diagonal was reached; null if it takes too many edits, or too long. */
function edits(a, b, deadline) {
  const most = Math.min(a.length + b.length, MOST_EDITS);
  const reached = new Int32Array(2 * most + 3);
  const centre = most + 1;
  const trace = [];
  for (let count = 0; count <= most && performance.now() < deadline; count += 1) {
    trace.push(reached.slice(centre - count - 1, centre + count + 2));
    for (let k = -count; k <= count; k += 2) {
      const down = k === -count || (k !== count && reached[centre + k - 1] < reached[centre + k + 1]);
      let x = down ? reached[centre + k + 1] : reached[centre + k - 1] + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reached[centre + k] = x;
      if (x >= a.length && x - k >= b.length) return trace;
    }
  }
  return null;
}

/** Trace the path of fewest edits back; return the runs of equal items as [x, y, length], and the end with length 0. */
function runs(trace, lengthA, lengthB) {
  const found = [[lengthA, lengthB, 0]];
  let x = lengthA;
  let y = lengthB;
  for (let count = trace.length - 1; count >= 0; count -= 1) {
    const at = (k) => trace[count][k + count + 1];
    const k = x - y;
    const down = k === -count || (k !== count && at(k - 1) < at(k + 1));
    const beforeX = count ? (down ? at(k + 1) : at(k - 1)) : 0;
    const beforeY = count ? beforeX - (down ? k + 1 : k - 1) : 0;
    const startX = count ? (down ? beforeX : beforeX + 1) : 0;
    const startY = startX - k;
    if (x > startX) found.push([startX, startY, x - startX]);
    x = beforeX;
    y = beforeY;
  }
  return found.reverse();
}

/** Join adjacent pieces of the same side and drop empty ones; between two shared pieces, the first text's come first. */
function joined(pieces) {
  const result = [];
  let one = "";
  let other = "";
  const flush = () => {
    if (one) result.push({ side: FIRST, text: one });
    if (other) result.push({ side: SECOND, text: other });
    one = other = "";
  };
  for (const { side, text } of pieces) {
    if (!text) continue;
    if (side === FIRST) one += text;
    else if (side === SECOND) other += text;
    else {
      flush();
      if (result.at(-1)?.side === BOTH) result.at(-1).text += text;
      else result.push({ side, text });
    }
  }
  flush();
  return result;
}
