//! The exports and imports.

use a99_bindings::wire::{Message, TAKE, decode, decode_answer};
use a99_bindings::{Caller, DirectAnswer, DirectCall, Host, Pricer, Value};
use agent99::capabilities::{Clock, Random};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

mod imports {
    #[link(wasm_import_module = "env")]
    unsafe extern "C" {
        pub(super) safe fn now() -> f64;
        pub(super) fn random(at: *mut u8, bytes: usize);
        pub(super) fn call(place: usize, text: *const u16, text_units: usize) -> usize;
        pub(super) fn price(
            op: *const u16,
            units: usize,
            text: *const u16,
            text_units: usize,
        ) -> f64;
    }
}

struct Embedder;

impl Clock for Embedder {
    fn now_ms(&self) -> f64 {
        imports::now()
    }
}

impl Random for Embedder {
    fn fill(&self, out: &mut [u8]) {
        // SAFETY: the address and the length are those of a slice, which the embedder fills.
        unsafe { imports::random(out.as_mut_ptr(), out.len()) };
    }
}

impl Pricer for Embedder {
    fn price(&self, op: &str, input: &Value, context: &Value) -> f64 {
        let mut message = Message::default();
        message.write_all(&[input, context]);
        let op: Vec<u16> = op.encode_utf16().collect();
        let text = std::mem::take(&mut message.text);
        STATE.with_borrow_mut(|state| state.write(message));
        // SAFETY: addresses and lengths are those of living buffers, which the embedder reads.
        unsafe { imports::price(op.as_ptr(), op.len(), text.as_ptr(), text.len()) }
    }
}

impl Caller for Embedder {
    /// The embedder gets a message of inputs and fuel, writes its answer ([`decode_answer`]), and
    /// returns the UTF-16 units of the answer's text.
    fn call(&self, call: &DirectCall<'_>) -> Option<DirectAnswer> {
        let mut message = STATE.with_borrow_mut(|state| std::mem::take(&mut state.out));
        let fuel = Value::Number(call.fuel_left.to_f64());
        message.write_all(&[call.inputs, &fuel]);
        let text = std::mem::take(&mut message.text);
        STATE.with_borrow_mut(|state| state.write(message));
        // SAFETY: the address and the length are those of a living buffer, which the embedder reads.
        let units = unsafe { imports::call(call.place, text.as_ptr(), text.len()) };
        STATE.with_borrow(|state| decode_answer(&state.words, state.text.get(..units)?))
    }
}

/// Buffers of the messages.
#[derive(Default)]
struct State {
    words: Vec<u32>,
    text: Vec<u16>,
    out: Message,
    /// Output that did not fit, until it is taken.
    kept: Option<Message>,
    /// Whether the embedder answers calls of atoms at once.
    is_caller: bool,
}

impl State {
    fn write(&mut self, message: Message) {
        if message.copy_to(&mut self.words) {
            self.out = message;
        } else {
            // The text is read after the call, also if the words are not.
            self.out.text.clone_from(&message.text);
            self.kept = Some(message);
        }
    }
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
    static HOST: Rc<Host> = Rc::new(Host::with(Arc::new(Embedder), Arc::new(Embedder)));
}

/// The address of the buffer of messages, with room for `words`.
#[unsafe(no_mangle)]
extern "C" fn a99_words(words: usize) -> *mut u32 {
    STATE.with_borrow_mut(|state| {
        let len = state.words.len().max(words);
        state.words.resize(len, 0);
        state.words.as_mut_ptr()
    })
}

/// The address of the buffer of input text, with room for `units`.
#[unsafe(no_mangle)]
extern "C" fn a99_text(units: usize) -> *mut u16 {
    STATE.with_borrow_mut(|state| {
        let len = state.text.len().max(units);
        state.text.resize(len, 0);
        state.text.as_mut_ptr()
    })
}

/// Does an operation and returns the UTF-16 units of the text of its output.
#[unsafe(no_mangle)]
extern "C" fn a99_call(op: u32, words: usize, units: usize) -> usize {
    let args = STATE.with_borrow_mut(|state| {
        if op == TAKE {
            let kept = state.kept.take().unwrap_or_default();
            state.write(kept);
            return None;
        }
        let words = state.words.get(..words).unwrap_or_default();
        Some(decode(words, state.text.get(..units).unwrap_or_default()))
    });
    if let Some(args) = args {
        // The state is not borrowed meanwhile: the price function may do operations.
        let host = HOST.with(Rc::clone);
        let is_caller = STATE.with_borrow(|state| state.is_caller);
        let direct = is_caller.then_some(&Embedder as &dyn Caller);
        let result = args.and_then(|args| host.call_with(op, args, direct));
        let mut message = STATE.with_borrow_mut(|state| std::mem::take(&mut state.out));
        message.write(result);
        STATE.with_borrow_mut(|state| state.write(message));
    }
    STATE.with_borrow(|state| state.out.text.len())
}

/// The address of the text of the last output.
#[unsafe(no_mangle)]
extern "C" fn a99_text_out() -> *const u16 {
    STATE.with_borrow(|state| state.out.text.as_ptr())
}

/// Sets whether prices are asked of the embedder.
#[unsafe(no_mangle)]
extern "C" fn a99_pricer(on: u32) {
    let pricer = (on != 0).then(|| Arc::new(Embedder) as Arc<dyn Pricer>);
    HOST.with(|host| host.set_pricer(pricer));
}

/// Sets whether the embedder answers calls of atoms at once, by the import `call`.
#[unsafe(no_mangle)]
extern "C" fn a99_caller(on: u32) {
    STATE.with_borrow_mut(|state| state.is_caller = on != 0);
}
