//! Advice for words of other languages and libraries: the form that works in a source.

pub(crate) const GENERATOR: &str = "declare it by name, and consume it where you call it: `for (const x of f())`, `[...f()]`, \
`Array.from(f())`, `yield* f()`; or return a list";

pub(crate) const TIMER: &str = "write `await sleep({ ms: 500 })`, which waits at most a day; it counts against the timeout of the \
     run";

pub(crate) const ERROR_CLASS: &str = "a class of errors has fields, and a constructor that calls \
     `super(message)`; what else it does is a function that takes the parts of the error";

/// Classes of errors whose constructors take a message and options.
pub(crate) const ERRORS: [&str; 7] = [
    "Error",
    "TypeError",
    "RangeError",
    "SyntaxError",
    "ReferenceError",
    "EvalError",
    "URIError",
];

pub(crate) const EXTENDS: &str = "both classes stand in one block, the constructor calls `super(...)` once, `super.method()` is a \
     method of the other class, and no field has the name of a method; else keep the other object \
     in a field, and call its methods";

/// Globals that programs lack.
const GLOBALS: &[(&[&str], &str)] = &[
    (
        &["require", "import"],
        "nothing is imported: atoms are functions that are there, as in `await httpFetch({ url })`",
    ),
    (&["fetch"], "write `await httpFetch({ url })`"),
    (
        &["setTimeout", "setInterval"],
        "nothing waits for time to pass: remove it; the host limits the time of a run",
    ),
    (
        &["process"],
        "there is no environment: take it as an argument, or read `context('env.NAME')`, which the \
         host must allow",
    ),
    (
        &["window", "document", "global", "globalThis"],
        "there is no page and no global object: take what is needed as an argument",
    ),
    (&["RegExp"], "write a literal, as in `/[a-z]+/g`"),
    (
        &["Promise"],
        "write `await Promise.all([a(...), b(...)])`, or await each call",
    ),
    (&["Map"], "write `new Map(entries)`"),
    (&["eval", "Function"], "write the code itself"),
    (
        &["Symbol", "Proxy", "Reflect", "WeakMap", "WeakSet"],
        "write plain objects and lists",
    ),
];

/// Methods and functions of other languages.
const CALLED: &[(&[&str], &str)] = &[
    (
        &["contains", "has", "include", "in_array", "member"],
        "write `.includes(x)`",
    ),
    (
        &["length", "size", "len", "count", "strlen", "getLength"],
        "write `.length`, without a call",
    ),
    (
        &["append", "add", "addAll", "pushAll", "insert"],
        "write `.push(x)`",
    ),
    (&["extend", "addRange", "union"], "write `.concat(others)`"),
    (
        &["remove", "removeIf", "without", "reject", "delete", "pull"],
        "write `.filter((x) => x !== value)`",
    ),
    (&["getYear"], "write `.getFullYear()`"),
    (
        &[
            "setDate",
            "setMonth",
            "setFullYear",
            "setHours",
            "setMinutes",
            "setSeconds",
            "setTime",
            "addDays",
            "addMonths",
            "addHours",
            "addYears",
            "plusDays",
            "subtract",
            "minus",
            "plus",
        ],
        "a date does not change: `d.add({ days: 1 })` gives another one",
    ),
    (
        &["strftime", "toFormat"],
        "write `.format('YYYY-MM-DD')`, or take parts: `date.toISOString().slice(0, 10)`",
    ),
    (
        &["upper", "toUpper", "ucase", "uppercase", "upcase"],
        "write `.toUpperCase()`",
    ),
    (
        &["lower", "toLower", "lcase", "lowercase", "downcase"],
        "write `.toLowerCase()`",
    ),
    (&["strip", "chomp"], "write `.trim()`"),
    (
        &["startswith", "startWith", "beginsWith", "hasPrefix"],
        "write `.startsWith(x)`",
    ),
    (
        &["endswith", "endWith", "hasSuffix"],
        "write `.endsWith(x)`",
    ),
    (&["isEmpty", "is_empty", "empty"], "write `.length === 0`"),
    (&["first", "head", "peek"], "write `[0]`"),
    (&["last", "tail"], "write `.at(-1)`"),
    (
        &["sum", "total", "sumBy"],
        "write `.reduce((sum, x) => sum + x, 0)`",
    ),
    (
        &["avg", "average", "mean"],
        "write `.reduce((sum, x) => sum + x, 0) / xs.length`",
    ),
    (
        &["unique", "distinct", "uniq", "dedupe"],
        "write `[...new Set(xs)]`",
    ),
    (
        &["groupBy", "group_by"],
        "write `await groupBy({ items, by: 'name' })`",
    ),
    (
        &["sortBy", "orderBy", "sorted", "order_by"],
        "write `await sort({ items, by: 'name' })`, or `.toSorted((a, b) => a.n - b.n)`",
    ),
    (
        &["each", "forEachAsync", "foreach"],
        "write `.forEach((x) => ...)`",
    ),
    (
        &["select", "collect", "mapAsync", "pluck"],
        "write `.map((x) => ...)`",
    ),
    (
        &["where", "grep", "filterAsync"],
        "write `.filter((x) => ...)`",
    ),
    (&["any", "exists", "anyMatch"], "write `.some((x) => ...)`"),
    (&["all", "allMatch"], "write `.every((x) => ...)`"),
    (
        &["fold", "inject", "aggregate"],
        "write `.reduce((sum, x) => ..., 0)`",
    ),
    (&["items"], "write `Object.entries(o)`"),
    (&["hasKey", "has_key", "containsKey"], "write `key in o`"),
    (
        &["get", "getOrDefault"],
        "write `o.key`, or `o[key] ?? value`",
    ),
    (&["put", "set"], "write `o[key] = value`"),
    (
        &["test", "exec"],
        "write it of a literal, or of a constant that is one",
    ),
    (
        &["json", "toJson"],
        "an answer is its value already: leave `.json()` out; the text of a value is \
         `JSON.stringify(x)`",
    ),
    (
        &["then", "catch"],
        "write `await`, and `try { ... } catch (e) { ... }`",
    ),
    (&["equals", "equal", "eq"], "write `===`"),
    (&["substr_count"], "write `s.split(x).length - 1`"),
    (
        &["capitalize", "title"],
        "write `s[0].toUpperCase() + s.slice(1)`",
    ),
    (
        &["print", "println", "printf", "puts", "echo", "alert"],
        "write `console.log(x)`",
    ),
    (&["str", "toStr"], "write `String(x)`"),
    (&["int", "parse_int"], "write `parseInt(x)`"),
    (&["float", "parse_float"], "write `parseFloat(x)`"),
    (&["range"], "write `for (let i = 0; i < n; i++)`"),
    (&["round"], "write `Math.round(x)`"),
    (&["floor"], "write `Math.floor(x)`"),
    (&["abs"], "write `Math.abs(x)`"),
    (&["max"], "write `Math.max(...xs)`"),
    (&["min"], "write `Math.min(...xs)`"),
    (
        &["isinstance", "is_a"],
        "write `typeof x === 'number'`, or `Array.isArray(x)`",
    ),
    (&["delay", "wait"], "write `await sleep({ ms })`"),
    (
        &["axios", "got", "request"],
        "write `await httpFetch({ url })`",
    ),
    (&["uuidv4", "randomUUID"], "write `await uuid({})`"),
];

/// Names of other languages and libraries that programs lack.
const LIBRARIES: &[(&[&str], &str)] = &[
    (&["None", "nil", "NULL", "Null"], "write `null`"),
    (&["True", "TRUE"], "write `true`"),
    (&["False", "FALSE"], "write `false`"),
    (
        &[
            "axios",
            "got",
            "ky",
            "request",
            "superagent",
            "http",
            "https",
            "$http",
        ],
        "write `await httpFetch({ url })`",
    ),
    (
        &["moment", "dayjs", "luxon", "DateTime", "datefns"],
        "write `new Date(text)`; `d.add({ days: 1 })` and `d.format('YYYY-MM-DD')` do the rest",
    ),
    (
        &["_", "lodash", "R", "ramda", "underscore"],
        "lists have the methods: `xs.map`, `xs.filter`, `xs.toSorted`; `Object.groupBy(xs, (x) => x.key)`",
    ),
    (
        &["fs", "path", "os", "Deno", "Bun"],
        "there are no files: take what is in them as an argument",
    ),
    (
        &["crypto"],
        "write `await uuid()`, or `await hash({ value })`",
    ),
    (&["Buffer"], "texts are texts: there are no bytes"),
    (
        &["localStorage", "sessionStorage", "redis", "db", "cache"],
        "write `await storeGet({ key })` and `await storeSet({ key, value })`",
    ),
    (
        &[
            "openai",
            "anthropic",
            "client",
            "llm",
            "model",
            "ai",
            "claude",
            "gpt",
        ],
        "write `await llmPredict({ prompt })`",
    ),
    (
        &["z", "zod", "Joi", "yup", "ajv"],
        "give the argument a type: `agent({ n }: { n: number })`",
    ),
    (
        &["np", "numpy", "pd", "math"],
        "write `Math.round(x)`, `xs.reduce((sum, x) => sum + x, 0)` and the like",
    ),
];

/// Returns the replacement of a member that a namespace lacks.
pub(crate) fn member_help(namespace: &str, name: &str) -> Option<&'static str> {
    Some(match (namespace, name) {
        ("Object", "create") => "write the object: `{ a: 1 }`",
        ("Object", "prototype" | "getPrototypeOf" | "setPrototypeOf") | ("Array", "prototype") => {
            "there are no prototypes: objects have their own members only"
        }
        ("Object", "defineProperty" | "defineProperties") => "set the member: `o.name = value`",
        ("Object", "freeze" | "seal" | "preventExtensions") => {
            "leave it out: no other code sees the object"
        }
        ("Object", "is") => "write `===`, and `Number.isNaN(x)` for NaN",
        _ => return None,
    })
}

/// Returns the replacement of a library.
pub(crate) fn library_help(name: &str) -> Option<&'static str> {
    find(LIBRARIES, name)
}

/// True if `typeof` can return this word.
pub(crate) fn is_type(name: &str) -> bool {
    matches!(
        name,
        "string" | "number" | "boolean" | "object" | "undefined" | "function"
    )
}

/// Common names for atoms: parts of the name in lower case, and the replacement.
const ATOM_PARTS: &[(&[&str], &str)] = &[
    (
        &["fetch", "http", "axios", "download"],
        "a page is asked for by an atom: `await httpFetch({ url })`",
    ),
    (
        &["llm", "gpt", "openai", "claude", "askmodel", "completion"],
        "a model is asked by an atom: `await llmPredict({ prompt })`",
    ),
    (
        &["readfile"],
        "files are read by an atom: `await shellReadFile({ path })`",
    ),
    (
        &["writefile"],
        "files are written by an atom: `await shellWriteFile({ path, content })`",
    ),
    (
        &["exec", "spawn", "shell", "runcommand"],
        "commands are run by an atom: `await shellExec({ command })`",
    ),
    (
        &["embed", "vectorize"],
        "texts are embedded by an atom: `await storeVectorize({ text })`",
    ),
    (
        &["callagent", "runagent", "invokeagent"],
        "an agent is called by an atom: `await agentRun({ agentId, input })`",
    ),
    (
        &[
            "loadfromstore",
            "getfromstore",
            "storageget",
            "kvget",
            "loadkey",
            "readstore",
        ],
        "the store is read by an atom: `await storeGet({ key })`",
    ),
    (
        &[
            "saveto",
            "savetostore",
            "storageset",
            "kvset",
            "putkey",
            "writestore",
        ],
        "the store is written by an atom: `await storeSet({ key, value })`",
    ),
];

/// Returns the atom that a foreign name most likely means.
pub(crate) fn atom_for(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase().replace('_', "");
    let row = ATOM_PARTS
        .iter()
        .find(|row| row.0.iter().any(|part| name.contains(part)));
    row.map(|row| row.1)
}

fn find(rows: &[(&[&str], &'static str)], name: &str) -> Option<&'static str> {
    let row = rows.iter().find(|row| row.0.contains(&name));
    row.map(|row| row.1)
}

/// Returns the replacement of a refused global.
pub(crate) fn global_help(name: &str) -> &'static str {
    find(GLOBALS, name).unwrap_or("docs/source.md lists what there is")
}

/// Returns the replacement of a function or method that programs lack.
pub(crate) fn called_help(name: &str) -> Option<&'static str> {
    find(CALLED, name)
}

/// Returns advice for a syntax error without advice from the parser, by its line.
pub(crate) fn syntax_help(source: &str, at: usize) -> &'static str {
    let before = source.get(..at).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = source.get(start..).unwrap_or_default();
    let line = line.lines().next().unwrap_or_default().trim();
    let python = ["elif ", "def ", "except", "with ", "lambda "];
    let words = [" and ", " or ", " not ", "(not ", " is "];
    // The error may be reported after the line that lacks something.
    let above = source.get(..start).unwrap_or_default().lines().last();
    let above = above.unwrap_or_default();
    let asks =
        |line: &str| line.contains(" ? ") && line.matches('?').count() > line.matches(':').count();
    let here = source.get(at..).unwrap_or_default();
    let rest = here.lines().next().unwrap_or_default().trim_start();
    let word = before.trim_end().rsplit(|c: char| !c.is_alphanumeric());
    let word = word.into_iter().next().unwrap_or_default();
    let is_else = ["elif ", "elsif ", "elseif "].iter().any(|word| {
        line.split_once(word)
            .is_some_and(|(left, _)| left.is_empty() || left.ends_with("} "))
    });
    if let Some((_, help)) = WORDS_BEFORE
        .iter()
        .find(|(words, _)| words.contains(&word) || is_else && words.contains(&"elif"))
    {
        help
    } else if let Some((_, help)) = SIGNS.iter().find(|(sign, _)| {
        rest.starts_with(sign) || before.ends_with(&sign[..1]) && rest.starts_with(&sign[1..])
    }) {
        help
    } else if word == "f" && rest.starts_with(['\'', '"']) {
        "a text with values in it stands in backticks: `` `total ${n}` ``"
    } else if rest.starts_with("for ") && line.contains(" in ") {
        "a list of what another one gives is `xs.map((x) => x * 2)`, of some of its items \
         `xs.filter((x) => x > 2)`"
    } else if rest.starts_with("if ") && line.contains(" else ") {
        "write `test ? a : b`"
    } else if rest.starts_with(':') && before.rfind('[') > before.rfind(']') {
        "a part of a list or text is `xs.slice(1, 3)`"
    } else if rest.starts_with("lambda") {
        "a function is `(x) => x * 2`"
    } else if rest.starts_with(';') && before.rfind('{') > before.rfind('}') && line.contains('{') {
        "members of an object and items of a list stand with `,` between them"
    } else if ["(f'", "(f\"", " f'", " f\""]
        .iter()
        .any(|start| line.contains(start))
    {
        "a text with values in it stands in backticks: `` `total ${n}` ``"
    } else if words.iter().any(|word| line.contains(word)) && !line.contains(['\'', '"', '`']) {
        "write `&&`, `||`, `!` and `===` for the words of Python"
    } else if rest.starts_with('#') || before.ends_with('#') {
        "a comment begins with `//`"
    } else if above.contains(" ? ") && asks(above) && !asks(line) {
        "the line before has a `?` without its `:`, as in `n > 3 ? 'a' : 'b'`"
    } else if line.starts_with("for (") && line.matches(';').count() < 2 {
        "a `for` has three parts with `;` between: `for (let i = 0; i < n; i++)`"
    } else if python.iter().any(|word| line.starts_with(word)) || line.ends_with(':') {
        "blocks stand in braces: `if (n > 3) { ... } else { ... }`"
    } else if line.starts_with("if ") && !line.starts_with("if (") {
        "a condition stands in parentheses: `if (n > 3) { ... }`"
    } else if line.matches('?').count() > line.matches(':').count() && line.contains(" ? ") {
        "a `?` needs its `:`, as in `n > 3 ? 'a' : 'b'`"
    } else if line.matches('(').count() != line.matches(')').count() {
        "close each `(` with `)`"
    } else if line.matches('\'').count() % 2 == 1 || line.matches('"').count() % 2 == 1 {
        "close the text with the quote that begins it"
    } else if rest.starts_with("return") || rest.starts_with('}') {
        "what stands before this is not complete: close it with `}`, `]` or `)`, or write the value \
         that is missing"
    } else {
        "write it as JavaScript does: statements end with a line or `;`, blocks stand in braces"
    }
}

/// Keywords of other languages, with the replacement of the statement that they begin.
const WORDS_BEFORE: &[(&[&str], &str)] = &[
    (
        &["def", "fn", "func", "fun", "sub"],
        "a function is `function name(x) { ... }`, or `const name = (x) => ...`",
    ),
    (
        &["elif", "elsif", "elseif"],
        "write `else if (n > 1) { ... }`",
    ),
    (&["raise"], "write `throw new Error('text')`"),
    (&["lambda"], "a function is `(x) => x * 2`"),
    (&["except"], "write `catch (e) { ... }`"),
    (
        &[
            "int", "float", "double", "string", "bool", "auto", "val", "str", "char",
        ],
        "a variable is declared by `let` or `const`: `let k = 3`",
    ),
    (
        &["echo", "print", "puts", "printf"],
        "write `console.log(x)`",
    ),
];

/// Operators of other languages, with their replacement.
const SIGNS: &[(&str, &str)] = &[
    (
        ":=",
        "a variable is declared by `let k = 3`, and set by `k = 3`",
    ),
    ("->", "a function is written with `=>`: `(x) => x * 2`"),
    ("<>", "write `!==`"),
    (
        "..",
        "numbers one after the other are `for (let i = 0; i < n; i++)`",
    ),
];

/// Recognises a text in another format, with advice.
pub(crate) fn other_format(text: &str) -> Option<(&'static str, &'static str)> {
    let head = text.trim_start();
    let first = head.lines().next().unwrap_or_default().trim_end();
    let json = (head.starts_with('{') || head.starts_with('['))
        && head[1..].trim_start().starts_with(['"', '{', '}']);
    let python = ["def ", "async def ", "from ", "class ", "elif ", "import "];
    if json {
        return Some(("JSON", "give the file the ending `.json`"));
    }
    if head.starts_with("```") || head.starts_with("# ") || head.starts_with("## ") {
        return Some((
            "Markdown",
            "give the code alone, without what stands around it",
        ));
    }
    if python.iter().any(|word| head.starts_with(word))
        && (first.ends_with(':') || head.starts_with("from "))
    {
        return Some((
            "Python",
            "write JavaScript: `export default function agent({ n }) { return { n } }`",
        ));
    }
    let yaml = first.split_once(':').is_some_and(|(key, rest)| {
        let word = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
        let plain = !key.is_empty() && key.chars().all(word);
        plain && (rest.is_empty() || rest.starts_with(' ')) && !rest.contains(['{', '(', ';'])
    });
    yaml.then_some((
        "YAML",
        "write JavaScript: `export default function agent({ n }) { return { n } }`",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_is_no_method_that_is_there() {
        for (names, help) in CALLED {
            // Sets and maps have these, and lists and objects do not.
            for name in names.iter().filter(|name| {
                !matches!(
                    **name,
                    "has" | "add" | "remove" | "union" | "get" | "set" | "delete"
                )
            }) {
                assert!(a99_core::builtins::method(name).is_none(), "{name}: {help}");
            }
        }
        for (names, _) in GLOBALS {
            for name in *names {
                assert!(a99_core::builtins::refused(name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn other_formats() {
        for (text, name) in [
            ("{\"op\": \"seq\"}", Some("JSON")),
            ("def agent(n):\n    return n\n", Some("Python")),
            ("op: seq\nsteps:\n", Some("YAML")),
            ("```js\nfunction agent() {}\n```", Some("Markdown")),
            ("function agent({ n }) { return { n } }", None),
            ("const a = 1", None),
        ] {
            assert_eq!(other_format(text).map(|found| found.0), name, "{text}");
        }
    }
}
