//! Codes of errors.

/// A request to a channel server is not of its form.
pub const BAD_REQUEST: &str = "channels.bad_request";
/// A message is no frame, or comes at the wrong time.
pub const BAD_FRAME: &str = "channels.bad_frame";
/// Client and server speak different versions of the protocol.
pub const PROTOCOL: &str = "channels.protocol";
/// A limit of the connection or of the server is reached.
pub const TOO_MANY: &str = "channels.too_many";
/// The connection has not joined the channel as this participant.
pub const NOT_JOINED: &str = "channels.not_joined";
/// An event does not fit into a message.
pub const TOO_LARGE: &str = "channels.event_too_large";
/// The channel ends before the event after which a client reads on.
pub const BEYOND_HEAD: &str = "channels.beyond_head";
/// The connection to the server is interrupted, or has ended.
pub const LOST: &str = "channels.lost";
/// The address is no channel server's, or the token may not go there.
pub const BAD_SERVER: &str = "channels.bad_server";
/// The server did not answer in time.
pub const LATE: &str = "channels.late";

/// All codes of this crate.
pub const ALL: [&str; 10] = [
    BAD_REQUEST,
    BAD_FRAME,
    PROTOCOL,
    TOO_MANY,
    NOT_JOINED,
    TOO_LARGE,
    BEYOND_HEAD,
    LOST,
    BAD_SERVER,
    LATE,
];
