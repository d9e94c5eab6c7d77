//! The prompt that teaches the source form.

use super::{atoms, line, signature};
use crate::Engine;
use a99_core::sig::{Binding, Form, ShortPrompts};

/// The rules, most important first.
const RULES: &str = "\
Write the agent as one module in a subset of JavaScript; what is outside of it is refused.

- `export default async function agent({ a, b = 1 }) { ... return { result } }`: its \
argument is one object. Other functions and constants may stand beside it. TypeScript types are allowed.
- There are let, const, destructuring, `...`, templates, `?.`, `??`, `? :`, if, while, do, for, \
for...of, for...in, labels, break, continue, switch, bit operators, try/catch/finally, \
`throw new Error(text)`. A caught `e` has message, name, code, cause, no stack.
- MEMBERS.
- map, filter, find, findIndex, some, every, forEach, reduce, flatMap, sort, replace and \
Array.from take functions. Functions are values: in variables, lists and objects, as arguments \
and results; they may set outer variables. They are no data: the agent returns none, atoms and \
JSON take none. Classes have fields, methods, getters, statics and `extends`. \
Calls nest at most 256 deep.
- Texts, lists, numbers, Math, JSON, Object, dates (UTC), Set, Map, Intl formatters (en-US), \
regular expressions, URL and URLSearchParams work as in JavaScript; return maps as \
`Object.fromEntries(map)`. Differences: a member of undefined is undefined; a match is an object, `[...m]` its list.
- There is no Promise.race, setTimeout (`await sleep({ ms })` waits), fetch or import. \
`context('user.id')` reads the request context, if the host allows that part.
- The world is reached by atoms, functions of one object: \
`const page = await httpFetch({ url })`. They throw when they fail. Several at once: \
`await Promise.all(urls.map((url) => httpFetch({ url })))`.

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

/// How an object gets another member: with atoms that set members, and without.
const MEMBERS: [&str; 2] = [
    "Members are set and deleted: `o[k] = v`, `(o[k] ??= []).push(v)`, `delete o.a`",
    "Of an object with another member make a new one, `o = { ...o, [key]: value }`",
];

/// Results of atoms whose names do not show them.
const ANSWERS: &[(&str, &str)] = &[
    ("httpFetch", "the body, JSON parsed"),
    ("storeGet", "undefined if missing"),
    ("storeVectorSearch", "documents, nearest first"),
    ("shellExec", "{ stdout, stderr, exitCode }"),
];

/// The prompt for this engine.
pub(super) fn text(engine: &Engine) -> String {
    let sets = engine.atoms().get("memberSet").is_some();
    let mut out = RULES.replace("MEMBERS", MEMBERS[usize::from(!sets)]);
    out.push_str("Atoms (`?`: optional):\n");
    for (sig, is_own) in atoms(engine) {
        let is_form = sig
            .form
            .is_some_and(|form| !matches!(form, Form::AgentRun | Form::Memoize));
        let is_listed = matches!(sig.listed, ShortPrompts::Both | ShortPrompts::Source);
        if is_form || (is_own && !is_listed) {
            continue;
        }
        let mut call = signature(sig);
        let mut bindings = sig.inputs.iter().map(|input| input.binding);
        if bindings.any(|binding| binding == Binding::TextOrValue) {
            // Computed texts are accepted without `raw` (D88).
            call = call.replace(", raw?)", ")");
        }
        let call = call.replacen('(', "({ ", 1).replace(')', " })");
        let mut call = call.replace("({  })", "()");
        let answer = ANSWERS.iter().find(|(name, _)| *name == sig.name);
        if let (Some((_, answer)), true) = (answer, is_own) {
            call = format!("{call} // {answer}");
        }
        line(&call, sig, is_own, &mut out);
    }
    out
}
