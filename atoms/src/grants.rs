//! Common code of asynchronous atoms: finds their capability and converts its answers for the
//! machine.

use crate::told::ToldAi;
use a99_capabilities::ai::{MeteredAi, Payer, Request, TokenEstimate};
use a99_capabilities::{AiProvider, Capabilities, CapabilityError};
use a99_core::value::{Map, Value};
use a99_vm::atom::{AtomError, BoxFuture, HostCall, HostReply};
use a99_vm::convert::DEFAULT_MAX_BYTES;
use std::sync::Arc;

/// The future of an asynchronous atom.
pub(crate) type Answer = BoxFuture<'static, Result<HostReply, AtomError>>;

/// The capabilities that the host granted to a run.
pub(crate) fn capabilities(call: &HostCall) -> Option<Arc<Capabilities>> {
    call.options.grants.clone()?.downcast().ok()
}

/// A granted capability.
pub(crate) fn granted<T: ?Sized>(
    call: &HostCall,
    pick: impl FnOnce(&Capabilities) -> &Option<Arc<T>>,
) -> Option<Arc<T>> {
    pick(&*capabilities(call)?).clone()
}

/// A granted capability, or the error that it is missing.
pub(crate) fn required<T: ?Sized>(
    call: &HostCall,
    pick: impl FnOnce(&Capabilities) -> &Option<Arc<T>>,
    missing: &str,
) -> Result<Arc<T>, AtomError> {
    granted(call, pick).ok_or_else(|| AtomError::missing(missing))
}

/// The granted models, paid from the run's account and, where tokens cost fuel, from its fuel. An
/// event sink of the run receives the answers of `generate_text` while they arrive.
pub(crate) fn models(call: &HostCall) -> Option<Arc<dyn AiProvider>> {
    let provider = granted(call, |c| &c.ai)?;
    let metered = MeteredAi::new(provider, payer(call));
    Some(match &call.events {
        None => Arc::new(metered),
        Some(events) => Arc::new(ToldAi {
            provider: metered,
            events: events.clone(),
            call: call.id.clone(),
        }),
    })
}

/// Payer of a call's service bills: the run's account and, where tokens cost fuel, its fuel.
pub(crate) fn payer(call: &HostCall) -> Payer {
    let locals = Arc::clone(&call.locals);
    let payer = Payer::new(call.account()).with_fuel(move |fuel| locals.charge(fuel));
    payer.with_deadline(call.deadline)
}

/// Calls a model that reports no tokens. Reserves the prompt before the call and settles an
/// estimate of the reply. A payer without limits is billed nothing.
pub(crate) async fn estimated(
    call: &HostCall,
    model: &str,
    prompt: TokenEstimate,
    ask: impl Future<Output = Result<Value, CapabilityError>>,
) -> Result<Value, CapabilityError> {
    let payer = payer(call);
    if !payer.is_limited() {
        return ask.await;
    }
    let mut paid = payer
        .reserve(Request {
            model: Some(model.to_owned()),
            prompt,
            max_tokens: None,
            effort: None,
            writes_cache: false,
            price: Arc::new(|_, _| None),
        })
        .await?;
    paid.sent();
    let reply = ask.await?;
    paid.settle_reply(TokenEstimate::of_value(&reply));
    Ok(reply)
}

/// The inputs of a call by position; missing ones are `undefined`.
pub(crate) fn inputs<const N: usize>(call: &mut HostCall) -> [Value; N] {
    let mut args = std::mem::take(&mut call.args).into_iter();
    std::array::from_fn(|_| args.next().unwrap_or(Value::Undefined))
}

/// Converts a capability's answer to the atom's.
pub(crate) fn reply(answer: Result<Value, CapabilityError>) -> Result<HostReply, AtomError> {
    answer.map(HostReply::from).map_err(failed)
}

/// Converts a capability's error to the atom's. The program sees its text unchanged.
pub(crate) fn failed(error: CapabilityError) -> AtomError {
    let mut failed = AtomError::new(error.message);
    failed.host_code = error.code;
    failed.details = error.details;
    failed
}

/// Like [`failed`], with a prefix. A text that is too long to cross the boundary stays unchanged,
/// and the machine refuses it.
pub(crate) fn failed_as(what: &str, error: CapabilityError) -> AtomError {
    match error.message.len_bytes() > DEFAULT_MAX_BYTES {
        true => failed(error),
        false => {
            let message = format!("{what}: {error}").into();
            failed(CapabilityError { message, ..error })
        }
    }
}

/// An object of the members that are not `undefined`.
pub(crate) fn present<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members
        .into_iter()
        .filter(|(_, value)| !value.is_undefined());
    Value::Object(members.collect::<Map>())
}

/// ECMA-262 §7.1.2 ToBoolean of a host value.
pub(crate) fn truthy(value: &Value) -> bool {
    match value {
        Value::Undefined | Value::Null => false,
        Value::Bool(b) => *b,
        Value::Number(n) => *n != 0.0 && !n.is_nan(),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}
