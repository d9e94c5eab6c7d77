//! Variables, comparisons and formulas (language sections 2.2 to 2.4).

use super::{Builder, Operand};

/// Variables and constants (language section 2.2).
impl Builder {
    /// `varSet`: sets a variable in the current scope.
    pub fn var_set(self, key: &str, value: impl Into<Operand>) -> Self {
        self.atom("varSet", vec![("key", key.into()), ("value", value.into())])
    }

    /// `constSet`: sets a variable that cannot be set again.
    pub fn const_set(self, key: &str, value: impl Into<Operand>) -> Self {
        let params = vec![("key", key.into()), ("value", value.into())];
        self.atom("constSet", params)
    }

    /// `varGet`: gives the value of a variable or path.
    pub fn var_get(self, key: impl Into<Operand>) -> Self {
        self.atom("varGet", vec![("key", key.into())])
    }

    /// `varsImport`: copies arguments of the run into variables: a list of
    /// names, or pairs of a variable and the argument's path.
    ///
    /// ```
    /// # use a99_builder::Builder;
    /// let program = Builder::new()
    ///     .vars_import(["a", "b"])
    ///     .vars_import([("total", "invoice.total")]);
    /// assert_eq!(
    ///     program.to_json_string()?,
    ///     concat!(
    ///         r#"{"op":"seq","steps":[{"op":"varsImport","keys":["a","b"]},"#,
    ///         r#"{"op":"varsImport","keys":{"total":"invoice.total"}}]}"#
    ///     )
    /// );
    /// # Ok::<(), a99_core::diag::Diagnostics>(())
    /// ```
    pub fn vars_import(self, keys: impl Into<Operand>) -> Self {
        self.atom("varsImport", vec![("keys", keys.into())])
    }

    /// `varsExport`: gives an object of variables: a list of names, or pairs of
    /// a key and the variable's path.
    pub fn vars_export(self, keys: impl Into<Operand>) -> Self {
        self.atom("varsExport", vec![("keys", keys.into())])
    }

    /// `varsLet`: sets variables in order, each of which may use the earlier
    /// ones. The names `op`, `result` and `resultConst` belong to the step and
    /// are refused.
    pub fn vars_let<K: AsRef<str>, V: Into<Operand>>(
        mut self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables
            .into_iter()
            .map(|(name, value)| (name, value.into().into_value()));
        self.push_step("varsLet", variables);
        self
    }
}

/// Comparisons as steps (language section 2.3) and formulas (2.4).
impl Builder {
    /// `eq`: whether `a == b`, with coercion.
    pub fn eq(self, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.atom("eq", vec![("a", a.into()), ("b", b.into())])
    }

    /// `neq`: whether `a != b`, with coercion.
    pub fn neq(self, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.atom("neq", vec![("a", a.into()), ("b", b.into())])
    }

    /// `gt`: whether `a > b`.
    pub fn gt(self, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.atom("gt", vec![("a", a.into()), ("b", b.into())])
    }

    /// `lt`: whether `a < b`.
    pub fn lt(self, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.atom("lt", vec![("a", a.into()), ("b", b.into())])
    }

    /// `and`: whether both are truthy.
    pub fn and(self, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.atom("and", vec![("a", a.into()), ("b", b.into())])
    }

    /// `or`: whether one is truthy.
    pub fn or(self, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.atom("or", vec![("a", a.into()), ("b", b.into())])
    }

    /// `not`: whether the value is falsy.
    pub fn not(self, value: impl Into<Operand>) -> Self {
        self.atom("not", vec![("value", value.into())])
    }

    /// `mathCalc`: evaluates an expression text over `vars`, an object of
    /// operands (`()` for none), and the variables of the current scope.
    pub fn math_calc(self, expr: &str, vars: impl Into<Operand>) -> Self {
        let params = vec![("expr", expr.into()), ("vars", vars.into())];
        self.atom("mathCalc", params)
    }
}
