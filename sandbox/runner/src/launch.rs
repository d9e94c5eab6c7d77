//! Launcher of guests' threads.

use super::error::{VmCode, VmError};
use super::event_loop::{Bounds, fail, run};
use super::guest::{Guest, Setup};
use super::image::Image;
use super::mailbox::Mailbox;
use std::sync::Arc;

/// Stack of a guest's thread: the emulator's, plus some for the host's side.
const THREAD_STACK: usize = 2 << 20;

/// Starts a guest's thread, which loads `image`, creates the guest and runs it until it
/// ends.
///
/// # Errors
/// [`VmCode::Resources`] if no thread can start. All other errors go to the mailbox.
pub fn launch(
    mailbox: &Arc<Mailbox>,
    image: impl FnOnce() -> Result<Image, VmError> + Send + 'static,
    setup: impl FnOnce(&Image) -> Result<Setup, VmError> + Send + 'static,
    bounds: Bounds,
) -> Result<(), VmError> {
    let mailbox = Arc::clone(mailbox);
    let body = move || {
        let made = image().and_then(|image| {
            let setup = setup(&image)?;
            Ok((Guest::resume(image.module(), setup)?, image))
        });
        match made {
            Ok((guest, image)) => run(guest, mailbox, image.base(), bounds),
            Err(error) => fail(&mailbox, &error),
        }
    };
    spawn_thread(body)
}

/// Starts a guest's thread.
///
/// # Errors
/// [`VmCode::Resources`] if no thread can start.
pub fn spawn_thread(body: impl FnOnce() + Send + 'static) -> Result<(), VmError> {
    std::thread::Builder::new()
        .name("a99-sandbox-guest".to_owned())
        .stack_size(THREAD_STACK)
        .spawn(body)
        .map(drop)
        .map_err(|error| VmError::new(VmCode::Resources, format!("no thread: {error}")))
}
