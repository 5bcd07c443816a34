// The page's words in English and Chinese. Knows languages; knows nothing of what is shown.

const ENGLISH = {
  subtitle: "near-duplicates in a stream of articles", skip: "Skip to the chosen article", token: "Token (api.token)", enter: "Enter",
  now: "Now", rate: "articles a second", copies: "share of copies", waiting: "waiting messages", judged: "articles judged", streamTime: "stream's time",
  nowMark: "now", shares: "Shares by relation", minutesAgo: "{0} min ago", peak: "peak {0}/s",
  chartLabel: "Articles a second over the last {0} minutes: now {1}, peak {2}; copies now {3}",
  searchArticle: "Id of an article", search: "Search", more: "Scope, compare with another", scope: "scope", scopeLabel: "Scope",
  compareWith: "Compare with (id)", latest: "Latest links", noLinks: "No links yet.", chosen: "Article", chooseOne:
  "Choose one of the latest links, or search for an id: what was decided, why, and where else the story appeared.",
  similar: "What is a text similar to?", pasteText: "Paste a text. It is compared with all judged articles, and not stored.",
  source: "source", sourceLabel: "Source", compare: "Compare", runs: "The service is running", waits: "The service is waiting for {0}", rests: "No service answers; its stored state is shown", ofFiles: "The state was made from files; no service runs on it",
  noApi: "The API does not answer", wantsToken: "The API needs its token", wrongToken: "This is not the API's token", version: "version {0} · IDF epoch {1} · {2} entries",
  looking: "Looking …", unique: "“{0}” is new: it resembled no known article.", uniqueRelation: "“{0}” counts as unique: {1}.",
  duplicate: "“{0}” is a copy of “{1}”.", duplicateForgotten: "“{0}” is a copy of an article that is no longer known.",
  duplicateRelation: "“{0}” counts as a duplicate: {1}.", published: "published", received: "received",
  foundBy: "found by", canonical: "canonical", message: "message", place: "{0}, partition {1}, offset {2}",
  epoch: "IDF epoch", otherEpoch: "The link was decided with the weights of IDF epoch {0}; measured here with those of epoch {1}: fingerprints and their distance may differ.",
  revised: "The second article has been revised since it was matched: its current text is compared.",
  jaccard: "Jaccard", containment: "containment", hamming: "Hamming", cosine: "cosine", bits: "Fingerprints: {0} of 64 bits differ",
  verdict: "With the current settings and weights", both: "The two texts", first: "first", second: "second", whole: "Show the full texts",
  around: "Show only the differences", sameTexts: "The two texts are identical.",
  tooLong: "The texts differ so much that only whole passages are marked.",
  sharedWords: "Heaviest shared words", differingWords: "Heaviest differing words", none: "none",
  cluster: "Its cluster: {0} articles", time: "time", article: "article", relation: "relation", matched: "matched",
  timelineLabel: "Articles of the cluster over time, from {0} to {1}: at most {2} per interval", moreMembers: "{0} more",
  wouldBe: "It would be a duplicate of “{0}”.", wouldBeUnique: "It would be unique.", likeNothing: "It resembles no known article.",
  noCopy: "not a copy", too_little: "too little in common", too_short: "too short", template: "other numbers or places", no_content: "no content",
  unseen: "{0} new entries cannot be searched yet.", unknownSource: "unknown source",
  new: "new", exact: "exact", near: "near", contained: "contained", contains: "contains", revision: "revision",
  redelivery: "redelivery", withdrawn: "withdrawn", succession: "succession",
  content: "content", landmark: "landmark", simhash: "SimHash", id: "id", blank: "The text is blank: there is nothing to compare.",
};

const CHINESE = {
  subtitle: "文章流的近重复检测", skip: "跳到所选文章", token: "令牌（api.token）", enter: "确定",
  now: "当前", rate: "篇/秒", copies: "其中重复", waiting: "等待处理", judged: "累计判定", streamTime: "流时间",
  nowMark: "现在", shares: "各类关系的占比", minutesAgo: "{0} 分钟前", peak: "峰值 {0} 篇/秒",
  chartLabel: "最近 {0} 分钟每秒篇数：当前 {1}，最高 {2}；其中重复 {3}",
  searchArticle: "文章 id", search: "查询", more: "作用域、与另一篇比较", scope: "作用域", scopeLabel: "作用域",
  compareWith: "与哪一篇比较（id）", latest: "最新链接", noLinks: "还没有链接。", chosen: "文章", chooseOne:
  "选择一条最新链接，或按 id 查询：怎样判定、为什么、同一报道还出现在哪里。",
  similar: "这段文字像什么？", pasteText: "粘贴一段文字：与已判定的全部文章比较，不会被记住。",
  source: "来源", sourceLabel: "来源", compare: "比较", runs: "服务运行中", waits: "服务在等待：{0}", rests: "服务没有应答，显示的是它已保存的状态", ofFiles: "状态由文件生成，没有服务使用它",
  noApi: "API 没有应答", wantsToken: "API 需要令牌", wrongToken: "令牌不对", version: "版本 {0} · IDF 纪元 {1} · {2} 个条目",
  looking: "查询中……", unique: "“{0}”是新文章：与已知的都不相像。", uniqueRelation: "“{0}”作为新文章发出：{1}。",
  duplicate: "“{0}”是“{1}”的副本。", duplicateForgotten: "“{0}”是一篇已被遗忘的文章的副本。",
  duplicateRelation: "“{0}”计为重复：{1}。", published: "发布", received: "收到",
  foundBy: "命中索引", canonical: "代表文章", message: "消息", place: "{0}，分区 {1}，偏移 {2}",
  epoch: "IDF 纪元", otherEpoch: "链接判定时用的是 IDF 纪元 {0} 的权重，此处用纪元 {1} 的权重测算：指纹及其距离可能不同。",
  revised: "后者在匹配之后又修订过：此处比较的是现在的文字。",
  jaccard: "Jaccard", containment: "包含度", hamming: "汉明距离", cosine: "余弦", bits: "指纹：64 位中有 {0} 位不同",
  verdict: "按当前的设置与权重", both: "两篇文字", first: "前者", second: "后者", whole: "显示全文",
  around: "只显示差异", sameTexts: "两篇文字逐字相同。",
  tooLong: "差异过多，只标出整段。",
  sharedWords: "共有词（按权重）", differingWords: "只有一方有的词（按权重）", none: "无",
  cluster: "所在簇：{0} 篇", time: "时间", article: "文章", relation: "关系", matched: "匹配",
  timelineLabel: "簇内文章的时间分布，{0} 至 {1}：每段最多 {2} 篇", moreMembers: "还有 {0} 篇",
  wouldBe: "会判为重复：与“{0}”。", wouldBeUnique: "会判为新文章。", likeNothing: "与已知的文章都不相像。",
  noCopy: "不是副本", too_little: "共有的太少", too_short: "太短", template: "数字或地名不同", no_content: "没有内容",
  unseen: "最新的 {0} 个条目暂时还不能检索。", unknownSource: "来源不明",
  new: "新", exact: "相同", near: "近似", contained: "被包含", contains: "包含", revision: "修订",
  redelivery: "重发", withdrawn: "撤回", succession: "更替",
  content: "内容哈希", landmark: "地标", simhash: "SimHash", id: "id", blank: "文字是空白的，没有可比较的内容。",
};

const chinese = navigator.language.toLowerCase().startsWith("zh");
export const LANGUAGES = { en: ENGLISH, "zh-CN": CHINESE };
export const locale = chinese ? "zh-CN" : "en";

/** Return a word in the page's language, with values in place of {0}, {1}, ... if given; an unknown name is returned unchanged. */
export function word(name, ...values) {
  return (LANGUAGES[locale][name] ?? name).replace(/\{(\d)\}/g, (place, at) => values[at] ?? place);
}

/** Set the texts of all elements that name a word. */
export function speak(root) {
  document.documentElement.lang = locale;
  for (const element of root.querySelectorAll("[data-word]")) element.textContent = word(element.dataset.word);
}

const numbers = new Intl.NumberFormat(locale);
const shares = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 });
const moments = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });

const brief = new Intl.DateTimeFormat(locale, { month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export const numberOf = (value) => (value === null || value === undefined ? "–" : numbers.format(value));
export const shareOf = (value) => shares.format(value);
export const timeOf = (iso) => (iso ? moments.format(new Date(iso)) : "–");
export const briefTimeOf = (iso) => (iso ? brief.format(new Date(iso)) : "–");
export const measureOf = (value) => (value === null || value === undefined ? "–" : value.toFixed(2));
