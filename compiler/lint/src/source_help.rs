//! Rewrites help about steps and nodes into the syntax of the source, JavaScript.

use super::Rules;
use a99_core::diag::excerpt;
use a99_core::json::NodeId;
use std::borrow::Cow;

/// Atoms and forms that have another syntax in a source.
const FORMS: &[(&str, &str)] = &[
    ("map", "xs.map((x) => ...)"),
    ("filter", "xs.filter((x) => ...)"),
    ("find", "xs.find((x) => ...)"),
    ("reduce", "xs.reduce((sum, x) => ..., 0)"),
    ("forEach", "for (const x of xs) { ... }"),
    ("while", "while (n > 0) { ... }"),
    ("if", "if (n > 3) { ... }"),
    ("try", "try { ... } catch (e) { ... }"),
    ("sort", "xs.toSorted((a, b) => a.n - b.n)"),
    ("sum", "xs.reduce((sum, x) => sum + x, 0)"),
    ("unique", "[...new Set(xs)]"),
    ("split", "s.split(',')"),
    ("join", "xs.join(', ')"),
    ("len", "xs.length"),
    ("keys", "Object.keys(o)"),
    ("push", "xs.push(x)"),
    ("merge", "{ ...a, ...b }"),
    ("jsonParse", "JSON.parse(s)"),
    ("jsonStringify", "JSON.stringify(x)"),
    ("regexMatch", "/a+/.test(s)"),
    ("regexFind", "s.match(/a+/)"),
    ("regexFindAll", "[...s.matchAll(/a+/g)]"),
    ("regexReplace", "s.replaceAll(/a+/g, 'b')"),
    ("regexSplit", "s.split(/a+/)"),
    ("consoleLog", "console.log(x)"),
    ("callLocal", "f(x)"),
    ("mathCalc", "a + b"),
    ("varsLet", "const a = 1"),
];

/// Phrases that mention steps.
const PHRASES: &[(&str, &str)] = &[
    ("use the atom `", "write `"),
    ("use the atoms `", "write `"),
    ("use the step `", "write `"),
    (" in a step before", ""),
    ("add `const value = ...`", "write `const value = ...`"),
    ("remove the step", "remove the statement"),
    ("remove this step", "remove this statement"),
    (
        "declare it in `inputSchema`",
        "declare it in the type of the argument",
    ),
];

/// The text of a member of JSON written in one line: `i + 1` of `"expr": "i + 1"`.
fn member<'t>(code: &'t str, key: &str) -> Option<&'t str> {
    let at = code.find(&format!("\"{key}\": \""))?;
    let rest = &code[at + key.len() + "\"\": \"".len()..];
    rest.split('"').next()
}

/// The expression for a name, or for a path with numbers in it.
fn path(text: &str) -> Option<String> {
    let text = text.strip_prefix("args.").unwrap_or(text);
    let mut parts = text.split('.');
    let first = parts
        .next()
        .filter(|part| super::names::is_identifier(part))?;
    let mut out = first.to_owned();
    for part in parts {
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return None;
        }
        match part.bytes().all(|b| b.is_ascii_digit()) {
            true => out.push_str(&format!("[{part}]")),
            false => out.push_str(&format!(".{part}")),
        }
    }
    Some(out)
}

/// The source syntax of a piece of JSON; `None` if it is the same.
fn code(text: &str) -> Option<String> {
    if text.starts_with("\"result\": ") {
        return Some("const value = ...".to_owned());
    }
    if let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) {
        return path(inner).filter(|_| inner.contains('.'));
    }
    if let Some(rest) = text.strip_prefix("callLocal {name: \"") {
        return Some(format!("{}(...)", rest.split('"').next()?));
    }
    if text.starts_with("{\"op\": ") {
        return Some(match member(text, "op")? {
            "return" => "return value".to_owned(),
            "mathCalc" => format!("{} = {}", member(text, "result")?, member(text, "expr")?),
            op => form(op, text)?,
        });
    }
    if text.starts_with("{\"$expr\": ") {
        return Some(match member(text, "$expr")? {
            "ident" => member(text, "name")?.to_owned(),
            "call" => format!("{}(...)", member(text, "callee")?),
            "methodCall" => format!("x.{}(...)", member(text, "method")?),
            "binary" | "logical" => format!("a {} b", member(text, "op")?),
            "literal" => "'...'".to_owned(),
            _ => return None,
        });
    }
    let (name, inputs) = text.split_once(" {")?;
    // `return { a: 1 }` is not an atom's call.
    let is_form = super::names::is_identifier(name) && !inputs.starts_with(' ');
    is_form.then(|| form(name, inputs)).flatten()
}

/// The call of an atom, with the inputs that a help names.
fn form(op: &str, inputs: &str) -> Option<String> {
    if let Some((_, written)) = FORMS.iter().find(|row| row.0 == op) {
        return Some((*written).to_owned());
    }
    let names = inputs.trim_end_matches('}').split(',').map(str::trim);
    let names: Vec<&str> = names
        .filter(|name| super::names::is_identifier(name) && *name != "result")
        .collect();
    (!names.is_empty()).then(|| format!("await {op}({{ {} }})", names.join(", ")))
}

impl Rules<'_, '_> {
    /// A variable by its author's name: lowering numbers a second variable of a name, and prefixes
    /// generated names with `_`.
    pub(super) fn spoken_name(&self, name: &str, node: NodeId) -> String {
        let doc = self.doc;
        let Some((text, _)) = doc.origin() else {
            return name.to_owned();
        };
        let is_made = name
            .strip_prefix('_')
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()));
        if is_made {
            return "this".to_owned();
        }
        let Some((base, number)) = name.rsplit_once('_') else {
            return name.to_owned();
        };
        // The source text at the place holds the written name.
        const MOST: usize = 2_000;
        let span = doc.span(node).unwrap_or_default();
        let written = text.get(span.start as usize..span.end as usize);
        let has = |word: &str| {
            let written = written
                .filter(|written| written.len() <= MOST)
                .unwrap_or_default();
            !word.is_empty()
                && written
                    .windows(word.len())
                    .any(|part| part == word.as_bytes())
        };
        let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        match is_number && !has(name) && has(base) {
            true => base.to_owned(),
            false => name.to_owned(),
        }
    }
}

/// The help for a program that was written as a source.
pub(super) fn in_source(help: &str) -> Cow<'_, str> {
    let parts: Vec<&str> = help.split('`').collect();
    // Every other part is code, unless it contains backticks.
    if parts.len().is_multiple_of(2) || help.contains("``") {
        return Cow::Borrowed(help);
    }
    let mut out = String::with_capacity(help.len());
    for (at, part) in parts.iter().enumerate() {
        match (at % 2, code(part)) {
            (1, Some(written)) => out.push_str(&format!("`{}`", excerpt(&written))),
            (1, None) => out.push_str(&format!("`{part}`")),
            _ => out.push_str(part),
        }
    }
    for (phrase, other) in PHRASES {
        if out.contains(phrase) {
            out = out.replace(phrase, other);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::in_source;

    #[test]
    fn json_becomes_javascript() {
        for (help, wanted) in [
            (
                "add `\"result\": \"name\"`, or remove the step",
                "write `const value = ...`, or remove the statement",
            ),
            (
                "bind it, as with `{\"op\": \"mathCalc\", \"expr\": \"i + 1\", \"result\": \"i\"}`",
                "bind it, as with `i = i + 1`",
            ),
            (
                "use the atom `regexSplit {text, pattern, result}` in a step before",
                "write `s.split(/a+/)`",
            ),
            (
                "make one by `storeVectorize {text, result}`",
                "make one by `await storeVectorize({ text })`",
            ),
            ("give it one item, `\"xs.0\"`", "give it one item, `xs[0]`"),
            (
                "write `{\"$expr\": \"ident\", \"name\": \"total\"}`",
                "write `total`",
            ),
            (
                "write `a != b`, or `!(a == b)`",
                "write `a != b`, or `!(a == b)`",
            ),
            ("write `\"GET\"`", "write `\"GET\"`"),
            ("an odd ` tick", "an odd ` tick"),
            ("end with `return { n }`", "end with `return { n }`"),
        ] {
            assert_eq!(in_source(help), wanted);
        }
    }
}
