//! Scopes: what a token allows, and on which channels.

use crate::error::{ServerCode, ServerError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Maximum bytes of a channel's name, as the runtime has it.
const MAX_CHANNEL_BYTES: usize = 128;

/// Maximum scopes of a token.
const MAX_SCOPES: usize = 64;

/// What a client does on a channel.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Receives what is on the channel.
    Read,
    /// Sends messages to the channel.
    Write,
    /// Calls agents of the channel.
    Call,
    /// Brings agents onto the channel.
    Invite,
    /// Sees what agents of the channel keep: state, settings, turns.
    Inspect,
    /// Speaks as agents of the channel: for hosts of agents elsewhere.
    Host,
    /// All of these, and changes of the channel.
    Admin,
}

impl Action {
    const ALL: [Action; 7] = [
        Action::Read,
        Action::Write,
        Action::Call,
        Action::Invite,
        Action::Inspect,
        Action::Host,
        Action::Admin,
    ];

    /// The word of a scope.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Action::Read => "read",
            Action::Write => "write",
            Action::Call => "call",
            Action::Invite => "invite",
            Action::Inspect => "inspect",
            Action::Host => "host",
            Action::Admin => "admin",
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The channels of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Channels {
    /// All, and what belongs to no channel.
    Everything,
    /// Those whose name begins so; for `*` all.
    Prefix(String),
    One(String),
}

/// One scope: `ACTION:CHANNEL`, or `admin`.
///
/// CHANNEL is the exact name of a channel, or the begin of names and a `*`. Names are compared
/// byte by byte. A prefix ends where it ends: `team-*` includes `team-x-1`. Where several tenants
/// share a server, end their prefixes with a character that no tenant's name has, as in `acme.*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    action: Action,
    channels: Channels,
}

impl Scope {
    fn allows(&self, action: Action, channel: &str) -> bool {
        let of = self.action == action || self.action == Action::Admin;
        of && match &self.channels {
            Channels::Everything => true,
            Channels::Prefix(prefix) => channel.starts_with(prefix.as_str()),
            Channels::One(name) => channel == name,
        }
    }
}

impl FromStr for Scope {
    type Err = ServerError;

    fn from_str(text: &str) -> Result<Scope, ServerError> {
        let refused = |why: String| {
            let shown: String = text.chars().take(60).collect();
            ServerError::new(
                ServerCode::BadScope,
                format!("the scope {shown:?} {why}"),
                "write ACTION:CHANNEL, as in `read:general` or `write:team-*`; `admin` allows all",
            )
        };
        if text == "admin" {
            return Ok(Scope {
                action: Action::Admin,
                channels: Channels::Everything,
            });
        }
        let (word, channel) = text
            .split_once(':')
            .ok_or_else(|| refused("names no channel".to_owned()))?;
        let action = Action::ALL.into_iter().find(|action| action.name() == word);
        let action = action.ok_or_else(|| {
            let all = Action::ALL.map(Action::name).join(", ");
            refused(format!("has an unknown action; there are {all}"))
        })?;
        let (name, is_prefix) = match channel.strip_suffix('*') {
            Some(prefix) => (prefix, true),
            None => (channel, false),
        };
        if name.contains('*') {
            return Err(refused("has a `*` before its end".to_owned()));
        }
        let is_all = is_prefix && name.is_empty();
        if !is_all && let Err(why) = check_channel(name) {
            return Err(refused(format!("has a channel that {why}")));
        }
        Ok(Scope {
            action,
            channels: match is_prefix {
                true => Channels::Prefix(name.to_owned()),
                false => Channels::One(name.to_owned()),
            },
        })
    }
}

/// Whether a channel may have this name: the rule of the runtime.
fn check_channel(name: &str) -> Result<(), &'static str> {
    if name.is_empty() {
        Err("is empty")
    } else if name.len() > MAX_CHANNEL_BYTES {
        Err("has more than 128 bytes")
    } else if name.contains('/') || name.chars().any(char::is_control) {
        Err("has a `/` or a control character")
    } else {
        Ok(())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.channels {
            Channels::Everything => write!(f, "{}", self.action),
            Channels::Prefix(prefix) => write!(f, "{}:{prefix}*", self.action),
            Channels::One(name) => write!(f, "{}:{name}", self.action),
        }
    }
}

/// The scopes of a token: one at least, 64 at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Scopes(Vec<Scope>);

impl Scopes {
    /// Reads scopes.
    ///
    /// # Errors
    /// `server.bad_scope`.
    pub fn parse<T: AsRef<str>>(texts: &[T]) -> Result<Scopes, ServerError> {
        let scopes = texts.iter().map(|text| text.as_ref().parse());
        match texts.len() {
            1..=MAX_SCOPES => Ok(Scopes(scopes.collect::<Result<_, _>>()?)),
            n => Err(ServerError::new(
                ServerCode::BadScope,
                format!("a token has 1 to {MAX_SCOPES} scopes, not {n}"),
                "give each use its token, or a prefix such as `read:team-*`",
            )),
        }
    }

    /// Whether one of them allows this; never for a name that no channel may have.
    #[must_use]
    pub fn allows(&self, action: Action, channel: &str) -> bool {
        check_channel(channel).is_ok() && self.0.iter().any(|scope| scope.allows(action, channel))
    }

    /// Whether they allow this on all channels.
    #[must_use]
    pub fn allow_on_all(&self, action: Action) -> bool {
        self.0.iter().any(|scope| {
            let of = scope.action == action || scope.action == Action::Admin;
            of && match &scope.channels {
                Channels::Everything => true,
                Channels::Prefix(prefix) => prefix.is_empty(),
                Channels::One(_) => false,
            }
        })
    }

    /// Whether they have `admin`, which allows also what belongs to no channel.
    #[must_use]
    pub fn allow_everything(&self) -> bool {
        let is_all = |scope: &Scope| scope.channels == Channels::Everything;
        self.0.iter().any(is_all)
    }

    /// The scopes.
    pub fn iter(&self) -> impl Iterator<Item = &Scope> {
        self.0.iter()
    }
}

impl TryFrom<Vec<String>> for Scopes {
    type Error = ServerError;

    fn try_from(texts: Vec<String>) -> Result<Scopes, ServerError> {
        Scopes::parse(&texts)
    }
}

impl From<Scopes> for Vec<String> {
    fn from(scopes: Scopes) -> Vec<String> {
        scopes.iter().map(Scope::to_string).collect()
    }
}
