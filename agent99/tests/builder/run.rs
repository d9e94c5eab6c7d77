//! Programs of the builder, compiled and run.

use crate::example::invoice;
use agent99::builder::{Builder, args, ident};
use agent99::{
    Agent, AtomBody, AtomDef, AtomSig, Engine, HostReply, Operand, RunOptions, Value, all_atoms,
    json,
};

fn result_of(program: &Builder, args: serde_json::Value) -> serde_json::Value {
    let engine = Engine::new();
    let agent = engine.compile_builder(program).expect("it compiles");
    let outcome = engine.run_sync(&agent, args, RunOptions::new());
    assert_eq!(outcome.error, None);
    outcome.result.to_json()
}

#[test]
fn the_example_is_the_invoice_agent() {
    let text = include_str!("../../../examples/invoice/agent.json");
    let mut by_hand: serde_json::Value = serde_json::from_str(text).unwrap();
    // The reference to the schema is only in the file.
    let schema = by_hand.as_object_mut().unwrap().remove("$schema");
    assert!(schema.is_some());
    assert_eq!(invoice().to_json().unwrap(), by_hand);
    let given = include_str!("../../../examples/invoice/args.json");
    let expected = include_str!("../../../examples/invoice/expected.json");
    let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
    let result = result_of(&invoice(), serde_json::from_str(given).unwrap());
    assert_eq!(result, expected["result"]);
}

#[test]
fn control_flow_runs() {
    let program = Agent::take(json!({}))
        .var_set("n", 0)
        .var_set("log", Vec::<Value>::new())
        .while_("n < max", [("max", args("max"))], |b| {
            b.math_calc("n + 1", ()).as_("n").push("log", "n")
        })
        .filter("log", "x", "x > least", [("least", args("least"))])
        .as_("large")
        .find("log", "x", ident("x").equals(2), ())
        .as_("two")
        .try_catch_as("why", |b| b.error("no"), |b| b.var_set("caught", "why"))
        .scope(|b| b.var_set("inner", 1))
        .var_get("inner")
        .as_("outside")
        .memoize("key", |b| b.var_set("result", "kept"))
        .as_("memo")
        .return_(
            json!({"properties": {"large": {}, "two": {}, "caught": {}, "outside": {}, "memo": {}}}),
        );
    assert_eq!(
        result_of(&program, json!({"max": 4, "least": 2})),
        json!({"large": [3, 4], "two": 2, "caught": "no", "outside": "inner", "memo": "kept"})
    );
}

#[test]
fn constants_stay() {
    let program = Builder::new()
        .len("four")
        .as_const("size")
        .try_catch(|b| b.var_set("size", 9), |b| b.var_set("why", "error"))
        .return_(json!({"properties": {"size": {}, "why": {}}}));
    assert_eq!(
        result_of(&program, json!({})),
        json!({"size": 4, "why": "Cannot reassign const variable 'size'"})
    );
}

/// The shape of an extension trait for an atom of the host.
trait GreetBuilder {
    fn greet(self, name: impl Into<Operand>) -> Self;
}

impl GreetBuilder for Builder {
    fn greet(self, name: impl Into<Operand>) -> Self {
        self.atom("greet", vec![("name", name.into())])
    }
}

#[test]
fn atoms_of_the_host_chain_like_any_other() {
    let mut sig = AtomSig::new("greet", "Greets.", 1_000_000);
    sig.params = agent99::Params::Named(
        vec![agent99::Param {
            name: "name",
            binding: agent99::Binding::Value,
        }]
        .into(),
    );
    let greet = AtomDef {
        sig,
        body: AtomBody::Async(|call| {
            Box::pin(async move {
                let name = call.args.first().cloned().unwrap_or(Value::Null);
                Ok(HostReply::from(Value::from(vec!["hello".into(), name])))
            })
        }),
        dynamic_cost: None,
    };
    let engine = Engine::builder().atoms(all_atoms().with(greet)).build();
    let schema = json!({"properties": {"greeting": {}}});
    let program = Agent::take(json!({}))
        .greet("Ada")
        .as_("greeting")
        .return_(schema);
    let agent = engine.compile_builder(&program).expect("it compiles");
    assert!(agent.warnings().is_empty());
    let outcome = engine.run_sync(&agent, json!({}), RunOptions::new());
    assert_eq!(
        outcome.result.to_json(),
        json!({"greeting": ["hello", "Ada"]})
    );
}

#[test]
fn faults_of_the_chain_refuse_the_program() {
    let refused = Engine::new()
        .compile_builder(&Builder::new().as_("x"))
        .unwrap_err();
    let first = refused.iter().next().unwrap();
    assert_eq!(
        (first.code, &*first.message),
        ("builder.no_step", "No step to capture")
    );
}

#[test]
fn bad_conditions_are_found_by_the_compiler() {
    let program = Builder::new().uuid().if_("a = 1", (), |b| b);
    let refused = Engine::new().compile_builder(&program).unwrap_err();
    assert_eq!(refused.iter().next().unwrap().pointer, "/steps/1/condition");
}
