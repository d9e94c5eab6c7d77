//! Reference page of the builtins, generated from their tables: `docs/builtins.md`.

use super::{GENERATED, cell};
use a99_core::builtins::{
    BuiltinFunction, CONSTANTS, CallContext, FUNCTIONS, MEMBERS, METHODS, NAMESPACES, Reads,
    Receiver,
};
use a99_core::costs::Formula;
use std::fmt::Write as _;

const HEAD: &str = "\
# Builtins

This page lists all functions and methods that expressions can call
([language](language.md), sections 3.5 and 3.6). The price is the proportional price
of the metered model, in addition to the expression node; [costs](costs.md) has the
formulas. The column *reads* is `first`, the width of the first argument; `all`, the
widths of the receiver and of all arguments; `count`, one element for each argument;
or `deep`, all arguments with all nested contents. A `mathCalc` text cannot call
functions.

";

/// The text of `docs/builtins.md`.
pub(crate) fn builtins_markdown() -> String {
    let mut out = String::from(GENERATED);
    out.push_str(HEAD);
    out.push_str("## Functions\n\n");
    functions(&mut out, "", FUNCTIONS.iter().filter(|f| f.ns.is_empty()));
    for ns in NAMESPACES {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "## {ns}\n");
        functions(&mut out, ns, FUNCTIONS.iter().filter(|f| f.ns == *ns));
        let constants: Vec<String> = (CONSTANTS.iter())
            .filter(|(of, _, _)| of == ns)
            .map(|(_, name, _)| format!("`{ns}.{name}`"))
            .collect();
        if !constants.is_empty() {
            let _ = writeln!(out, "Constants: {}.\n", constants.join(", "));
        }
    }
    out.push_str("## Members\n\n| of | member | description |\n|---|---|---|\n");
    for (receiver, name, docs) in MEMBERS {
        let _ = writeln!(
            out,
            "| {} | `.{name}` | {} |",
            plural(*receiver),
            cell(docs)
        );
    }
    out.push_str("\nObjects have only the members that the program gave them.\n\n");
    for receiver in Receiver::ALL {
        let _ = writeln!(
            out,
            "## Methods of {}\n\n| method | description | price | reads | in conditions |\n\
             |---|---|---|---|---|",
            plural(*receiver)
        );
        for m in METHODS.iter().filter(|m| m.on.contains(receiver)) {
            row(
                &mut out,
                &format!(".{}", m.name),
                m.docs,
                m.cost,
                m.reads,
                m.places,
            );
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn plural(receiver: Receiver) -> &'static str {
    match receiver {
        Receiver::Text => "texts",
        Receiver::Number => "numbers",
        Receiver::Array => "arrays",
        Receiver::Set => "sets",
        Receiver::Date => "dates",
        Receiver::Map => "maps",
        Receiver::Any => "every value",
    }
}

fn functions<'f>(out: &mut String, ns: &str, rows: impl Iterator<Item = &'f BuiltinFunction>) {
    out.push_str("| function | result | price | reads | in conditions |\n|---|---|---|---|---|\n");
    for f in rows {
        debug_assert_eq!(f.ns, ns);
        row(out, &f.full_name(), f.docs, f.cost, f.reads, f.places);
    }
    out.push('\n');
}

fn row(
    out: &mut String,
    name: &str,
    docs: &str,
    cost: Formula,
    reads: Reads,
    places: &[CallContext],
) {
    let read = match cost.reads() {
        true => reads.as_str(),
        false => "-",
    };
    let condition = match places.contains(&CallContext::Condition) {
        true => "yes",
        false => "no",
    };
    let _ = writeln!(
        out,
        "| `{name}` | {} | {} | {read} | {condition} |",
        cell(docs),
        cost.code()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_shown_and_is_a_sentence() {
        let text = builtins_markdown();
        for f in FUNCTIONS {
            assert!(text.contains(&format!("| `{}` |", f.full_name())));
            assert!(f.docs.ends_with('.'), "{}", f.full_name());
        }
        for m in METHODS {
            assert!(text.contains(&format!("| `.{}` |", m.name)), "{}", m.name);
            assert!(m.docs.ends_with('.') && !m.on.is_empty(), "{}", m.name);
        }
        assert!(
            text.contains(
                "| `.trim` | The text without white space at its ends. | 2R | all | yes |"
            ),
            "{text}"
        );
    }
}
