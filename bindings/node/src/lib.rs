//! The engine as an addon of Node.js: glue between Node-API and [`a99_bindings`].
//!
//! The module has four functions. `attach(buffer)` sets the `ArrayBuffer` that messages pass
//! through, `call(op, words, text)` does an operation ([`a99_bindings::wire`]), and
//! `setPricer(function)` sets what decides prices, `setCaller(function)` what answers calls of atoms
//! at once. Each environment (a worker is one) has its
//! own host.

#![allow(unsafe_code, reason = "Node-API is an interface of C")]

mod env;

use a99_bindings::wire::{Message, TAKE, decode, decode_answer};
use a99_bindings::{Caller, DirectAnswer, DirectCall, Failure, Host, Pricer, Value};
use env::{Call, Env, Reference, Status};
use napi_sys as sys;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

/// State of an environment.
#[derive(Default)]
struct Addon {
    host: Host,
    /// The buffer of the messages.
    buffer: Option<Reference>,
    /// Output that did not fit, until it is taken.
    kept: Option<Message>,
    /// Buffers for reuse.
    text: Vec<u16>,
    message: Message,
}

/// A function of JavaScript, and the environment that calls it.
type Hook = RefCell<Option<(Env, Reference)>>;

thread_local! {
    /// The function that answers calls of atoms at once.
    static CALLER: Hook = const { RefCell::new(None) };
    /// The function that decides prices.
    static PRICER: Hook = const { RefCell::new(None) };
}

/// Calls the function of [`PRICER`] on the thread of its environment.
struct NodePricer;

impl Pricer for NodePricer {
    fn price(&self, op: &str, input: &Value, context: &Value) -> f64 {
        // Taken out of the cell: the function may do operations itself.
        let Some((env, function)) = PRICER.with_borrow(Option::clone) else {
            return f64::NAN;
        };
        let mut message = Message::default();
        message.write_all(&[input, context]);
        price(env, &function, op, message).unwrap_or(f64::NAN)
    }
}

/// Calls the function of [`CALLER`] on the thread of its environment.
struct NodeCaller;

impl Caller for NodeCaller {
    fn call(&self, call: &DirectCall<'_>) -> Option<DirectAnswer> {
        let (env, function) = CALLER.with_borrow(Option::clone)?;
        answer_directly(env, &function, call).ok()?
    }
}

/// Calls the function with a message of inputs and fuel, and reads what it writes
/// ([`decode_answer`]).
fn answer_directly(
    env: Env,
    function: &Reference,
    call: &DirectCall<'_>,
) -> Status<Option<DirectAnswer>> {
    env.scoped(|| {
        let addon = env.data::<Addon>()?;
        // SAFETY: this is the thread of the environment, and no other reference to the addon's
        // state is alive while a run computes: `operation` ends its own before.
        let mut message = std::mem::take(unsafe { &mut (*addon).message });
        let fuel = Value::Number(call.fuel_left.to_f64());
        message.write_all(&[call.inputs, &fuel]);
        let text = env.utf16(&message.text)?;
        // SAFETY: as above.
        write(env, unsafe { &mut *addon }, message)?;
        let place = env.number_value(call.place as u32)?;
        let result = env.call(function, &[place, text])?;
        // SAFETY: as above; the function has ended.
        let addon = unsafe { &mut *addon };
        let buffer = addon.buffer.as_ref().ok_or(sys::Status::napi_invalid_arg)?;
        env.read_utf16(result, &mut addon.text)?;
        Ok(decode_answer(env.words(buffer)?, &addon.text))
    })
}

/// Calls the price function with the step's name and a message.
fn price(env: Env, function: &Reference, op: &str, message: Message) -> Status<f64> {
    env.scoped(|| {
        let addon = env.data::<Addon>()?;
        let text = env.utf16(&message.text)?;
        // SAFETY: this is the thread of the environment, and no other reference to the addon's
        // state is alive while a run computes: `operation` ends its own before.
        let addon = unsafe { &mut *addon };
        write(env, addon, message)?;
        let name: Vec<u16> = op.encode_utf16().collect();
        let price = env.call(function, &[env.utf16(&name)?, text])?;
        env.double(price)
    })
}

/// Writes a message's words into the buffer of the environment; keeps the message if it does not
/// fit.
fn write(env: Env, addon: &mut Addon, message: Message) -> Status<()> {
    let buffer = addon.buffer.as_ref().ok_or(sys::Status::napi_invalid_arg)?;
    match message.copy_to(env.words(buffer)?) {
        true => addon.message = message,
        false => addon.kept = Some(message),
    }
    Ok(())
}

fn operation(env: Env, call: &Call) -> Status<sys::napi_value> {
    let addon = env.data::<Addon>()?;
    let op = env.number(call.args[0])?;
    let count = env.number(call.args[1])? as usize;
    // The input is copied and the reference ended before the engine computes: a price function
    // may do operations meanwhile.
    let (args, mut message) = {
        // SAFETY: this is the thread of the environment, which owns the state; see above.
        let addon = unsafe { &mut *addon };
        if op == TAKE {
            let message = addon.kept.take().unwrap_or_default();
            let text = env.utf16(&message.text)?;
            write(env, addon, message)?;
            return Ok(text);
        }
        env.read_utf16(call.args[2], &mut addon.text)?;
        let buffer = addon.buffer.as_ref().ok_or(sys::Status::napi_invalid_arg)?;
        let words = env.words(buffer)?;
        let words = words.get(..count).ok_or(sys::Status::napi_invalid_arg)?;
        (
            decode(words, &addon.text),
            std::mem::take(&mut addon.message),
        )
    };
    // SAFETY: as above. Operations take the host by shared reference.
    let host: *const Host = unsafe { ptr::addr_of!((*addon).host) };
    let direct = CALLER
        .with_borrow(Option::is_some)
        .then_some(&NodeCaller as &dyn Caller);
    let result = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: the state lives as long as the environment, which is alive during its call.
        args.and_then(|args| unsafe { &*host }.call_with(op, args, direct))
    }));
    let result = result.unwrap_or_else(|_| {
        let failure = Failure::new("binding.panic", "the engine failed; this is a bug");
        Err(failure.with_help("report the program that causes it"))
    });
    message.write(result);
    let text = match message.text.is_empty() {
        true => env.empty()?,
        false => env.utf16(&message.text)?,
    };
    // SAFETY: as above.
    write(env, unsafe { &mut *addon }, message)?;
    Ok(text)
}

fn attach(env: Env, call: &Call) -> Status<sys::napi_value> {
    let addon = env.data::<Addon>()?;
    let buffer = env.reference(call.args[0])?;
    env.words(&buffer)?;
    // SAFETY: this is the thread of the environment, which owns the state.
    unsafe { (*addon).buffer = Some(buffer) };
    env.undefined()
}

fn set_caller(env: Env, call: &Call) -> Status<sys::napi_value> {
    let function = env.reference(call.args[0])?;
    CALLER.set(Some((env, function)));
    env.undefined()
}

fn set_pricer(env: Env, call: &Call) -> Status<sys::napi_value> {
    let addon = env.data::<Addon>()?;
    let function = match env.is_function(call.args[0])? {
        true => Some((env, env.reference(call.args[0])?)),
        false => None,
    };
    let pricer = function
        .as_ref()
        .map(|_| Arc::new(NodePricer) as Arc<dyn Pricer>);
    PRICER.set(function);
    // SAFETY: this is the thread of the environment, which owns the state.
    unsafe { (*addon).host.set_pricer(pricer) };
    env.undefined()
}

/// Entry of the addon, which Node.js calls once for each environment.
///
/// # Safety
/// Node.js calls it with its environment and the object of exports.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn napi_register_module_v1(
    env: sys::napi_env,
    exports: sys::napi_value,
) -> sys::napi_value {
    let env = Env::new(env);
    let made = env
        .set_data(Addon::default(), || {
            PRICER.set(None);
            CALLER.set(None);
        })
        .and_then(|()| env.export::<Operation>(exports, c"call"))
        .and_then(|()| env.export::<Attach>(exports, c"attach"))
        .and_then(|()| env.export::<SetCaller>(exports, c"setCaller"))
        .and_then(|()| env.export::<SetPricer>(exports, c"setPricer"));
    if made.is_err() {
        env.throw("the addon cannot be set up in this version of Node.js");
    }
    exports
}

struct Operation;
struct Attach;
struct SetCaller;
struct SetPricer;

impl env::Function for Operation {
    const FAULT: &'static str = "call(op, words, text) needs two numbers and a text, and a buffer";
    fn run(env: Env, call: &Call) -> Status<sys::napi_value> {
        operation(env, call)
    }
}

impl env::Function for Attach {
    const FAULT: &'static str = "attach(buffer) needs an ArrayBuffer";
    fn run(env: Env, call: &Call) -> Status<sys::napi_value> {
        attach(env, call)
    }
}

impl env::Function for SetCaller {
    const FAULT: &'static str = "setCaller(function) needs a function";
    fn run(env: Env, call: &Call) -> Status<sys::napi_value> {
        set_caller(env, call)
    }
}

impl env::Function for SetPricer {
    const FAULT: &'static str = "setPricer(function) needs a function or null";
    fn run(env: Env, call: &Call) -> Status<sys::napi_value> {
        set_pricer(env, call)
    }
}
