// Translates what the service and the API say in English. Knows their words and codes; knows nothing of when they are said.

import { locale, measureOf, word } from "./words.js";

// What the service waits for, in the words of its probe; what is left may follow.
const AWAITED = {
  "start-up": "启动", "the state to load, and the loops to compile at an installation's first start": "读取状态目录，首次启动时还要编译计算函数",
  "the broker": "broker", "the changelog to be replayed": "重放变更日志", "decided messages to be judged again": "重新判定消费组已判定的文章",
  "partitions": "输入主题的分区", "the schema registry": "Schema Registry", "the process to end": "进程结束",
};
// Why two texts are, or are not, copies.
const GROUNDS = {
  exact: "规范化后的文字相同", near: "{0}：大多数 n 元组两篇都有", contained: "{0}：前者是后者的一部分", contains: "{0}：后者是前者的一部分",
  no_content: "其中一篇去掉网站套话后没有内容可比", too_short: "其中一篇太短，只能整体比较，而两篇并不相同",
  template: "{0}：两篇相像，但数字或地名不同，是同一模板的两则通报",
  too_little: "{0}：低于阈值，两篇共有的太少",
};
// What is wrong with a request. {0} stands for the API's own message, which says more.
const PROBLEMS = {
  no_token: "API 需要令牌。", unknown_article: "没有这篇文章的记录：从未判定、已撤回，或早于时间窗口。",
  unique_article: "这是新文章，不是任何文章的副本：请在“与哪一篇比较”中填写一个 id。",
  expired_link: "它的原文已移出时间窗口或已撤回：请在“与哪一篇比较”中填写一个 id。", lost_text: "文章的文字已不在输入主题中，无法再比较。",
  too_large: "文字太长，超过 api.max_body_bytes。", unavailable: "暂时读不到状态或 broker（{0}）。",
  busy: "并发查询太多，请稍后再试。", invalid: "填写有误（{0}）。", internal: "服务出错，详见其日志。",
};

const UNITS = { s: "秒", min: "分钟", h: "小时" };

const chinese = locale.startsWith("zh");

/** Return how much is left, from the end of a probe's text: a number, or "12 of 20 records left, about 3 min". */
function remaining(line) {
  const parts = line.match(/(?<left>\d[\d,]*)( of (?<all>\d[\d,]*))?(.* about (?<time>\d+) (?<unit>\w+))?/)?.groups;
  if (!parts) return "";
  const { left, all, time, unit } = parts;
  return `（${all ? `剩 ${left}，共 ${all}` : left}${time ? `，约 ${time} ${UNITS[unit]}` : ""}）`;
}

/** Return what a service waits for, from the text of its probe. */
export function awaited(line) {
  const what = line.replace(/^waiting for /, "");
  const known = chinese && Object.keys(AWAITED).find((one) => what.startsWith(one));
  return known ? AWAITED[known] + remaining(what.slice(known.length)) : what;
}

/** Return why two texts are, or are not, copies, in words. */
export function verdictOf(reason) {
  const known = chinese && GROUNDS[reason.ground];
  return known ? known.replace("{0}", `Jaccard ${measureOf(reason.jaccard)}，${word("containment")} ${measureOf(reason.containment)}`) : reason.verdict;
}

/** Return what is wrong with a request. */
export function wrongWith(error) {
  if (!error.status) return word("noApi");
  const known = chinese && PROBLEMS[error.code];
  return known ? known.replace("{0}", () => error.message) : error.message;
}
