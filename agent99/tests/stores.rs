//! Prices of store queries.

use agent99::capabilities::{Capabilities, MemoryStore, Store};
use agent99::{CostModel, Engine, ErrorCode, Outcome, RunOptions, json};

/// Documents of the store, with about a thousand bytes each.
const DOCUMENTS: usize = 50;

/// Minimum price of a document; the maximum is half as much again.
const LEAST: f64 = 0.25;

async fn store() -> MemoryStore {
    let store = MemoryStore::new();
    for n in 0..DOCUMENTS {
        let key = format!("notes/{n:02}");
        let document = json!({"text": "x".repeat(1_000), "n": n});
        store.set(key.into(), document.into()).await.expect("room");
    }
    store
}

async fn asked(step: &str, options: RunOptions) -> Outcome {
    let program = format!(
        r#"{{"op": "seq", "steps": [{step},
            {{"op": "return", "schema": {{"type": "object", "properties": {{"rows": {{}}}}}}}}]}}"#
    );
    let engine = Engine::new();
    let agent = engine.compile(&*program).expect("a program");
    let granted = Capabilities::none().with_store(store().await);
    engine.run(&agent, json!({}), options, granted).await
}

/// The price of a query without that of the call, in both models.
async fn looked(step: &str) -> [f64; 2] {
    let mut costs = [0.0; 2];
    for (cost, model) in costs.iter_mut().zip([CostModel::Metered, CostModel::Flat]) {
        let outcome = asked(step, RunOptions::default().cost_model(model)).await;
        assert!(outcome.error.is_none(), "{step}: {outcome:?}");
        *cost = outcome.fuel_used.to_f64() - 5.0;
    }
    costs
}

#[tokio::test]
async fn f12_a_query_pays_for_what_it_looks_at() {
    let all = DOCUMENTS as f64;
    for (step, documents) in [
        (
            r#"{"op": "storeQuery", "query": {"where": {"text": "y"}}, "result": "rows"}"#,
            all,
        ),
        (
            r#"{"op": "storeQuery", "query": {"orderBy": "n", "limit": 1}, "result": "rows"}"#,
            all,
        ),
        // By key it ends with the row that shows that more follow.
        (
            r#"{"op": "storeQuery", "query": {"limit": 1}, "result": "rows"}"#,
            2.0,
        ),
        (
            r#"{"op": "storeQuery", "query": {"collection": "none"}, "result": "rows"}"#,
            0.0,
        ),
        (
            r#"{"op": "storeQueryWhere", "predicate": {"canonical": "n < 0"}, "result": "rows"}"#,
            all,
        ),
    ] {
        let (least, most) = (LEAST * documents, LEAST * 1.5 * documents + 0.5);
        for cost in looked(step).await {
            let fits = cost >= least && cost <= most;
            assert!(fits, "{step}: {cost}, not {least} to {most}");
        }
    }
}

#[tokio::test]
async fn f12_a_query_looks_no_further_than_the_fuel() {
    let step = r#"{"op": "storeQuery", "query": {"where": {"text": "y"}}, "result": "rows"}"#;
    let outcome = asked(step, RunOptions::default().fuel(8.0).expect("a budget")).await;
    let error = outcome.error.expect("no fuel for all documents");
    assert_eq!(error.code, ErrorCode::OutOfFuel, "{error:?}");
    // The rest of the budget paid for about ten; all would have cost more than twelve.
    assert!(
        outcome.fuel_used.to_f64() <= 9.0,
        "{}",
        outcome.fuel_used.to_f64()
    );
}
