//! Steps over the items of a list, and cached results (language sections 2.1 and 4.9).

use super::{Builder, Operand};
use crate::chain::chain;

chain! {
    impl Builder;

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
    map = "map" (items, name "as": &str) { body "steps" };

    /// `forEach`: runs steps for each item, bound as `name`; their variables stay set (decision
    /// D63).
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
    for_each = "forEach" (items, name "as": &str) { body "steps" };

    /// [`Builder::for_each`] with the item's index, from 0, bound as `index`.
    for_each_indexed = "forEach" (items, name "as": &str, index: &str) { body "steps" };

    /// `filter`: keeps the items for which the condition is truthy; each is
    /// bound as `name`. `vars` is for condition strings, `()` for none.
    filter = "filter" (items, name "as": &str, condition, vars);

    /// `find`: the first item for which the condition is truthy, or null; each
    /// is bound as `name`. `vars` is for condition strings, `()` for none.
    find = "find" (items, name "as": &str, condition, vars);

    /// `reduce`: runs steps for each item, bound as `name`; their variable
    /// `result` becomes the accumulator.
    reduce = "reduce" (items, name "as": &str, accumulator: &str, initial) { body "steps" };

    /// `memoize`: runs steps once per key in a run and reuses their variable `result`. Without
    /// a key (`()`) the steps themselves are the key (decision D25).
    memoize = "memoize" (key) { body "steps" };
}

impl Builder {
    /// `callAll`: makes the calls of `calls` concurrently, at most `limit` at a time (`()` for
    /// 8), and gives the list of their answers, each `{value}` or `{error}` (language section
    /// 2.10).
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

    /// `callAll` with one call for each item, bound as `name`: the step that `call` adds.
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
