//! Reference page of the atoms, generated from their signatures: `docs/atoms.md`.

use super::{GENERATED, cell};
use a99_core::sig::{AtomInput, AtomSig, Binding};
use std::fmt::Write as _;

const HEAD: &str = "\
# Atoms

This page lists every atom with its inputs. [The language](language.md) describes how
atoms work together (section 2), [costs](costs.md) their prices. Tools for models and
findings about programs use the same descriptions.

The column *resolved* has the treatment of an input when the step runs (language
section 1.4):

- *yes*: a text may name a variable or a path, and nodes are evaluated;
- *members*: the same for each member or item;
- *not texts*: the same, except that a text is taken literally;
- *no*: the input is taken literally.

Types are those of the resolved value. An optional input may also be `null`. Every step
may have `result` and `resultConst` (language section 1.2).
";

/// A family of atoms, one section of the page.
#[derive(Clone, Debug)]
pub(crate) struct AtomFamily<'a> {
    pub title: &'a str,
    /// The atoms, in the order of the page.
    pub atoms: Vec<&'a AtomSig>,
}

/// The text of `docs/atoms.md`.
pub(crate) fn atoms_markdown(families: &[AtomFamily<'_>]) -> String {
    let mut out = format!("{GENERATED}{HEAD}");
    for family in families {
        let _ = write!(out, "\n## {}\n", family.title);
        for sig in &family.atoms {
            atom(&mut out, sig);
        }
    }
    out
}

// Writing to a string cannot fail.
fn atom(out: &mut String, sig: &AtomSig) {
    let _ = write!(out, "\n### {}\n\n{}\n", sig.name, sig.docs);
    let others = sig.takes_others();
    if sig.inputs.is_empty() {
        let text = match others {
            true => "Each other key of its step is an input.",
            false => "It has no inputs.",
        };
        let _ = write!(out, "\n{text}\n");
        return;
    }
    let head = "| input | type | default | resolved | description |\n|---|---|---|---|---|";
    let _ = write!(out, "\n{head}\n");
    for input in sig.inputs.iter() {
        row(out, input);
    }
    if others {
        let _ = write!(out, "\nIt also accepts other keys.\n");
    }
}

fn row(out: &mut String, input: &AtomInput) {
    let code = |text: &str| format!("`{}`", cell(text));
    let values: Vec<String> = input.values.iter().map(|value| code(value)).collect();
    let kind = match values.is_empty() {
        true => input.type_text(),
        false => values.join(", "),
    };
    let default = match (input.required, &*input.default) {
        (true, _) => "required".to_owned(),
        (false, "") => String::new(),
        (false, default) => code(default),
    };
    let resolved = match input.binding {
        Binding::Value => "yes",
        Binding::Literal => "no",
        Binding::TextOrValue => "not texts",
        Binding::TemplateVars { .. } | Binding::Vars => "members",
    };
    let (name, docs) = (code(&input.name), cell(&input.docs));
    let _ = writeln!(out, "| {name} | {kind} | {default} | {resolved} | {docs} |");
}

#[cfg(test)]
mod tests {
    use super::*;
    use a99_core::sig::{Param, Params};

    #[test]
    fn rows_say_all_that_is_known() {
        let schema = r#"{"properties":{"mode":{"type":"string","enum":["a|b"],"default":"a|b",
            "description":"How."},"n":{"type":"number"}},"required":["n"]}"#;
        let param = |name, binding| Param { name, binding };
        let params = vec![param("mode", Binding::Value), param("n", Binding::Literal)];
        let mut sig = AtomSig {
            params: Params::Named(params.into()),
            input_schema: schema.into(),
            ..AtomSig::new("do", "Does.", 0)
        };
        sig.describe();
        let none = AtomSig {
            params: Params::Named(Vec::new().into()),
            ..AtomSig::new("idle", "Idles.", 0)
        };
        let atoms = vec![&sig, &none];
        let text = atoms_markdown(&[AtomFamily {
            title: "Ours",
            atoms,
        }]);
        let mode = r#"| `mode` | `a\|b` | `"a\|b"` | yes | How. |"#;
        assert!(text.contains(mode), "{text}");
        assert!(
            text.contains("| `n` | number | required | no |  |"),
            "{text}"
        );
        assert!(text.ends_with("### idle\n\nIdles.\n\nIt has no inputs.\n"));
    }
}
