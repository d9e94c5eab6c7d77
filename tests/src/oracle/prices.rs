//! Cost table and time limits of the references, written again (language section 2, decisions
//! D22, D27, D28), and those of our additional atoms.

use a99_core::costs::CostModel;

/// Atoms that only compute, and `agentRun`, whose callee pays for itself: in the metered model
/// they pay a twentieth.
fn is_work(op: &str) -> bool {
    matches!(
        op,
        "seq"
            | "if"
            | "while"
            | "forEach"
            | "break"
            | "continue"
            | "try"
            | "scope"
            | "callLocal"
            | "callAll"
            | "llmToolLoop"
            | "return"
            | "varSet"
            | "constSet"
            | "varGet"
            | "varsLet"
            | "varsImport"
            | "varsExport"
            | "map"
            | "filter"
            | "find"
            | "reduce"
            | "memoize"
            | "eq"
            | "neq"
            | "gt"
            | "lt"
            | "and"
            | "or"
            | "not"
            | "mathCalc"
            | "push"
            | "len"
            | "sort"
            | "groupBy"
            | "memberSet"
            | "memberDelete"
            | "unique"
            | "sum"
            | "split"
            | "join"
            | "template"
            | "pick"
            | "omit"
            | "merge"
            | "keys"
            | "jsonParse"
            | "jsonStringify"
            | "random"
            | "uuid"
            | "hash"
            | "agentRun"
    )
}

/// The static price of an atom in micro-units; 0 if missing.
pub(super) fn price(op: &str, model: CostModel) -> i64 {
    let flat = of(op).map_or(0, |(flat, _)| flat);
    match model {
        CostModel::Metered if is_work(op) => flat / 20,
        _ => flat,
    }
}

/// Price in micro-units and time limit in milliseconds (0: none) of a core atom.
pub(super) fn of(op: &str) -> Option<(i64, f64)> {
    const TENTH: i64 = 100_000;
    const ONE: i64 = 1_000_000;
    const SECOND: f64 = 1_000.0;
    Some(match op {
        "seq" | "if" | "while" | "try" | "scope" | "callLocal" | "callAll" | "llmToolLoop" => {
            (TENTH, 0.0)
        }
        "break" | "continue" | "return" | "Error" | "varSet" | "constSet" | "varGet"
        | "varsLet" => (TENTH, SECOND),
        "varsImport" | "varsExport" => (2 * TENTH, SECOND),
        "map" | "forEach" | "filter" | "find" | "reduce" | "memoize" => (ONE, 0.0),
        "cache" => (5 * ONE, 0.0),
        "eq" | "neq" | "gt" | "lt" | "and" | "or" | "not" => (TENTH, SECOND),
        "mathCalc" | "push" | "len" | "split" | "join" | "template" | "pick" | "omit" | "merge"
        | "keys" | "jsonParse" | "jsonStringify" | "random" | "uuid" | "hash" | "sort"
        | "groupBy" | "unique" | "sum" | "memberSet" | "memberDelete" => (ONE, SECOND),
        "regexMatch" | "regexFind" | "regexFindAll" | "regexReplace" | "regexSplit" => {
            (2 * ONE, SECOND)
        }
        "httpFetch" => (5 * ONE, 30_000.0),
        "storeGet" | "storeSet" | "storeDelete" | "storeList" | "storeCompareAndSet"
        | "storeQuery" | "storeVectorSearch" | "storeQueryWhere" => (5 * ONE, SECOND),
        "llmPredict" => (ONE, 120_000.0),
        "agentRun" | "runCode" => (ONE, 0.0),
        "xmlParse" | "transpileCode" | "storeProcedure" => (ONE, SECOND),
        "consoleLog" | "consoleWarn" | "consoleError" | "releaseProcedure" => (TENTH, SECOND),
        "streamChunk" => (TENTH, 0.0),
        "clearExpiredProcedures" => (5 * TENTH, SECOND),
        "storeVectorize" => (20 * ONE, 60_000.0),
        "storeSearch" | "storeCreateCollection" | "storeVectorDelete" => (5 * ONE, SECOND),
        "storeVectorAdd" | "storeVectorUpsert" => (5 * ONE, 60_000.0),
        "llmPredictBattery" | "llmChat" => (100 * ONE, 120_000.0),
        "llmVision" => (150 * ONE, 120_000.0),
        "domText" | "domValue" | "domClick" | "domInput" | "localStorageGet"
        | "localStorageSet" => (ONE, SECOND),
        "agentState" | "agentSetState" | "agentSettings" | "agentSetSettings" | "agentIdentity" => {
            (ONE, SECOND)
        }
        "agentSend" | "agentUpdate" | "agentFail" | "agentPublish" | "agentSetTimer"
        | "agentCancelTimer" | "agentStorageExec" | "agentStorageRun" | "agentStorageGet"
        | "agentStorageQuery" | "agentRoster" | "agentMethodResult" | "agentInvite"
        | "agentRemove" => (5 * ONE, SECOND),
        "agentCallMethod" => (5 * ONE, 600_000.0),
        "sleep" => (ONE, 0.0),
        "shellExec" => (5 * ONE, 0.0),
        "shellWriteFile" | "shellReadFile" => (5 * ONE, 30_000.0),
        _ => return None,
    })
}
