//! TypeScript declarations of what programs in the source form can call: the text that
//! `a99 types` prints.

mod types;

use crate::Engine;
use a99_core::builtins::{FUNCTIONS, Gives, MEMBERS, METHODS, NAMESPACES, Receiver};
use a99_core::sig::{AtomInput, AtomSig, Effect, JsonKinds};
use serde_json::Value as Json;
use std::fmt::Write as _;
use types::{kinds, schema};

const HEAD: &str = "\
// The atoms and builtins of programs in the source form, for editors and `tsc`.
// Written by `a99 types`. Add the file to the program's tsconfig.json:
//   {\"compilerOptions\": {\"strict\": true, \"noEmit\": true, \"target\": \"es2023\", \"lib\": [\"es2023\"],
//     \"types\": [], \"moduleDetection\": \"force\"}}

/** A part of the request context, such as `user.id`, if the host lets programs read it. */
declare function context(path: string): any
";

/// Global functions and namespaces of the builtins that the library of ECMAScript declares, too.
const STANDARD: [&str; 18] = [
    "parseInt",
    "parseFloat",
    "isNaN",
    "isFinite",
    "encodeURI",
    "decodeURI",
    "encodeURIComponent",
    "decodeURIComponent",
    "Set",
    "Map",
    "Date",
    "Error",
    "Number",
    "String",
    "Boolean",
    "Promise",
    "Array",
    "Object",
];

/// Functions of the standard namespaces and methods of values that the library of ES2023 lacks.
const BEYOND: &str = "
interface ObjectConstructor {
  /** The items of a list by the key that the function gives for each. */
  groupBy<K extends PropertyKey, T>(items: Iterable<T>, key: (item: T, index: number) => K): Partial<Record<K, T[]>>
}
interface DateConstructor {
  /** A date from a text or from milliseconds since 1970, null if it is not a date. */
  tryParse(date: string | number): Date | null
}
interface Set<T> {
  union(other: Set<T>): Set<T>
  intersection(other: Set<T>): Set<T>
  toArray(): T[]
}
";

/// Globals of the web that programs may have, declared where the builtins have a row for them.
const OF_THE_WEB: [(&str, &str); 5] = [
    ("structuredClone", "<T>(value: T): T"),
    ("btoa", "(text: string): string"),
    ("atob", "(text: string): string"),
    ("filter", "(value: any, schema: any): any"),
    ("escape", "(text: string): string"),
];

/// Types of inputs that the source form writes as code: atom, input, type.
const CODE: [(&str, &str, &str); 6] = [
    ("memoize", "steps", "() => any"),
    ("cache", "steps", "() => any"),
    ("callAll", "calls", "Promise<any>[]"),
    (
        "callAll",
        "call",
        "(item: any, index: number) => Promise<any>",
    ),
    (
        "llmToolLoop",
        "tools",
        "({ name: string; description?: string; inputSchema?: any; call: (input: any) => any } \
         | { atom: string; name?: string; description?: string } \
         | { agent: string; description: string; name?: string; inputSchema?: any })[]",
    ),
    (
        "llmToolLoop",
        "stopWhen",
        "(round: { number: number; text: string; calls: any[] }) => unknown",
    ),
];

/// Inputs that the source form does not take, because its functions name them.
const NAMED_BY_CODE: [(&str, &str); 2] = [("callAll", "as"), ("llmToolLoop", "as")];

/// Results that the signature does not describe.
const RESULTS: [(&str, &str); 2] = [
    ("callAll", "{ value?: any; error?: any }[]"),
    (
        "shellExec",
        "{ stdout: string; stderr: string; exitCode: number; [key: string]: any }",
    ),
];

impl Engine {
    /// TypeScript declarations of this engine's atoms and of the builtins, for programs in the
    /// source form: a file `agent99.d.ts`, with which editors complete and `tsc` checks.
    ///
    /// ```
    /// use agent99::Engine;
    ///
    /// let text = Engine::new().type_declarations();
    /// assert!(text.contains("declare function storeGet(input: {"));
    /// ```
    #[must_use]
    pub fn type_declarations(&self) -> String {
        let mut out = HEAD.to_owned();
        console(&mut out);
        builtins(&mut out);
        out.push_str(BEYOND);
        members(&mut out);
        for atom in self.atoms().iter() {
            let sig = &atom.sig;
            let is_called = a99_source::form_of(&sig.name).is_none() && is_name(&sig.name);
            if is_called && !a99_atoms::is_internal(&sig.name) {
                declare(sig, &mut out);
            }
        }
        out
    }
}

/// True if a source can call a function of this name.
fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
    name.chars().all(is_part) && !name.starts_with(|c: char| c.is_numeric()) && !name.is_empty()
}

/// `console`, merged with that of other libraries.
fn console(out: &mut String) {
    out.push_str("\ninterface Console {\n");
    for row in FUNCTIONS.iter().filter(|row| row.ns == "console") {
        comment(row.docs, "  ", out);
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "  {}(...values: any[]): void", row.name);
    }
    out.push_str("}\ndeclare var console: Console\n");
}

/// Global functions and namespaces that the library of ECMAScript lacks.
fn builtins(out: &mut String) {
    for row in FUNCTIONS.iter().filter(|row| row.ns.is_empty()) {
        if STANDARD.contains(&row.name) {
            continue;
        }
        let written = OF_THE_WEB.iter().find(|(name, _)| *name == row.name);
        out.push('\n');
        comment(row.docs, "", out);
        let gives = result(row.gives);
        let _ = match written {
            Some((name, text)) => writeln!(out, "declare function {name}{text}"),
            None => writeln!(
                out,
                "declare function {}(...values: any[]): {gives}",
                row.name
            ),
        };
    }
    for space in NAMESPACES {
        if STANDARD.contains(space) || matches!(*space, "Math" | "JSON" | "console") {
            continue;
        }
        let _ = writeln!(out, "\ninterface {space}Builtins {{");
        for row in FUNCTIONS.iter().filter(|row| row.ns == *space) {
            comment(row.docs, "  ", out);
            let _ = writeln!(
                out,
                "  {}(...values: any[]): {}",
                row.name,
                result(row.gives)
            );
        }
        let _ = writeln!(out, "}}\ndeclare var {space}: {space}Builtins");
    }
}

/// The members of dates, and methods of dates and sets under names that ECMAScript lacks.
fn members(out: &mut String) {
    out.push_str("\ninterface Date {\n");
    for (_, name, docs) in MEMBERS.iter().filter(|(on, ..)| *on == Receiver::Date) {
        comment(docs, "  ", out);
        let kind = if *name == "value" { "string" } else { "number" };
        let _ = writeln!(out, "  readonly {name}: {kind}");
    }
    const OWN: [&str; 5] = ["add", "diff", "format", "isBefore", "isAfter"];
    let rows = METHODS
        .iter()
        .filter(|row| row.on.contains(&Receiver::Date));
    for row in rows.filter(|row| OWN.contains(&row.name)) {
        comment(row.docs, "  ", out);
        let gives = match row.name {
            "add" => "Date",
            "diff" => "number",
            _ => result(row.gives),
        };
        let _ = writeln!(out, "  {}(...values: any[]): {gives}", row.name);
    }
    out.push_str("}\n");
}

/// The type of a builtin's result.
fn result(gives: Gives) -> &'static str {
    match gives {
        Gives::Number | Gives::Index => "number",
        Gives::Bool => "boolean",
        Gives::Text => "string",
        Gives::Texts => "string[]",
        Gives::List | Gives::Items => "any[]",
        Gives::Date => "Date",
        Gives::Set => "Set<any>",
        Gives::Item
        | Gives::Part
        | Gives::Joined
        | Gives::Itself
        | Gives::Object
        | Gives::Unknown => "any",
    }
}

fn declare(sig: &AtomSig, out: &mut String) {
    let effect = match sig.effect {
        Effect::Pure => "Depends on its inputs only.",
        Effect::Mutates => "Changes one of its inputs.",
        Effect::Read => "Asks the host, and changes nothing.",
        Effect::Idempotent => "Changes the world; once more changes nothing further.",
        Effect::Unsafe => "Changes the world with each call.",
    };
    let mut docs = format!(
        "{}\n\n{effect} Price: {}.",
        sig.docs.trim(),
        sig.price_text()
    );
    if let Some(needed) = sig.capability {
        let _ = write!(docs, " Capability: `{}`.", needed.name());
    }
    out.push('\n');
    comment(&docs, "", out);
    let inputs: Vec<&AtomInput> = sig
        .inputs
        .iter()
        .filter(|input| is_taken(sig, input))
        .collect();
    let optional = inputs.iter().all(|input| !input.required);
    let _ = write!(out, "declare function {}(", sig.name);
    if !inputs.is_empty() || sig.takes_others() {
        let _ = writeln!(out, "input{}: {{", if optional { "?" } else { "" });
        for input in inputs {
            member(sig, input, out);
        }
        if sig.takes_others() {
            out.push_str("  [key: string]: any\n");
        }
        out.push('}');
    }
    let _ = writeln!(out, "): Promise<{}>", answer(sig));
}

/// True if a call in a source has the input. Computed texts are accepted without `raw` (D88).
fn is_taken(sig: &AtomSig, input: &AtomInput) -> bool {
    !NAMED_BY_CODE.contains(&(&*sig.name, &*input.name))
}

fn member(sig: &AtomSig, input: &AtomInput, out: &mut String) {
    let mut docs = input.docs.trim().to_owned();
    if !input.default.is_empty() {
        let _ = write!(docs, "\n@default {}", input.default);
    }
    comment(docs.trim(), "  ", out);
    let code = CODE
        .iter()
        .find(|(atom, name, _)| (*atom, *name) == (&*sig.name, &*input.name));
    let kind = match code {
        Some((.., kind)) => (*kind).to_owned(),
        None => of_input(input),
    };
    let name = match is_name(&input.name) {
        true => input.name.to_string(),
        false => Json::from(&*input.name).to_string(),
    };
    let _ = match input.required {
        true => writeln!(out, "  {name}: {kind}"),
        false if kind == "any" => writeln!(out, "  {name}?: any"),
        false if code.is_some() || kind.ends_with("| null") => writeln!(out, "  {name}?: {kind}"),
        false => writeln!(out, "  {name}?: {kind} | null"),
    };
}

fn of_input(input: &AtomInput) -> String {
    if !input.values.is_empty() && !input.any_case {
        let values = input
            .values
            .iter()
            .map(|value| Json::from(&**value).to_string());
        return values.collect::<Vec<_>>().join(" | ");
    }
    let described = input.described();
    match schema(&described, &described) {
        kind if kind == "any" => kinds(input.kinds.without_null(), input.parts),
        kind => kind,
    }
}

fn answer(sig: &AtomSig) -> String {
    if let Some((_, kind)) = RESULTS.iter().find(|(atom, _)| *atom == sig.name) {
        return (*kind).to_owned();
    }
    if sig.always_fails() {
        return "never".to_owned();
    }
    let described = serde_json::from_str::<Json>(&sig.output_schema).unwrap_or_default();
    let kind = match schema(&described, &described) {
        kind if kind == "any" => kinds(sig.gives.kinds, JsonKinds::ANY),
        kind => kind,
    };
    match sig.gives.defined || kind == "any" {
        true => kind,
        false => format!("{kind} | undefined"),
    }
}

/// Writes a JSDoc comment; an empty text has none.
fn comment(docs: &str, indent: &str, out: &mut String) {
    // A text of a host must not end the comment.
    let docs = docs.replace("*/", "*\u{200b}/");
    let mut lines = docs.lines();
    match (lines.next(), lines.clone().next()) {
        (None, _) => {}
        (Some(line), None) => {
            let _ = writeln!(out, "{indent}/** {line} */");
        }
        _ => {
            let _ = writeln!(out, "{indent}/**");
            for line in docs.lines() {
                let _ = writeln!(out, "{}", format!("{indent} * {line}").trim_end());
            }
            let _ = writeln!(out, "{indent} */");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AtomBody, AtomDef, AtomSet};
    use a99_core::sig::Params;
    use serde_json::json;

    #[test]
    fn atoms_of_a_host_are_declared() {
        let schema = json!({"type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "Where */ it rains."},
            "days": {"type": "integer", "default": 3},
        }});
        let sig = AtomSig {
            params: Params::Open,
            input_schema: schema.to_string().into(),
            output_schema: json!({"type": "array", "items": {"type": "number"}})
                .to_string()
                .into(),
            ..AtomSig::new("forecast", "Rain of the next days.", 1_500_000)
        };
        let atom = |sig: AtomSig| AtomDef {
            sig,
            body: AtomBody::Form,
            dynamic_cost: None,
        };
        let odd = AtomSig::new("not-a-name", "It cannot be called.", 0);
        let atoms = AtomSet::new().with(atom(sig)).with(atom(odd));
        let text = Engine::builder().atoms(atoms).build().type_declarations();
        let expected = "\
/**
 * Rain of the next days.
 *
 * Depends on its inputs only. Price: 1.5.
 */
declare function forecast(input: {
  /** Where *\u{200b}/ it rains. */
  city: string
  /** @default 3 */
  days?: number | null
  [key: string]: any
}): Promise<number[] | undefined>
";
        assert!(text.ends_with(expected), "{text}");
        assert!(!text.contains("not-a-name") && !text.contains("httpFetch"));
    }
}
