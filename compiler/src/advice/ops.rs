//! Ops as other libraries, languages and services name them.

use a99_core::builtins;

/// Synonyms without case and punctuation, and the equivalent here.
#[rustfmt::skip]
const OPS: &[(&[&str], &str)] = &[
    (&["choice", "ifelse", "ifthenelse", "cond", "when", "branch", "ifthen", "decision"], "use `if {condition, then, else}`"),
    (&["unless", "ifnot"], "use `if {condition, then}`, with `!(...)` around the condition"),
    (&["trycatch", "tryexcept", "errorhandler", "onerror"], "use `try {try, catch, catchParam}`"),
    (&["retry", "retries", "repeatuntil", "poll"], "use `while {condition, body}` with a `try` in its body, and `break` once it worked"),
    (&["forrange", "fori", "counter", "times"], "use `while {condition, body}`, with a counter that `mathCalc` raises"),
    (&["range", "sequenceof"], "write the list, or count in a `while {condition, body}`"),
    (&["ternary", "iif", "conditional"], "use an expression node `conditional`, or `if {condition, then, else}`"),
    (&["succeed", "success", "done", "finish", "respond", "reply", "answer", "finalanswer", "final", "result"], "use `return {schema}` or `return {value}`"),
    (&["task", "action", "step", "node", "activity", "execute"], "name an atom as the `op`: `httpFetch`, `llmPredict`, `mathCalc` and so on"),
    (&["define", "local", "setvalue", "assignvariable", "declare", "storevar", "global", "input", "set", "var", "assign", "setvar", "setstate", "setvariable", "variable", "createvariable", "updatevariable", "updatevar", "setfact", "setoutput", "newvariable", "initialize", "init", "initvariable", "definevariable", "setvars"], "use `varSet {key, value}`"),
    (&["flatmap", "mapcat", "foreachitem", "iterate", "iterator", "apply", "transform", "pluck", "mapvalues", "listcomprehension", "maplist"], "use `map {items, as, steps, result}`"),
    (&["some", "any", "exists", "anyof", "findone", "detect", "findindex", "firstwhere", "findfirst", "findby", "lookup"], "use `find {items, as, condition, result}`, which gives null if there is none"),
    (&["every", "allof", "reject", "filterlist", "grep", "partition"], "use `filter {items, as, condition, result}`, and compare lengths"),
    (&["fold", "foldright", "foldl", "aggregate", "accumulate", "inject"], "use `reduce {items, as, accumulator, initial, steps, result}`"),
    (&["first", "nth", "head", "tail", "getitem", "elementat", "itemat"], "use a path, as in `\"xs.0\"`, or the method `at` in an expression node `methodCall`"),
    (&["itemlists", "zip", "chunk", "take", "drop", "limit", "compact", "flatten", "shuffle"], "use methods of lists in an expression node `methodCall`: `slice`, `flat`, `concat`"),
    (&["lowercase", "tolower", "strtolower", "downcase", "tolowercase", "lower"], "use the method `toLowerCase` in an expression node `methodCall`"),
    (&["uppercase", "toupper", "strtoupper", "upcase", "capitalize", "titlecase", "touppercase", "upper"], "use the method `toUpperCase` in an expression node `methodCall`"),
    (&["rematch", "regextest", "matches", "ismatch"], "use `regexMatch {pattern, value, result}`, which gives true or false"),
    (&["strlen", "lengthof", "sizeof", "listlength", "arraylength", "isempty", "itemcount", "length", "count", "size", "getlength", "countitems"], "use `len {list, result}`"),
    (&["jsondecode", "jsonloads", "fromjson", "jsonparser", "decodejson", "deserialize", "parse", "parsejson"], "use `jsonParse {str, result}`"),
    (&["jsonencode", "jsondumps", "stringifyjson", "tojsonstring", "encodejson", "serialize", "stringify", "tojson"], "use `jsonStringify {value, result}`"),
    (&["xmltojson", "parsexml"], "use `xmlParse {str, result}`"),
    (&["addtolist", "listadd", "arraypush", "arrayappend", "listappend", "addtoarray", "pushitem", "additem", "enqueue", "append"], "use `push {list, item, result}`"),
    (&["spread", "assignobject", "objectassign", "combine", "mergedeep", "updateobject", "deepmerge", "extend", "mergeobjects"], "use `merge {a, b, result}`"),
    (&["objectkeys", "getkeys", "fieldnames", "dictkeys"], "use `keys {obj, result}`"),
    (&["haskey", "has", "hasproperty", "hasfield", "containskey"], "use `Object.hasOwn` in an expression node `methodCall`"),
    (&["values", "objectvalues", "dictvalues"], "use `Object.values` in an expression node `methodCall`"),
    (&["entries", "objectentries", "dictitems", "topairs"], "use `Object.entries` in an expression node `methodCall`"),
    (&["chat", "chatcompletion", "openai", "anthropic", "claude", "gpt", "callllm", "llmcall", "llminvoke", "completion", "predict", "askllm", "llmchain", "model", "gemini", "inference", "textgeneration", "summarize", "classify", "translate", "llm", "ai", "prompt", "generate", "complete"], "use `llmPredict {prompt, result}`"),
    (&["embedtext", "embedding", "embeddings", "vectorize", "embeddocuments", "encode", "embed"], "use `storeVectorize {text, result}`"),
    (&["vectorsearch", "retrieve", "retriever", "similaritysearch", "semanticsearch", "knn", "nearest", "rag"], "use `storeVectorSearch {collection, vector, k, result}`"),
    (&["axios", "uri", "geturlcontent", "axiosget", "axiospost", "requestsget", "requestspost", "httpput", "httpdelete", "webhook", "restcall", "restapi", "apicall", "callapi", "webrequest", "download", "urlopen", "geturl", "patch", "fetchurl", "fetchjson", "sendrequest", "email", "sendemail", "slack", "notify", "fetch", "http", "request", "curl", "httprequest"], "use `httpFetch {url, method, headers, body, result}`"),
    (&["run", "bash", "sh", "cmd", "command", "subprocess", "system", "runcommand", "exec", "shell"], "use `shellExec`, if the host grants a computer"),
    (&["readfile", "fileread", "openfile", "loadfile", "cat"], "use `shellReadFile`, if the host grants a computer"),
    (&["writefile", "filewrite", "savefile"], "use `shellWriteFile`, if the host grants a computer"),
    (&["python", "javascript", "js", "code", "script", "functionnode", "evalcode", "execcode", "runscript"], "use `runCode {code, args, result}`, if the host has a transpiler; else write steps"),
    (&["callhelper", "callfunction", "functioncall", "invokefunction", "subroutine", "callprocedure", "gosub", "callsub"], "use `callLocal {name, args, result}`"),
    (&["invokeagent", "runagent", "callagent", "spawnagent", "delegate", "handoff", "subworkflow", "executeworkflow", "agent", "subagent"], "use `agentRun {agentId, input, result}`"),
    (&["toolcall", "tooluse", "usetool", "functiontool", "invoketool", "calltool", "tool"], "make the tool a step: its name is the `op`, its arguments stand beside it"),
    (&["equals", "equal", "isequal", "==", "===", "is", "compare"], "use `eq {a, b, result}`, or `==` in a condition"),
    (&["ne", "notequals", "notequal", "!=", "!==", "xor"], "use `neq {a, b, result}`, or `!=` in a condition"),
    (&["greaterthan", "isgreater", ">"], "use `gt {a, b, result}`, or `>` in a condition"),
    (&["lessthan", "isless", "<"], "use `lt {a, b, result}`, or `<` in a condition"),
    (&["gte", "ge", "greaterorequal", "greaterthanorequal", ">="], "use `lt {a, b, result}` and `not`, or `>=` in a condition"),
    (&["lte", "le", "lessorequal", "lessthanorequal", "<="], "use `gt {a, b, result}` and `not`, or `<=` in a condition"),
    (&["&&", "land"], "use `and {a, b, result}`, or `&&` in a condition"),
    (&["||", "lor"], "use `or {a, b, result}`, or `||` in a condition"),
    (&["!", "negate", "inverse"], "use `not {value, result}`, or `!` in a condition"),
    (&["+", "-", "*", "/", "%", "**", "subtract", "sub", "minus", "multiply", "mul", "divide", "div", "mod", "modulo", "plus", "addition", "arithmetic", "calculator", "inc", "dec", "pow", "power", "mathevaluate", "math", "calc", "compute", "calculate"], "use `mathCalc {expr, vars, result}`"),
    (&["assertequal", "ensure", "require", "guard", "check", "verify", "assert"], "use `if {condition, then}` with an `Error` in `then`"),
    (&["validate", "schema", "zod", "validateschema", "typecheck"], "declare what arguments must be like in `inputSchema`; `Schema.isValid` in an expression tests a value"),
    (&["tostring", "str", "string", "tostr", "text", "interpolate", "formatstring", "sprintf", "strformat", "fstring", "concatstrings", "prompttemplate", "format"], "use `template {tmpl, vars, result}`"),
    (&["tonumber", "int", "float", "toint", "tofloat", "parsenumber", "parsefloat"], "use the function `parseFloat` in an expression node `call`"),
    (&["typeof", "gettype", "type", "isnull", "isdefined", "isundefined"], "use `typeof` in an expression node `unary`, or compare with `null`"),
    (&["timestamp", "currenttime", "datenow", "getdate", "today", "time", "formatdate", "dateformat", "datetime"], "use the function `Date` in an expression node `call`, `Date.now` in a `methodCall`"),
    (&["md5", "sha1", "sha512", "digest", "checksum", "crypto", "hmac", "sha256"], "use `hash {value, algorithm, result}`"),
    (&["guid", "uuid4", "newid", "generateid", "nanoid", "randomuuid", "uuidv4"], "use `uuid {result}`"),
    (&["randomint", "randint", "rand", "randomnumber", "mathrandom"], "use `random {min, max, format, result}`"),
    (&["base64", "base64encode", "base64decode", "btoa", "atob", "encrypt", "decrypt", "gzip"], "no atom does this: compute it in the host, as an atom of its own"),
    (&["sql", "selectsql", "dbquery", "database", "querydb", "mongo", "postgres", "mysql", "query"], "use `storeQuery {query, result}`"),
    (&["readstore", "getstate", "loadstate", "recall", "memoryget", "readmemory", "redisget", "dbget", "load"], "use `storeGet {key, result}`"),
    (&["writestore", "savestate", "persist", "remember", "memoryset", "writememory", "redisset", "dbput", "save"], "use `storeSet {key, value}`"),
    (&["stream", "streamtext", "streamoutput", "emitchunk", "sendchunk", "writechunk", "emitevent", "progress", "reportprogress", "notifyuser"], "use `streamChunk {data}`"),
    (&["warn", "warning", "logwarning"], "use `consoleWarn {message}`"),
    (&["abort", "panic", "die", "throwerror", "throw", "raise", "fail", "raiseerror", "throwexception", "failwith"], "use `Error {args: [\"text\"]}`"),
    (&["todo", "null", "empty", "start", "trigger", "manualtrigger", "noop", "nop", "pass"], "leave the step out"),
    (&["timeout", "settimeout", "pause", "wait", "delay"], "use `sleep {ms}`"),
    (&["waitforevent"], "no atom waits for events"),
    (&["jump"], "there are no jumps: steps run one after the other"),
    (&["askuser", "userinput", "humaninput", "promptuser"], "arguments come with the run: `args.name`, declared in `inputSchema`"),
    (&["forof", "loopover", "foreachloop", "foreachof", "iterateover", "splitinbatches", "withitems", "looponitems"], "use `forEach {items, as, steps}`"),
    (&["each"], "use `forEach {items, as, steps}`, or `map` for a list of results"),
    (&["for"], "use `forEach {items, as, steps}` over a list, or `while {condition, body}`"),
    (&["loop"], "use `while {condition, body}`, or `forEach {items, as, steps}` over a list"),
    (&["repeat"], "use `while {condition, body}` with a counter"),
    (&["until"], "use `while {condition, body}` with the opposite condition"),
    (&["dowhile"], "use `while {condition, body}`"),
    (&["let"], "use `varSet {key, value}`, or `varsLet` for several"),
    (&["const"], "use `constSet {key, value}`"),
    (&["get", "getvariable"], "use the variable's name as a value, or `varGet {key, result}`"),
    (&["getvar"], "use `varGet {key, result}`"),
    (&["call", "invoke"], "use `callLocal {name, args, result}` for a helper; an atom is called by its op"),
    (&["function", "lambda", "def"], "write helpers at the root: `helpers: {name: {paramNames, steps}}`"),
    (&["httpget"], "use `httpFetch {url, result}`"),
    (&["httppost"], "use `httpFetch {url, method: \"POST\", body, result}`"),
    (&["switch", "case"], "use `if {condition, then, else}`, one in the `else` of the other"),
    (&["match"], "use `if {condition, then, else}`, or `regexFind {text, pattern, flags, result}`"),
    (&["elseif", "elif"], "write an `if` into the `else` of the first"),
    (&["else"], "`else` is a key of `if`: `if {condition, then, else}`"),
    (&["then"], "`then` is a key of `if`: `if {condition, then, else}`"),
    (&["next", "skipitem", "nextitem", "continueloop", "skipturn"], "use `continue`, which goes on with the next turn of a loop"),
    (&["breakloop", "exitloop", "endloop", "leaveloop", "stoploop"], "use `break`, which ends a loop"),
    (&["stop"], "use `break` to end a loop, `return` to end the program"),
    (&["catch"], "`catch` is a key of `try`: `try {try, catch, catchParam}`"),
    (&["finally"], "there is no `finally`: put the steps after the `try`"),
    (&["add"], "use `push {list, item, result}` for a list, `mathCalc` for numbers"),
    (&["concat"], "use `template {tmpl, vars}` for texts, `push` or the method `concat` for lists"),
    (&["eval"], "use `mathCalc {expr, vars, result}` or an expression node"),
    (&["regex"], "use `regexMatch {pattern, value, result}`, or `regexFind {text, pattern, flags, result}`"),
    (&["matchall", "findall", "regexmatchall", "refindall", "refinditer", "findallmatches", "scan"], "use `regexFindAll {text, pattern, flags, result}`"),
    (&["research", "extractregex", "regexextract", "regexsearch", "regexexec", "regexgroups", "capture"], "use `regexFind {text, pattern, flags, result}`"),
    (&["test"], "use `regexMatch {pattern, value, result}`"),
    (&["sequence", "begin", "sequential", "series"], "use `seq {steps}`"),
    (&["block"], "use `seq {steps}`, or `scope {steps}` for variables of its own"),
    (&["parallel"], "for calls at once use `callAll {calls, limit, result}`; else steps run one after the other: `seq {steps}`"),
    (&["all", "gather", "concurrent", "promiseall"], "use `callAll {calls, limit, result}`"),
    (&["batch", "parallelmap"], "use `callAll {items, as, call, limit, result}`"),
    (&["await"], "atoms that wait are awaited: leave it out"),
    (&["end", "exit", "output", "yield", "returnvalue", "returnresult", "setresult", "emit"], "use `return {value}`"),
    (&["select"], "use `filter {items, as, condition}`, or `pick {obj, keys}`"),
    (&["store"], "use `storeSet {key, value}` and `storeGet {key, result}`"),
    (&["import"], "use `varsImport {keys}` for arguments"),
    (&["increment"], "use `mathCalc {expr, vars, result}`, as in `\"expr\": \"n + 1\", \"result\": \"n\"`"),
    (&["decrement"], "use `mathCalc {expr, vars, result}`, as in `\"expr\": \"n - 1\", \"result\": \"n\"`"),
    (&["orderby", "sortby", "sorted", "sortlist", "sortarray", "arraysort", "listsort", "sortitems", "sortdescending", "sortdesc", "sortasc", "order", "arrange"], "use `sort {items, by, order, result}`"),
    (&["group", "keyby", "indexby", "partitionby", "bucket"], "use `groupBy {items, by, result}`"),
    (&["distinct", "uniq", "dedupe", "dedup", "removeduplicates", "toset", "dropduplicates", "uniqueby", "uniqby", "distinctby"], "use `unique {items, by, result}`"),
    (&["total", "sumby", "sumof", "sumlist", "sumarray", "addup", "sumitems"], "use `sum {items, by, result}`"),
    (&["reverse"], "use the method `toReversed` in an expression node `methodCall`"),
    (&["substring", "substr", "slice"], "use the method `slice` in an expression node `methodCall`"),
    (&["indexof"], "use the method `indexOf` in an expression node `methodCall`"),
    (&["includes", "contains"], "use the method `includes` in an expression node `methodCall`"),
    (&["trim", "strip", "chomp"], "use the method `trim` in an expression node `methodCall`"),
    (&["parseint"], "use the function `parseInt` in an expression node `call`"),
    (&["number"], "use the function `Number` in an expression node `call`"),
    (&["parsedate"], "use `Date.tryParse` in an expression node `methodCall`"),
    (&["round"], "use `Math.round` in an expression node `methodCall`"),
    (&["floor"], "use `Math.floor` in an expression node `methodCall`"),
    (&["ceil"], "use `Math.ceil` in an expression node `methodCall`"),
    (&["abs"], "use `Math.abs` in an expression node `methodCall`"),
    (&["max"], "use `Math.max` in an expression node `methodCall`"),
    (&["min"], "use `Math.min` in an expression node `methodCall`"),
    (&["goto"], "there are no jumps: use `if` and `while`"),
    (&["comment"], "write a comment as a key of a step: `\"comment\": \"text\"`"),
    (&["post"], "use `httpFetch {url, method, headers, body, result}` with `\"method\": \"POST\"`"),
    (&["put"], "use `httpFetch {url, method, headers, body, result}` with `\"method\": \"PUT\"`"),
    (&["ask"], "use `llmPredict {prompt, options, result}`"),
    (&["search"], "use `storeVectorSearch {collection, vector, k, result}`, or `find {items, as, condition}`"),
    (&["insert"], "use `storeSet {key, value}`, or `push {list, item, result}`"),
    (&["setmember", "setfield", "setproperty", "setkey"], "use `memberSet {object, key, value}`"),
    (&["deletemember", "deletekey", "removekey", "unset"], "use `memberDelete {object, key}`"),
    (&["update"], "use `memberSet {object, key, value}` for an object, `storeSet {key, value}` for the store"),
    (&["delete"], "use `memberDelete {object, key}` for a member; nothing is deleted from the store"),
    (&["remove"], "use `memberDelete {object, key}` for a member, `filter {items, as, condition, result}` for items"),
    (&["extract"], "use `pick {obj, keys, result}`"),
    (&["joinlist", "jointext", "joinstrings", "strjoin", "implode", "stringjoin", "arrayjoin"], "use `join {list, sep, result}`"),
    (&["date"], "use the function `Date` in an expression node `call`"),
    (&["now"], "use `Date.now` in an expression node `methodCall`"),
    (&["expression"], "use `varSet {key, value}` with an expression node as `value`"),
    (&["countby", "tally", "histogram"], "use `groupBy {items, by, result}`, and `len` of each group"),
    (&["avg", "average", "mean", "averageof", "meanby"], "use `sum {items, by, result}`, and divide by the list's length"),
    (&["skip"], "use `continue` for the next turn of a loop; a part of a list is the method `slice`"),
    (&["last"], "use the method `at` in an expression node `methodCall`; a loop ends by `break`"),
    (&["replace", "replaceall", "resub", "gsub", "substitute", "replaceregex", "strreplace", "replacetext", "regexsub", "pregreplace"], "use `regexReplace {text, pattern, replacement, all, result}`, or the method `replaceAll` in an expression node `methodCall`, which takes texts"),
    (&["resplit", "splitregex", "pregsplit"], "use `regexSplit {text, pattern, result}`"),
    (&["print", "log", "echo", "logmessage", "printf", "puts", "console", "debug", "info", "trace", "logger", "loginfo"], "use `consoleLog {message}`, which the trace shows; what the program gives is `return`'s"),
    (&["filterby", "filteritems", "where", "keep", "selectwhere"], "use `filter {items, as, condition, result}`"),
    (&["splittext", "strsplit", "stringsplit", "splitstring", "tokenize", "explode"], "use `split {str, sep, result}`"),
];

/// A name without case, punctuation and the prefix of a library.
fn bare(name: &str) -> String {
    let name = name.strip_prefix("n8n-nodes-base.").unwrap_or(name);
    let plain: String = name.chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    match plain.is_empty() {
        true => name.to_owned(),
        false => plain.to_ascii_lowercase(),
    }
}

/// The table has no longer names.
const LONGEST: usize = 48;

/// Help for a synonym of an op.
pub fn atom_for(name: &str) -> Option<&'static str> {
    if name.len() > LONGEST {
        return None;
    }
    let plain = bare(name);
    let row = OPS.iter().find(|row| row.0.contains(&&*plain));
    row.map(|row| row.1)
}

/// Help for an unknown op; `ops` are the known ones.
pub fn help_for_op<'n>(name: &str, ops: impl Iterator<Item = &'n str>) -> Option<String> {
    let (whole, last) = (bare(name), name.rsplit_once('.').map(|parts| bare(parts.1)));
    let mut meant = None;
    for op in ops {
        let plain = bare(op);
        if plain == whole {
            return Some(format!("did you mean '{op}'?"));
        }
        if last.as_ref() == Some(&plain) {
            meant = Some(op);
        }
    }
    if let Some(help) = atom_for(name) {
        return Some(help.to_owned());
    }
    match meant {
        Some(op) => Some(format!("did you mean '{op}'?")),
        None => op_of_library(name),
    }
}

/// Help for a function or method written as an op.
fn op_of_library(name: &str) -> Option<String> {
    if name.len() > LONGEST {
        return None;
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
    let is_loop = matches!(last, "map" | "filter" | "find" | "reduce");
    // Of maps, and of much else by these names.
    let is_of_maps = matches!(last, "get" | "set" | "delete");
    if builtins::method(last).is_some() && !is_loop && !is_of_maps {
        return Some(format!(
            "use the method `{last}` in an expression node `methodCall`"
        ));
    }
    match before.is_empty() {
        true => None,
        false => atom_for(last).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, OPS, bare, help_for_op};
    use a99_atoms::all_atoms;
    use a99_core::builtins;
    use a99_core::sig::Signatures;
    use std::collections::HashSet;

    #[test]
    fn no_name_stands_twice_or_is_an_op() {
        let atoms = all_atoms();
        let ops: HashSet<String> = atoms.op_names().map(bare).collect();
        let mut seen = HashSet::new();
        for name in OPS.iter().flat_map(|row| row.0) {
            assert!(seen.insert(*name), "`{name}` stands twice");
            assert_eq!(bare(name), *name);
            assert!(name.len() <= LONGEST && !ops.contains(*name), "{name}");
        }
    }

    /// The names in backticks that an advice recommends, with their inputs.
    fn named(help: &str) -> Vec<(&str, Vec<&str>)> {
        let parts = help.split('`').skip(1).step_by(2);
        parts
            .filter_map(|part| {
                let (name, inputs) = part.split_once(" {")?;
                let inputs = inputs.trim_end_matches('}').split(", ");
                let inputs = inputs.map(|input| input.split(':').next().unwrap_or(input));
                Some((name, inputs.collect()))
            })
            .collect()
    }

    #[test]
    fn what_is_advised_exists() {
        let atoms = all_atoms();
        for help in OPS.iter().map(|row| row.1) {
            for (name, inputs) in named(help)
                .into_iter()
                .filter(|(name, _)| *name != "helpers:")
            {
                let sig = atoms.signature(name);
                let sig = sig.unwrap_or_else(|| panic!("no atom `{name}`: {help}"));
                for input in inputs.into_iter().filter(|input| *input != "result") {
                    assert!(
                        sig.input(input).is_some(),
                        "`{name}` has no `{input}`: {help}"
                    );
                }
            }
            let method = help.split("the method `").skip(1);
            for name in method.filter_map(|rest| rest.split('`').next()) {
                assert!(
                    builtins::method(name).is_some(),
                    "no method `{name}`: {help}"
                );
            }
            let first = help
                .strip_prefix("use `")
                .and_then(|rest| rest.split('`').next());
            if let Some((space, name)) = first.and_then(|first| first.split_once('.')) {
                assert!(builtins::function(space, name).is_some(), "{help}");
            } else if let Some(name) = first.and_then(|first| first.split(' ').next()) {
                let is_form = matches!(name, "break" | "continue" | "typeof");
                let known = is_form || atoms.signature(name).is_some();
                assert!(known, "no atom `{name}`: {help}");
            }
        }
    }

    #[test]
    fn names_of_libraries_become_ops() {
        let atoms = all_atoms();
        for (name, part) in [
            ("group_by", "did you mean 'groupBy'"),
            ("itertools.groupby", "did you mean 'groupBy'"),
            ("_.sortBy", "`sort {"),
            ("uniq", "`unique {"),
            ("re.sub", "`regexReplace {"),
            ("re.split", "`regexSplit {"),
            ("Math.max", "Math.max"),
            ("breakLoop", "`break`"),
        ] {
            let help = help_for_op(name, atoms.op_names()).unwrap_or_default();
            assert!(help.contains(part), "{name}: {help}");
        }
    }
}
