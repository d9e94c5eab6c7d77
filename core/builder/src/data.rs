//! Lists, texts, objects, JSON, randomness and hashes (language sections 2.5
//! and 2.7).

use crate::chain::{chain, options};

options! {
    /// Optional inputs of [`Builder::random`](crate::Builder::random); absent ones have the
    /// language's defaults.
    RandomOptions {
        /// The lower bound; 0.
        min,
        /// The upper bound, exclusive; 1.
        max,
        /// `float`, `integer` or `base36`; `float`.
        format,
        /// Characters of a `base36` text; 10.
        length,
    }
}

chain! {
    /// Lists and texts (language section 2.5).
    impl Builder;

    /// `push`: appends an item to a list, in place.
    push = "push" (list, item);

    /// `len`: the length of a list or text, 0 for anything else.
    len = "len" (list);

    /// `split`: the parts of a text between separators.
    split = "split" (str, sep);

    /// `sort`: a sorted copy of a list, by the member at a path or by several, as `[{"by": ...,
    /// "order": ...}]`. `()` sorts by the items themselves, and in the order `asc`.
    sort = "sort" (items, by, order);

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
    member_set = "memberSet" (object, key, value);

    /// `memberDelete`: deletes a member of an object in place; gives whether it existed.
    member_delete = "memberDelete" (object, key);

    /// `groupBy`: an object with a list of items for each value of a member.
    group_by = "groupBy" (items, by: &str);

    /// `unique`: the first item of each value, or of each value of a member (`()` for none).
    unique = "unique" (items, by);

    /// `sum`: the sum of the items, or of a member of each (`()` for none).
    sum = "sum" (items, by);

    /// `join`: the items of a list as one text.
    join = "join" (list, sep);

    /// `template`: a text whose `{{name}}`s are replaced by `vars`, an object
    /// of operands (`()` for none).
    template = "template" (tmpl, vars);

    /// `regexMatch`: whether a literal regular expression matches.
    regex_match = "regexMatch" (pattern: &str, value);

    /// `regexFind`: the first match of a literal regular expression with its flags (`()` for
    /// none), or null.
    regex_find = "regexFind" (text, pattern: &str, flags);

    /// `regexFindAll`: all matches of a regular expression.
    regex_find_all = "regexFindAll" (text, pattern: &str, flags);

    /// `regexReplace`: the text with the first match replaced, or with all of them
    /// by the flag `g`.
    regex_replace = "regexReplace" (text, pattern: &str, flags, replacement);

    /// `regexReplace`: the text with all matches replaced.
    regex_replace_all = "regexReplace" (text, pattern: &str, flags, replacement) with ["all": true];

    /// `regexSplit`: the parts between matches, at most `limit` (`()` for all).
    regex_split = "regexSplit" (text, pattern: &str, flags, limit);
}

chain! {
    /// Objects (language section 2.5).
    impl Builder;

    /// `pick`: an object of the listed keys.
    pick = "pick" (obj, keys);

    /// `omit`: an object without the listed keys.
    omit = "omit" (obj, keys);

    /// `merge`: the members of `a`, then those of `b`.
    merge = "merge" (a, b);

    /// `keys`: the keys of an object.
    keys = "keys" (obj);
}

chain! {
    /// JSON, randomness and hashes (language section 2.7).
    impl Builder;

    /// `jsonParse`: the value of a JSON text.
    json_parse = "jsonParse" (str);

    /// `jsonStringify`: the JSON text of a value.
    json_stringify = "jsonStringify" (value);

    /// `random`: a random number or text.
    random = "random" () + RandomOptions;

    /// `uuid`: a random UUID (RFC 9562 version 4).
    uuid = "uuid" ();

    /// `hash`: the hexadecimal digest of a literal text or of a value's JSON. The algorithm is
    /// SHA-256 unless one is given (`()` for none).
    hash = "hash" (value, algorithm);

    /// `hash` with `raw`: the hexadecimal digest of an unchanged text, even a resolved one, or
    /// of another value's JSON.
    hash_raw = "hash" (value, algorithm) with ["raw": true];
}
