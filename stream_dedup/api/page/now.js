// Current rate and shares, from differences between status answers. Knows nothing of who asks for them.

import { at, draw, make } from "./elements.js";
import { numberOf, shareOf, timeOf, word } from "./words.js";

const MINUTES = 5;
const WIDTH = 600;
const HEIGHT = 150;
const SMOOTHED = 3; // status answers that a rate is averaged over, so that one commit more or less does not show

const looks = []; // { at: milliseconds, judged, decisions, copies: null if unknown }, oldest first

/** Record an answer of /v1/status, and show it. */
export function noteStatus(status) {
  const last = looks.at(-1);
  // A restarted service counts from zero.
  if (last && (status.articles_judged < last.judged || total(status.decisions) < total(last.decisions))) looks.length = 0;
  looks.push({ at: performance.now(), judged: status.articles_judged, decisions: status.decisions, copies: status.duplicates });
  while (looks.length > 2 && looks[0].at < performance.now() - MINUTES * 60000) looks.shift();
  showFigures(status);
  showShares(status.decisions);
  showChart();
}

function showFigures(status) {
  const rate = rateBetween(looks.at(-1 - SMOOTHED) ?? looks[0], looks.at(-1));
  at("rate").textContent = rate ? numberOf(rounded(rate.all)) : "–";
  at("copies").textContent = rate?.all ? shareOf(rate.copies / rate.all) : "–";
  at("waiting").textContent = numberOf(status.consumer_lag);
  at("judged").textContent = numberOf(status.articles_judged);
  at("stream-time").textContent = timeOf(status.stream_time);
  at("version").textContent = word("version", status.version, status.idf_epoch, numberOf(status.entries));
}

function showShares(decisions) {
  const all = total(decisions);
  const ordered = Object.entries(decisions).sort(([, a], [, b]) => b - a);
  at("shares").tBodies[0].replaceChildren(...ordered.map(([relation, count]) => shareRow(relation, count, all, ordered[0][1])));
}

function shareRow(relation, count, all, most) {
  const bar = make("span", {});
  bar.style.width = `${(100 * count) / Math.max(1, most)}%`;
  return make("tr", {},
    make("th", { scope: "row" }, make("span", { class: `relation ${relation}` }, word(relation))),
    make("td", { class: `share-bar ${relation}` }, bar),
    make("td", { class: "number", title: numberOf(count) }, shareOf(count / Math.max(1, all))));
}

function showChart() {
  const chart = at("chart");
  const rates = looks.slice(1).map((look, index) => ({ at: look.at, ...rateBetween(looks[index], look) }));
  const peak = Math.max(0, ...rates.map((rate) => rate.all));
  const top = niceAbove(Math.max(1, peak));
  const now = looks.at(-1).at;
  const x = (moment) => WIDTH * (1 - (now - moment) / (MINUTES * 60000));
  const y = (rate) => HEIGHT * (1 - rate / top);
  const area = (kind, of) => draw("path", { class: kind, d: areaPath(rates.map((rate) => [x(rate.at), y(of(rate))])) });
  const lines = [0.25, 0.5, 0.75].map((part) =>
    draw("line", { class: "grid-line", x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part }));
  chart.replaceChildren(...lines, area("area-all", (rate) => rate.all), area("area-copies", (rate) => rate.copies));
  const last = rates.at(-1) ?? { all: 0, copies: 0 };
  const told = [MINUTES, numberOf(rounded(last.all)), numberOf(rounded(peak)), numberOf(rounded(last.copies))];
  chart.setAttribute("aria-label", word("chartLabel", ...told));
  at("chart-from").textContent = word("minutesAgo", MINUTES);
  at("chart-peak").textContent = word("peak", numberOf(rounded(peak)));
}

function areaPath(points) {
  if (points.length < 2) return "";
  const along = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
  return `M${points[0][0].toFixed(1)} ${HEIGHT}L${along}L${points.at(-1)[0].toFixed(1)} ${HEIGHT}Z`;
}

function rateBetween(before, after) {
  const seconds = (after.at - before.at) / 1000;
  if (!seconds) return null;
  const copies = before.copies === null || after.copies === null ? 0 : Math.max(0, after.copies - before.copies);
  return { all: (after.judged - before.judged) / seconds, copies: copies / seconds };
}

function total(decisions) {
  return Object.values(decisions).reduce((sum, count) => sum + count, 0);
}

function rounded(rate) {
  return rate < 10 ? Math.round(10 * rate) / 10 : Math.round(rate);
}

/** Return the next round number that is not smaller: 1, 2 or 5 followed by zeros. */
function niceAbove(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((digit) => digit * power).find((round) => round >= value);
}
