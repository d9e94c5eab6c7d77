//! Exports of the module. Texts cross byte by byte: nothing here takes an address.

#![allow(
    unsafe_code,
    reason = "an export needs a name that the linker does not change, which no other \
              function of the module has"
)]

use crate::Session;
use std::cell::RefCell;

#[derive(Default)]
struct State {
    session: Session,
    command: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<T>(work: impl FnOnce(&mut State) -> T) -> T {
    STATE.with(|state| work(&mut state.borrow_mut()))
}

/// Adds a byte to the command.
#[unsafe(no_mangle)]
pub extern "C" fn put(byte: u32) {
    with(|state| state.command.push(byte.to_le_bytes()[0]));
}

/// Does the command; gives the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn handle() -> u32 {
    with(|state| {
        let command = std::mem::take(&mut state.command);
        let answer = state.session.handle(&String::from_utf8_lossy(&command));
        state.answer = answer.into_bytes();
        u32::try_from(state.answer.len()).unwrap_or(u32::MAX)
    })
}

/// The byte of the answer at this place; 256 behind its end.
#[unsafe(no_mangle)]
pub extern "C" fn get(at: u32) -> u32 {
    with(|state| {
        state
            .answer
            .get(at as usize)
            .map_or(256, |byte| u32::from(*byte))
    })
}
