//! Program layout: the canonical JSON format of `a99 fmt`.
//!
//! Two spaces a level. A list or object stays on one line if it fits into the width; the root never
//! does. Keys keep their order, numbers and strings their text. The layout works on the tokens of
//! valid JSON, without recursion, so any depth is safe. It depends on the tokens alone, so it is
//! idempotent.

/// Most columns of a line that can be broken.
const WIDTH: usize = 80;

/// Deepest indented level; otherwise the indentation of a deep program would dwarf the program.
const MAX_INDENT: usize = 64;

/// A token of JSON.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Token<'t> {
    Open(u8),
    Close(u8),
    Comma,
    Colon,
    /// A string, number, `true`, `false` or `null`.
    Scalar(&'t str),
}

/// Lays out valid JSON.
pub(crate) fn layout(text: &str) -> String {
    let tokens = tokens(text);
    let widths = widths(&tokens);
    let mut out = String::with_capacity(text.len() + text.len() / 4);
    // Whether each open container spans several lines.
    let mut broken: Vec<bool> = Vec::new();
    let mut column = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            Token::Open(bracket) => {
                let empty = matches!(tokens.get(at + 1), Some(Token::Close(_)));
                // On the same line only a comma may follow.
                let fits = column + widths[at] < WIDTH && !broken.is_empty();
                let is_broken = !empty && !fits && broken.last() != Some(&false);
                out.push(char::from(bracket));
                column += 1;
                broken.push(is_broken);
                if is_broken {
                    column = line(&mut out, &broken);
                } else if bracket == b'{' && !empty {
                    out.push(' ');
                    column += 1;
                }
            }
            Token::Close(bracket) => {
                let empty = at > 0 && matches!(tokens[at - 1], Token::Open(_));
                match broken.pop() {
                    Some(true) => column = line(&mut out, &broken),
                    _ if bracket == b'}' && !empty => {
                        out.push(' ');
                        column += 1;
                    }
                    _ => {}
                }
                out.push(char::from(bracket));
                column += 1;
            }
            Token::Comma => {
                out.push(',');
                if broken.last() == Some(&true) {
                    column = line(&mut out, &broken);
                } else {
                    out.push(' ');
                    column += 2;
                }
            }
            Token::Colon => {
                out.push_str(": ");
                column += 2;
            }
            Token::Scalar(text) => {
                out.push_str(text);
                column += columns(text);
            }
        }
    }
    out.push('\n');
    out
}

/// Starts a line, indented by the number of containers that span several lines. Returns its column.
fn line(out: &mut String, broken: &[bool]) -> usize {
    let depth = broken.len().min(MAX_INDENT);
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
    2 * depth
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'{' | b'[' => tokens.push(Token::Open(byte)),
            b'}' | b']' => tokens.push(Token::Close(byte)),
            b',' => tokens.push(Token::Comma),
            b':' => tokens.push(Token::Colon),
            b'"' => {
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                tokens.push(Token::Scalar(text.get(start..at).unwrap_or_default()));
            }
            b'-' | b'a'..=b'z' | b'0'..=b'9' => {
                let rest = bytes[at..].iter();
                at += rest
                    .take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
                    .count();
                tokens.push(Token::Scalar(&text[start..at]));
            }
            // White space, and a byte order mark at the start.
            _ => {}
        }
    }
    tokens
}

/// Columns that each container would take on one line, by its opening token.
fn widths(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut widths = vec![0; tokens.len()];
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut column = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Open(bracket) => {
                open.push((at, column));
                column += if *bracket == b'{' { 2 } else { 1 };
            }
            Token::Close(bracket) => {
                column += if *bracket == b'}' { 2 } else { 1 };
                if let Some((start, before)) = open.pop() {
                    widths[start] = column - before;
                }
            }
            Token::Comma | Token::Colon => column += 2,
            Token::Scalar(text) => column += columns(text),
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::layout;

    #[test]
    fn short_values_stand_on_one_line() {
        let text = r#"{"op":"seq","steps":[{"op":"varSet","key":"a","value":1.50e2},{"op":"x","list":[],"o":{}}]}"#;
        let expected = "{\n  \"op\": \"seq\",\n  \"steps\": [\n    { \"op\": \"varSet\", \
                        \"key\": \"a\", \"value\": 1.50e2 },\n    { \"op\": \"x\", \"list\": [], \
                        \"o\": {} }\n  ]\n}\n";
        assert_eq!(layout(text), expected);
        let short = "\u{FEFF}{\"op\":\"seq\",\r\n\"steps\":[]}";
        assert_eq!(layout(short), "{\n  \"op\": \"seq\",\n  \"steps\": []\n}\n");
    }

    #[test]
    fn strings_stay_as_they_are() {
        let text = r#"{"a\u0041":"x,\"{[:]}\\","b":[true,false,null,-1E+2]}"#;
        let shown = layout(text);
        assert!(shown.contains(r#""a\u0041": "x,\"{[:]}\\""#), "{shown}");
        assert!(shown.contains("[true, false, null, -1E+2]"), "{shown}");
    }

    #[test]
    fn lines_are_no_longer_than_they_must_be_and_the_value_stays() {
        let long = "x".repeat(70);
        let inner = format!(r#"{{"k":["{long}",{{"a":{{"b":[1,2,3]}}}}],"z":"{long}"}}"#);
        let text = format!(r#"{{"steps":[{inner},{inner}]}}"#);
        let shown = layout(&text);
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&shown), read(&text));
        let too_long = shown.lines().filter(|line| line.chars().count() > 80);
        for line in too_long {
            assert!(line.trim().matches('"').count() <= 4, "{line}");
        }
        assert_eq!(layout(&shown), shown);
    }

    #[test]
    fn depth_costs_no_more_than_its_share() {
        let deep = "[".repeat(10_000) + &"]".repeat(10_000);
        let shown = layout(&deep);
        assert!(shown.len() < deep.len() * 132);
        assert_eq!(layout(&shown), shown);
    }

    #[test]
    fn nonsense_does_no_harm() {
        for text in ["", "\"", "\"\\", "]}", "{", "é", "\"é", "-"] {
            layout(text);
        }
    }
}
