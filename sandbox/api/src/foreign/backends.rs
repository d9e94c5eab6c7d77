//! Backends of a container2wasm image: its mounts and its network.

use crate::c2w::{FrameLink, Mount, Options, Wake};
use crate::net::{self, Gateway, Link};
use crate::p9::{GitWrites, MountMode};
use a99_sandbox_runner::{BackendOptions, VmCode, VmError, has_network, start_gateway};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

/// Network of an image: a gateway that exists before the image asks for frames.
struct GatewayBackend {
    link: Link,
    wake: Arc<OnceLock<Wake>>,
    _gateway: Gateway,
}

impl GatewayBackend {
    /// Wraps a gateway that was started with [`GatewayBackend::waker`].
    pub(crate) fn new(gateway: Gateway, link: Link, wake: Arc<OnceLock<Wake>>) -> Self {
        Self {
            link,
            wake,
            _gateway: gateway,
        }
    }

    /// Returns the gateway's wake-up callback, a no-op until the image is ready.
    pub(crate) fn waker(wake: &Arc<OnceLock<Wake>>) -> Box<dyn Fn() + Send> {
        let wake = Arc::clone(wake);
        Box::new(move || {
            if let Some(wake) = wake.get() {
                wake();
            }
        })
    }
}

impl FrameLink for GatewayBackend {
    fn on_frames(&mut self, wake: Wake) {
        // Called once.
        let _ = self.wake.set(wake);
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        self.link.send(frame)
    }

    fn receive(&mut self, frame: &mut Vec<u8>) -> bool {
        let next = self.link.receive();
        frame.extend(next.iter().flat_map(|next| &next.bytes));
        next.is_some()
    }
}

/// Connects an image's machine to its mounts and to its network, which it starts.
/// `forwards` receives the bound addresses.
pub(in super::super) fn connect(
    backends: BackendOptions,
    env: Vec<(String, String)>,
    hardened: bool,
    forwards: &OnceLock<Vec<SocketAddr>>,
) -> Result<Options, VmError> {
    let mut options = Options {
        env,
        hardened,
        mac: backends.network.mac,
        ..Options::default()
    };
    for mount in backends.mounts {
        let guest = mount.guest.into_os_string().into_string();
        let guest = guest.map_err(|guest| {
            let text = format!("mount at {}: it must be UTF-8", guest.display());
            VmError::new(VmCode::BadOption, text)
        })?;
        if matches!(mount.git, GitWrites::Named(_)) {
            let text = "an image of container2wasm may change all of git's settings in a \
                        mount or none, not named ones";
            return Err(VmError::new(VmCode::Unsupported, text));
        }
        options.mounts.push(Mount {
            guest,
            host: mount.host,
            read_only: mount.mode != MountMode::ReadWrite,
            allow_git: mount.git == GitWrites::Allowed,
            budget: mount.budget,
        });
    }
    if has_network(&backends.network) {
        let ethernet = net::Config::ethernet(backends.network.policy.clone());
        let config = net::Config {
            mtu: ethernet.mtu,
            checksums: ethernet.checksums,
            ..backends.network
        };
        let wake = Arc::default();
        let waker = GatewayBackend::waker(&wake);
        let (gateway, link) = start_gateway(&config, waker, forwards)?;
        options.network = Some(Box::new(GatewayBackend::new(gateway, link, wake)));
    }
    Ok(options)
}
