// An article: what was decided, why, and its cluster. Knows answers; knows nothing of how they are asked for.

import { draw, facts, foreign, linkTo, make, scrolled, sentence, sourceCell } from "./elements.js";
import { verdictOf, wrongWith } from "./said.js";
import { besides } from "./texts.js";
import { briefTimeOf, measureOf, numberOf, timeOf, word } from "./words.js";

/** Return what was decided on an article. */
export function decisionOf(article) {
  const { link } = article;
  return make("div", {},
    make("p", { class: "verdict" }, article.relation ? tag(article.relation) : tag("new"), ...sentenceOf(article)),
    link ? measuresOf(link) : null,
    facts("facts", {
      [word("canonical")]: article.canonical === article.id ? "" : linkTo(article.canonical, article.scope),
      [word("scope")]: article.scope ? foreign(article.scope) : "",
      [word("source")]: article.source ? foreign(article.source) : "",
      [word("published")]: article.published_at ? timeOf(article.published_at) : "",
      [word("received")]: article.received_at ? timeOf(article.received_at) : "",
      [word("foundBy")]: link ? word(link.candidate_source) : "",
      [word("epoch")]: link ? numberOf(link.idf_epoch) : "",
      [word("message")]: article.message ? placeOf(article.message) : "",
    }));
}

/** Return why two articles are, or are not, copies: measures, bits, words and texts. */
export function reasonOf(reason, scope) {
  return make("div", {},
    make("h3", {}, word("both")),
    besides(reason.first, reason.second, scope),
    make("h3", {}, word("verdict")),
    make("p", {}, reason.relation ? tag(reason.relation) : tag("new", word("noCopy")), verdictOf(reason)),
    measuresOf(reason),
    facts("facts", { [word("epoch")]: numberOf(reason.idf_epoch) }),
    epochsOf(reason),
    reason.revised ? make("p", { class: "quiet" }, word("revised")) : null,
    make("h3", {}, word("bits", reason.hamming)),
    bitsOf(reason.fingerprints),
    make("h3", {}, word("sharedWords")),
    wordsOf(reason.shared_words),
    make("h3", {}, word("differingWords")),
    wordsOf(reason.differing_words));
}

/**
 * Return a cluster: its timeline and its members.
 * @param {object} cluster - answer of /v1/cluster.
 * @param {function(number): Promise<object>} more - requests further members from an offset on.
 */
export function clusterOf(cluster, more) {
  const names = ["time", "article", "source", "relation", "jaccard", "containment", "hamming", "foundBy", "matched"];
  const heads = names.map((name) => make("th", { scope: "col" }, word(name)));
  const rows = make("tbody", {}, ...cluster.members.map((member) => memberRow(member, cluster.scope)));
  return make("div", {},
    make("h3", {}, word("cluster", numberOf(cluster.known))),
    timelineOf(cluster.timeline, cluster.stretch_seconds),
    scrolled(make("table", {}, make("thead", {}, make("tr", {}, ...heads)), rows)),
    moreOf(cluster, rows, more));
}

function moreOf(cluster, rows, more) {
  const left = () => cluster.known - rows.childElementCount;
  if (left() <= 0) return null;
  const button = make("button", { type: "button" }, word("moreMembers", numberOf(left())));
  const wrong = make("span", { class: "problem" });
  button.addEventListener("click", async () => {
    button.disabled = true;
    wrong.replaceChildren();
    try {
      const { members } = await more(rows.childElementCount);
      rows.append(...members.map((member) => memberRow(member, cluster.scope)));
      button.textContent = word("moreMembers", numberOf(left()));
      button.hidden = left() <= 0 || !members.length;
    } catch (error) {
      wrong.append(" ", foreign(wrongWith(error)));
    }
    button.disabled = false;
  });
  return make("p", {}, button, wrong);
}

function memberRow(member, scope) {
  const { link } = member;
  const relation = link?.relation ? tag(link.relation) : make("span", {}, member.canonical ? word("canonical") : "");
  const cells = link
    ? [measureOf(link.jaccard), measureOf(link.containment), numberOf(link.hamming)]
    : ["", "", ""];
  const when = member.published_at ?? member.received_at;
  return make("tr", { class: member.canonical ? "canonical" : null },
    make("td", { title: timeOf(when) }, briefTimeOf(when)),
    make("td", { class: "name" }, linkTo(member.id, scope)),
    sourceCell(member.source),
    make("td", {}, relation),
    ...cells.map((cell) => make("td", { class: "number" }, cell)),
    make("td", {}, link ? word(link.candidate_source) : ""),
    make("td", { class: "name" }, link?.matched ? linkTo(link.matched, scope) : ""));
}

function sentenceOf(article) {
  const { decision, link } = article;
  if (decision === "duplicate" && link?.matched) return sentence(word("duplicate"), article.id, link.matched);
  if (decision === "duplicate" && link) return sentence(word("duplicateForgotten"), article.id);
  if (decision === "duplicate") return sentence(word("duplicateRelation"), article.id, word(article.relation));
  if (article.relation) return sentence(word("uniqueRelation"), article.id, word(article.relation));
  return sentence(word("unique"), article.id);
}

function measuresOf(measured) {
  return facts("measures", {
    [word("jaccard")]: measureOf(measured.jaccard),
    [word("containment")]: measureOf(measured.containment),
    [word("hamming")]: numberOf(measured.hamming),
    [word("cosine")]: measured.cosine === undefined ? "" : measureOf(measured.cosine),
  });
}

/** Return why the current numbers differ from those of the link, if the weights have changed since it was made. */
function epochsOf(reason) {
  const then = reason.decided?.idf_epoch;
  if (then === undefined || then === reason.idf_epoch) return null;
  return make("p", { class: "quiet" }, word("otherEpoch", numberOf(then), numberOf(reason.idf_epoch)));
}

function bitsOf(fingerprints) {
  const [first, second] = fingerprints.map((one) => BigInt(`0x${one}`));
  const squares = Array.from({ length: 128 }, (_, at) => {
    const bit = BigInt(63 - (at % 64));
    const mine = ((at < 64 ? first : second) >> bit) & 1n;
    const differs = ((first ^ second) >> bit) & 1n;
    return draw("rect", { x: (at % 64) * 10, y: at < 64 ? 0 : 12, width: 8, height: 10,
      class: `${mine ? "one" : "zero"}${differs && mine ? " differs" : ""}` });
  });
  const label = `${fingerprints[0]}, ${fingerprints[1]}`;
  return make("div", {}, draw("svg", { class: "bits", viewBox: "0 0 640 22", role: "img", "aria-label": label }, ...squares),
    make("p", { class: "quiet" }, label));
}

function wordsOf(words) {
  if (!words.length) return make("p", { class: "quiet" }, word("none"));
  const weight = (one) => one.weights.map((value) => (value ? value.toFixed(2) : "–")).join(" / ");
  return make("ul", { class: "words" }, ...words.map((one) => make("li", {}, foreign(one.word), make("small", {}, weight(one)))));
}

function timelineOf(moments, seconds) {
  const times = moments.map((moment) => Date.parse(moment.at) / 1000);
  const stretches = moments.length ? (times.at(-1) - times[0]) / seconds + 1 : 1;
  const most = Math.max(1, ...moments.map((moment) => moment.articles));
  const width = 600 / Math.max(12, stretches);
  const bars = moments.map((moment, at) => {
    const height = (90 * moment.articles) / most;
    const x = ((times[at] - times[0]) / seconds) * width;
    return draw("rect", { x: x.toFixed(1), y: (92 - height).toFixed(1), width: (width * 0.85).toFixed(1), height: height.toFixed(1) },
      draw("title", {}, `${timeOf(moment.at)}: ${numberOf(moment.articles)}`));
  });
  const label = word("timelineLabel", timeOf(moments[0]?.at), timeOf(moments.at(-1)?.at), numberOf(most));
  return make("figure", {}, draw("svg", { class: "timeline", viewBox: "0 0 600 92", preserveAspectRatio: "none", role: "img",
    "aria-label": label }, ...bars),
    make("figcaption", {}, make("span", {}, timeOf(moments[0]?.at)), make("span", {}, timeOf(moments.at(-1)?.at))));
}

function placeOf(place) {
  return word("place", place.topic, place.partition, numberOf(place.offset));
}

function tag(relation, name) {
  return make("span", { class: `relation ${relation}` }, name ?? word(relation));
}
