//! Names: those that nothing binds, those that are not visible where they stand,
//! and assignments that are lost.

use super::code_text::{Looks, looks_like};
use super::{Finding, Lower};
use crate::vars::VarId;
use a99_core::builtins;
use a99_core::diag::{codes, excerpt};
use a99_core::json::NodeId;

/// Names shorter than this are not taken for misspelt ones.
const MIN_TYPO: usize = 4;

impl<'a> Lower<'_, 'a> {
    fn is_argument(&self, name: &str) -> bool {
        let lint = self.s.lint.as_ref();
        let declared = lint.and_then(|lint| lint.arguments.as_ref());
        declared.is_some_and(|names| names.contains(name.as_bytes()))
    }

    /// The variable or declared argument nearest to a name.
    fn nearest_name(&mut self, name: &str) -> Option<String> {
        let lint = self.s.lint.as_ref();
        let declared = lint.and_then(|lint| lint.arguments.as_ref());
        let mut names: Vec<String> = self.vars.known_names().map(Self::shown).collect();
        names.extend(declared.into_iter().flatten().map(|name| Self::shown(name)));
        self.nearest_of(name, names)
    }

    /// An identifier that no scope binds and no builtin has: an argument, if the
    /// schema declares one.
    pub(in crate::lower) fn lint_unbound(&mut self, name: &[u8]) {
        let Some((node, inner)) = self.e.at.filter(|_| self.lints()) else {
            return;
        };
        let shown = Self::shown(name);
        let is_global = builtins::global(&shown).is_some();
        if is_global || self.is_argument(&shown) || self.vars.knows(name) {
            return;
        }
        let declares = self.s.lint.as_ref().is_some_and(|l| l.arguments.is_some());
        let near = self.nearest_name(&shown);
        let help = match (near, declares) {
            (Some(near), declares) if declares || is_typo(&shown, &near) => {
                format!("did you mean `{near}`?")
            }
            (_, true) => "bind it before, or declare it in `inputSchema`".to_owned(),
            // Without a schema every name may be an argument.
            (_, false) => return,
        };
        let text = format!("no step binds `{}`, and it is no argument", excerpt(&shown));
        self.found(
            Finding::new(codes::UNKNOWN_NAME, node, text)
                .inner(inner)
                .offending(&shown)
                .help(help),
        );
    }

    /// An identifier of `mathCalc`, which sees its `vars` and the variables of
    /// the innermost scope only.
    pub(in crate::lower) fn lint_not_visible(&mut self, name: &[u8]) {
        let Some((node, inner)) = self.e.at.filter(|_| self.lints()) else {
            return;
        };
        let shown = Self::shown(name);
        let text = excerpt(&shown);
        let (code, message, help) = if self.vars.knows(name) || self.is_argument(&shown) {
            let value = match self.vars.knows(name) {
                true => shown.clone(),
                false => format!("args.{shown}"),
            };
            (
                codes::NOT_VISIBLE,
                format!("`{text}` is not visible in `mathCalc`, where it is undefined"),
                format!("give it: `\"vars\": {{\"{shown}\": \"{value}\"}}`"),
            )
        } else {
            let near = self.nearest_name(&shown);
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "`mathCalc` sees no arguments: give them, `\"vars\": {{\"{shown}\": \
                     \"args.{shown}\"}}`"
                ),
            };
            let message = format!("`{text}` is no variable here, so it is undefined");
            (codes::UNKNOWN_NAME, message, help)
        };
        self.found(
            Finding::new(code, node, message)
                .inner(inner)
                .offending(&shown)
                .help(help),
        );
    }

    /// A text in a value position: is it meant to stand for itself?
    pub(in crate::lower) fn lint_text(&mut self, node: NodeId, text: &[u8]) {
        if !self.lints() {
            return;
        }
        let shown = Self::shown(text);
        let knows = |name: &str| self.vars.knows(name.as_bytes()) || self.is_argument(name);
        let lint = self.s.lint.as_ref();
        let filled = lint.is_some_and(|lint| lint.templates.contains(&node));
        if let Some(looks) = looks_like(&shown, knows).filter(|_| !filled) {
            let help = match looks {
                Looks::Template => {
                    "a value is a name, a path or a text: use `template {tmpl, vars, result}`"
                }
                Looks::Expression => {
                    "a value is a name, a path or a text: use `mathCalc {expr, vars, result}`, or an \
                     expression node `{\"$expr\": \"binary\", ...}`"
                }
                Looks::Access => {
                    "a value is a name, a path like `a.b.0` or a text: use an expression node \
                     `{\"$expr\": \"member\", ...}` or `{\"$expr\": \"methodCall\", ...}`"
                }
            };
            let text = "this text is not evaluated, it stands for itself";
            let finding = Finding::new(codes::CODE_AS_TEXT, node, text);
            return self.found(finding.offending(&shown).help(help));
        }
        if !self.is_plain_text(text) {
            return;
        }
        if is_identifier(&shown) && shown.len() >= MIN_TYPO && !self.is_argument(&shown) {
            let near = self.nearest_variable(&shown);
            if let Some(near) = near.filter(|near| is_typo(&shown, near)) {
                let text = format!("no variable is called `{shown}`, so this is the text itself");
                self.found(
                    Finding::new(codes::UNKNOWN_NAME, node, text)
                        .offending(&shown)
                        .help(format!("did you mean `{near}`?")),
                );
            }
        }
        if self.is_argument(&shown) {
            let text = format!("`{shown}` is an argument, which a text does not find");
            self.found(
                Finding::new(codes::NOT_VISIBLE, node, text)
                    .offending(&shown)
                    .help(format!("write `\"args.{shown}\"`")),
            );
        }
    }

    /// A path of an argument: does the schema declare its first name?
    pub(in crate::lower) fn lint_argument(&mut self, path: &[u8]) {
        let Some((node, _)) = self.e.at.filter(|_| self.lints()) else {
            return;
        };
        let lint = self.s.lint.as_ref();
        let Some(declared) = lint.and_then(|lint| lint.arguments.as_ref()) else {
            return;
        };
        let root = path.split(|b| *b == b'.').next().unwrap_or(path);
        if declared.contains(root) || declared.contains(path) {
            return;
        }
        let names: Vec<String> = declared.iter().map(|name| Self::shown(name)).collect();
        let shown = Self::shown(root);
        let near = self.s.nearest(&shown, names.iter().map(String::as_str));
        let help = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => "declare it in `inputSchema`".to_owned(),
        };
        let text = format!("`inputSchema` declares no argument `{}`", excerpt(&shown));
        let finding = Finding::new(codes::UNKNOWN_NAME, node, text);
        self.found(finding.offending(&shown).help(help));
    }

    /// A property that `return` reads as a variable, which nothing sets.
    pub(in crate::lower) fn lint_returned(&mut self, schema: NodeId, name: &[u8]) {
        if !self.lints() || self.vars.knows(name) {
            return;
        }
        let doc = self.s.doc;
        let properties = doc.get(schema, "properties").unwrap_or(schema);
        let shown = Self::shown(name);
        let node = doc.get(properties, &shown).unwrap_or(schema);
        let help = match self.nearest_name(&shown) {
            Some(near) => format!("did you mean the variable `{near}`?"),
            None => format!(
                "bind it before: `\"result\": \"{}\"` of a step",
                excerpt(&shown)
            ),
        };
        let text = format!(
            "no step binds `{}`, so the result has no such member",
            excerpt(&shown)
        );
        let finding = Finding::new(codes::UNSET_PROPERTY, node, text);
        self.found(finding.offending(&shown).help(help));
    }

    /// A variable of the innermost scope is set.
    pub(in crate::lower) fn lint_set(&mut self, name: &[u8], node: NodeId) {
        // In a loop a later turn may read it.
        let in_loop = self.s.lint.as_ref().is_none_or(|lint| lint.whiles > 0);
        if in_loop || name == b"result" {
            return;
        }
        let Some(id) = self.vars.in_scope(name, self.scope()) else {
            return;
        };
        if self.vars.hides_bound(id, name)
            && let Some(lint) = &mut self.s.lint
        {
            lint.lost.insert(id, node);
        }
    }

    pub(in crate::lower) fn lint_enter_loop(&mut self) {
        if let Some(lint) = &mut self.s.lint {
            lint.whiles += 1;
        }
    }

    pub(in crate::lower) fn lint_leave_loop(&mut self) {
        if let Some(lint) = &mut self.s.lint {
            lint.whiles -= 1;
        }
    }

    /// A variable is read.
    pub(in crate::lower) fn lint_read(&mut self, chain: &[VarId]) {
        if let (Some(lint), Some(id)) = (&mut self.s.lint, chain.first()) {
            lint.lost.remove(id);
        }
    }

    /// At the end of a function: assignments whose variables nobody read.
    pub(in crate::lower) fn lint_lost(&mut self) {
        let Some(lint) = &mut self.s.lint else { return };
        let mut lost: Vec<NodeId> = std::mem::take(&mut lint.lost).into_values().collect();
        lost.sort();
        for node in lost {
            let name = super::text_of(self.s.doc, node).unwrap_or_default();
            let text = format!(
                "this sets a variable `{}` of this body, which is lost at its end; the outer \
                 variable keeps its value",
                excerpt(&name)
            );
            self.found(
                Finding::new(codes::LOST_ASSIGNMENT, node, text)
                    .offending(&name)
                    .help(
                        "use `reduce` to carry a value from item to item, or `while`, whose body \
                         has no variables of its own",
                    ),
            );
        }
    }
}

fn is_identifier(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a text is more likely a misspelt name than a word like it: one letter
/// too few, too many or wrong, or two swapped, but no plural.
fn is_typo(text: &str, name: &str) -> bool {
    let plural = |a: &str, b: &str| a.strip_suffix('s') == Some(b);
    text.len().abs_diff(name.len()) <= 1
        && name.len() >= MIN_TYPO
        && !plural(text, name)
        && !plural(name, text)
        && !text.eq_ignore_ascii_case(name)
        && text.as_bytes()[0] == name.as_bytes()[0]
}
