//! Frame kinds: numbers below 0x80 go to the guest, the others come back.

/// [`Request::Resume`](super::Request::Resume).
pub const RESUME: u8 = 0x01;
/// [`Request::Prepare`](super::Request::Prepare).
pub const PREPARE: u8 = 0x02;
/// [`Request::Exec`](super::Request::Exec).
pub const EXEC: u8 = 0x03;
/// [`Request::Script`](super::Request::Script).
pub const SCRIPT: u8 = 0x04;
/// [`Request::Stdin`](super::Request::Stdin).
pub const STDIN: u8 = 0x05;
/// [`Request::StdinEnd`](super::Request::StdinEnd).
pub const STDIN_END: u8 = 0x06;
/// [`Request::Resize`](super::Request::Resize).
pub const RESIZE: u8 = 0x07;
/// [`Request::Signal`](super::Request::Signal).
pub const SIGNAL: u8 = 0x08;
/// [`Request::Kill`](super::Request::Kill).
pub const KILL: u8 = 0x09;
/// [`Request::Credit`](super::Request::Credit).
pub const CREDIT: u8 = 0x0A;
/// [`Request::Drain`](super::Request::Drain).
pub const DRAIN: u8 = 0x0B;
/// [`Request::Ping`](super::Request::Ping).
pub const PING: u8 = 0x0C;
/// [`Report::Ready`](super::Report::Ready).
pub const READY: u8 = 0x81;
/// [`Report::Resumed`](super::Report::Resumed).
pub const RESUMED: u8 = 0x82;
/// [`Report::Prepared`](super::Report::Prepared).
pub const PREPARED: u8 = 0x83;
/// [`Report::Started`](super::Report::Started).
pub const STARTED: u8 = 0x84;
/// [`Report::Output`](super::Report::Output).
pub const STDOUT: u8 = 0x85;
/// [`Report::Output`](super::Report::Output).
pub const STDERR: u8 = 0x86;
/// [`Report::Exited`](super::Report::Exited).
pub const EXITED: u8 = 0x87;
/// [`Report::Failed`](super::Report::Failed).
pub const FAILED: u8 = 0x88;
/// [`Report::Credit`](super::Report::Credit).
pub const GRANT: u8 = 0x89;
/// [`Report::Drained`](super::Report::Drained).
pub const DRAINED: u8 = 0x8A;
/// [`Report::Pong`](super::Report::Pong).
pub const PONG: u8 = 0x8B;
