//! Connection: whether an agent's channels can be reached.
//!
//! In the embedded target they always can. The transport of another target reports what happens
//! to its connection.

use crate::error::AgentError;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};

/// Reports that wait for a listener; beyond it the listener loses the oldest.
const WAITING: usize = 64;

/// The status of a connection.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum ConnectionStatus {
    /// The channels can be reached.
    #[default]
    Connected,
    /// The connection is lost, and its transport tries again.
    Reconnecting,
    /// The connection is closed for good.
    Closed,
}

#[derive(Clone, Debug)]
enum Report {
    Lost,
    Back,
    Fault(AgentError),
}

/// The connection of a target to its channels.
#[derive(Debug)]
pub(crate) struct Connection {
    status: watch::Sender<ConnectionStatus>,
    reports: broadcast::Sender<Report>,
}

impl Default for Connection {
    fn default() -> Connection {
        Connection {
            status: watch::Sender::default(),
            reports: broadcast::Sender::new(WAITING),
        }
    }
}

impl Connection {
    pub(crate) fn status(&self) -> ConnectionStatus {
        *self.status.borrow()
    }

    /// Reports a change, if it is one. A closed connection stays closed.
    pub(crate) fn set(&self, status: ConnectionStatus) {
        use ConnectionStatus::{Closed, Connected};
        let before = self.status();
        if before == status || before == Closed {
            return;
        }
        self.status.send_replace(status);
        let report = match status {
            Connected => Report::Back,
            _ if before == Connected => Report::Lost,
            // It was lost before.
            _ => return,
        };
        // Without listeners the report is dropped.
        let _ = self.reports.send(report);
    }

    /// Reports a fault.
    pub(crate) fn fault(&self, error: AgentError) {
        let _ = self.reports.send(Report::Fault(error));
    }

    fn listen<T>(&self, pick: fn(Report) -> Option<T>) -> Reports<T> {
        Reports {
            reports: self.reports.subscribe(),
            pick,
        }
    }

    pub(crate) fn lost(&self) -> Reports<()> {
        self.listen(|report| matches!(report, Report::Lost).then_some(()))
    }

    pub(crate) fn back(&self) -> Reports<()> {
        self.listen(|report| matches!(report, Report::Back).then_some(()))
    }

    pub(crate) fn faults(&self) -> Reports<AgentError> {
        self.listen(|report| match report {
            Report::Fault(error) => Some(error),
            _ => None,
        })
    }
}

/// A stream of reports of a connection.
#[derive(Debug)]
pub struct Reports<T> {
    reports: broadcast::Receiver<Report>,
    pick: fn(Report) -> Option<T>,
}

impl<T> Reports<T> {
    /// Waits for the next report; `None` when the target is gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<T> {
        loop {
            match self.reports.recv().await {
                Ok(report) => {
                    if let Some(picked) = (self.pick)(report) {
                        return Some(picked);
                    }
                }
                // A slow listener may miss reports.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Connection, ConnectionStatus::*};
    use crate::error::AgentError;
    use futures_util::FutureExt;

    #[test]
    fn listeners_hear_what_a_transport_reports() {
        let connection = Connection::default();
        let (mut lost, mut back) = (connection.lost(), connection.back());
        let mut faults = connection.faults();
        assert_eq!(connection.status(), Connected);
        connection.set(Connected);
        assert_eq!(lost.next().now_or_never(), None, "nothing changed");
        connection.set(Reconnecting);
        connection.set(Reconnecting);
        connection.fault(AgentError::from("refused"));
        connection.set(Connected);
        assert_eq!(lost.next().now_or_never(), Some(Some(())));
        assert_eq!(lost.next().now_or_never(), None, "it was lost once");
        assert_eq!(back.next().now_or_never(), Some(Some(())));
        let fault = faults.next().now_or_never().flatten();
        assert_eq!(fault.expect("a fault").to_string(), "refused");
        connection.set(Closed);
        connection.set(Connected);
        assert_eq!(connection.status(), Closed, "for good");
        assert_eq!(lost.next().now_or_never(), Some(Some(())));
        drop(connection);
        assert_eq!(back.next().now_or_never(), Some(None), "the target is gone");
    }
}
