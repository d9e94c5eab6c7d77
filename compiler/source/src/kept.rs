//! Infers which variables hold an error, as in `lastError = e`. The program keeps an object with
//! the message if the source only throws the variable, tests it, or reads its message.

use crate::lower::{Lowerer, What, place};
use crate::scoping::Scoping;
use crate::tree::Place;
use crate::value::{Kind, Value};
use oxc_ast::ast::Expression;
use oxc_span::{GetSpan, Span};

/// Maximum places of a name that the analysis visits.
const MAX_PLACES: usize = 200;

impl<'a> Lowerer<'a> {
    /// Returns the error object for an assignment to a variable that may hold errors.
    pub(crate) fn kept_error(
        &mut self,
        js: &str,
        value: &'a Expression<'a>,
        out: &mut Vec<crate::tree::Tree>,
    ) -> Option<Value> {
        let value = value.get_inner_expression();
        let at = place(value.span());
        let message = match value {
            Expression::Identifier(id) => {
                let id = self.lookup(id.name.as_str())?;
                if matches!(self.bindings[id].what, What::Error) && self.keeps_errors(js) {
                    self.note_read(id);
                    return Some(Value::ident(&self.bindings[id].name.clone(), &at));
                }
                if !matches!(self.bindings[id].what, What::Caught) || !self.keeps_errors(js) {
                    return None;
                }
                self.note_read(id);
                Value::ident(&self.bindings[id].name.clone(), &at)
            }
            Expression::NewExpression(new)
                if self.is_error(&new.callee) && self.keeps_errors(js) =>
            {
                if self.errors.is_on {
                    return self.error_made(value, out);
                }
                let text = self.error_text(&new.arguments, new.span, out);
                self.named(text, out)
            }
            _ => return None,
        };
        Some(with_message(message, &at))
    }

    /// Returns the message of a held error that is thrown.
    pub(crate) fn thrown_again(&mut self, js: &str, span: Span) -> Option<Value> {
        let id = self.lookup(js)?;
        if !matches!(self.bindings[id].what, What::Variable) || !self.keeps_errors(js) {
            return None;
        }
        self.note_read(id);
        let at = place(span);
        let error = Value::ident(&self.bindings[id].name.clone(), &at);
        let key = Value::text("message", &at);
        Some(crate::pattern::member_of(error, key, &at))
    }

    /// Returns the variable of a held error, which is an object.
    pub(crate) fn kept_object(&mut self, js: &str) -> Option<String> {
        let id = self.lookup(js)?;
        if !matches!(self.bindings[id].what, What::Variable) || !self.keeps_errors(js) {
            return None;
        }
        self.note_read(id);
        Some(self.bindings[id].name.clone())
    }

    fn keeps_errors(&mut self, js: &str) -> bool {
        let Some(id) = self.lookup(js) else {
            return false;
        };
        let at = self.bindings[id].at;
        if let Some(keeps) = self.kept_errors.get(&at) {
            return *keeps;
        }
        let keeps = keeps_errors(self.source, &self.scoping, at, js.len());
        self.kept_errors.insert(at, keeps);
        keeps
    }
}

fn with_message(message: Value, at: &Place) -> Value {
    Value::new(Kind::Map(vec![(b"message".to_vec(), message)]), at)
}

/// True if an object with the message can replace the error at each place of the variable that is
/// declared here, and at least one place assigns the error of a `catch` or a new error.
fn keeps_errors(source: &str, scoping: &Scoping, at: u32, length: usize) -> bool {
    let Some(variable) = scoping.variable(at) else {
        return false;
    };
    let caught = |word: &str| {
        let at = source.len() - word.len();
        let variable = scoping.variable(at as u32);
        variable.is_some_and(|variable| variable.is_caught)
    };
    let mut is_set = false;
    for at in variable.places.iter().map(|at| *at as usize) {
        let (Some(before), Some(behind)) = (source.get(..at), source.get(at + length..)) else {
            return false;
        };
        match place_of(&caught, before, behind) {
            None => return false,
            Some(sets) => is_set |= sets,
        }
    }
    is_set && variable.places.len() <= MAX_PLACES
}

fn is_part(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$' | '\\')
}

/// True if the text ends with this word.
fn ends_with_word(before: &str, word: &str) -> bool {
    let start = before.strip_suffix(word);
    start.is_some_and(|start| !start.ends_with(is_part) && !start.ends_with('.'))
}

/// True if a statement may begin after this text.
fn begins_statement(before: &str) -> bool {
    let text = before.trim_end();
    let begins_line = before.trim_end_matches([' ', '\t']).ends_with('\n');
    let is_whole = text.ends_with(|c: char| is_part(c) || ")]}'\"`".contains(c))
        || text.ends_with("++")
        || text.ends_with("--");
    text.is_empty()
        || text.ends_with([';', '{', '}', ')'])
        || begins_line && is_whole
        || ["let", "const", "else"]
            .iter()
            .any(|word| ends_with_word(text, word))
}

/// True if a statement ends before this text.
fn ends_statement(behind: &str) -> bool {
    let text = behind.trim_start();
    let ends_line = behind
        .trim_start_matches([' ', '\t'])
        .starts_with(['\n', '\r']);
    text.is_empty()
        || text.starts_with([';', '}'])
        || ends_line && text.starts_with(is_part) && !text.starts_with("in")
}

/// Reads a value that an error variable may hold from the start of a text: true for an error,
/// false for `null` or `undefined`.
fn error_or_nothing(caught: &dyn Fn(&str) -> bool, value: &str) -> Option<bool> {
    let value = value.trim_start();
    let end = value.find(|c: char| !is_part(c)).unwrap_or(value.len());
    let (word, rest) = value.split_at(end);
    let ends = ends_statement(rest) || rest.trim_start().starts_with(',');
    match word {
        "null" | "undefined" if ends => Some(false),
        "new" => {
            let class = rest.trim_start();
            let class = class.split('(').next();
            crate::words::ERRORS
                .contains(&class.unwrap_or_default())
                .then_some(true)
        }
        "" => None,
        _ if ends => caught(value).then_some(true),
        _ => None,
    }
}

/// Classifies a place of the name: true if it assigns an error; `None` if an object with the
/// message cannot replace the error there.
fn place_of(caught: &dyn Fn(&str) -> bool, before: &str, behind: &str) -> Option<bool> {
    let (raw_before, raw_behind) = (before, behind);
    let (before, behind) = (before.trim_end(), behind.trim_start());
    if let Some(value) = ["??=", "||=", "="]
        .iter()
        .find_map(|op| behind.strip_prefix(op))
    {
        let is_assignment = !value.starts_with(['=', '>']);
        // The value of the assignment expression is an error, too.
        if is_assignment {
            return begins_statement(raw_before).then(|| error_or_nothing(caught, value))?;
        }
    }
    let is_declared = ends_with_word(before, "let") || ends_with_word(before, "const");
    if is_declared {
        return match behind.strip_prefix(':') {
            None => ends_statement(raw_behind).then_some(false),
            Some(ty) => {
                let end = ty.find(['=', ';', '\n'])?;
                match ty[end..].strip_prefix('=') {
                    Some(value) => error_or_nothing(caught, value),
                    None => Some(false),
                }
            }
        };
    }
    for comparison in ["===", "!==", "==", "!="] {
        if let Some(other) = behind.strip_prefix(comparison) {
            let other = other.trim_start();
            let nothing = ["null", "undefined"];
            let is_nothing = nothing.iter().any(|word| other.starts_with(word));
            return (is_nothing && !other.starts_with("undefined.")).then_some(false);
        }
    }
    let member = behind
        .strip_prefix("?.")
        .or_else(|| behind.strip_prefix('.'));
    if let Some(member) = member {
        let rest = member.strip_prefix("message")?;
        return (!rest.starts_with(is_part)).then_some(false);
    }
    if ends_with_word(before, "throw") {
        return ends_statement(raw_behind).then_some(false);
    }
    if before.ends_with('!') {
        return behind
            .starts_with([')', '&', '|', '?', ';'])
            .then_some(false);
    }
    let opens = |word: &str| {
        let head = before.strip_suffix('(').map(str::trim_end);
        head.is_some_and(|head| ends_with_word(head, word))
    };
    let is_test = opens("if") || opens("while");
    let is_chosen = behind.starts_with('?') && !behind.starts_with("??");
    let starts = before.ends_with(['(', '=', ',', ':']) || ends_with_word(before, "return");
    let asks = is_test && behind.starts_with([')', '&'])
        || starts && (is_chosen || behind.starts_with("&&"));
    asks.then_some(false)
}

#[cfg(test)]
mod tests {
    use super::keeps_errors;
    use crate::scoping::Scoping;

    /// True if the first variable of this name holds errors.
    fn keeps(source: &str, name: &str) -> bool {
        let allocator = oxc_allocator::Allocator::default();
        let parser = oxc_parser::Parser::new(&allocator, source, oxc_span::SourceType::ts());
        let parsed = parser
            .with_options(oxc_parser::ParseOptions {
                allow_return_outside_function: true,
                ..Default::default()
            })
            .parse();
        let scoping = Scoping::read(&parsed.program);
        let at = source.find(name).expect("it is declared");
        keeps_errors(source, &scoping, at as u32, name.len())
    }

    #[test]
    fn variables_that_keep_errors() {
        let with = |rest: &str| {
            format!("let last = null;\ntry {{ f() }} catch (e) {{ last = e; }}\n{rest}")
        };
        for rest in [
            "throw last;",
            "try { f() } catch (e) {\nlet n = 1\nlast = e\n}\nthrow last\n",
            "if (last) return last.message;",
            "return last?.message ?? 'none'",
            "return { ok: last === null, last: last ? last.message : '' }",
            "return last && last.message",
            "if (!last) { return 1 }",
            "// the last one: last\nreturn o.last",
            "last = new Error('none');",
            "try { f() } catch (e) { last ??= e }\n",
            "try { f() } catch (last) { return last.message }",
            "f((last) => last + 1)",
            "function g() { let last = 1; last += 1; return [last] }",
            "try { f() } catch (x) { last = x }",
        ] {
            assert!(keeps(&with(rest), "last"), "{rest}");
        }
        for rest in [
            "return last",
            "return { last }",
            "return { error: last }",
            "list.push(last)",
            "return `${last}`",
            "return String(last)",
            "return last ?? 'none'",
            "return x ? last : 1",
            "return x && last",
            "return last.stack",
            "last = 'text'",
            "last = other",
            "let e = 1; last = e",
            "const x = last = e;",
            "return last.message + last",
        ] {
            assert!(!keeps(&with(rest), "last"), "{rest}");
        }
        let never_set = "let last = null; return last?.message";
        assert!(!keeps(never_set, "last"));
    }
}
