//! Ops as other libraries, languages and services call them.

use a99_core::builtins;

/// Names of one meaning, as they are without case and signs, and what does it here.
#[rustfmt::skip]
const OPS: &[(&[&str], &str)] = &[
    (&["choice", "ifelse", "ifthenelse", "cond", "when", "branch", "ifthen", "decision"], "use `if {condition, then, else}`"),
    (&["unless", "ifnot"], "use `if {condition, then}`, with `!(...)` around the condition"),
    (&["trycatch", "tryexcept", "errorhandler", "onerror"], "use `try {try, catch, catchParam}`"),
    (&["retry", "retries", "repeatuntil", "poll"], "use `while {condition, body}` with a `try` in its body"),
    (&["forrange", "fori", "counter", "times"], "use `while {condition, body}`, with a counter that `mathCalc` raises"),
    (&["range", "sequenceof"], "write the list, or count in a `while {condition, body}`"),
    (&["ternary", "iif", "conditional"], "use an expression node `conditional`, or `if {condition, then, else}`"),
    (&["succeed", "success", "done", "finish", "stop", "respond", "reply", "answer", "finalanswer", "final", "result"], "use `return {schema}` or `return {value}`"),
    (&["task", "action", "step", "node", "activity", "execute"], "name an atom as the `op`: `httpFetch`, `llmPredict`, `mathCalc` and so on"),
    (&["pass", "define", "local", "setvalue", "setvariable", "assignvariable", "declare", "store_var", "global", "input", "put"], "use `varSet {key, value}`"),
    (&["flatmap", "mapcat", "foreachitem", "iterate", "iterator", "apply", "transform", "pluck", "mapvalues", "listcomprehension", "maplist"], "use `map {items, as, steps, result}`"),
    (&["some", "any", "exists", "anyof", "findone", "detect", "findindex", "firstwhere"], "use `find {items, as, condition, result}`, which gives null if there is none"),
    (&["every", "allof", "reject", "filterlist", "grep", "partition"], "use `filter {items, as, condition, result}`, and compare lengths"),
    (&["groupby", "countby", "keyby", "indexby", "aggregate", "accumulate", "avg", "average", "mean", "total", "sumby", "foldl", "inject"], "use `reduce {items, as, accumulator, initial, steps, result}`"),
    (&["unique", "uniq", "distinct", "dedupe", "dedup", "removeduplicates", "toset"], "use the function `Set` in an expression node `call`, and its method `toArray`"),
    (&["first", "last", "nth", "head", "tail", "getitem", "elementat", "itemat"], "use a path, as in `\"xs.0\"`, or the method `at` in an expression node `methodCall`"),
    (&["zip", "chunk", "take", "drop", "limit", "skip", "compact", "flatten", "sortby", "orderby", "shuffle"], "use methods of lists in an expression node `methodCall`: `flat`, `slice`, `toSorted`"),
    (&["lowercase", "lower", "tolower", "strtolower", "downcase"], "use the method `toLowerCase` in an expression node `methodCall`"),
    (&["uppercase", "upper", "toupper", "strtoupper", "upcase", "capitalize", "titlecase"], "use the method `toUpperCase` in an expression node `methodCall`"),
    (&["regexreplace", "strreplace", "resub", "gsub", "substitute", "replaceregex", "replacetext"], "use the method `replaceAll` in an expression node `methodCall`; it takes texts, no patterns"),
    (&["regexextract", "rematch", "research", "regextest", "regexfind", "matches", "extractregex", "ismatch"], "use `regexMatch {pattern, value, result}`, which gives true or false"),
    (&["strlen", "lengthof", "sizeof", "listlength", "arraylength", "isempty", "itemcount"], "use `len {list, result}`"),
    (&["jsondecode", "jsonloads", "parsejson", "fromjson", "jsonparser", "decodejson", "deserialize"], "use `jsonParse {str, result}`"),
    (&["jsonencode", "jsondumps", "stringifyjson", "tojsonstring", "encodejson", "serialize"], "use `jsonStringify {value, result}`"),
    (&["xmltojson", "parsexml"], "use `xmlParse {str, result}`"),
    (&["addtolist", "listadd", "arraypush", "arrayappend", "listappend", "addtoarray", "pushitem", "additem", "enqueue"], "use `push {list, item, result}`"),
    (&["spread", "assignobject", "objectassign", "combine", "mergedeep", "update_object", "deepmerge", "setfield", "setproperty"], "use `merge {a, b, result}`"),
    (&["objectkeys", "getkeys", "fieldnames"], "use `keys {obj, result}`"),
    (&["haskey", "has", "hasproperty", "hasfield", "containskey"], "use `Object.hasOwn` in an expression node `methodCall`"),
    (&["values", "objectvalues", "dictvalues"], "use `Object.values` in an expression node `methodCall`"),
    (&["entries", "objectentries", "dictitems", "topairs"], "use `Object.entries` in an expression node `methodCall`"),
    (&["chat", "chatcompletion", "openai", "anthropic", "claude", "gpt", "callllm", "llmcall", "llminvoke", "llmchat", "completion", "predict", "askllm", "llmchain", "model", "gemini", "inference", "textgeneration", "summarize", "classify", "translate"], "use `llmPredict {prompt, result}`"),
    (&["embedtext", "embedding", "embeddings", "vectorize", "embeddocuments", "encode"], "use `storeVectorize {text, result}`"),
    (&["vectorsearch", "retrieve", "retriever", "similaritysearch", "semanticsearch", "knn", "nearest", "rag"], "use `storeVectorSearch {collection, vector, k, result}`"),
    (&["axios", "axiosget", "axiospost", "requestsget", "requestspost", "requestspost", "httpget", "httppost", "httpput", "httpdelete", "webhook", "restcall", "restapi", "apicall", "callapi", "webrequest", "download", "urlopen", "geturl", "post", "patch", "httprequest", "fetchurl", "fetchjson", "sendrequest", "email", "sendemail", "slack", "notify"], "use `httpFetch {url, method, headers, body, result}`"),
    (&["run", "bash", "sh", "cmd", "command", "subprocess", "system", "runcommand"], "use `shellExec`, if the host grants a computer"),
    (&["readfile", "fileread", "openfile", "loadfile", "cat"], "use `shellReadFile`, if the host grants a computer"),
    (&["writefile", "filewrite", "savefile"], "use `shellWriteFile`, if the host grants a computer"),
    (&["python", "javascript", "js", "code", "script", "function_node", "evalcode", "execcode", "runscript"], "use `runCode {code, args, result}`, if the host has a transpiler; else write steps"),
    (&["callhelper", "callfunction", "functioncall", "invokefunction", "subroutine", "callprocedure", "gosub", "callsub"], "use `callLocal {name, args, result}`"),
    (&["invokeagent", "runagent", "callagent", "spawnagent", "delegate", "handoff", "subworkflow", "executeworkflow"], "use `agentRun {agentId, input, result}`"),
    (&["toolcall", "tooluse", "usetool", "functiontool", "invoketool"], "make the tool a step: its name is the `op`, its arguments stand beside it"),
    (&["equals", "equal", "isequal", "==", "===", "is", "compare"], "use `eq {a, b, result}`, or `==` in a condition"),
    (&["ne", "notequals", "notequal", "!=", "!==", "xor"], "use `neq {a, b, result}`, or `!=` in a condition"),
    (&["greaterthan", "isgreater", ">"], "use `gt {a, b, result}`, or `>` in a condition"),
    (&["lessthan", "isless", "<"], "use `lt {a, b, result}`, or `<` in a condition"),
    (&["gte", "ge", "greaterorequal", "greaterthanorequal", ">="], "use `lt {a, b, result}` and `not`, or `>=` in a condition"),
    (&["lte", "le", "lessorequal", "lessthanorequal", "<="], "use `gt {a, b, result}` and `not`, or `<=` in a condition"),
    (&["&&", "land", "allof_"], "use `and {a, b, result}`, or `&&` in a condition"),
    (&["||", "lor"], "use `or {a, b, result}`, or `||` in a condition"),
    (&["!", "negate", "inverse"], "use `not {value, result}`, or `!` in a condition"),
    (&["+", "-", "*", "/", "%", "**", "subtract", "sub", "minus", "multiply", "mul", "divide", "div", "mod", "modulo", "plus", "addition", "arithmetic", "calculator", "sumof", "inc", "dec", "pow", "power", "mathevaluate"], "use `mathCalc {expr, vars, result}`"),
    (&["assertequal", "assert", "ensure", "require", "guard", "check", "verify"], "use `if {condition, then}` with an `Error` in `then`"),
    (&["validate", "schema", "zod", "validateschema", "typecheck"], "declare what arguments must be like in `inputSchema`; `Schema.isValid` in an expression tests a value"),
    (&["tostring", "str", "string", "tostr", "text", "interpolate", "formatstring", "sprintf", "strformat", "fstring", "concatstrings", "prompttemplate"], "use `template {tmpl, vars, result}`"),
    (&["tonumber", "int", "float", "number", "toint", "tofloat", "parsenumber", "parsefloat", "parseint"], "use the function `parseFloat` in an expression node `call`"),
    (&["typeof", "gettype", "type", "isnull", "isdefined", "isundefined"], "use `typeof` in an expression node `unary`, or compare with `null`"),
    (&["timestamp", "currenttime", "datenow", "getdate", "today", "time", "formatdate", "parsedate", "dateformat", "datetime"], "use the function `Date` in an expression node `call`, `Date.now` in a `methodCall`"),
    (&["md5", "sha1", "sha512", "digest", "checksum", "crypto", "hmac"], "use `hash {value, algorithm, result}`"),
    (&["guid", "uuid4", "newid", "generateid", "nanoid", "randomuuid"], "use `uuid {result}`"),
    (&["randomint", "randint", "rand", "randomnumber", "mathrandom"], "use `random {min, max, format, result}`"),
    (&["base64", "base64encode", "base64decode", "btoa", "atob", "encrypt", "decrypt", "gzip"], "no atom does this: compute it in the host, as an atom of its own"),
    (&["sql", "select_sql", "dbquery", "database", "querydb", "mongo", "postgres", "mysql"], "use `storeQuery {query, result}`"),
    (&["readstore", "getstate", "loadstate", "recall", "memoryget", "readmemory", "redisget", "dbget"], "use `storeGet {key, result}`"),
    (&["writestore", "savestate", "persist", "remember", "memoryset", "writememory", "redisset", "dbput"], "use `storeSet {key, value}`"),
    (&["warn", "warning", "logwarning"], "use `consoleWarn {message}`"),
    (&["debug", "info", "trace", "logger", "loginfo"], "use `consoleLog {message}`"),
    (&["abort", "panic", "reject_", "die", "throwerror"], "use `Error {args: [\"text\"]}`"),
    (&["comment_", "todo", "nop", "null", "empty", "start", "begin_", "trigger", "manualtrigger"], "leave the step out"),
    (&["waitforevent", "timeout", "settimeout", "delay_", "pause"], "no atom waits for time to pass"),
    (&["goto_", "jump", "next"], "there are no jumps: steps run one after the other"),
    (&["input_", "ask_user", "askuser", "userinput", "humaninput", "prompt_user"], "arguments come with the run: `args.name`, declared in `inputSchema`"),
];

/// A name without case, signs and what a library puts before it.
fn bare(name: &str) -> String {
    let name = name.strip_prefix("n8n-nodes-base.").unwrap_or(name);
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    match plain.is_empty() {
        true => name.to_owned(),
        false => plain.to_ascii_lowercase(),
    }
}

/// How to write what the name of an op means that is none, where `ops` are those
/// that are known.
pub(in crate::lower) fn help_for_op<'n>(
    name: &str,
    ops: impl Iterator<Item = &'n str>,
) -> Option<String> {
    if let Some(help) = super::synonyms::atom_for(name) {
        return Some(help.to_owned());
    }
    let plain = bare(name);
    let (_, last) = name.rsplit_once('.').unwrap_or(("", name));
    let mut same = ops.filter(|op| bare(op) == plain || *op == last);
    if let Some(op) = same.next() {
        return Some(format!("did you mean '{op}'?"));
    }
    op_of_library(name)
}

/// How to write what an op of another library means.
fn op_of_library(name: &str) -> Option<String> {
    const LONGEST: usize = 48;
    if name.len() > LONGEST {
        return None;
    }
    let known = |name: &str| {
        OPS.iter()
            .find(|row| row.0.contains(&name))
            .map(|row| row.1.to_owned())
    };
    let whole = bare(name);
    if let Some(help) = known(&whole) {
        return Some(help);
    }
    let (before, last) = name.rsplit_once('.').unwrap_or(("", name));
    let is_static =
        builtins::NAMESPACES.contains(&before) && builtins::function(before, last).is_some();
    if is_static || builtins::function("Math", last).is_some() {
        let space = if is_static { before } else { "Math" };
        return Some(format!(
            "use `{space}.{last}` in an expression node `methodCall`, whose `object` is \
             `{{\"$expr\": \"ident\", \"name\": \"{space}\"}}`"
        ));
    }
    if builtins::method(last).is_some() && !matches!(last, "map" | "filter" | "find" | "reduce") {
        return Some(format!(
            "use the method `{last}` in an expression node `methodCall`"
        ));
    }
    if before.is_empty() {
        return None;
    }
    known(&bare(last)).or_else(|| super::synonyms::atom_for(last).map(str::to_owned))
}
