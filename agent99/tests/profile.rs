//! Run profiles: shared options apply to each run separately.

use a99_run::account::{Account, AccountLimits};
use agent99::capabilities::Capabilities;
use agent99::{
    AbortSignal, Agent, Engine, ErrorCode, Fuel, HostCall, HostReply, Next, RunOptions, RunProfile,
    Value, all_atoms, json,
};
use agent99::{AtomBody, AtomDef, AtomSig, Params};
use std::time::Duration;

/// An agent that calls its host twice.
const ASKS: &str = r#"{"op": "seq", "steps": [
    {"op": "ask", "result": "a"},
    {"op": "ask", "result": "b"},
    {"op": "return", "schema": {"type": "object", "properties": {"a": {}, "b": {}}}}
]}"#;

/// An engine whose host reports the fuel left.
fn engine() -> Engine {
    let ask = AtomDef {
        sig: AtomSig {
            params: Params::Named(Vec::new().into()),
            ..AtomSig::new("ask", "Fuel that the run has left.", 1_000_000)
        },
        body: AtomBody::Async(|call: HostCall| {
            Box::pin(async move { Ok(HostReply::from(Value::from(call.fuel_left.to_f64()))) })
        }),
        dynamic_cost: None,
    };
    Engine::builder().atoms(all_atoms().with(ask)).build()
}

/// The agent, and a profile with default options.
fn plain() -> (RunProfile, Agent) {
    let engine = engine();
    let agent = engine.compile(ASKS).expect("it compiles");
    let profile = engine.profile(RunOptions::new(), Capabilities::none());
    (profile.expect("no op is named"), agent)
}

#[test]
fn each_run_has_the_fuel_and_the_quotas_of_its_own() {
    let engine = engine();
    let agent = engine.compile(ASKS).unwrap();
    let options = RunOptions::new().fuel(10.0).unwrap().quota("ask", 2);
    let profile = engine.profile(options, Capabilities::none()).unwrap();
    let first = profile.run_sync(&agent, json!({}));
    assert_eq!(first.error, None);
    for _ in 0..3 {
        let again = profile.run_sync(&agent, json!({}));
        assert_eq!((again.error, again.result), (None, first.result.clone()));
        assert_eq!(again.fuel_used, first.fuel_used);
        assert_eq!(again.usage.unwrap().spent.calls, 2);
    }
    // One call more than a run may make.
    let options = RunOptions::new().quota("ask", 1);
    let profile = engine.profile(options, Capabilities::none()).unwrap();
    for _ in 0..2 {
        let failed = profile.run_sync(&agent, json!({})).error.unwrap();
        assert_eq!(failed.code, ErrorCode::QuotaExceeded);
    }
}

#[test]
fn the_fuel_that_a_call_sees_is_what_the_run_has_left() {
    let (profile, agent) = plain();
    let mut run = profile.start(&agent, json!({}));
    let mut seen = Vec::new();
    loop {
        match run.next(Duration::ZERO) {
            Next::Call(call) => {
                assert_eq!(call.fuel_left(), run.fuel_left());
                seen.push(call.fuel_left());
                run.answer(&call.id, Ok(HostReply::default())).unwrap();
            }
            Next::Done(_) => break,
            Next::Pause | Next::Wait(_) => {}
        }
    }
    assert!(seen[0] > seen[1] && seen[1] > Fuel::ZERO, "{seen:?}");
}

#[test]
fn signal_and_account_are_those_of_all_runs() {
    let engine = engine();
    let agent = engine.compile(ASKS).unwrap();
    let limits = AccountLimits {
        calls: Some(5),
        ..AccountLimits::default()
    };
    let (signal, account) = (AbortSignal::new(), Account::new("all", limits));
    let options = RunOptions::new()
        .signal(signal.clone())
        .account(account.clone());
    let profile = engine.profile(options, Capabilities::none()).unwrap();
    // A clone's runs count, too.
    let runs = [profile.clone(), profile.clone()].map(|p| p.run_sync(&agent, json!({})).error);
    assert_eq!(runs, [None, None]);
    let error = profile.run_sync(&agent, json!({})).error.unwrap();
    assert_eq!(error.code, ErrorCode::Budget);
    assert_eq!((account.usage().spent.calls, account.usage().runs), (5, 3));
    signal.abort();
    let error = profile.clone().run_sync(&agent, json!({})).error.unwrap();
    assert_eq!(error.code, ErrorCode::Aborted);
}

#[test]
fn an_op_that_is_not_there_is_refused_once() {
    let options = RunOptions::new().quota("asc", 1);
    let refused = engine().profile(options, Capabilities::none()).unwrap_err();
    assert_eq!(refused.code, ErrorCode::UnknownOp);
    assert_eq!(refused.help.as_deref(), Some("did you mean `ask`?"));
}

#[test]
fn a_run_is_restored_by_its_profile() {
    let (profile, agent) = plain();
    let mut run = profile.start(&agent, json!({}));
    let Next::Call(call) = run.next(Duration::ZERO) else {
        panic!("it asks");
    };
    let bytes = run.snapshot().unwrap();
    drop(run);
    let mut run = profile.restore(&agent, &bytes).unwrap();
    run.answer(&call.id, Ok(Value::from(1.0).into())).unwrap();
    let Next::Call(call) = run.next(Duration::ZERO) else {
        panic!("it asks again");
    };
    assert_eq!(call.pointer().as_deref(), Some("/steps/1"));
}
