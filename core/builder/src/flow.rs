//! Control flow (language section 2.1): bodies are closures that fill a nested builder.
//!
//! Conditions are condition strings or expression nodes ([`super::Expr`]).
//! `vars` adds names to the variables that a condition *string* sees (decisions D2 and D3);
//! `()` stands for no names.

use super::{Builder, Operand};
use crate::chain::chain;
use a99_core::diag::{Diagnostic, codes};
use a99_core::pointer;
use a99_core::schema::is_truthy;
use a99_core::value::{Map, Value};

chain! {
    impl Builder;

    /// `seq`: steps as one step.
    seq = "seq" () { body "steps" };

    /// `if` without `else`.
    ///
    /// ```
    /// # use a99_builder::{Builder, args};
    /// let program = Builder::new().if_(
    ///     "total > limit",
    ///     [("limit", args("limit"))],
    ///     |then| then.var_set("flag", true),
    /// );
    /// assert_eq!(
    ///     program.to_json_string()?,
    ///     concat!(
    ///         r#"{"op":"seq","steps":[{"op":"if","condition":"total > limit","#,
    ///         r#""vars":{"limit":{"$kind":"arg","path":"limit"}},"#,
    ///         r#""then":[{"op":"varSet","key":"flag","value":true}]}]}"#
    ///     )
    /// );
    /// # Ok::<(), a99_core::diag::Diagnostics>(())
    /// ```
    if_ = "if" (condition, vars) { then };

    /// `if` with `else`.
    if_else = "if" (condition, vars) { then, otherwise "else" };

    /// `while`: runs the body as long as the condition is truthy.
    while_ = "while" (condition, vars) { body };

    /// `break`: ends the innermost [`Builder::for_each`] or [`Builder::while_`].
    break_ = "break" ();

    /// `continue`: ends this iteration of the innermost [`Builder::for_each`] or
    /// [`Builder::while_`].
    continue_ = "continue" ();

    /// `try` without `catch`: the error stays (decision D8).
    try_ = "try" () { body "try" };

    /// `try` with `catch`, which has the message in the variable `error`.
    try_catch = "try" () { body "try", catch };

    /// `return` of a value.
    return_value = "return" (value);

    /// `scope`: steps whose variables end with it.
    scope = "scope" () { body "steps" };

    /// `callLocal`: calls a helper of the program (see [`Builder::helper`])
    /// with a list of operands.
    call_local = "callLocal" (name: &str, args);
}

impl Builder {
    /// `try` with `catch`, which has the message in the variable `param`.
    pub fn try_catch_as(
        self,
        param: &str,
        body: impl FnOnce(Builder) -> Builder,
        catch: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        self.guarded(body, catch, param.into())
    }

    fn guarded(
        mut self,
        body: impl FnOnce(Builder) -> Builder,
        catch: impl FnOnce(Builder) -> Builder,
        param: Operand,
    ) -> Self {
        let body = self.body("try", body);
        let catch = self.body("catch", catch);
        let params = vec![("try", body), ("catch", catch), ("catchParam", param)];
        self.atom("try", params)
    }

    /// `return` of the variables that a schema's properties name. A wrapper `{"schema": {..}}`
    /// is removed.
    pub fn return_(self, schema: impl Into<Value>) -> Self {
        self.atom("return", vec![("schema", unwrapped(schema.into()))])
    }

    /// `return` by a schema, without projecting the values to the schema's properties (`filter:
    /// false`).
    pub fn return_unfiltered(self, schema: impl Into<Value>) -> Self {
        let schema = unwrapped(schema.into());
        self.atom("return", vec![("schema", schema), ("filter", false.into())])
    }

    /// `Error`: fails with a message; `()` for none. The message is literal and names no
    /// variable.
    pub fn error(self, message: impl Into<Operand>) -> Self {
        let message = message.into();
        let args = (!message.is_absent()).then(|| vec![message]);
        self.atom("Error", vec![("args", args.into())])
    }

    /// Sets the schema that the arguments of a run must match. Only the root of a program has
    /// one (language section 1.1); a body with one is refused.
    pub fn input_schema(mut self, schema: impl Into<Value>) -> Self {
        self.root.input_schema = Some(unwrapped(schema.into()).into_value());
        self
    }

    /// Adds a helper for [`Builder::call_local`]: its name, the names of its parameters, its
    /// steps. Only the root of a program has helpers (language section 1.1); a body with one is
    /// refused.
    pub fn helper(
        mut self,
        name: &str,
        params: &[&str],
        body: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let inner = body(Builder::new());
        let mut place = String::from("/helpers");
        pointer::push_key(&mut place, name);
        place.push_str("/steps");
        let steps = self.adopt(inner, &place);
        let params: Vec<Value> = params.iter().map(|&param| param.into()).collect();
        let members = [("steps", steps.into_value()), ("paramNames", params.into())];
        let helper: Map = members.into_iter().collect();
        self.root.helpers.insert(name, Value::Object(helper));
        self
    }

    /// Runs `fill` on a nested builder; returns its steps for `key` of the next step.
    pub(super) fn body(&mut self, key: &str, fill: impl FnOnce(Builder) -> Builder) -> Operand {
        let place = format!("/steps/{}/{key}", self.steps.len());
        self.adopt(fill(Builder::new()), &place)
    }

    /// The single step that `fill` adds to a nested builder.
    pub(super) fn one(&mut self, key: &str, fill: impl FnOnce(Builder) -> Builder) -> Operand {
        let inner = fill(Builder::new());
        let place = format!("/steps/{}/{key}", self.steps.len());
        let first = inner.steps.first().cloned();
        if inner.steps.len() != 1 {
            let text = "a call for each item is one step";
            let finding = Diagnostic::error(codes::NO_STEP, text, place.as_str());
            self.findings
                .push(finding.with_help("add one atom to the builder of the call"));
        }
        let _ = self.adopt(inner, &place);
        first.unwrap_or(Value::Undefined).into()
    }

    /// The steps of an inner builder; its findings move to `place`.
    fn adopt(&mut self, inner: Builder, place: &str) -> Operand {
        let kept = [
            inner.root.version.map(|_| "a99"),
            inner.root.input_schema.as_ref().map(|_| "inputSchema"),
            inner.root.helpers.keys().next().map(|_| "helpers"),
        ];
        let misplaced = kept.into_iter().flatten().map(|key| misplaced(key, place));
        self.findings.extend(misplaced);
        self.findings
            .extend(inner.findings.into_iter().map(|mut finding| {
                let rest = finding.pointer.strip_prefix("/steps");
                finding.pointer = format!("{place}{}", rest.unwrap_or(&finding.pointer));
                finding
            }));
        Value::Array(inner.steps).into()
    }
}

/// A schema without the wrapper of a schema builder, recognised as in the reference: a truthy
/// member `schema`.
fn unwrapped(schema: Value) -> Operand {
    match schema.get("schema").filter(|inner| is_truthy(inner)) {
        Some(inner) => inner.into(),
        None => schema.into(),
    }
}

fn misplaced(key: &str, place: &str) -> Diagnostic {
    let message = format!("Only the root of a program has '{key}'");
    Diagnostic::error(codes::MISPLACED_KEY, message, place)
        .with_offending(key)
        .with_help("give it to the outermost builder")
}
