//! Variables, comparisons and formulas (language sections 2.2 to 2.4).

use super::{Builder, Operand};
use crate::chain::chain;

chain! {
    /// Variables and constants (language section 2.2).
    impl Builder;

    /// `varSet`: sets a variable in the current scope.
    var_set = "varSet" (key: &str, value);

    /// `constSet`: sets a variable that cannot be set again.
    const_set = "constSet" (key: &str, value);

    /// `varGet`: gives the value of a variable or path.
    var_get = "varGet" (key);

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
    vars_import = "varsImport" (keys);

    /// `varsExport`: gives an object of variables: a list of names, or pairs of
    /// a key and the variable's path.
    vars_export = "varsExport" (keys);
}

impl Builder {
    /// `varsLet`: sets variables in order; each may use the earlier ones. The names `op`,
    /// `result` and `resultConst` belong to the step and are refused.
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

chain! {
    /// Comparisons as steps (language section 2.3) and formulas (2.4).
    impl Builder;

    /// `eq`: whether `a == b`, with coercion.
    eq = "eq" (a, b);

    /// `neq`: whether `a != b`, with coercion.
    neq = "neq" (a, b);

    /// `gt`: whether `a > b`.
    gt = "gt" (a, b);

    /// `lt`: whether `a < b`.
    lt = "lt" (a, b);

    /// `and`: whether both are truthy.
    and = "and" (a, b);

    /// `or`: whether one is truthy.
    or = "or" (a, b);

    /// `not`: whether the value is falsy.
    not = "not" (value);

    /// `mathCalc`: evaluates an expression text over `vars`, an object of
    /// operands (`()` for none), and the variables of the current scope.
    math_calc = "mathCalc" (expr: &str, vars);
}
