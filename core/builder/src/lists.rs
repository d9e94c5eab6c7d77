//! Steps over the items of a list, and results that are kept (language
//! sections 2.1 and 4.9).

use super::{Builder, Operand};

impl Builder {
    /// `map`: runs steps for each item, bound as `name`, and collects their
    /// variables `result`.
    ///
    /// ```
    /// # use a99_builder::{Builder, args, ident};
    /// let program = Builder::new()
    ///     .map(args("prices"), "price", |b| {
    ///         b.var_set("result", ident("price") * 2)
    ///     })
    ///     .as_("doubled");
    /// assert_eq!(program.steps()[0].get("as").unwrap(), &"price".into());
    /// ```
    pub fn map(
        mut self,
        items: impl Into<Operand>,
        name: &str,
        body: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let steps = self.body("steps", body);
        let params = vec![
            ("items", items.into()),
            ("as", name.into()),
            ("steps", steps),
        ];
        self.atom("map", params)
    }

    /// `forEach`: runs steps for each item, bound as `name`; what they set stays
    /// (decision D63).
    ///
    /// ```
    /// # use a99_builder::{Builder, args, ident};
    /// let program = Builder::new()
    ///     .var_set("total", 0)
    ///     .for_each(args("prices"), "price", |b| {
    ///         b.if_("price < 0", (), |b| b.break_())
    ///             .var_set("total", ident("total") + ident("price"))
    ///     });
    /// assert_eq!(program.steps()[1].get("op").unwrap(), &"forEach".into());
    /// ```
    pub fn for_each(
        self,
        items: impl Into<Operand>,
        name: &str,
        body: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        self.each(items.into(), name, Operand::absent(), body)
    }

    /// [`Builder::for_each`] with the number of the item, from 0, bound as `index`.
    pub fn for_each_indexed(
        self,
        items: impl Into<Operand>,
        name: &str,
        index: &str,
        body: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        self.each(items.into(), name, index.into(), body)
    }

    fn each(
        mut self,
        items: Operand,
        name: &str,
        index: Operand,
        body: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let steps = self.body("steps", body);
        let params = vec![
            ("items", items),
            ("as", name.into()),
            ("index", index),
            ("steps", steps),
        ];
        self.atom("forEach", params)
    }

    /// `callAll`: makes the calls that `calls` fills in at once, at most `limit` of
    /// them under way (`()` for 8), and gives the list of their answers, each
    /// `{value}` or `{error}` (language section 2.10).
    ///
    /// ```
    /// # use a99_builder::Builder;
    /// let program = Builder::new()
    ///     .call_all((), |b| b.store_get("first").store_get("second"))
    ///     .as_("answers");
    /// assert_eq!(program.steps()[0].get("calls").unwrap().as_array().unwrap().len(), 2);
    /// ```
    pub fn call_all(
        mut self,
        limit: impl Into<Operand>,
        calls: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let calls = self.body("calls", calls);
        self.atom("callAll", vec![("calls", calls), ("limit", limit.into())])
    }

    /// `callAll` with a call for each item, bound as `name`: the step that `call`
    /// fills in.
    pub fn call_each(
        mut self,
        items: impl Into<Operand>,
        name: &str,
        limit: impl Into<Operand>,
        call: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let call = self.one("call", call);
        let params = vec![
            ("items", items.into()),
            ("as", name.into()),
            ("call", call),
            ("limit", limit.into()),
        ];
        self.atom("callAll", params)
    }

    /// `filter`: keeps the items for which the condition is truthy; each is
    /// bound as `name`. `vars` is for condition strings, `()` for none.
    pub fn filter(
        self,
        items: impl Into<Operand>,
        name: &str,
        condition: impl Into<Operand>,
        vars: impl Into<Operand>,
    ) -> Self {
        self.chosen("filter", items.into(), name, condition.into(), vars.into())
    }

    /// `find`: the first item for which the condition is truthy, or null; each
    /// is bound as `name`. `vars` is for condition strings, `()` for none.
    pub fn find(
        self,
        items: impl Into<Operand>,
        name: &str,
        condition: impl Into<Operand>,
        vars: impl Into<Operand>,
    ) -> Self {
        self.chosen("find", items.into(), name, condition.into(), vars.into())
    }

    fn chosen(
        self,
        op: &str,
        items: Operand,
        name: &str,
        condition: Operand,
        vars: Operand,
    ) -> Self {
        let params = vec![
            ("items", items),
            ("as", name.into()),
            ("condition", condition),
            ("vars", vars),
        ];
        self.atom(op, params)
    }

    /// `reduce`: runs steps for each item, bound as `name`; their variable
    /// `result` becomes the accumulator.
    pub fn reduce(
        mut self,
        items: impl Into<Operand>,
        name: &str,
        accumulator: &str,
        initial: impl Into<Operand>,
        body: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let steps = self.body("steps", body);
        let params = vec![
            ("items", items.into()),
            ("as", name.into()),
            ("accumulator", accumulator.into()),
            ("initial", initial.into()),
            ("steps", steps),
        ];
        self.atom("reduce", params)
    }

    /// `memoize`: runs steps once for each key in a run and remembers their
    /// variable `result`. Without a key (`()`) the steps themselves are the key
    /// (decision D25).
    pub fn memoize(
        mut self,
        key: impl Into<Operand>,
        body: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let steps = self.body("steps", body);
        self.atom("memoize", vec![("key", key.into()), ("steps", steps)])
    }

    /// `cache`: like [`Builder::memoize`] across runs, in the store, for
    /// `ttl_ms` milliseconds (`()`: 24 hours).
    pub fn cache(
        mut self,
        key: impl Into<Operand>,
        ttl_ms: impl Into<Operand>,
        body: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let steps = self.body("steps", body);
        let params = vec![
            ("key", key.into()),
            ("steps", steps),
            ("ttlMs", ttl_ms.into()),
        ];
        self.atom("cache", params)
    }
}
