//! Synonyms from other languages: functions, methods, expression nodes and keys.

use a99_core::grammar::expression_key;

/// Help for a synonym of a function or method.
const CALLEES: &[(&str, &str)] = &[
    ("len", "write `.length` of a text or a list"),
    ("length", "write `.length`, without a call"),
    ("size", "write `.length` of a list, `.size` of a set"),
    ("count", "write `.length`, or use the atom `len`"),
    ("str", "write `String(x)`"),
    ("toStr", "write `String(x)`"),
    ("int", "write `parseInt(x)`, or `Math.floor(x)`"),
    ("float", "write `parseFloat(x)`"),
    ("number", "write `Number(x)`"),
    ("bool", "write `Boolean(x)`"),
    ("print", "use the atom `consoleLog {message}` in a step"),
    ("alert", "use the atom `consoleLog {message}` in a step"),
    (
        "fetch",
        "use the atom `httpFetch {url, method, headers, body, result}` in a step before",
    ),
    ("require", "nothing is imported: atoms are steps"),
    ("setTimeout", "use the atom `sleep {ms}` in a step before"),
    ("range", "write a list, or count in a `while`"),
    (
        "sum",
        "use the atom `sum {items, by, result}` in a step before",
    ),
    ("max", "write `Math.max(a, b)`"),
    ("min", "write `Math.min(a, b)`"),
    ("abs", "write `Math.abs(x)`"),
    ("round", "write `Math.round(x)`"),
    ("floor", "write `Math.floor(x)`"),
    ("ceil", "write `Math.ceil(x)`"),
    ("sqrt", "write `Math.sqrt(x)`"),
    ("pow", "write `a ** b`, or `Math.pow(a, b)`"),
    ("upper", "write `.toUpperCase()`"),
    ("toUpper", "write `.toUpperCase()`"),
    ("lower", "write `.toLowerCase()`"),
    ("toLower", "write `.toLowerCase()`"),
    ("strip", "write `.trim()`"),
    ("contains", "write `.includes(x)`"),
    ("exists", "write `x != null`"),
    ("isset", "write `x != null`"),
    ("defined", "write `x != null`"),
    ("is_defined", "write `x != null`"),
    ("isDefined", "write `x != null`"),
    ("notNull", "write `x != null`"),
    ("isNull", "write `x == null`"),
    ("is_null", "write `x == null`"),
    ("isNone", "write `x == null`"),
    ("isUndefined", "write `x == null`"),
    ("coalesce", "write `a ?? b`"),
    ("ifnull", "write `a ?? b`"),
    ("nvl", "write `a ?? b`"),
    ("iif", "write `a ? b : c`"),
    ("isNumber", "write `typeof x == 'number'`"),
    ("is_number", "write `typeof x == 'number'`"),
    ("isString", "write `typeof x == 'string'`"),
    ("is_string", "write `typeof x == 'string'`"),
    (
        "isinstance",
        "write `typeof x == 'number'`, or `Array.isArray(x)`",
    ),
    ("empty", "write `x.length == 0`"),
    ("notEmpty", "write `x.length > 0`"),
    (
        "concat_ws",
        "use the atom `join {list, sep, result}` in a step before",
    ),
    ("getYear", "write `.getFullYear()`"),
    ("today", "write `Date()`, or `Date.now()` for milliseconds"),
    ("sleep", "use the atom `sleep {ms}` in a step before"),
    ("avg", "use the atoms `sum` and `len`, and divide"),
    ("mean", "use the atoms `sum` and `len`, and divide"),
    ("average", "use the atoms `sum` and `len`, and divide"),
    ("ltrim", "write `.trimStart()`"),
    ("rtrim", "write `.trimEnd()`"),
    ("replaceall", "write `.replaceAll(a, b)`"),
    ("flatten", "write `.flat()`"),
    (
        "distinct",
        "use the atom `unique {items, by, result}` in a step before",
    ),
    (
        "any",
        "use the atom `find {items, as, condition, result}` in a step before",
    ),
    (
        "all",
        "use the atom `filter {items, as, condition, result}`, and compare lengths",
    ),
    ("has_key", "write `Object.hasOwn(o, 'key')`"),
    ("hasKey", "write `Object.hasOwn(o, 'key')`"),
    ("startswith", "write `.startsWith(x)`"),
    ("endswith", "write `.endsWith(x)`"),
    ("append", "write `.push(x)`, or use the atom `push`"),
    ("extend", "write `.concat(xs)`"),
    (
        "sorted",
        "use the atom `sort {items, by, order, result}` in a step before",
    ),
    (
        "sortBy",
        "use the atom `sort {items, by, order, result}` in a step before",
    ),
    (
        "unique",
        "use the atom `unique {items, by, result}` in a step before",
    ),
    (
        "uniq",
        "use the atom `unique {items, by, result}` in a step before",
    ),
    (
        "groupBy",
        "use the atom `groupBy {items, by, result}` in a step before",
    ),
    ("isEmpty", "write `.length == 0`"),
    ("is_empty", "write `.length == 0`"),
    ("reversed", "write `.toReversed()`"),
    ("isArray", "write `Array.isArray(x)`"),
    ("keys", "write `Object.keys(o)`, or use the atom `keys`"),
    ("values", "write `Object.values(o)`"),
    ("items", "write `Object.entries(o)`"),
    ("entries", "write `Object.entries(o)`"),
    (
        "test",
        "use the atom `regexMatch {pattern, value, result}` in a step before",
    ),
    (
        "match",
        "use the atom `regexFind {text, pattern, flags, result}` in a step before",
    ),
    ("format", "use the atom `template {tmpl, vars, result}`"),
    (
        "parse",
        "write `JSON.parse(s)`, or use the atom `jsonParse`",
    ),
    (
        "stringify",
        "write `JSON.stringify(x)`, or use the atom `jsonStringify`",
    ),
    ("dumps", "write `JSON.stringify(x)`"),
    ("loads", "write `JSON.parse(s)`"),
    ("now", "write `Date.now()`"),
    ("random", "write `Math.random()`, or use the atom `random`"),
    (
        "get",
        "write the member: `o.key`, or `o[key]` as a node `member` with `computed`",
    ),
    (
        "then",
        "atoms that wait are awaited: bind the `result` of the step",
    ),
];

/// Help for an unknown function or method.
pub fn callee_help(name: &str) -> Option<&'static str> {
    let row = CALLEES.iter().find(|row| row.0 == name);
    row.map(|row| row.1)
}

/// Help for an unknown key of an op, where a name alone is not enough.
pub fn input_help(op: &str, key: &str) -> Option<&'static str> {
    Some(match (op, key) {
        (
            "mathCalc" | "llmPredict" | "httpFetch" | "varSet",
            "forEach" | "foreach" | "for_each" | "loop",
        ) => {
            "put the step into a `map {items, as, steps, result}`, or a `forEach {items, as, steps}`"
        }
        (
            "httpFetch" | "llmPredict" | "agentRun",
            "onError" | "on_error" | "continueOnError" | "catch",
        ) => "put the step into a `try {try, catch, catchParam}`",
        ("httpFetch", "auth" | "authorization" | "token" | "apiKey" | "api_key") => {
            "put it into `headers`: `{\"Authorization\": ...}`"
        }
        ("httpFetch", "timeout_ms" | "timeoutSeconds") => "the host limits the time of atoms",
        ("regexMatch", "flags" | "options" | "ignoreCase" | "i") => {
            "a pattern has no flags: for both cases begin it with `(?i)`"
        }
        ("jsonStringify", "indent" | "pretty" | "space") => {
            "the text is compact; `JSON.stringify` in an expression takes an indentation"
        }
        ("llmPredict", "modelName" | "model_name" | "top_p" | "stop" | "maxOutputTokens") => {
            "put it into `options`"
        }
        ("varSet" | "constSet", "expr" | "expression" | "formula") => {
            "use `mathCalc {expr, vars, result}`, or an expression node as `value`"
        }
        ("storeGet", "default" | "fallback" | "defaultValue" | "default_value" | "or") => {
            "bind the default before, by `varSet` of the same name: a key that is not set binds \
             nothing"
        }
        ("merge", "objects" | "sources" | "items" | "list" | "with" | "values") => {
            "it merges two objects, `a` and `b`: `merge {a, b, result}`"
        }
        ("merge", "c" | "d" | "b2" | "third") => {
            "it merges two objects: merge the third in a step after, `merge {a, b, result}`"
        }
        (
            "storeCompareAndSet",
            "old" | "oldValue" | "expect" | "current" | "previous" | "from" | "if",
        ) => "what the key must hold is its `expected`",
        ("storeCompareAndSet", "new" | "newValue" | "next" | "to" | "update" | "set") => {
            "what it is set to is its `value`"
        }
        ("llmPredict", "messages" | "history" | "chat") => {
            "write the question as its `prompt`; a list of messages is the `user` of `llmPredictBattery`"
        }
        ("and" | "or", "conditions" | "values" | "items" | "operands" | "args" | "list") => {
            "it takes two values, `a` and `b`; for more use a `condition`, as in `a && b && c`"
        }
        ("if", "elif_") => "put another `if` into `else`",
        (
            _,
            "next" | "Next" | "End" | "end" | "goto" | "depends_on" | "dependsOn" | "needs"
            | "after",
        ) => "steps run in the order of their list: remove it",
        (_, "if" | "when" | "unless" | "condition")
            if expression_key(op.as_bytes()) != Some("condition") =>
        {
            "put the step into an `if {condition, then}`"
        }
        (_, "retries" | "retry" | "maxRetries" | "Retry") => {
            "to try again use `while {condition, body}` with a `try` in it, and `break`"
        }
        ("Error", "message" | "msg" | "text" | "error") => "write `\"args\": [\"text\"]`",
        ("template", "template" | "text" | "str" | "string") => {
            "the text of a template is its `tmpl`: `template {tmpl, vars, result}`"
        }
        ("template", "data" | "values" | "context" | "args") => {
            "what fills the holes is `vars`: `{\"name\": \"variable\"}`"
        }
        ("while", "max" | "limit" | "maxIterations" | "maxTurns") => {
            "a loop is limited by the fuel of the run, or by a count in its `condition`"
        }
        ("if", "elif" | "elseif" | "elseIf" | "else_if") => {
            "put another `if` into `else`: `\"else\": [{\"op\": \"if\", ...}]`"
        }
        ("try", "finally") => "there is no `finally`: put the steps after the `try`",
        ("map" | "filter" | "find" | "reduce" | "forEach", "indexAs" | "i" | "idx" | "counter") => {
            "the name of an item's number is its `index`"
        }
        ("httpFetch", "params" | "query" | "qs") => "put the query into `url`",
        ("httpFetch", "timeout" | "timeoutMs") => {
            "the host limits the time of atoms; to try again use `while` and `try`"
        }
        ("httpFetch", "json") => {
            "make the text with `jsonStringify`, give it as `body`, and say so in `headers`"
        }
        (
            "storeSet" | "storeCompareAndSet" | "cache",
            "ttl" | "expires" | "ttlSeconds" | "expiresIn",
        ) => "did you mean `ttlMs`? It is in milliseconds",
        ("shellExec", "args" | "arguments" | "argv") => {
            "write a list, `\"command\": [\"ls\", \"-l\"]`, or one text for the shell"
        }
        ("shellExec", "timeout" | "timeoutSeconds") => {
            "did you mean `timeoutMs`? It is in milliseconds"
        }
        (
            "llmPredict",
            "temperature" | "model" | "role" | "maxTokens" | "max_tokens" | "system" | "topP"
            | "effort" | "seed",
        ) => "put it into `options`",
        _ => return None,
    })
}

/// Synonyms of expression nodes, with the syntax of each.
const NODES: &[(&[&str], &str)] = &[
    (
        &[
            "add",
            "sub",
            "subtract",
            "mul",
            "multiply",
            "div",
            "divide",
            "mod",
            "plus",
            "minus",
            "times",
            "eq",
            "ne",
            "neq",
            "gt",
            "gte",
            "lt",
            "lte",
            "compare",
            "op",
            "operator",
            "binop",
            "arithmetic",
            "math",
            "calc",
            "+",
            "-",
            "*",
            "/",
            "==",
            ">",
            "<",
            "binaryExpression",
            "BinaryExpression",
        ],
        "write `{\"$expr\": \"binary\", \"op\": \"+\", \"left\": ..., \"right\": ...}`",
    ),
    (
        &[
            "and",
            "or",
            "coalesce",
            "&&",
            "||",
            "??",
            "LogicalExpression",
        ],
        "write `{\"$expr\": \"logical\", \"op\": \"&&\", \"left\": ..., \"right\": ...}`",
    ),
    (
        &["not", "neg", "negate", "typeof", "!", "UnaryExpression"],
        "write `{\"$expr\": \"unary\", \"op\": \"!\", \"argument\": ...}`",
    ),
    (
        &[
            "if",
            "ternary",
            "cond",
            "when",
            "?",
            "condition",
            "ConditionalExpression",
        ],
        "write `{\"$expr\": \"conditional\", \"test\": ..., \"consequent\": ..., \"alternate\": ...}`",
    ),
    (
        &[
            "var",
            "variable",
            "identifier",
            "name",
            "ref",
            "id",
            "local",
            "symbol",
            "Identifier",
            "arg",
            "args",
            "param",
        ],
        "write `{\"$expr\": \"ident\", \"name\": \"n\"}`; an argument is found by its name, too",
    ),
    (
        &[
            "lit", "const", "constant", "value", "number", "string", "text", "bool", "boolean",
            "null", "Literal",
        ],
        "write `{\"$expr\": \"literal\", \"value\": ...}`, or the value alone",
    ),
    (
        &["list", "tuple", "ArrayExpression"],
        "write `{\"$expr\": \"array\", \"elements\": [...]}`",
    ),
    (
        &["dict", "obj", "map", "record", "ObjectExpression"],
        "write `{\"$expr\": \"object\", \"properties\": [{\"key\": \"a\", \"value\": ...}]}`",
    ),
    (
        &[
            "prop",
            "property",
            "get",
            "field",
            "path",
            "dot",
            "index",
            "access",
            "getProperty",
            "MemberExpression",
        ],
        "write `{\"$expr\": \"member\", \"object\": ..., \"property\": \"name\"}`",
    ),
    (
        &["function", "fn", "apply", "func", "CallExpression"],
        "write `{\"$expr\": \"call\", \"callee\": \"parseInt\", \"arguments\": [...]}`",
    ),
    (
        &["method", "invoke", "callMethod", "method_call"],
        "write `{\"$expr\": \"methodCall\", \"object\": ..., \"method\": \"trim\", \"arguments\": []}`",
    ),
    (
        &["template", "format", "TemplateLiteral"],
        "use the atom `template {tmpl, vars, result}` in a step before, or join texts with `+`",
    ),
    (
        &["lambda", "arrow", "ArrowFunctionExpression"],
        "there are no functions as values: use the atoms `map`, `filter`, `sort` and `reduce`",
    ),
];

/// Operators of other languages, as the `op` of a node.
const OPERATORS: &[(&[&str], &str)] = &[
    (&["not", "NOT", "negate_bool"], "write `\"op\": \"!\"`"),
    (&["neg", "negate", "minus"], "write `\"op\": \"-\"`"),
    (
        &["add", "plus", "concat", "++", "&", ".."],
        "write `\"op\": \"+\"`",
    ),
    (&["sub", "subtract"], "write `\"op\": \"-\"`"),
    (
        &["mul", "multiply", "times", "x", "×"],
        "write `\"op\": \"*\"`",
    ),
    (&["div", "divide", "//", "÷"], "write `\"op\": \"/\"`"),
    (&["mod", "modulo"], "write `\"op\": \"%\"`"),
    (&["pow", "power", "^"], "write `\"op\": \"**\"`"),
    (
        &["eq", "equals", "equal", "=", "is"],
        "write `\"op\": \"==\"`",
    ),
    (
        &["ne", "neq", "notEquals", "<>", "not_equal", "=/="],
        "write `\"op\": \"!=\"`",
    ),
    (&["gt", "greater", "greaterThan"], "write `\"op\": \">\"`"),
    (
        &["gte", "ge", "=>", "≥", "greaterThanOrEqual"],
        "write `\"op\": \">=\"`",
    ),
    (&["lt", "less", "lessThan"], "write `\"op\": \"<\"`"),
    (
        &["lte", "le", "=<", "≤", "lessThanOrEqual"],
        "write `\"op\": \"<=\"`",
    ),
    (
        &["and", "AND", "all"],
        "write `{\"$expr\": \"logical\", \"op\": \"&&\", \"left\": ..., \"right\": ...}`",
    ),
    (
        &["or", "OR", "any"],
        "write `{\"$expr\": \"logical\", \"op\": \"||\", \"left\": ..., \"right\": ...}`",
    ),
    (
        &["in", "contains", "includes"],
        "use the method `includes`: `{\"$expr\": \"methodCall\", \"object\": ..., \"method\": \
         \"includes\", \"arguments\": [...]}`",
    ),
];

/// Help for an operator of another language.
pub fn operator_help(op: &str) -> Option<&'static str> {
    let row = OPERATORS.iter().find(|row| row.0.contains(&op));
    row.map(|row| row.1)
}

/// Help for the node that an unknown tag means.
pub fn node_help(tag: &str) -> &'static str {
    if tag == "text" {
        return "texts are evaluated from version 4 on: write `\"a99\": 4` at the root";
    }
    let row = NODES.iter().find(|row| row.0.contains(&tag));
    row.map_or(
        "`$expr` is one of literal, ident, member, binary, unary, logical, conditional, array, object, \
         call and methodCall, and `op` an operator such as `+`, `==` or `&&`",
        |row| row.1,
    )
}
