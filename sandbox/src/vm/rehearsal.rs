//! What ships translated with an image: a copy of the guest runs typical work,
//! the emulator notes which code that was, and translates it in the guest that
//! is about to be saved.

use super::error::{VmCode, VmError};
use super::guest::Guest;
use super::instance::Linked;
use super::link::Places;
use super::trial::Trial;
use a99_guest_agent::protocol::Ending;
use std::time::Instant;

/// Bytes of functions that ship, about: with them the image stays below 25 MB
/// when it is packed, and below 80 MB when it is compiled.
const ROOM: u32 = 8 << 20;

/// Runs a script in a copy of a guest that is ready for its snapshot. The answer
/// is what the emulator found, for [`ship`].
pub(super) fn study(linked: &Linked, guest: &Guest, script: &str) -> Result<Vec<u8>, VmError> {
    let mut copy = Guest::copy(linked, guest)?;
    copy.emulator.call::<(), u32>("study", ())?;
    let mut trial = Trial::new(copy, Instant::now());
    let tried = trial.run(script)?;
    if tried.exited.ending != Ending::Code(0) {
        let output = String::from_utf8_lossy(&tried.stderr);
        let text = format!("the rehearsal fails in the new guest: {output}");
        return Err(VmError::new(VmCode::NotReady, text));
    }
    let emulator = &mut trial.guest.emulator;
    let pair: u64 = emulator.call("studied", ())?;
    Ok(emulator
        .read(pair >> 32, pair & u64::from(u32::MAX))?
        .to_vec())
}

/// Has a guest translate what was studied in its copy. The answer is the
/// functions, which are to be added to its module in these places.
pub(super) fn ship(guest: &mut Guest, study: &[u8], places: &Places) -> Result<Vec<u8>, VmError> {
    let emulator = &mut guest.emulator;
    let room: u64 = emulator.call("bytes", study.len() as u32)?;
    emulator.write(room >> 32, study)?;
    let pair: u64 = emulator.call("ship", (places.table, places.types, ROOM))?;
    if pair == 0 {
        return Err(VmError::new(
            VmCode::Module,
            "the emulator refuses its study",
        ));
    }
    let functions = emulator.read(pair >> 32, pair & u64::from(u32::MAX))?;
    let functions = functions.to_vec();
    emulator.call::<u32, u64>("bytes", 0)?;
    Ok(functions)
}
