//! Values by shape and size, for `cargo xtask rates` and `cargo xtask search`.

use agent99::{Text, Value};
use serde_json::{Value as Json, json};
use std::collections::HashMap;

/// A kind of value; `n` is the size.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// The number 0.
    Zero,
    /// 7.25.
    Number,
    /// -1.
    Minus,
    /// n / 2.
    Half,
    /// n - 1.
    Last,
    /// 2 n.
    Twice,
    /// A comma.
    Comma,
    /// The empty text.
    Empty,
    /// Two letters.
    Piece,
    /// n letters.
    Text,
    /// n letters, another text of the same length that differs at its end.
    Other,
    /// n units, some of them beyond ASCII and beyond the first plane.
    Wide,
    /// n units of which every second is a comma.
    Commas,
    /// n / 2 letters.
    TextHalf,
    /// n digits.
    Digits,
    /// n spaces.
    Spaces,
    /// n units, all to be escaped in JSON and in URIs.
    Quotes,
    /// n units of JSON text: an array of numbers.
    JsonNumbers,
    /// n units of JSON text: an array of objects.
    JsonObjects,
    /// n units of JSON text: brackets within brackets.
    JsonDeep,
    /// n units of JSON text: one string of escapes.
    JsonEscapes,
    /// n units of XML: empty elements.
    XmlElements,
    /// The same with an unclosed root.
    XmlOpen,
    /// n units of unclosed XML: elements and comments.
    XmlComments,
    /// n units of unclosed XML: texts between elements.
    XmlTexts,
    /// n units of XML: one text of references.
    XmlReferences,
    /// n units of unclosed XML: elements of attributes.
    XmlAttributes,
    /// n units of unclosed XML: nested elements.
    XmlDeep,
    /// n hexadecimal escapes of a URI, about.
    Percents,
    /// n numbers without order.
    Numbers,
    /// n numbers that need many digits.
    Fractions,
    /// n texts of eight letters without order.
    Texts,
    /// Few texts that have n units together and differ at their ends.
    LongTexts,
    /// n booleans.
    Flags,
    /// n / 10 arrays of ten numbers.
    Nested,
    /// n pairs of a key and a number.
    Pairs,
    /// n / 4 objects of four members.
    Objects,
    /// An object of n members.
    Record,
    /// An object of n members whose keys are numbers.
    Numbered,
    /// An object of one member.
    Small,
    /// n times the same text.
    Same,
    /// n texts of one letter beyond ASCII, few of them equal.
    Letters,
    /// n arrays and objects, nested as deep as the host allows, side by side.
    Deep,
    /// n texts, numbers, flags, arrays and objects in turn.
    Mixed,
    /// n numbers at the borders of their format: huge, tiny, with many digits.
    Extremes,
    /// An object of few members whose names have n units together.
    LongKeys,
    /// An object of n / 10 objects of ten members.
    Tree,
    /// n dates as texts.
    DateTexts,
    /// n empty arrays.
    Hollow,
    /// n units of letters with composed accents, syllables and ligatures.
    Accents,
    /// n units: letters with many combining marks behind each, out of order.
    Marks,
    /// n units of Greek capitals and sigmas with marks between them.
    Sigmas,
    /// n units of capital letters, most of them beyond the first plane.
    Capitals,
    /// n halves of surrogate pairs.
    Halves,
    /// One half of a pair.
    Half1,
    /// One letter beyond ASCII.
    Letter,
    /// The smallest number, of many digits.
    Tiny,
    /// The largest number.
    Huge,
    /// n holes of a template.
    Holes,
}

impl Shape {
    /// Shapes of texts.
    pub const TEXTS: &[Shape] = &[
        Shape::Text,
        Shape::Wide,
        Shape::Commas,
        Shape::Digits,
        Shape::Spaces,
        Shape::Quotes,
        Shape::Percents,
        Shape::JsonNumbers,
        Shape::JsonObjects,
        Shape::JsonDeep,
        Shape::JsonEscapes,
        Shape::XmlElements,
        Shape::XmlReferences,
        Shape::XmlAttributes,
        Shape::XmlDeep,
        Shape::Other,
        Shape::TextHalf,
        Shape::Piece,
        Shape::Comma,
        Shape::Empty,
        Shape::Accents,
        Shape::Marks,
        Shape::Sigmas,
        Shape::Capitals,
        Shape::Halves,
        Shape::Half1,
        Shape::Letter,
    ];

    /// Shapes of arrays.
    pub const LISTS: &[Shape] = &[
        Shape::Numbers,
        Shape::Texts,
        Shape::Fractions,
        Shape::LongTexts,
        Shape::Flags,
        Shape::Nested,
        Shape::Pairs,
        Shape::Objects,
        Shape::Same,
        Shape::Letters,
        Shape::Deep,
        Shape::Mixed,
        Shape::Extremes,
        Shape::DateTexts,
        Shape::Hollow,
    ];

    /// Shapes of objects.
    pub const OBJECTS: &[Shape] = &[
        Shape::Record,
        Shape::Numbered,
        Shape::Small,
        Shape::LongKeys,
        Shape::Tree,
    ];

    /// Shapes of numbers.
    pub const NUMBERS: &[Shape] = &[
        Shape::Number,
        Shape::Zero,
        Shape::Minus,
        Shape::Half,
        Shape::Last,
        Shape::Twice,
        Shape::Tiny,
        Shape::Huge,
    ];
}

impl Shape {
    /// True if the value grows with n.
    pub fn scales(self) -> bool {
        use Shape::*;
        !matches!(
            self,
            Zero | Number | Minus | Comma | Empty | Piece | Small | Half1 | Letter | Tiny | Huge
        )
    }

    /// The value of this size.
    fn make(self, n: usize) -> Value {
        let text = |piece: &str| piece.chars().cycle().take(n).collect::<String>();
        let ascii = |n: usize| text("lorem ipsum dolor sit amet, ")[..n].to_owned();
        let halves = |n: usize| Value::from(Text::copy_wtf8(&b"\xED\xA0\xBD".repeat(n)));
        let json: Json = match self {
            Shape::Halves => return halves(n),
            Shape::Half1 => return halves(1),
            Shape::Zero => json!(0),
            Shape::Number => json!(7.25),
            Shape::Minus => json!(-1),
            Shape::Half => json!(n / 2),
            Shape::Last => json!(n - 1),
            Shape::Twice => json!(2 * n),
            Shape::Comma => json!(","),
            Shape::Empty => json!(""),
            Shape::Piece => json!("xy"),
            Shape::Text => json!(ascii(n)),
            Shape::Other => json!(format!("{}#", ascii(n - 1))),
            Shape::Wide => json!(wide(n)),
            Shape::Commas => json!(text("a,b,")),
            Shape::TextHalf => json!(ascii(n / 2)),
            Shape::Digits => json!(text("1234567890")),
            Shape::Spaces => json!(text(" \t")),
            Shape::Quotes => json!(text("\"\\\n<")),
            Shape::JsonNumbers => json!(filled(n, "[", "1,", "1]")),
            Shape::JsonObjects => json!(filled(n, "[", r#"{"id":1,"name":"a"},"#, "1]")),
            Shape::JsonDeep => json!(
                "[]".repeat(n / 500 + 1)
                    .replace("[]", &deep())
                    .replace("][", "],[")
                    .pipe(|t| format!("[{t}]"))
            ),
            Shape::JsonEscapes => json!(filled(n, "\"", r"\u00e9\n", "\"")),
            Shape::XmlElements => json!(filled(n, "<r>", "<a/>", "</r>")),
            Shape::XmlOpen => json!(filled(n, "<r>", "<a/>", "")),
            Shape::XmlComments => json!(filled(n, "<r>", "<a/><!---->", "")),
            Shape::XmlTexts => json!(filled(n, "<r>", "x<a/>", "")),
            Shape::XmlReferences => json!(filled(n, "<r>", "&#9;", "</r>")),
            Shape::XmlAttributes => json!(filled(n, "<r>", "<a b='' c='&lt;'/>", "")),
            Shape::XmlDeep => json!(filled(n, "<r>", "<a><a><a><a></a></a></a></a>", "")),
            Shape::Percents => json!(text("%41")[..n - n % 3].to_owned()),
            Shape::Numbers => Json::from_iter((0..n).map(|i| scatter(i) % 100_000)),
            Shape::Fractions => Json::from_iter((0..n).map(|i| scatter(i) as f64 / 7.0)),
            Shape::Texts => Json::from_iter((0..n).map(|i| format!("{:08x}", scatter(i)))),
            Shape::LongTexts => {
                let each = (n / 20).max(1);
                let items = (0..20).map(|i| format!("{}{:02}", ascii(each), scatter(i) % 97));
                Json::from_iter(items)
            }
            Shape::Flags => Json::from_iter((0..n).map(|i| i % 3 == 0)),
            Shape::Nested => Json::from_iter((0..n / 10).map(|i| Json::from_iter(i..i + 10))),
            Shape::Pairs => Json::from_iter((0..n).map(|i| json!([format!("k{i}"), i]))),
            Shape::Objects => Json::from_iter(
                (0..n / 4).map(|i| json!({"id": i, "name": "a", "tags": [1], "on": true})),
            ),
            Shape::Record => Json::Object((0..n).map(|i| (format!("key{i}"), json!(i))).collect()),
            Shape::Numbered => {
                Json::Object((0..n).map(|i| (scatter(i).to_string(), json!(i))).collect())
            }
            Shape::Small => json!({"id": 1}),
            Shape::Same => Json::from_iter((0..n).map(|_| "lorem ipsum")),
            Shape::Letters => Json::from_iter((0..n).map(|i| {
                let letter = char::from_u32(0x4e00 + (i % 20_000) as u32);
                letter.unwrap_or('x').to_string()
            })),
            Shape::Deep => {
                let tower = (0..40).fold(json!(1), |inner, level| match level % 2 {
                    0 => json!([inner]),
                    _ => json!({"id": inner}),
                });
                Json::from_iter((0..n / 40 + 1).map(|_| tower.clone()))
            }
            Shape::Mixed => Json::from_iter((0..n).map(|i| match i % 6 {
                0 => json!("text"),
                1 => json!(i),
                2 => json!(i % 4 == 2),
                3 => json!([i, "a"]),
                4 => json!({"id": i}),
                _ => json!(null),
            })),
            Shape::Extremes => Json::from_iter((0..n).map(|i| match i % 4 {
                0 => 1.797_693_134_862_315_7e308 / (i + 1) as f64,
                1 => 2.225_073_858_507_201e-308 * (i + 1) as f64,
                2 => 9_007_199_254_740_993.0 + i as f64,
                _ => scatter(i) as f64 / 3e9,
            })),
            Shape::LongKeys => {
                let each = (n / 10).max(1);
                let keys = (0..10).map(|i| (format!("{}{i}", ascii(each)), json!(i)));
                Json::Object(keys.collect())
            }
            Shape::Tree => {
                let leaf = |i: usize| (0..10).map(|k| (format!("k{k}"), json!(i + k))).collect();
                let leaves = (0..n / 10).map(|i| (format!("key{i}"), Json::Object(leaf(i))));
                Json::Object(leaves.collect())
            }
            Shape::DateTexts => Json::from_iter((0..n).map(|i| {
                format!(
                    "20{:02}-{:02}-{:02}T12:00:00Z",
                    i % 100,
                    i % 12 + 1,
                    i % 28 + 1
                )
            })),
            Shape::Hollow => Json::from_iter((0..n).map(|_| json!([]))),
            Shape::Accents => json!(text("é각ṩǖ\u{fdfa}ﬃẤô")),
            Shape::Marks => json!(text(
                "a\u{301}\u{316}\u{301}\u{5b0}\u{345}\u{327}\u{301}\u{316}"
            )),
            Shape::Sigmas => json!(text("ΑΣ\u{301}'Σ.\u{301}Σ\u{301}")),
            Shape::Capitals => {
                let mut out: String = "𐐀𐐁Ж𐐂É".chars().cycle().take(n / 8 * 5).collect();
                out.push_str(&"Ж".repeat(n - out.encode_utf16().count()));
                json!(out)
            }
            Shape::Letter => json!("é"),
            Shape::Tiny => json!(f64::from_bits(1)),
            Shape::Huge => json!(f64::MAX),
            Shape::Holes => json!("{{p}}".repeat(n)),
        };
        Value::from(json)
    }
}

trait Pipe: Sized {
    fn pipe<T>(self, f: impl FnOnce(Self) -> T) -> T {
        f(self)
    }
}

impl<T> Pipe for T {}

/// Brackets, nested as deep as array text may be.
fn deep() -> String {
    format!("{}{}", "[".repeat(250), "]".repeat(250))
}

fn wide(n: usize) -> String {
    let mut out: String = "aé€😀xyz ".chars().cycle().take(n / 9 * 8).collect();
    out.push_str(&"ü".repeat(n - out.encode_utf16().count()));
    out
}

/// Text of about `n` units: a start, pieces, an end.
fn filled(n: usize, start: &str, piece: &str, end: &str) -> String {
    let times = n.saturating_sub(start.len() + end.len()) / piece.len();
    format!("{start}{}{end}", piece.repeat(times))
}

/// A pseudo-random number.
fn scatter(i: usize) -> u32 {
    ((i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as u32
}

/// Cache of values.
#[derive(Debug, Default)]
pub struct Made(HashMap<(Shape, usize), Value>);

impl Made {
    /// A value of this size.
    pub fn get(&mut self, shape: Shape, n: usize) -> Value {
        self.0
            .entry((shape, n))
            .or_insert_with(|| shape.make(n))
            .clone()
    }

    /// Drops values of other sizes.
    pub fn keep(&mut self, n: usize) {
        self.0.retain(|(_, size), _| *size == n);
    }
}
