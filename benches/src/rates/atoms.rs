//! Atoms: all of the registry, with inputs that their schemas allow.

use super::{Case, id};
use a99_testkit::cost::Shape::{self, *};
use a99_xml::XmlParser;
use agent99::capabilities::MemoryStore;
use agent99::{AtomBody, AtomDef, Binding, Capabilities, Params, all_atoms};
use serde_json::{Value as Json, json};

/// Capabilities of the runs: a store that answers at once, and the XML parser.
pub(crate) fn capabilities() -> Capabilities {
    Capabilities::none()
        .with_store(MemoryStore::new())
        .with_xml(XmlParser::new())
}

/// Names of all atoms, as in [`super::Rate`].
pub(crate) fn rows() -> Vec<(&'static str, String)> {
    let atoms = all_atoms();
    let names = atoms.iter().map(|atom| atom.sig.name.to_string());
    names.map(|name| ("atoms", name)).collect()
}

/// Values for an input, by its schema.
fn shapes(schema: &Json) -> &'static [Shape] {
    let kind = match &schema["type"] {
        Json::String(kind) => kind.as_str(),
        Json::Array(kinds) => kinds[0].as_str().unwrap_or(""),
        _ => "",
    };
    match (kind, schema["items"]["type"].as_str()) {
        ("string", _) => &[
            Text,
            Piece,
            Wide,
            Commas,
            JsonNumbers,
            JsonObjects,
            JsonDeep,
            JsonEscapes,
            Empty,
            Quotes,
            TextHalf,
        ],
        ("number", _) => &[Number, Zero, Last],
        ("boolean", _) => &[Number],
        ("array", Some("string")) => &[Texts, LongTexts, Text],
        ("array", _) => &[Numbers, Texts, Objects, Nested, LongTexts, Fractions],
        ("object", _) => &[Record, Small, Numbered, Text],
        _ => &[
            Number, Text, Wide, Other, Digits, Numbers, Fractions, Texts, LongTexts, Nested,
            Objects, Record, Numbered,
        ],
    }
}

/// Literal texts for an input that no variable can supply.
fn literals(name: &str) -> &'static [&'static str] {
    match name {
        "pattern" => &[
            "lorem",
            "^[a-z ,]*$",
            "(a|b|c)+z",
            r"(?:\s{1,20}\w{1,20}){2}qN",
            r"\p{L}+\d$",
            "[^x]*x",
        ],
        "tmpl" => &["{{p}} and {{p}}", "plain"],
        _ => &["text"],
    }
}

fn plain(atom: &AtomDef) -> Vec<Case> {
    let name = atom.sig.name.as_ref();
    let schema: Json = serde_json::from_str(&atom.sig.input_schema).unwrap_or_default();
    let Params::Named(params) = &atom.sig.params else {
        let step = json!({"op": name, "result": "t"});
        return vec![Case::steps("atoms", name, "()", vec![step])];
    };
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut out = Vec::new();
    // The inputs step through their shapes at different speeds, so that all pairs of kinds occur.
    for turn in 0..40 {
        let mut step = json!({"op": name, "result": "t"});
        let mut case = Case::steps("atoms", name, "", vec![]);
        let mut shown = Vec::new();
        for (place, (param, variable)) in params.iter().zip(names).enumerate() {
            let at = turn / (place * 3 + 1);
            match param.binding {
                Binding::Vars | Binding::TemplateVars { .. } => {
                    let all = [Text, Number, Wide, Fractions];
                    case = case.var(variable, all[at % all.len()]);
                    step[param.name] = json!({"p": id(variable)});
                    shown.push(format!("{:?}", all[at % all.len()]));
                }
                Binding::Literal if matches!(param.name, "pattern" | "tmpl") => {
                    let all = literals(param.name);
                    step[param.name] = json!(all[at % all.len()]);
                    shown.push(all[at % all.len()].to_owned());
                }
                _ => {
                    let all = shapes(&schema["properties"][param.name]);
                    let shape = all[at % all.len()];
                    case = case.var(variable, shape);
                    step[param.name] = id(variable);
                    shown.push(format!("{shape:?}"));
                }
            }
        }
        let variant = shown.join(" ");
        if out.iter().any(|c: &Case| c.variant == variant) {
            continue;
        }
        out.push(Case {
            variant: variant.clone(),
            steps: vec![step.clone()],
            ..case.clone()
        });
        // Atoms without a grant and refused inputs: failures take time, too.
        if turn < 8 {
            let caught = json!({"op": "try", "try": [step], "catch": []});
            out.push(Case {
                variant: format!("caught {variant}"),
                steps: vec![caught],
                ..case
            });
        }
    }
    out
}

/// Cases of atoms that are not forms; the module of the language has those of forms.
pub(crate) fn cases() -> Vec<Case> {
    let atoms = all_atoms();
    let bodies = atoms
        .iter()
        .filter(|atom| !matches!(atom.body, AtomBody::Form));
    bodies.flat_map(|atom| plain(atom)).chain(xml()).collect()
}

/// Documents, most of them hostile.
fn xml() -> impl Iterator<Item = Case> {
    let shapes = [
        XmlElements,
        XmlOpen,
        XmlComments,
        XmlTexts,
        XmlReferences,
        XmlAttributes,
        XmlDeep,
    ];
    shapes.into_iter().map(|shape| {
        let step = json!({"op": "xmlParse", "str": id("a"), "result": "t"});
        let caught = json!({"op": "try", "try": [step], "catch": []});
        let case = Case::steps("atoms", "xmlParse", &format!("{shape:?}"), vec![caught]);
        case.var("a", shape)
    })
}
