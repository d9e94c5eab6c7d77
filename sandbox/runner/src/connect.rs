//! Backend setup: turns the builder's mounts and network into backends of a guest's
//! devices.

use super::backends::{Backends, FileServer, NetBackend};
use super::error::{VmCode, VmError};
use super::frozen::Origin;
use super::mailbox::Mailbox;
use a99_egress::{HOST_NAME, Mode};
use a99_sandbox_net::{self as net, Gateway, Link};
use a99_sandbox_p9::{self as p9, MountMode, Server, ServerState};
use a99_sandbox_protocol::{Access, Ipv6, Mount, Network};
use serde::Deserialize;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Prefix lengths of the guest's network.
const PREFIX: u8 = 24;
const PREFIX_V6: u8 = 64;

impl FileServer for Server {
    fn answer(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        Server::answer(self, request, reply);
    }

    fn state(&self) -> serde_json::Value {
        // Plain data always serialises.
        serde_json::to_value(Server::state(self)).unwrap_or_default()
    }
}

/// A link and the gateway at its far end; dropping this ends the gateway's thread.
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

/// Options of a guest's backends.
#[derive(Clone, Debug)]
pub struct BackendOptions {
    /// Mounts of the guest.
    pub mounts: Vec<p9::Mount>,
    /// Network of the guest.
    pub network: net::Config,
}

/// Started backends, and the guest's matching settings.
pub struct ConnectedBackends {
    /// Device backends.
    pub backends: Backends,
    /// Mounts for the agent to make.
    pub mounts: Vec<Mount>,
    /// Network for the agent to set up.
    pub network: Option<Network>,
    /// Cell in which the mount server reports a refused write to git's settings.
    pub git_refused: Option<Arc<OnceLock<PathBuf>>>,
}

impl BackendOptions {
    /// Opens the mounts and starts the network; `forwards` receives the bound addresses.
    ///
    /// # Errors
    /// [`VmCode::Mount`], [`VmCode::Network`], and [`VmCode::Saved`] for mounts that do not
    /// fit the guest to continue.
    pub fn connect(
        self,
        origin: Option<&Origin>,
        mailbox: &Arc<Mailbox>,
        forwards: &OnceLock<Vec<SocketAddr>>,
    ) -> Result<ConnectedBackends, VmError> {
        let (server, mounts) = serve(self.mounts, origin)?;
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

/// Whether the configuration needs a network at all.
pub fn has_network(config: &net::Config) -> bool {
    config.policy.mode() != Mode::Off || !config.forwards.is_empty()
}

/// Starts the network; `forwards` receives the bound addresses.
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
    // Set only here, and a sandbox starts once.
    let _ = forwards.set(gateway.forwards().to_vec());
    Ok((gateway, link))
}

/// Starts the server if there are mounts, and describes them for the guest.
fn serve(
    mounts: Vec<p9::Mount>,
    origin: Option<&Origin>,
) -> Result<(Option<Server>, Vec<Mount>), VmError> {
    if mounts.is_empty() {
        return Ok((None, Vec::new()));
    }
    let state = origin.and_then(Origin::files).map(ServerState::deserialize);
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

/// Network settings for the agent.
fn addresses(config: &net::Config) -> Network {
    Network {
        address: net::GUEST.octets(),
        prefix: PREFIX,
        gateway: net::GATEWAY.octets(),
        dns: net::GATEWAY.octets(),
        mtu: config.mtu.into(),
        mac: config.mac,
        hosts: [net::HOST.into(), net::HOST_V6.into()]
            .map(|address| (address, HOST_NAME.as_bytes().to_vec()))
            .to_vec(),
        ipv6: Some(Ipv6 {
            address: net::GUEST_V6.octets(),
            prefix: PREFIX_V6,
            gateway: net::GATEWAY_V6.octets(),
        }),
    }
}
