//! Interesting texts and literals: patterns, templates, conditions, schemas.

use serde_json::{Value as Json, json};

/// Parts of regular expressions, and suffixes of a part.
const PARTS: [&str; 20] = [
    "a",
    "lorem",
    "[a-z ,]",
    "(a|b|c)",
    r"\w",
    r"\s",
    r"\d",
    ".",
    "^",
    "$",
    "(lorem)",
    r"\p{L}",
    "é",
    "[^x]",
    r"\b",
    "(?<n>o)",
    "(?:a|ab|abc)",
    "x",
    "(?:a*)",
    "q",
];
const TIMES: [&str; 10] = ["", "", "*", "+", "?", "{1,20}", "{50}", "*?", "{3,}", "+?"];

/// A pattern of up to three parts.
pub(crate) fn pattern(choices: &[u8]) -> String {
    let mut out = String::new();
    for choice in choices {
        let choice = usize::from(*choice);
        let (part, times) = (
            PARTS[choice % PARTS.len()],
            TIMES[choice / PARTS.len() % 10],
        );
        out.push_str(part);
        if !matches!(part, "^" | "$" | r"\b") {
            out.push_str(times);
        }
    }
    out
}

/// Flags of regular expressions.
pub(crate) const FLAGS: [&str; 6] = ["", "i", "u", "s", "m", "iu"];

/// Texts for inputs that take no variable, and for others.
pub(crate) const TEXTS: [&str; 16] = [
    "",
    "x",
    ",",
    "a",
    "xy",
    "lorem",
    " ",
    "\u{e9}",
    "\u{1f600}",
    "key1",
    "id",
    "length",
    "0",
    "NFKD",
    "desc",
    "%41",
];

/// Templates.
pub(crate) const TEMPLATES: [&str; 6] = [
    "{{p}}",
    "{{p}}{{p}}{{p}}{{p}}",
    "plain",
    "{{p.length}}",
    "{{p.id.name.x}}{{p.key1}}",
    "{{ q }} {{p}} {{0}}",
];

/// Conditions, over the variables of [`super::grow`].
pub(crate) const CONDITIONS: [&str; 24] = [
    "s0 == s1",
    "s0 < s1",
    "s0 + s1 == s2",
    "s0 >= x0",
    "x0 == x1",
    "x0 < s0",
    "l0.length > 3 && s0 == 'x'",
    "l0[0] == l1[1]",
    "o0['id'] == n0",
    "o0.key1 ?? s0",
    "typeof x0 == 'string'",
    "+s0 > 3",
    "-l0",
    "l0 + s0",
    "l0 == s0",
    "s0 * s1",
    "n0 ** n1 % 7",
    "s0 ? l0 : o0",
    "!x0 || !x1",
    "s0.includes(s1)",
    "l0.includes(s1)",
    "s0.length + l0.length > n0",
    "isNaN(s0)",
    "x0.length == x1.length",
];

/// Formulas.
pub(crate) const FORMULAS: [&str; 8] = [
    "n0 * 2 + 1",
    "sqrt(n0) + max(n1, 3)",
    "n0 ^ n1",
    "n0 % n1",
    "sin(n0) * cos(n1)",
    "n0",
    "min(n0, n1, 2, 3)",
    "abs(n0 - n1) / 3",
];

/// Numbers: small, whole, at limits of formats, NaN.
pub(crate) const NUMBERS: [f64; 16] = [
    0.0,
    1.0,
    -1.0,
    2.0,
    7.25,
    10.0,
    16.0,
    100.0,
    1_000.0,
    65_535.0,
    100_000.0,
    2_147_483_648.0,
    9_007_199_254_740_993.0,
    1e21,
    1.5e-7,
    5e-324,
];

/// A schema.
pub(crate) fn schema(choice: u8, choices: &[u8]) -> Json {
    let number = json!({"type": "number"});
    let list = |items: Json| json!({"type": "array", "items": items});
    match choice % 18 {
        0 => json!({"type": "string"}),
        1 => list(number),
        2 => list(json!({"type": ["number", "null"]})),
        3 => list(list(number)),
        4 => list(json!({"enum": (0..100).collect::<Vec<i32>>()})),
        5 => list(json!({"enum": ["a", "b", "lorem"]})),
        6 => json!({"pattern": pattern(choices)}),
        7 => list(json!({"pattern": pattern(choices)})),
        8 => json!({"format": "email"}),
        9 => json!({"format": "uri"}),
        10 => json!({"format": "emoji"}),
        11 => json!({"type": "object", "required": ["key1", "key2"]}),
        12 => json!({"type": "object", "additionalProperties": number}),
        13 => json!({"type": "object", "properties": {"key1": number, "id": number},
            "required": ["id"], "maxProperties": 1e9}),
        14 => list(json!({"anyOf": [{"type": "string"}, number, {"minimum": 3}]})),
        15 => list(json!({"minLength": 1, "maxLength": 8})),
        16 => list(json!({"type": "object", "properties": {"id": number,
            "name": {"type": "string"}, "tags": list(number)}})),
        _ => json!({"type": "array", "items": [number, {"type": "string"}], "maxItems": 1e9}),
    }
}
