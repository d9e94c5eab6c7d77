//! The prompt that teaches the source form.

use super::{atoms, line, signature};
use crate::Engine;
use a99_core::sig::Form;

/// The rules, in the order in which they matter.
const RULES: &str = "\
Write the agent as one module in a subset of JavaScript. It is compiled, not executed by a \
JavaScript engine; what is outside of the subset is refused.

- `export default async function agent({ a, b = 1 }) { ... return { result } }`: its \
argument is one object. Other functions may stand beside it. TypeScript types are allowed; \
those of the argument are checked.
- There are let, const, destructuring, `...` in lists and objects, templates, `?.`, `??`, `? :`, \
if, while, for, for...of, break, continue, switch with `break`, try/catch/finally, \
`throw new Error(text)`. Of a caught `e` there is `e.message` only.
- Assignments and `x++` are statements of their own, never parts of expressions; of an object \
with another member make a new one, `o = { ...o, [key]: value }`.
- map, filter, find, findIndex, some, every, forEach, reduce, flatMap, sort and Array.from take \
arrow functions or names of functions, which may set variables outside. Other functions only \
read what is outside: hand values over and return new ones. Functions are no values.
- Texts, lists, numbers, Math, JSON, Object, `new Date(x)` (UTC), `new Set(list)`, Number, \
String, parseInt and regular expression literals (no look-around) work as in JavaScript. A \
member of undefined is undefined.
- There is no class, this, new Map (use objects), var, do, for...in, label, \
generator, Promise but for all and allSettled, setTimeout, fetch, import or bit operator.
- The world is reached by atoms, functions of one object written in place: \
`const page = await httpFetch({ url })`. They throw when they fail. Several at once: \
`await Promise.all(urls.map((url) => httpFetch({ url })))`.
- Fuel is limited: every step costs.

Example:
export default async function agent({ urls, min = 10 }) {
  let total = {}
  let failed = 0
  for (const url of urls) {
    try {
      const { orders } = await httpFetch({ url })
      for (const { city, price } of orders.filter((o) => o.price >= min)) {
        total = { ...total, [city]: (total[city] ?? 0) + price }
      }
    } catch (e) {
      failed++
    }
  }
  const [best] = Object.entries(total).sort((a, b) => b[1] - a[1])
  return { total, failed, best: best?.[0] ?? null }
}

";

/// Atoms that the short text leaves out, as JavaScript does the same or few need them.
pub(super) const SELDOM: &[&str] = &[
    "split",
    "storeQuery",
    "xmlParse",
    "join",
    "template",
    "regexMatch",
    "regexReplace",
    "regexSplit",
    "regexFind",
    "regexFindAll",
    "sort",
    "groupBy",
    "unique",
    "sum",
    "pick",
    "omit",
    "merge",
    "keys",
    "memberSet",
    "memberDelete",
    "push",
    "len",
    "jsonParse",
    "jsonStringify",
    "eq",
    "neq",
    "gt",
    "lt",
    "and",
    "or",
    "not",
    "transpileCode",
    "runCode",
    "storeProcedure",
    "releaseProcedure",
    "clearExpiredProcedures",
    "storeVectorize",
    "storeCreateCollection",
    "storeVectorAdd",
    "storeSearch",
    "domText",
    "domValue",
    "domClick",
    "domInput",
    "localStorageGet",
    "localStorageSet",
    "storeQueryWhere",
    "llmPredictBattery",
    "llmVision",
    "shellWriteFile",
    "shellReadFile",
    "consoleLog",
    "consoleWarn",
    "consoleError",
    "callAll",
];

/// The text for this engine.
pub(super) fn text(engine: &Engine) -> String {
    let mut out = RULES.to_owned();
    out.push_str("Atoms (`?`: optional), each called with one object:\n");
    for (sig, is_own) in atoms(engine) {
        let is_form = sig
            .form
            .is_some_and(|form| !matches!(form, Form::AgentRun | Form::Memoize));
        if is_form || (is_own && SELDOM.contains(&&*sig.name)) {
            continue;
        }
        let call = signature(sig).replacen('(', "({ ", 1).replace(')', " })");
        line(&call.replace("({  })", "()"), sig, is_own, &mut out);
    }
    out
}
