//! Members: participants of all connections. One that joins twice, as when a client reconnects
//! before the server noticed that it was gone, is present until both have left.

use super::error::Refusal;
use a99_runtime::{Host, Participant, Uuid};
use std::collections::HashMap;
use tokio::sync::Mutex;

/// Why a participant left.
pub(super) const GRACEFUL: &str = "graceful";
pub(super) const DISCONNECT: &str = "disconnect";

#[derive(Default)]
pub(super) struct Members(Mutex<HashMap<(String, Uuid), usize>>);

impl Members {
    /// Adds a participant of a connection.
    ///
    /// # Errors
    /// `handle-conflict`; errors of the store.
    pub(super) async fn join(
        &self,
        host: &Host,
        channel: &str,
        who: Participant,
    ) -> Result<(), Refusal> {
        let mut counts = self.0.lock().await;
        let place = (channel.to_owned(), who.id);
        match counts.get_mut(&place) {
            Some(count) => {
                host.replace_participant(channel, who).await?;
                *count += 1;
            }
            None => {
                host.join(channel, who).await?;
                counts.insert(place, 1);
            }
        }
        Ok(())
    }

    /// Removes a participant of a connection.
    ///
    /// # Errors
    /// Errors of the store. The participant is gone all the same.
    pub(super) async fn leave(
        &self,
        host: &Host,
        channel: &str,
        id: Uuid,
        reason: &str,
    ) -> Result<(), Refusal> {
        let mut counts = self.0.lock().await;
        let place = (channel.to_owned(), id);
        let Some(count) = counts.get_mut(&place) else {
            return Ok(());
        };
        *count -= 1;
        if *count == 0 {
            counts.remove(&place);
            host.leave_because(channel, id, reason).await?;
        }
        Ok(())
    }
}
