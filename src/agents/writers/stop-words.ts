import type { Language } from "./language.ts";

const words = (list: string): ReadonlySet<string> => new Set(list.trim().split(/\s+/));

/** Words that carry structure rather than subject. Small on purpose: they only have to keep such words out of titles and rankings. */
export const STOP_WORDS = {
  en: words(`
    a about above according across actually after again against ago all almost along already also although always am among an and
    another any anyone anything are aren't around as aside at away back be became because become becomes been before began behind being
    below besides best better between beyond big bit both bring brings but by call called came can can't cannot cause come comes
    could couldn't did didn't different do does doesn't doing don't done down due during e.g each early either else enough etc even
    ever every everyone everything example far few find first five follow for found four from further gave general get gets give
    given gives go goes going gone good got great had has have haven't having he her here hers herself high him himself his how
    however i i'd i'll i'm i've i.e if important in include includes including indeed instead into is isn't it it's its itself
    just keep kept kind know known large last later latter least less let let's like likely little long look looks lot low made
    main mainly make makes making many may maybe me mean means might more most mostly much must my myself near nearly need needed
    needs neither never new next no nobody none nor not nothing now number of off often on once one only onto or other others
    otherwise our ours out over own part parts per perhaps place put quite rather real really recent said same saw say says second
    see seem seems seen several shall she should shouldn't show shown shows since small so some someone something sometimes soon
    still such take taken takes taking tell than that that's the their theirs them themselves then there there's therefore these
    they they're thing things think third this those though three through throughout thus to today together too took toward
    towards true try turn turned two under unless unlike until up upon us use used useful uses using usually various very via
    want was wasn't way ways we we're well went were weren't what when where whether which while who whole whom whose why will
    with within without won't work works would wouldn't yes yet you you're your yours yourself years year`),
  zh: words(`
    一 一个 一些 一种 一样 一直 一定 一般 一方面 另一方面 一下 一起 这 这个 这些 这种 这样 这里 那 那个 那些 那么 那样 它 它们 他 他们 她 她们
    我 我们 你 你们 您 自己 大家 别人 人们 的 地 得 了 着 过 和 与 及 以及 或 或者 并 并且 而 而且 但 但是 然而 不过 却 虽然 尽管 即使 如果
    假如 只要 只有 除非 因为 由于 所以 因此 于是 从而 以便 为了 关于 对于 根据 按照 通过 经过 随着 作为 除了 包括 例如 比如 其中 其他 其它
    其 此 此外 另外 同时 同样 首先 其次 然后 最后 最终 目前 现在 当前 今天 已 已经 曾 曾经 正在 将 将会 即将 开始 继续 进行 得到 成为 使 使得
    让 把 被 给 对 向 从 到 在 于 由 为 以 用 使用 利用 采用 是 不是 就是 也是 还是 都是 有 没有 具有 拥有 存在 能 能够 可以 可能 应该 应当 必须
    需要 会 要 想 不 不会 不能 不要 没 别 也 还 又 再 都 就 才 只 很 更 最 非常 十分 比较 更加 越来越 相当 几乎 大约 左右 许多 很多 不少 大量 各
    各种 各个 每 每个 某 某些 任何 所有 全部 整个 不同 不仅 不但 甚至 尤其 特别 主要 重要 什么 怎么 怎样 如何 为什么 哪 哪些 哪个 谁 多少 几
    上 下 中 里 内 外 前 后 之 之间 之后 之前 之一 以上 以下 以来 以后 方面 情况 时候 时 当 等 等等 个 种 次 年 月 日 说 认为 表示 指出 来 去 看
    做 起来 出来 下来 过来 进入 提出 带来 变得 仍然 仍 依然 往往 通常 常常 经常 有时 有些 有的 第一 第二 第三 两 三 四 五 多 大 小 高 低 新 好 地方 普遍 有望 超过 领域 不仅仅 逐渐 逐步 实现 主任 一位 方式 产生 发现 深刻`),
} as const satisfies Record<Language, ReadonlySet<string>>;

/** A full stop after one of these does not end a sentence. */
export const ABBREVIATIONS = words(`
    dr mr mrs ms prof st vs e.g i.e eg ie cf al fig figs no nos vol pp inc ltd co corp jr sr approx dept est gen gov hon rev sen
    rep jan feb mar apr jun jul aug sep sept oct nov dec mt ft u.s u.k ca ed eds`);
