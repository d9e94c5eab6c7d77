//! Rules for code in texts: literals that look like expressions or templates.
//!
//! Codes: `lint.code_as_text`.

use super::Rules;
use super::template_holes::{only_hole, reference};
use a99_core::diag::codes;
use a99_core::json::NodeId;

/// The syntax that a literal text resembles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Looks {
    /// `{{name}}` or `${name}`.
    Template,
    /// An operator between a known name and an operand.
    Expression,
    /// A known name, then a call or an index.
    Access,
    /// A call of a builtin: `Math.max(a, b)`, `parseInt(s)`.
    Call,
    /// A function: `x => x.id`, `function (x) {...}`.
    Function,
    /// A name with a sigil of other languages: `$name`, `@name`, `#{name}`.
    Reference(String),
    /// An argument's member in the syntax of other languages: `args.o[0].name`.
    Argument(String),
    /// `...xs`.
    Spread,
    /// `$.items[*].id`, `.items[].id`.
    Path,
}

/// Functions that are called without a receiver.
const FUNCTIONS: &[&str] = &[
    "parseInt",
    "parseFloat",
    "isNaN",
    "isFinite",
    "Number",
    "String",
    "Boolean",
    "Date",
    "Set",
    "len",
    "str",
    "int",
    "float",
    "max",
    "min",
    "sum",
    "abs",
    "round",
    "floor",
    "ceil",
];

/// Functions of spreadsheets and databases, in lower case.
const SPREADSHEET: &[&str] = &[
    "sum",
    "avg",
    "average",
    "count",
    "concat",
    "concatenate",
    "upper",
    "lower",
    "trim",
    "if",
    "round",
    "length",
    "len",
    "join",
    "split",
    "coalesce",
    "ifnull",
    "substring",
    "left",
    "right",
    "mid",
    "replace",
    "date",
    "year",
    "month",
    "day",
    "max",
    "min",
    "abs",
    "text",
    "value",
    "lookup",
];

/// Whether the parentheses of a call contain an argument or a known name.
fn names_something(rest: &str, knows: &impl Fn(&str) -> bool) -> bool {
    let mut words = rest.split(|c: char| !is_name(c) && c != '.');
    words.any(|word| word.starts_with("args.") || knows(word.split('.').next().unwrap_or(word)))
}

/// Namespaces of builtins.
const NAMESPACES: &[&str] = &[
    "Math", "JSON", "Object", "Array", "Date", "Number", "String",
];

/// The path of a text with indices in brackets, such as `args.o[0].name` or `o['name']`.
pub(super) fn with_indices(text: &str) -> Option<String> {
    let (name, mut rest) = first_name(text);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !rest.contains('[') {
        return None;
    }
    let mut path = name.to_owned();
    while !rest.is_empty() {
        let (part, after) = match rest.strip_prefix('.') {
            Some(member) => first_name(member),
            None => {
                let (inner, after) = rest.strip_prefix('[')?.split_once(']')?;
                let quoted = |quote| inner.strip_prefix(quote)?.strip_suffix(quote);
                let is_index = inner.bytes().all(|b| b.is_ascii_digit());
                let key = quoted('\'').or_else(|| quoted('"'));
                let key = key.or(is_index.then_some(inner))?;
                (key, after)
            }
        };
        if part.is_empty() || !part.chars().all(is_name) {
            return None;
        }
        path.push('.');
        path.push_str(part);
        rest = after;
    }
    Some(path)
}

/// Whether a text is a path in jq syntax: `.items[].id`, `.items | length`.
fn is_jq(text: &str, knows: &impl Fn(&str) -> bool) -> bool {
    let Some(rest) = text.strip_prefix('.') else {
        return false;
    };
    let (path, function) = match rest.split_once(" | ") {
        Some((path, function)) => (path, Some(function)),
        None => (rest, None),
    };
    let (name, members) = first_name(path);
    let is_path = path.chars().all(|c| is_name(c) || ".[]".contains(c));
    let is_call = function.is_some_and(|function| function.chars().all(is_name));
    let is_whole = function.is_none() && (knows(name) || members.contains("[]"));
    !name.is_empty() && is_path && (is_call || is_whole)
}

/// Classifies texts in the form of a call, a function, a reference or a spread.
fn other_forms(text: &str, knows: &impl Fn(&str) -> bool) -> Option<Looks> {
    if let Some(rest) = text.strip_prefix("...") {
        let (name, rest) = first_name(rest);
        return (knows(name) && rest.is_empty()).then_some(Looks::Spread);
    }
    if text.contains("=>")
        || text.starts_with("function") && text.contains('{')
        || text.starts_with("lambda ")
    {
        return Some(Looks::Function);
    }
    for sign in [
        "$args.", "$input.", "$json.", "$vars.", "$inputs.", "$", "@", "#",
    ] {
        let Some(rest) = text.strip_prefix(sign) else {
            continue;
        };
        let rest = rest.trim_start_matches('.');
        let path = rest
            .strip_prefix('{')
            .and_then(|r| r.strip_suffix('}'))
            .unwrap_or(rest);
        let whole = !path.is_empty()
            && path
                .split('.')
                .all(|part| !part.is_empty() && part.chars().all(is_name));
        let root = path.split('.').next().unwrap_or(path);
        if whole && knows(root) {
            return Some(Looks::Reference(path.to_owned()));
        }
    }
    let (name, rest) = first_name(text);
    if !text.ends_with(')') {
        return None;
    }
    let method = rest.strip_prefix('.').map(first_name);
    match method {
        Some((method, rest)) if NAMESPACES.contains(&name) => {
            (!method.is_empty() && rest.starts_with('(')).then_some(Looks::Call)
        }
        None => {
            let lower = name.to_ascii_lowercase();
            let known = FUNCTIONS.contains(&name)
                || SPREADSHEET.contains(&lower.as_str()) && names_something(rest, knows);
            (known && rest.starts_with('(')).then_some(Looks::Call)
        }
        _ => None,
    }
}

/// Whether an address has a hole: `https://a.example/{id}`, `/users/:id`.
fn in_address(text: &str, knows: &impl Fn(&str) -> bool) -> bool {
    let address = text.contains("://") || text.starts_with('/');
    let holes = [("{", "}"), ("/:", "")];
    address
        && !text.contains(char::is_whitespace)
        && holes.iter().any(|(open, close)| {
            text.match_indices(open).any(|(at, _)| {
                let (name, rest) = first_name(&text[at + open.len()..]);
                !name.is_empty() && rest.starts_with(close) && knows(name)
            })
        })
}

/// Whether a text is a known name, or a path from one.
pub(super) fn is_known_path(text: &str, knows: &impl Fn(&str) -> bool) -> bool {
    let parts = || text.split('.');
    !text.is_empty()
        && parts().all(|part| !part.is_empty() && part.chars().all(is_name))
        && parts().next().is_some_and(knows)
}

/// Recognises expressions by their words: `a and b`, `typeof x`, `a if b else c`,
/// `'Hello ' + name`, and paths in the syntax of other languages.
fn in_words(text: &str, knows: &impl Fn(&str) -> bool) -> Option<Looks> {
    let known = |part: &str| is_known_path(part.trim(), knows);
    for sign in ["!", "-", "typeof ", "not "] {
        if text.strip_prefix(sign).is_some_and(known) {
            return Some(Looks::Expression);
        }
    }
    for word in [" and ", " or ", " in ", " is "] {
        if let Some((left, right)) = text.split_once(word)
            && known(left)
            && known(right)
        {
            return Some(Looks::Expression);
        }
    }
    if let Some((_, rest)) = text.split_once(" if ")
        && let Some((test, _)) = rest.split_once(" else ")
        && knows(first_name(test.trim()).0)
    {
        return Some(Looks::Expression);
    }
    for quote in ['\'', '"'] {
        let rest = text
            .strip_prefix(quote)
            .and_then(|rest| rest.split_once(quote));
        if let Some((_, rest)) = rest
            && let Some(right) = rest.trim_start().strip_prefix('+')
            && knows(first_name(right.trim_start()).0)
        {
            return Some(Looks::Expression);
        }
    }
    if let Some(rest) = text.strip_prefix("new ")
        && rest.ends_with(')')
        && rest.starts_with(|c: char| c.is_ascii_uppercase())
        && first_name(rest).1.starts_with('(')
    {
        return Some(Looks::Call);
    }
    for sign in ["->", "?.", "::"] {
        if let Some((left, right)) = text.split_once(sign)
            && known(left)
            && is_known_path(right, &|_| true)
        {
            return Some(Looks::Reference(format!("{left}.{right}")));
        }
    }
    if let Some(rest) = text.strip_prefix('/')
        && rest.contains('/')
        && is_known_path(&rest.replace('/', "."), knows)
    {
        return Some(Looks::Reference(rest.replace('/', ".")));
    }
    let path = text.strip_prefix("$.").or_else(|| text.strip_prefix("$["));
    if let Some(path) = path
        && path.starts_with(|c: char| c.is_ascii_alphabetic() || "'\"*0".contains(c))
        && !text.contains(char::is_whitespace)
    {
        return Some(Looks::Path);
    }
    None
}

/// Longer texts are prose.
const MAX_CODE: usize = 160;

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

/// The name at the beginning of a text, and the rest.
pub(super) fn first_name(text: &str) -> (&str, &str) {
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// The syntax that a text resembles; `knows` returns whether a name is a variable or an
/// argument.
pub(super) fn looks_like(text: &str, knows: &impl Fn(&str) -> bool) -> Option<Looks> {
    // A single word is not code.
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
    if text.len() > MAX_CODE || text.bytes().all(word) {
        return None;
    }
    for (open, close) in [("{{", "}}"), ("${", "}")] {
        let inner = text
            .split_once(open)
            .and_then(|(_, rest)| rest.split_once(close));
        let Some((inner, _)) = inner else { continue };
        let name = first_name(inner.trim()).0;
        if !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) {
            return Some(only_hole(text, knows).unwrap_or(Looks::Template));
        }
    }
    let text = text.trim();
    // A spreadsheet cell.
    if let Some(rest) = text.strip_prefix('=')
        && let Some(looks) = looks_like(rest, knows)
    {
        return Some(looks);
    }
    if let Some(inner) = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        && let Some(looks) = reference(inner.trim(), knows)
    {
        return Some(looks);
    }
    if let Some(name) = text.strip_suffix('.')
        && name.len() < text.len()
        && is_known_path(name, knows)
    {
        return Some(Looks::Reference(name.to_owned()));
    }
    if text.starts_with(['f', 'F']) && text[1..].starts_with(['"', '\'']) && text.contains('{') {
        return Some(Looks::Template);
    }
    if text.starts_with(['[', '{']) && text.contains(" for ") && text.contains(" in ") {
        return Some(Looks::Function);
    }
    if in_address(text, knows) {
        return Some(Looks::Template);
    }
    if let Some(path) = with_indices(text)
        && knows(first_name(text).0)
    {
        return Some(Looks::Reference(path));
    }
    if let Some(path) = text.strip_prefix("args.").and_then(with_indices) {
        return Some(Looks::Argument(path));
    }
    if let Some(path) = with_indices(text).filter(|_| text.starts_with("args["))
        && let Some(path) = path.strip_prefix("args.")
    {
        return Some(Looks::Argument(path.to_owned()));
    }
    if is_jq(text, knows) {
        return Some(Looks::Path);
    }
    if let Some(looks) = other_forms(text, knows).or_else(|| in_words(text, knows)) {
        return Some(looks);
    }
    let (name, rest) = first_name(text.trim_start_matches(['!', '(', '-']));
    if name.is_empty() || !knows(name) {
        return None;
    }
    // Members before the operator.
    let mut rest = rest;
    while let Some(member) = rest.strip_prefix('.') {
        let (name, after) = first_name(member);
        if name.is_empty() {
            return None;
        }
        rest = after;
    }
    if rest.starts_with('[') && rest.ends_with(']') || rest.starts_with('(') && rest.ends_with(')')
    {
        return Some(Looks::Access);
    }
    let rest = rest.trim_start();
    let operator = |c: char| "+-*/%<>=!&|?".contains(c);
    let end = rest.find(|c| !operator(c)).unwrap_or(rest.len());
    let (operator, right) = rest.split_at(end);
    let right = right.trim_start();
    let words = right.split_whitespace().count();
    // A dash or a question mark between words is punctuation.
    let known = matches!(
        operator,
        "+" | "*"
            | "/"
            | "%"
            | "<"
            | ">"
            | "<="
            | ">="
            | "=="
            | "!="
            | "==="
            | "!=="
            | "&&"
            | "||"
            | "??"
            | "**"
            | "-"
            | "?"
    );
    let punctuation = matches!(operator, "-" | "?" | "/") && {
        let (next, _) = first_name(right);
        !(knows(next) || next.starts_with(|c: char| c.is_ascii_digit()))
    };
    let starts = right.starts_with(|c: char| is_name(c) || "('\"[{!-".contains(c));
    (known && starts && !punctuation && words <= 12).then_some(Looks::Expression)
}

/// Whether a template has a hole whose name is known.
fn names_known(text: &str, knows: impl Fn(&str) -> bool) -> bool {
    text.split(['{', '}', '$', ' ', '.'])
        .any(|word| !word.is_empty() && knows(word))
}

impl<'a> Rules<'_, 'a> {
    /// Reports a text that looks like code; returns whether it did.
    pub(super) fn lint_code(&mut self, node: NodeId, shown: &str, resolved: bool) -> bool {
        let knows = |name: &str| self.knows_name(name);
        let Some(looks) = looks_like(shown, &knows) else {
            return false;
        };
        // In a source, quotes mark a text as such: only template literals without backticks remain.
        let is_source = self.is_source();
        let is_hole = matches!(
            looks,
            Looks::Template | Looks::Reference(_) | Looks::Argument(_)
        );
        let looks = match is_source {
            true if is_hole && shown.contains("${") => Looks::Template,
            true => return false,
            false => looks,
        };
        // Inside a list or an object, the template may belong to another system.
        if !resolved && looks == Looks::Template && !names_known(shown, knows) {
            return false;
        }
        let help = match looks {
            Looks::Template if is_source => {
                "a template literal has backticks: write `` `...${name}` ``".to_owned()
            }
            Looks::Template if self.is_sql(node) => {
                "write `?` there, without quotes, and give the value in `params`: `\"params\": \
                 [...]`"
                    .to_owned()
            }
            Looks::Template => {
                "a value is a name, a path or a text: use `template {tmpl, vars, result}`".to_owned()
            }
            Looks::Expression => {
                "a value is a name, a path or a text: use `mathCalc {expr, vars, result}`, or an \
                 expression node `{\"$expr\": \"binary\", ...}`"
                    .to_owned()
            }
            Looks::Access => {
                "a value is a name, a path like `a.b.0` or a text: use an expression node \
                 `{\"$expr\": \"member\", ...}` or `{\"$expr\": \"methodCall\", ...}`"
                    .to_owned()
            }
            Looks::Call if SPREADSHEET.contains(&first_name(shown).0.to_ascii_lowercase().as_str()) => {
                "a text calls nothing: use an atom, such as `sum {items, by, result}`, `join {list, sep, \
                 result}` or `template {tmpl, vars, result}`, or an expression node `methodCall`"
                    .to_owned()
            }
            Looks::Call => {
                "use an expression node: `{\"$expr\": \"methodCall\", \"object\": {\"$expr\": \
                 \"ident\", \"name\": \"Math\"}, \"method\": \"max\", \"arguments\": [...]}` for what has \
                 a dot, `{\"$expr\": \"call\", \"callee\": \"parseInt\", \"arguments\": [...]}` for the rest"
                    .to_owned()
            }
            Looks::Function => {
                "there are no functions as values: use the atoms `map`, `filter`, `sort` and `reduce`, \
                 or a helper of the root"
                    .to_owned()
            }
            Looks::Reference(name) => {
                let value = match self.vars.knows(name.split('.').next().unwrap_or(&name).as_bytes()) {
                    true => name,
                    false => format!("args.{name}"),
                };
                match resolved {
                    true => format!("a name stands alone: write `\"{value}\"`"),
                    false => format!("write `{}`", self.node_for(&value)),
                }
            }
            Looks::Argument(path) => match resolved {
                true => format!("write `\"args.{path}\"`: a path is names with points alone"),
                false => format!("write `{{\"$kind\": \"arg\", \"path\": \"{path}\"}}`"),
            },
            Looks::Path => {
                let sign = if shown.starts_with('.') { "point in front" } else { "`$`" };
                format!(
                    "a path has no {sign}: write `\"name.0.id\"` for a variable, \
                     `\"args.name\"` for an argument; for each item of a list use \
                     `map {{items, as, steps, result}}`"
                )
            }
            Looks::Spread => {
                "join lists with the method `concat`, `{\"$expr\": \"methodCall\", \"object\": ..., \
                 \"method\": \"concat\", \"arguments\": [...]}`, and objects with `merge`"
                    .to_owned()
            }
        };
        let text = "this text is not evaluated, it stands for itself";
        self.found(codes::CODE_AS_TEXT, node, text, shown, help);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_told_from_prose() {
        let knows = |name: &str| matches!(name, "a" | "b" | "items" | "user");
        for (text, expected) in [
            ("a + 1", Some(Looks::Expression)),
            ("a.b*2", Some(Looks::Expression)),
            ("!a && b", Some(Looks::Expression)),
            ("a > 3 ? 'x' : 'y'", Some(Looks::Expression)),
            ("a - b", Some(Looks::Expression)),
            ("items[0]", Some(Looks::Reference("items.0".to_owned()))),
            (
                "items[0].lines['id']",
                Some(Looks::Reference("items.0.lines.id".to_owned())),
            ),
            ("items[i]", Some(Looks::Access)),
            (
                "args.orders[0].id",
                Some(Looks::Argument("orders.0.id".to_owned())),
            ),
            ("other[0]", None),
            ("items[0] is first", None),
            (".orders[].price", Some(Looks::Path)),
            (".items | length", Some(Looks::Path)),
            (".user.id", Some(Looks::Path)),
            (".gitignore", None),
            (".net", None),
            ("items.map(f)", Some(Looks::Access)),
            ("{{a}}", Some(Looks::Reference("a".to_owned()))),
            (
                "={{ $json.total }}",
                Some(Looks::Argument("total".to_owned())),
            ),
            ("${user.id}", Some(Looks::Reference("user.id".to_owned()))),
            ("Dear {{a}}", Some(Looks::Template)),
            ("{{ a | upper }}", Some(Looks::Template)),
            ("{a}", Some(Looks::Reference("a".to_owned()))),
            ("{c}", None),
            ("=a*2", Some(Looks::Expression)),
            ("=c*2", None),
            ("args['n']", Some(Looks::Argument("n".to_owned()))),
            ("a.", Some(Looks::Reference("a".to_owned()))),
            ("user?.name", Some(Looks::Reference("user.name".to_owned()))),
            ("Hello ${name}!", Some(Looks::Template)),
            ("a", None),
            ("a - the letter", None),
            ("user? no", None),
            ("c + 1", None),
            ("1 + 1", None),
            ("{}", None),
            ("a/c", None),
            ("Math.max(a, b)", Some(Looks::Call)),
            ("parseInt(a)", Some(Looks::Call)),
            ("x => x.id", Some(Looks::Function)),
            ("$a", Some(Looks::Reference("a".to_owned()))),
            ("...items", Some(Looks::Spread)),
            ("$5", None),
            ("@home", None),
            ("max (a)", None),
            ("items and more", None),
        ] {
            assert_eq!(looks_like(text, &knows), expected, "{text}");
        }
    }
}
