//! Keys of agents: agent, channel and handle.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// Number of shards of the key space. It is part of every store and never changes.
pub const SHARDS: u16 = 1024;

/// Maximum bytes of a part of a key.
pub const MAX_PART_BYTES: usize = 128;

/// The namespace of all derived identities (RFC 9562, section 5.5).
const NAMESPACE: Uuid = Uuid::from_u128(0x9a3b_5c0e_41d2_4f6e_8b7a_a990_5f1c_2d43);

/// Sequence number of an event in its channel: 1 for the first, without gaps. 0 is before all.
pub type Seq = u64;

/// Milliseconds since the Unix epoch.
pub type Millis = u64;

/// Fencing token of a shard: the number of its ownership changes. Writes of earlier owners are
/// refused. 0 stands for a shard that the asked handle does not own.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An agent's key, `agent/channel/handle` as text.
///
/// ```
/// use a99_runtime_engine::AgentKey;
///
/// let key: AgentKey = "echo/general/@Echo".parse()?;
/// assert_eq!((key.agent(), key.channel(), key.handle()), ("echo", "general", "Echo"));
/// assert_eq!(key.to_string(), "echo/general/Echo");
/// assert!("echo/general".parse::<AgentKey>().is_err());
/// # Ok::<(), a99_runtime_engine::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentKey {
    text: Arc<str>,
    /// Where the channel and the handle begin.
    channel: u16,
    handle: u16,
}

/// An invalid key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyError(String);

impl KeyError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        crate::codes::BAD_KEY
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for KeyError {}

/// Checks a part of a key: an agent's name, a channel or a handle.
///
/// # Errors
/// If it is empty, longer than [`MAX_PART_BYTES`], or has a `/` or a control character.
pub fn check_part(what: &str, part: &str) -> Result<(), KeyError> {
    let fault = if part.is_empty() {
        "is empty".to_owned()
    } else if part.len() > MAX_PART_BYTES {
        format!("has {} bytes of at most {MAX_PART_BYTES}", part.len())
    } else if part.contains('/') {
        "has a '/', which parts the key".to_owned()
    } else if part.chars().any(char::is_control) {
        "has a control character".to_owned()
    } else {
        return Ok(());
    };
    let shown: String = part.chars().take(40).collect();
    Err(KeyError(format!("the {what} {shown:?} {fault}")))
}

impl AgentKey {
    /// Builds a key from its parts; an `@` before the handle is removed.
    ///
    /// # Errors
    /// Those of [`check_part`].
    pub fn new(agent: &str, channel: &str, handle: &str) -> Result<AgentKey, KeyError> {
        let handle = handle.strip_prefix('@').unwrap_or(handle);
        check_part("agent", agent)?;
        check_part("channel", channel)?;
        check_part("handle", handle)?;
        let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
        Ok(AgentKey {
            text: format!("{agent}/{channel}/{handle}").into(),
            channel: place(agent.len() + 1),
            handle: place(agent.len() + channel.len() + 2),
        })
    }

    /// The agent's name.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.text[..usize::from(self.channel) - 1]
    }

    /// The agent's channel.
    #[must_use]
    pub fn channel(&self) -> &str {
        &self.text[usize::from(self.channel)..usize::from(self.handle) - 1]
    }

    /// The handle by which others address it, without `@`.
    #[must_use]
    pub fn handle(&self) -> &str {
        &self.text[usize::from(self.handle)..]
    }

    /// The text `agent/channel/handle`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The agent's shard, by FNV-1a of the key's text.
    #[must_use]
    pub fn shard(&self) -> u16 {
        let hash = digest(self.text.as_bytes());
        u16::try_from(hash % u64::from(SHARDS)).unwrap_or_default()
    }

    /// The agent's identity on its channel: the same in every process and after every restart.
    #[must_use]
    pub fn participant(&self) -> Uuid {
        derived(&["participant", self.as_str()])
    }
}

/// 64-bit FNV-1a. It detects accidental differences, not malicious ones.
#[must_use]
pub fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The identity of an event published under an idempotency key: it does not depend on the
/// process that appends it.
#[must_use]
pub fn published(channel: &str, sender: Uuid, key: &str) -> Uuid {
    derived(&["publish", channel, &sender.to_string(), key])
}

/// A unique identity from random bytes (UUID version 4).
#[must_use]
pub fn unique(random: [u8; 16]) -> Uuid {
    uuid::Builder::from_random_bytes(random).into_uuid()
}

/// A deterministic identity of some texts (UUID version 5).
#[must_use]
pub fn derived(parts: &[&str]) -> Uuid {
    let mut name = String::new();
    for part in parts {
        // Lengths keep different lists from giving the same name.
        name.push_str(&part.len().to_string());
        name.push(':');
        name.push_str(part);
    }
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

impl fmt::Display for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for AgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.text, f)
    }
}

impl std::str::FromStr for AgentKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<AgentKey, KeyError> {
        match *text.split('/').collect::<Vec<_>>() {
            [agent, channel, handle] => AgentKey::new(agent, channel, handle),
            _ => {
                let shown: String = text.chars().take(60).collect();
                Err(KeyError(format!(
                    "{shown:?} is no key of an agent: 'agent/channel/handle'"
                )))
            }
        }
    }
}

impl TryFrom<String> for AgentKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<AgentKey, KeyError> {
        text.parse()
    }
}

impl From<AgentKey> for String {
    fn from(key: AgentKey) -> String {
        key.as_str().to_owned()
    }
}

/// The trigger of a turn.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// An event of the channel's log.
    Event(Seq),
    /// An occurrence of a timer: its name and due time.
    Timer(String, Millis),
    /// An ephemeral event, or a hook of the agent, under a unique identity.
    Once(Uuid),
}

impl fmt::Display for Trigger {
    /// Writes the form that stores and identities use: `event:7`, `timer:1700000000000:name`,
    /// `once:` with a UUID.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trigger::Event(seq) => write!(f, "event:{seq}"),
            Trigger::Timer(name, due) => write!(f, "timer:{due}:{name}"),
            Trigger::Once(id) => write!(f, "once:{id}"),
        }
    }
}

impl std::str::FromStr for Trigger {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Trigger, KeyError> {
        let read = || match text.split_once(':')? {
            ("event", seq) => Some(Trigger::Event(seq.parse().ok()?)),
            ("once", id) => Some(Trigger::Once(id.parse().ok()?)),
            ("timer", rest) => {
                let (due, name) = rest.split_once(':')?;
                Some(Trigger::Timer(name.to_owned(), due.parse().ok()?))
            }
            _ => None,
        };
        read().ok_or_else(|| {
            let shown: String = text.chars().take(60).collect();
            KeyError(format!("{shown:?} is nothing that a turn answers to"))
        })
    }
}

impl Trigger {
    /// The identity of an operation of a turn: the same at every retry.
    #[must_use]
    pub fn operation(&self, key: &AgentKey, name: &str) -> Uuid {
        derived(&[key.as_str(), &self.to_string(), name])
    }

    /// The identity of an operation of a turn after an operator set the agent's progress
    /// `replays` times: a turn that is handled anew is a different turn.
    #[must_use]
    pub fn replayed(&self, key: &AgentKey, replays: u64, name: &str) -> Uuid {
        match replays {
            0 => self.operation(key, name),
            // Names of operations begin with their kind, which is never `replay`.
            replays => self.operation(key, &format!("replay {replays}/{name}")),
        }
    }

    /// The sequence number of a logged event.
    #[must_use]
    pub fn seq(&self) -> Option<Seq> {
        match self {
            Trigger::Event(seq) => Some(*seq),
            Trigger::Timer(..) | Trigger::Once(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AgentKey, Trigger, derived};

    #[test]
    fn identities_do_not_change() {
        let key: AgentKey = "echo/general/echo".parse().expect("a key");
        assert_eq!(key.shard(), 217);
        let id = Trigger::Event(7).operation(&key, "send:0").to_string();
        assert_eq!(id, "5f33d3f8-544f-51b1-8a84-7df6160ceef1");
        assert_ne!(derived(&["ab", "c"]), derived(&["a", "bc"]));
    }

    #[test]
    fn triggers_read_what_they_print() {
        let once = Trigger::Once(derived(&["x"]));
        for trigger in [Trigger::Event(9), Trigger::Timer("a:b".into(), 12), once] {
            assert_eq!(trigger.to_string().parse(), Ok(trigger));
        }
        assert!("event:".parse::<Trigger>().is_err());
    }

    #[test]
    fn parts_are_judged() {
        for (agent, channel, handle) in [("", "c", "h"), ("a/b", "c", "h"), ("a", "c", "@")] {
            assert!(AgentKey::new(agent, channel, handle).is_err());
        }
        let long = "x".repeat(129);
        let error = AgentKey::new("a", &long, "h").expect_err("too long");
        assert!(
            error.to_string().contains("129 bytes of at most 128"),
            "{error}"
        );
    }
}
