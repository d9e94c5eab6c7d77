//! Backend setup: from the builder's mounts and network to the backends of a guest's
//! devices.

use super::backends::{Backends, FileServer, NetBackend};
use super::error::{VmCode, VmError};
use super::mailbox::Mailbox;
use super::save::Saved;
use a99_egress::{HOST_NAME, Mode};
use a99_sandbox_net::{self as net, Gateway, Link};
use a99_sandbox_p9::{self as p9, MountMode, Server, ServerState};
use a99_sandbox_protocol::{Access, Mount, Network};
use serde::Deserialize;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Bits of the network's part of the guest's address.
const PREFIX: u8 = 24;

impl FileServer for Server {
    fn answer(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        Server::answer(self, request, reply);
    }

    fn state(&self) -> serde_json::Value {
        // Plain data: there is nothing that has no JSON.
        serde_json::to_value(Server::state(self)).unwrap_or_default()
    }
}

/// A link and the gateway at its end, whose thread ends with this.
struct GatewayBackend {
    link: Link,
    _gateway: Gateway,
}

impl NetBackend for GatewayBackend {
    fn send(&mut self, frame: &[u8]) -> bool {
        self.link.send(frame)
    }

    fn receive(&mut self) -> Option<(Vec<u8>, bool)> {
        let frame = self.link.receive()?;
        Some((frame.bytes, frame.checksums_valid))
    }
}

/// Options of the backends.
#[derive(Clone, Debug)]
pub struct BackendOptions {
    /// Its mounts.
    pub mounts: Vec<p9::Mount>,
    /// Its network.
    pub network: net::Config,
}

/// The backends, and how the guest is to set up its side.
pub struct ConnectedBackends {
    /// The backends.
    pub backends: Backends,
    /// Its mounts, as the agent makes them.
    pub mounts: Vec<Mount>,
    /// Its network, as the agent sets it up.
    pub network: Option<Network>,
    /// Where the server of the mounts tells that git's settings were refused.
    pub git_refused: Option<Arc<OnceLock<PathBuf>>>,
}

impl BackendOptions {
    /// Opens the mounts and starts the network. `forwards` learns where the
    /// host listens.
    ///
    /// # Errors
    /// [`VmCode::Mount`], [`VmCode::Network`], and [`VmCode::Saved`] for mounts that
    /// a saved guest does not fit.
    pub fn connect(
        self,
        saved: Option<&Saved>,
        mailbox: &Arc<Mailbox>,
        forwards: &OnceLock<Vec<SocketAddr>>,
    ) -> Result<ConnectedBackends, VmError> {
        let (server, mounts) = serve(self.mounts, saved)?;
        let git_refused = server.as_ref().map(Server::git_refusals);
        let files = server.map(|server| Box::new(server) as Box<dyn FileServer>);
        let mut connected = ConnectedBackends {
            backends: Backends { files, net: None },
            mounts,
            network: None,
            git_refused,
        };
        if has_network(&self.network) {
            let mailbox = Arc::downgrade(mailbox);
            let wake = move || {
                if let Some(mailbox) = mailbox.upgrade() {
                    mailbox.wake();
                }
            };
            let (gateway, link) = start_gateway(&self.network, Box::new(wake), forwards)?;
            connected.network = Some(addresses(&self.network));
            connected.backends.net = Some(Box::new(GatewayBackend {
                link,
                _gateway: gateway,
            }));
        }
        Ok(connected)
    }
}

/// Whether there is anything that a network would do.
pub fn has_network(config: &net::Config) -> bool {
    config.policy.mode() != Mode::Off || !config.forwards.is_empty()
}

/// Starts the network; `forwards` learns where the host listens.
///
/// # Errors
/// [`VmCode::Network`].
pub fn start_gateway(
    config: &net::Config,
    wake: Box<dyn Fn() + Send>,
    forwards: &OnceLock<Vec<SocketAddr>>,
) -> Result<(Gateway, Link), VmError> {
    let (gateway, link) = Gateway::start(config, wake)
        .map_err(|error| VmError::new(VmCode::Network, error.to_string()))?;
    // Set once: a sandbox starts once.
    let _ = forwards.set(gateway.forwards().to_vec());
    Ok((gateway, link))
}

/// The server of the mounts, if there are any, and the guest's view of them.
fn serve(
    mounts: Vec<p9::Mount>,
    saved: Option<&Saved>,
) -> Result<(Option<Server>, Vec<Mount>), VmError> {
    if mounts.is_empty() {
        return Ok((None, Vec::new()));
    }
    let state = saved.and_then(Saved::files).map(ServerState::deserialize);
    let state = state
        .transpose()
        .map_err(|error| VmError::new(VmCode::Saved, format!("state of its mounts: {error}")))?;
    let options = p9::Options::default();
    let server = match &state {
        Some(state) => Server::restore(mounts, options, state),
        None => Server::new(mounts, options),
    };
    let server = server.map_err(|error| VmError::new(VmCode::Mount, error.to_string()))?;
    let guests = server.mounts().map(|(entry, mount)| Mount {
        entry: entry.into_bytes(),
        path: mount.guest.as_os_str().as_bytes().to_vec(),
        access: match mount.mode {
            MountMode::ReadOnly => Access::ReadOnly,
            MountMode::ReadWrite => Access::ReadWrite,
            MountMode::Overlay => Access::Overlay,
        },
    });
    let guests = guests.collect();
    Ok((Some(server), guests))
}

/// The network as the guest is to set it up.
fn addresses(config: &net::Config) -> Network {
    Network {
        address: net::GUEST.octets(),
        prefix: PREFIX,
        gateway: net::GATEWAY.octets(),
        dns: net::GATEWAY.octets(),
        mtu: config.mtu.into(),
        mac: config.mac,
        hosts: vec![(net::HOST.octets(), HOST_NAME.as_bytes().to_vec())],
    }
}
