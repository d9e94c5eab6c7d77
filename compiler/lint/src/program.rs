//! Rules for the root of a program: its version, its keys, its helpers.
//!
//! Codes: `lint.helper_arity`, `lint.needs_version`, `lint.return_in_body`, `lint.unknown_field`,
//! `lint.unknown_version`, `lint.wrong_kind`, `lint.wrong_value`.

use super::{Rules, synonyms};
use a99_compiler::ir::{short_text, truthy};
use a99_core::codes::find;
use a99_core::diag::{codes, excerpt};
use a99_core::grammar::{HELPER_KEYS, HELPER_REMARKS, PROGRAM_KEYS, ProgramKey, VERSIONS};
use a99_core::json::{Kind, NodeId};
use a99_core::sig::Form;

fn names(keys: &'static [ProgramKey]) -> impl Iterator<Item = &'static str> {
    keys.iter().map(|key| key.name)
}

impl<'a> Rules<'_, 'a> {
    /// Reports numbers that are too large to be kept exactly.
    fn lint_wide_numbers(&mut self) {
        let doc = self.doc;
        // The number of findings is limited.
        const MOST: usize = 64;
        let wide: Vec<NodeId> = self.facts.wide.iter().take(MOST).copied().collect();
        for node in wide {
            let (Kind::Number(n), Some(span)) = (doc.kind(node), doc.span(node)) else {
                continue;
            };
            let source = doc.source().unwrap_or_default();
            let written = source.get(span.start as usize..span.end as usize);
            let written = written
                .map(|text| String::from_utf8_lossy(text))
                .unwrap_or_default();
            if n.is_infinite() {
                let message = "this is beyond the largest number: it becomes `Infinity`";
                let help = "write a number up to 1.79e308, or a text in quotes";
                self.found(codes::WRONG_VALUE, node, message, &written, help);
                continue;
            }
            let digits = written.trim_start_matches('-');
            let whole = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
            let kept = format!("{n:.0}");
            if whole && kept != *written {
                let message = format!("integers beyond 2 ** 53 are not exact: this becomes {kept}");
                let help = format!("write it as text, in quotes: \"{}\"", excerpt(&written));
                self.found(codes::WRONG_VALUE, node, message, &written, help);
            }
        }
    }

    /// Checks the keys that only the root of a program has.
    pub(super) fn on_program(&mut self) {
        let doc = self.doc;
        let root = doc.root();
        self.lint_wide_numbers();
        if let Some(version) = doc.get(root, "a99") {
            let known = matches!(doc.kind(version), Kind::Number(n) if VERSIONS.iter().any(|v| f64::from(*v) == n));
            if !known {
                let mut shown = Vec::new();
                doc.write_json(version, &mut shown);
                let shown = Self::shown(&shown);
                let text = format!("there is no version {} of the language", excerpt(&shown));
                let help = "write `\"a99\": 4`, or leave it out";
                self.found(codes::UNKNOWN_VERSION, version, text, &shown, help);
            }
        }
        for (key, node) in doc.members(root) {
            let shown = Self::shown(key);
            if names(PROGRAM_KEYS).any(|name| name == shown) || shown.starts_with('$') {
                continue;
            }
            let meant = match shown.as_str() {
                "input" | "inputs" | "args" | "arguments" | "params" | "parameters" | "schema"
                | "input_schema" => {
                    Some("arguments come with the run; what they must be like is `inputSchema`")
                }
                "version" | "lang" | "language" | "languageVersion" | "language_version" => {
                    Some("the version of the language is `a99`: write `\"a99\": 4`")
                }
                "name" | "author" | "created" | "updated" | "tags" | "license" | "metadata"
                | "meta" | "goal" | "task" | "agent" | "agentId" | "model" | "type" => Some(
                    "what is for readers is a `description`, or begins with `$`, `_`, `x-` or `//`",
                ),
                "functions" | "procedures" | "defs" | "subroutines" | "macros" => Some(
                    "helpers are `\"helpers\": {\"name\": {\"paramNames\": [], \"steps\": []}}`",
                ),
                "variables" | "vars" | "state" | "constants" | "initial" => {
                    Some("bind variables in a step: `{\"op\": \"varsLet\", \"name\": ...}`")
                }
                "output" | "outputs" | "outputSchema" | "result" | "return" | "returns" => {
                    Some("the result is what a step `return` gives")
                }
                "env" | "environment" | "secrets" | "config" | "settings" | "options" => Some(
                    "a program has no environment: hand values in as arguments, declared in \
                     `inputSchema`",
                ),
                "imports" | "import" | "requires" | "dependencies" | "uses" | "tools" | "atoms" => {
                    Some("nothing is imported: every atom that the host grants is there")
                }
                "timeout" | "timeoutMs" | "timeout_ms" | "timeoutSeconds" | "fuel" | "limits"
                | "maxSteps" => Some("limits are the run's: `a99 run --timeout 5s --fuel 100`"),
                "on" | "trigger" | "triggers" | "schedule" | "cron" | "retry" | "retries"
                | "onError" | "on_error" => {
                    Some("the host starts programs; an error is caught by a step `try`")
                }
                _ => None,
            };
            if let Some(help) = meant {
                let text = format!(
                    "a program has no key `{}`, so it is ignored",
                    excerpt(&shown)
                );
                self.found(codes::UNKNOWN_FIELD, node, text, &shown, help);
                continue;
            }
            // Other keys may belong to a host or a reader.
            if let Some(near) = self.nearest(&shown, names(PROGRAM_KEYS)) {
                let text = format!(
                    "a program has no key `{}`, so it is ignored",
                    excerpt(&shown)
                );
                let help = format!("did you mean `{near}`?");
                self.found(codes::UNKNOWN_FIELD, node, text, &shown, help);
            }
        }
        self.lint_no_steps();
        if let Some(schema) = doc.get(root, "inputSchema") {
            self.lint_schema(schema, true);
            self.lint_defaults(schema);
        }
        if let Some(node) = doc
            .get(root, "allow")
            .filter(|n| doc.kind(*n) != Kind::Array)
        {
            let shown = super::text_of(doc, node).unwrap_or_default();
            let help = format!("write `\"allow\": [\"{}\"]`", excerpt(&shown));
            self.found(
                codes::WRONG_KIND,
                node,
                "`allow` is a list of codes",
                &shown,
                help,
            );
        }
        let allowed = doc.get(root, "allow").into_iter();
        for code in allowed.flat_map(|list| doc.elements(list)) {
            let shown = super::text_of(doc, code).unwrap_or_default();
            if find(&shown).is_none_or(|row| row.family() != "lint") {
                let text = format!("there is no warning `{}`", excerpt(&shown));
                let known = codes::TABLE.iter().map(|row| row.name);
                let known: Vec<&str> = known.filter(|name| name.starts_with("lint.")).collect();
                let help = match self.nearest(&shown, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        "`a99 explain` lists the codes; `allow` takes those of `lint`".to_owned()
                    }
                };
                self.found(codes::UNKNOWN_FIELD, code, text, &shown, help);
            }
        }
        if let Some(helpers) = doc.get(root, "helpers") {
            self.lint_helpers(helpers);
        }
        let helpers = doc.get(root, "helpers").into_iter();
        for (_, helper) in helpers.flat_map(|helpers| doc.members(helpers)) {
            self.lint_helper(helper);
        }
    }

    /// Reports keys of a step that need a later version of the language (D62).
    pub(super) fn lint_version(&mut self, step: NodeId, form: Option<Form>) {
        let counts = matches!(
            form,
            Some(Form::Map | Form::Filter | Form::Find | Form::Reduce)
        );
        if self.is_version_4() || !counts {
            return;
        }
        let index = self.doc.get(step, "index");
        let Some(index) = index.filter(|node| truthy(self.doc, *node)) else {
            return;
        };
        let text = "`index` means something from version 4 on, so it is ignored";
        let help = "write `\"a99\": 4` at the root of the program";
        self.found(codes::NEEDS_VERSION, index, text, "", help);
    }

    /// Reports an expression text in a program of an older version, and checks the text if no other
    /// rule does.
    pub(super) fn on_short_text(&mut self, node: NodeId, inside: bool) {
        if self.is_version_4() {
            return;
        }
        let doc = self.doc;
        let mut work = vec![node];
        while let Some(node) = work.pop() {
            if short_text(doc, node).is_some() {
                let text = "an expression text is data in programs before version 4";
                let help = "write `\"a99\": 4` at the root of the program";
                self.found(codes::NEEDS_VERSION, node, text, "=", help);
            }
            if inside {
                work.extend(doc.elements(node));
                work.extend(doc.members(node).map(|(_, value)| value));
            }
        }
    }

    fn lint_helper(&mut self, helper: NodeId) {
        let doc = self.doc;
        for (key, node) in doc.members(helper) {
            let shown = Self::shown(key);
            let known = names(HELPER_KEYS).chain(HELPER_REMARKS.iter().copied());
            if known.into_iter().any(|name| name == shown) {
                continue;
            }
            let synonym = synonyms::keys_for(&shown)
                .iter()
                .find(|key| names(HELPER_KEYS).any(|name| name == **key));
            let near = match synonym {
                Some(name) => Some((*name).to_owned()),
                None => self.nearest(&shown, names(HELPER_KEYS)),
            };
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "a helper is `{paramNames, steps}`".to_owned(),
            };
            let text = format!(
                "a helper has no key `{}`, so it is ignored",
                excerpt(&shown)
            );
            self.found(codes::UNKNOWN_FIELD, node, text, &shown, help);
        }
    }

    /// Reports a call of a helper with the wrong number of arguments.
    pub(super) fn on_arity(&mut self, step: NodeId, name: &str, given: usize, wanted: usize) {
        if given == wanted {
            return;
        }
        let doc = self.doc;
        // A source omits arguments with a default.
        if given < wanted && (self.is_source() || self.has_defaults(name, given)) {
            return;
        }
        let place = doc.get(step, "args").unwrap_or(step);
        let text = format!(
            "`{}` takes {wanted} arguments, and gets {given}",
            excerpt(name)
        );
        let help = match given > wanted {
            true => "remove those that are too many, or add names to `paramNames`",
            false => "give all of them: those that are missing are undefined",
        };
        self.found(codes::HELPER_ARITY, place, text, name, help);
    }

    /// Whether a helper begins with defaults for its parameters from one on, as in
    /// `{"op": "varSet", "key": "y", "value": {"=": "y === undefined ? 1 : y"}}`.
    fn has_defaults(&self, name: &str, from: usize) -> bool {
        let doc = self.doc;
        let helpers = doc.get(doc.root(), "helpers");
        let helper = helpers.and_then(|helpers| doc.get(helpers, name));
        let Some((names, steps)) = helper
            .and_then(|helper| Some((doc.get(helper, "paramNames")?, doc.get(helper, "steps")?)))
        else {
            return false;
        };
        let count = doc.len(names);
        let sets = |param: &[u8]| {
            doc.elements(steps).take(count).any(|step| {
                let key = doc.get(step, "key").and_then(|n| doc.str(n));
                let value = doc.get(step, "value");
                key == Some(param) && value.is_some_and(|value| self.is_expr(value))
            })
        };
        let mut missing = doc.elements(names).skip(from).filter_map(|n| doc.str(n));
        missing.all(sets)
    }

    /// Reports a `return` in the body of `map`, `filter`, `find` or `reduce`, which ends only the
    /// item.
    pub(super) fn on_return_in_body(&mut self, step: NodeId) {
        let text = "this `return` ends the body for one item, not the program, and its value \
                    is dropped";
        let help = "bind the item's value to `result`; to leave early, use `find`, or `forEach`";
        self.found(codes::RETURN_IN_BODY, step, text, "return", help);
    }
}
