//! Lists, texts, objects, JSON, randomness and hashes (language sections 2.5
//! and 2.7).

use super::{Builder, Operand};

/// What [`Builder::random`] may be told; absent inputs have the language's
/// defaults.
#[derive(Clone, Debug, Default)]
pub struct RandomOptions {
    /// The lower bound; 0.
    pub min: Operand,
    /// The upper bound, exclusive; 1.
    pub max: Operand,
    /// `float`, `integer` or `base36`; `float`.
    pub format: Operand,
    /// Characters of a `base36` text; 10.
    pub length: Operand,
}

/// Lists and texts (language section 2.5).
impl Builder {
    /// `push`: appends an item to a list, in place.
    pub fn push(self, list: impl Into<Operand>, item: impl Into<Operand>) -> Self {
        self.atom("push", vec![("list", list.into()), ("item", item.into())])
    }

    /// `len`: the length of a list or text, 0 for anything else.
    pub fn len(self, list: impl Into<Operand>) -> Self {
        self.atom("len", vec![("list", list.into())])
    }

    /// `split`: a text cut at a separator.
    pub fn split(self, str: impl Into<Operand>, sep: impl Into<Operand>) -> Self {
        self.atom("split", vec![("str", str.into()), ("sep", sep.into())])
    }

    /// `sort`: a sorted copy of a list, by the member at a path or by several, as
    /// `[{"by": ..., "order": ...}]`; `()` for the items themselves and for `asc`.
    pub fn sort(
        self,
        items: impl Into<Operand>,
        by: impl Into<Operand>,
        order: impl Into<Operand>,
    ) -> Self {
        let params = vec![
            ("items", items.into()),
            ("by", by.into()),
            ("order", order.into()),
        ];
        self.atom("sort", params)
    }

    /// `memberSet`: sets a member of an object, or an item of a list, in place (decision
    /// D66). The key is a value like any other.
    ///
    /// ```
    /// # use a99_builder::{Builder, ident, literal};
    /// let program = Builder::new()
    ///     .var_set("count", literal(serde_json::json!({})))
    ///     .member_set("count", ident("word"), 1);
    /// assert_eq!(program.steps()[1].get("op").unwrap(), &"memberSet".into());
    /// ```
    pub fn member_set(
        self,
        object: impl Into<Operand>,
        key: impl Into<Operand>,
        value: impl Into<Operand>,
    ) -> Self {
        let params = vec![
            ("object", object.into()),
            ("key", key.into()),
            ("value", value.into()),
        ];
        self.atom("memberSet", params)
    }

    /// `memberDelete`: deletes a member of an object in place; whether it was there.
    pub fn member_delete(self, object: impl Into<Operand>, key: impl Into<Operand>) -> Self {
        let params = vec![("object", object.into()), ("key", key.into())];
        self.atom("memberDelete", params)
    }

    /// `groupBy`: an object with a list of items for each value of a member.
    pub fn group_by(self, items: impl Into<Operand>, by: &str) -> Self {
        self.atom("groupBy", vec![("items", items.into()), ("by", by.into())])
    }

    /// `unique`: the items whose value, or whose member (`()` for none), did not come
    /// before.
    pub fn unique(self, items: impl Into<Operand>, by: impl Into<Operand>) -> Self {
        self.atom("unique", vec![("items", items.into()), ("by", by.into())])
    }

    /// `sum`: the sum of the items, or of a member of each (`()` for none).
    pub fn sum(self, items: impl Into<Operand>, by: impl Into<Operand>) -> Self {
        self.atom("sum", vec![("items", items.into()), ("by", by.into())])
    }

    /// `join`: the items of a list as one text.
    pub fn join(self, list: impl Into<Operand>, sep: impl Into<Operand>) -> Self {
        self.atom("join", vec![("list", list.into()), ("sep", sep.into())])
    }

    /// `template`: a text whose `{{name}}`s are replaced by `vars`, an object
    /// of operands (`()` for none).
    pub fn template(self, tmpl: impl Into<Operand>, vars: impl Into<Operand>) -> Self {
        let params = vec![("tmpl", tmpl.into()), ("vars", vars.into())];
        self.atom("template", params)
    }

    /// `regexMatch`: whether a regular expression, taken as written, matches.
    pub fn regex_match(self, pattern: &str, value: impl Into<Operand>) -> Self {
        let params = vec![("pattern", pattern.into()), ("value", value.into())];
        self.atom("regexMatch", params)
    }

    /// `regexFind`: the first match of a regular expression, taken as written, with
    /// its flags (`()` for none); null if there is none.
    pub fn regex_find(
        self,
        text: impl Into<Operand>,
        pattern: &str,
        flags: impl Into<Operand>,
    ) -> Self {
        self.regex("regexFind", text, pattern, flags, vec![])
    }

    /// `regexFindAll`: all matches of a regular expression.
    pub fn regex_find_all(
        self,
        text: impl Into<Operand>,
        pattern: &str,
        flags: impl Into<Operand>,
    ) -> Self {
        self.regex("regexFindAll", text, pattern, flags, vec![])
    }

    /// `regexReplace`: the text with the first match replaced, or with all of them
    /// by the flag `g`.
    pub fn regex_replace(
        self,
        text: impl Into<Operand>,
        pattern: &str,
        flags: impl Into<Operand>,
        replacement: impl Into<Operand>,
    ) -> Self {
        let more = vec![("replacement", replacement.into())];
        self.regex("regexReplace", text, pattern, flags, more)
    }

    /// `regexReplace`: the text with all matches replaced.
    pub fn regex_replace_all(
        self,
        text: impl Into<Operand>,
        pattern: &str,
        flags: impl Into<Operand>,
        replacement: impl Into<Operand>,
    ) -> Self {
        let more = vec![("replacement", replacement.into()), ("all", true.into())];
        self.regex("regexReplace", text, pattern, flags, more)
    }

    /// `regexSplit`: the parts between matches, at most `limit` (`()` for all).
    pub fn regex_split(
        self,
        text: impl Into<Operand>,
        pattern: &str,
        flags: impl Into<Operand>,
        limit: impl Into<Operand>,
    ) -> Self {
        let more = vec![("limit", limit.into())];
        self.regex("regexSplit", text, pattern, flags, more)
    }

    fn regex(
        self,
        op: &str,
        text: impl Into<Operand>,
        pattern: &str,
        flags: impl Into<Operand>,
        more: Vec<(&'static str, Operand)>,
    ) -> Self {
        let mut params = vec![
            ("text", text.into()),
            ("pattern", pattern.into()),
            ("flags", flags.into()),
        ];
        params.extend(more);
        self.atom(op, params)
    }
}

/// Objects (language section 2.5).
impl Builder {
    /// `pick`: an object of the listed keys.
    pub fn pick(self, obj: impl Into<Operand>, keys: impl Into<Operand>) -> Self {
        self.atom("pick", vec![("obj", obj.into()), ("keys", keys.into())])
    }

    /// `omit`: an object without the listed keys.
    pub fn omit(self, obj: impl Into<Operand>, keys: impl Into<Operand>) -> Self {
        self.atom("omit", vec![("obj", obj.into()), ("keys", keys.into())])
    }

    /// `merge`: the members of `a`, then those of `b`.
    pub fn merge(self, a: impl Into<Operand>, b: impl Into<Operand>) -> Self {
        self.atom("merge", vec![("a", a.into()), ("b", b.into())])
    }

    /// `keys`: the keys of an object.
    pub fn keys(self, obj: impl Into<Operand>) -> Self {
        self.atom("keys", vec![("obj", obj.into())])
    }
}

/// JSON, randomness and hashes (language section 2.7).
impl Builder {
    /// `jsonParse`: the value of a JSON text.
    pub fn json_parse(self, str: impl Into<Operand>) -> Self {
        self.atom("jsonParse", vec![("str", str.into())])
    }

    /// `jsonStringify`: the JSON text of a value.
    pub fn json_stringify(self, value: impl Into<Operand>) -> Self {
        self.atom("jsonStringify", vec![("value", value.into())])
    }

    /// `random`: a random number or text.
    pub fn random(self, options: RandomOptions) -> Self {
        let params = vec![
            ("min", options.min),
            ("max", options.max),
            ("format", options.format),
            ("length", options.length),
        ];
        self.atom("random", params)
    }

    /// `uuid`: a random UUID (RFC 9562 version 4).
    pub fn uuid(self) -> Self {
        self.atom("uuid", vec![])
    }

    /// `hash`: the hexadecimal digest of a text, which is taken as written, or
    /// of a value's JSON. The algorithm is SHA-256 unless one is given (`()`
    /// for none).
    pub fn hash(self, value: impl Into<Operand>, algorithm: impl Into<Operand>) -> Self {
        let params = vec![("value", value.into()), ("algorithm", algorithm.into())];
        self.atom("hash", params)
    }

    /// `hash` with `raw`: the hexadecimal digest of a text as it is, also of one that is
    /// resolved, or of another value's JSON.
    pub fn hash_raw(self, value: impl Into<Operand>, algorithm: impl Into<Operand>) -> Self {
        let params = vec![
            ("value", value.into()),
            ("algorithm", algorithm.into()),
            ("raw", true.into()),
        ];
        self.atom("hash", params)
    }
}
