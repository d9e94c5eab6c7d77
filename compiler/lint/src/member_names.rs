//! Rules for member names that atoms of lists take, and for inputs of atoms of regular
//! expressions.
//!
//! Codes: `lint.code_as_text`, `lint.missing_input`, `lint.name_as_text`, `lint.unknown_input`,
//! `lint.unknown_member`, `lint.wrong_value`.

use super::Rules;
use super::kinds::{Holds, Items, Members};
use a99_core::diag::{codes, excerpt};
use a99_core::json::{Kind, NodeId};

/// Supported flags of patterns.
const FLAGS: &str = "gimsuy";

/// The member that a function or a path of another language reads: `kind` of `r => r.kind`,
/// `lambda r: r['kind']`, `-kind`.
fn meant(by: &str) -> &str {
    let by = by.trim_end_matches([')', ']', '"', '\'', '}', ';', ' ']);
    let end = by.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    &by[end.map_or(0, |end| end + 1)..]
}

/// Whether a text compares, computes or calls, so that it is no member name.
fn is_calculated(text: &str) -> bool {
    let signs = [
        " > ", " < ", ">=", "<=", "==", "!=", " + ", " * ", " / ", "&&", "||",
    ];
    signs.iter().any(|sign| text.contains(sign)) || text.ends_with(')') && text.contains('(')
}

impl<'a> Rules<'_, 'a> {
    /// Reports an invalid `by` of `sort`, `groupBy`, `unique` or `sum`.
    pub(super) fn lint_by(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let Some(by) = doc.get(step, "by") else {
            return self.lint_no_by(step, op);
        };
        let keys = match doc.kind(by) {
            Kind::String(_) => vec![by],
            Kind::Array => doc.elements(by).collect(),
            _ => vec![by],
        };
        for key in keys {
            if op == "sort" && doc.kind(key) == Kind::Object && doc.get(key, "by").is_none() {
                const NAMES: &[&str] = &[
                    "field", "key", "name", "column", "property", "prop", "path", "member",
                ];
                const ORDERS: &[&str] =
                    &["order", "direction", "dir", "sort", "desc", "descending"];
                let of = |names: &[&str]| names.iter().find_map(|name| doc.get(key, name));
                let first = doc.members(key).next();
                let Some((name, value)) = first else { continue };
                let (name, value) = match of(NAMES).and_then(|n| Some((super::text_of(doc, n)?, n)))
                {
                    Some((name, at)) => (name, of(ORDERS).unwrap_or(at)),
                    None => (Self::shown(name), value),
                };
                let order = super::text_of(doc, value).unwrap_or_default();
                let is_desc = order.to_ascii_lowercase().starts_with("desc")
                    || matches!(doc.kind(value), Kind::Number(n) if n < 0.0)
                    || matches!(doc.kind(value), Kind::Bool(true));
                let message = "a key to sort by is `{by, order}`";
                let order = if is_desc { "desc" } else { "asc" };
                let help = format!(
                    "write `{{\"by\": \"{}\", \"order\": \"{order}\"}}`",
                    excerpt(&name)
                );
                self.found(codes::UNKNOWN_INPUT, value, message, &name, help);
                continue;
            }
            let node = doc.get(key, "by").unwrap_or(key);
            if let Some(text) = super::text_of(doc, node) {
                self.lint_key(step, op, node, &text);
            }
        }
    }

    /// Reports objects without `by`: they have no order and no sum.
    fn lint_no_by(&mut self, step: NodeId, op: &str) {
        let doc = self.doc;
        let what = match op {
            "sum" => "are no numbers",
            "sort" => "have no order of their own",
            _ => return,
        };
        let Some(names) = self.item_members(step).filter(|names| !names.is_empty()) else {
            return;
        };
        let place = doc.get(step, "items").unwrap_or(step);
        let message = format!("the items are objects, which {what}: `{op}` needs `by`");
        let help = format!(
            "add `\"by\": \"{}\"`; they have `{}`",
            excerpt(&names[0]),
            excerpt(&names.join("`, `"))
        );
        self.found(codes::MISSING_INPUT, place, message, op, help);
    }

    fn lint_key(&mut self, step: NodeId, op: &str, node: NodeId, text: &str) {
        if text.contains("=>") || text.starts_with("lambda ") || text.starts_with("function") {
            let message = "`by` is the path of a member, taken as written";
            let help = format!("write `\"by\": \"{}\"`", excerpt(meant(text)));
            return self.found(codes::CODE_AS_TEXT, node, message, text, help);
        }
        let root = text.split('.').next().unwrap_or(text);
        if root == "args" && self.is_argument_path(text) || text.starts_with("$.") {
            let message = "`by` is the path of a member, taken as written: this names nothing else";
            let help = match text.strip_prefix("$.") {
                Some(rest) => format!("write `\"by\": \"{}\"`", excerpt(rest)),
                None => "write the member's name itself, as in `\"by\": \"price\"`; for one that \
                         is known at run time use `map` and `[key]` in an expression"
                    .to_owned(),
            };
            return self.found(codes::NAME_AS_TEXT, node, message, text, help);
        }
        if op == "sort" && text.starts_with('-') {
            let message = format!("no item has a member `{}`", excerpt(text));
            let help = format!(
                "write `\"by\": \"{}\", \"order\": \"desc\"`",
                excerpt(meant(text))
            );
            return self.found(codes::WRONG_VALUE, node, message, text, help);
        }
        if is_calculated(text) {
            let message = "`by` is the path of a member, taken as written: nothing is calculated";
            let help = match op {
                "groupBy" => {
                    "write the name of a member; to tell two kinds apart use `filter {items, as, \
                     condition, result}` for each, or set a member with `map` first"
                }
                _ => "write the name of a member; make it in each item with `map` first",
            };
            return self.found(codes::CODE_AS_TEXT, node, message, text, help);
        }
        let Some(names) = self.item_members(step) else {
            return;
        };
        let (root, rest) = text.split_once('.').unwrap_or((text, ""));
        if root.is_empty() || names.iter().any(|name| name == root || name == text) {
            return;
        }
        let first = rest.split('.').next().unwrap_or_default();
        let near = self.nearest(root, names.iter().map(String::as_str));
        let help = match near {
            _ if names.iter().any(|name| name == first) => {
                format!("a path begins in the item: write `\"by\": \"{rest}\"`")
            }
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("they have `{}`", excerpt(&names.join("`, `"))),
        };
        let message = format!("the items have no member `{}`", excerpt(root));
        self.found(codes::UNKNOWN_MEMBER, node, message, text, help);
    }

    /// The members of a list's items, as far as the program writes or declares them.
    fn item_members(&self, step: NodeId) -> Option<Vec<String>> {
        const MOST: usize = 32;
        let doc = self.doc;
        let items = doc.get(step, "items")?;
        if let Holds::List(Items::Schema(schema)) = self.holds_of_value(items) {
            let holds = super::inference::of_schema(doc, schema);
            return matches!(holds, Holds::Object(Members::Schema(_)))
                .then(|| self.members_of(holds));
        }
        let list = match doc.kind(items) {
            Kind::Array => items,
            Kind::String(name) => self.literal_of_name(name)?,
            _ => return None,
        };
        if doc.kind(list) != Kind::Array || doc.is_empty(list) || doc.len(list) > MOST {
            return None;
        }
        let mut names = Vec::new();
        for item in doc.elements(list) {
            if !self.is_literal_object(item) {
                return None;
            }
            names.extend(doc.members(item).map(|(name, _)| Self::shown(name)));
        }
        names.sort();
        names.dedup();
        Some(names)
    }

    /// Reports invalid flags and replacements.
    pub(super) fn lint_pattern_inputs(&mut self, step: NodeId) {
        let doc = self.doc;
        let text = |key: &str| {
            Some((
                doc.get(step, key)?,
                super::text_of(doc, doc.get(step, key)?)?,
            ))
        };
        if let Some((node, flags)) = text("flags")
            && let Some(wrong) = flags.chars().find(|c| !FLAGS.contains(*c))
            && doc.get(step, "text").is_some()
        {
            let message = format!("there is no flag `{wrong}`");
            let kept: String = flags.chars().filter(|c| FLAGS.contains(*c)).collect();
            let help = match kept.is_empty() {
                true => "flags are `g`, `i`, `m` and `s`: remove it".to_owned(),
                false => format!("flags are `g`, `i`, `m` and `s`: write `{kept}`"),
            };
            self.found(codes::WRONG_VALUE, node, message, &flags, help);
        }
        if let (Some((node, by)), Some((_, pattern))) = (text("replacement"), text("pattern"))
            && let Some(group) = super::patterns::missing_group(&pattern, &by)
        {
            let message =
                format!("`{group}` is put there as it is written: there is no such group");
            let help = match super::patterns::groups(&pattern) {
                0 => "put what it stands for into `(` and `)` in the pattern; `$&` is the whole match"
                    .to_owned(),
                1 => "the pattern has one group: write `$1`, or `$&` for the whole match".to_owned(),
                n => format!("the pattern has the groups `$1` to `${n}`"),
            };
            self.found(codes::WRONG_VALUE, node, message, &group, help);
        }
        if let Some((node, by)) = text("replacement")
            && let Some(at) = by.find('\\')
            && let Some(digit) = by[at + 1..].chars().next().filter(char::is_ascii_digit)
        {
            let message = format!("`\\{digit}` is put there as it is written");
            let help = format!("a group is `${digit}`");
            self.found(codes::WRONG_VALUE, node, message, &by, help);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::meant;

    #[test]
    fn members_of_functions() {
        for (by, member) in [
            ("r => r.kind", "kind"),
            ("lambda r: r['age']", "age"),
            ("(a, b) => a.age - b.age", "age"),
            ("-price", "price"),
        ] {
            assert_eq!(meant(by), member);
        }
    }
}
