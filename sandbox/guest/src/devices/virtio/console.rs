//! Console device with several ports (virtio 1.2 section 5.3): port 0 is the console
//! `hvc0`, port 1 a separate byte channel for the agent in the guest, which finds it by its
//! name [`AGENT_PORT`].
//!
//! Input waits until the guest has opened the port: Linux discards earlier input.

mod port;

use super::mmio::Device;
use super::queue::{Chain, Queue, QueueFault};
use crate::channels::Channels;
use crate::devices::Env;
use crate::host::Host;
use port::Port;
use std::collections::VecDeque;

/// Name of port 1: `/sys/class/virtio-ports/*/name`.
pub(crate) const AGENT_PORT: &str = "agent99.agent";

const F_SIZE: u64 = 1 << 0;
const F_MULTIPORT: u64 = 1 << 1;

/// Control events (section 5.3.6.2).
const DEVICE_READY: u16 = 0;
const PORT_ADD: u16 = 1;
const PORT_READY: u16 = 3;
const CONSOLE_PORT: u16 = 4;
const RESIZE: u16 = 5;
const PORT_OPEN: u16 = 6;
const PORT_NAME: u16 = 7;

/// Size of a control message: port number, event and value.
const CONTROL_BYTES: usize = 8;
/// Maximum control messages queued for the driver. While a driver that requests more
/// provides no buffers, its messages wait.
const MAX_OUTBOX: usize = 64;

/// Queues (section 5.3.2): port 0, control, port 1; in and out each.
const QUEUES: usize = 6;
const QUEUE_SIZE: u16 = 64;
const PORTS: usize = 2;
const CONSOLE: usize = 0;
const AGENT: usize = 1;

/// The console device.
#[derive(Debug)]
pub struct Console {
    config: [u8; 12],
    multiport: bool,
    ports: [Port; PORTS],
    /// Control messages for the driver.
    outbox: VecDeque<Vec<u8>>,
    chain: Chain,
    columns: u16,
    rows: u16,
    resized: bool,
}

impl Console {
    /// Creates a console of 80 columns and 24 rows.
    pub fn new() -> Self {
        let mut console = Self {
            config: [0; 12],
            multiport: false,
            ports: [Port::default(), Port::default()],
            outbox: VecDeque::new(),
            chain: Chain::default(),
            columns: 80,
            rows: 24,
            resized: false,
        };
        console.config[4..8].copy_from_slice(&(PORTS as u32).to_le_bytes());
        console.resize(80, 24);
        console
    }

    /// Changes the size of the terminal; the guest is notified at the next poll.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.columns = columns;
        self.rows = rows;
        self.config[0..2].copy_from_slice(&columns.to_le_bytes());
        self.config[2..4].copy_from_slice(&rows.to_le_bytes());
        self.resized = true;
    }

    /// Whether a program in the guest has the agent port open.
    pub fn agent_open(&self) -> bool {
        self.ports[AGENT].guest_open
    }

    /// Whether guest output waits for room in a channel.
    pub fn held_back(&self) -> bool {
        self.ports.iter().any(Port::held_back)
    }

    /// Queues a control message for the driver.
    fn post(&mut self, port: usize, event: u16, value: u16, more: &[u8]) {
        let mut message = (port as u32).to_le_bytes().to_vec();
        message.extend_from_slice(&event.to_le_bytes());
        message.extend_from_slice(&value.to_le_bytes());
        message.extend_from_slice(more);
        self.outbox.push_back(message);
    }

    /// Queues the terminal's size: columns, rows (section 5.3.6.2). Kernels before commit
    /// 5326ab737a47 ("fix order of fields cols and rows", in 6.12 by its stable series)
    /// read the two in reverse order.
    fn post_size(&mut self) {
        self.resized = false;
        let size = [self.columns.to_le_bytes(), self.rows.to_le_bytes()].concat();
        self.post(CONSOLE, RESIZE, 0, &size);
    }

    /// Handles a control message of the driver (section 5.3.6.2). Unknown ports and events
    /// that only the device may send are ignored.
    fn receive_control(&mut self, message: [u8; CONTROL_BYTES]) {
        let [p0, p1, p2, p3, e0, e1, v0, v1] = message;
        let port = u32::from_le_bytes([p0, p1, p2, p3]) as usize;
        let event = u16::from_le_bytes([e0, e1]);
        let value = u16::from_le_bytes([v0, v1]);
        match event {
            DEVICE_READY if value == 1 => {
                self.post(CONSOLE, PORT_ADD, 1, &[]);
                self.post(AGENT, PORT_ADD, 1, &[]);
            }
            PORT_READY if value == 1 && port == CONSOLE => {
                self.post(CONSOLE, CONSOLE_PORT, 1, &[]);
                self.post(CONSOLE, PORT_OPEN, 1, &[]);
                self.post_size();
            }
            PORT_READY if value == 1 && port == AGENT => {
                self.post(AGENT, PORT_NAME, 1, AGENT_PORT.as_bytes());
                self.post(AGENT, PORT_OPEN, 1, &[]);
            }
            PORT_OPEN => {
                if let Some(port) = self.ports.get_mut(port) {
                    port.guest_open = value != 0;
                }
            }
            _ => {}
        }
    }

    /// Serves the control queues.
    fn control<H: Host>(
        &mut self,
        to_driver: &mut Queue,
        from_driver: &mut Queue,
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault> {
        for _ in 0..from_driver.available(env.ram)? {
            // One message of the driver causes at most three of ours.
            if self.outbox.len() + 3 > MAX_OUTBOX {
                break;
            }
            from_driver.pop(env.ram, &mut self.chain)?;
            let mut message = [0; CONTROL_BYTES];
            if self.chain.read(env.ram, 0, &mut message) == CONTROL_BYTES {
                self.receive_control(message);
            }
            from_driver.push(env.ram, self.chain.head, 0)?;
        }
        if self.resized && self.ports[CONSOLE].guest_open && self.outbox.len() < MAX_OUTBOX {
            self.post_size();
        }
        if self.outbox.is_empty() {
            return Ok(());
        }
        for _ in 0..to_driver.available(env.ram)? {
            let Some(message) = self.outbox.pop_front() else {
                break;
            };
            to_driver.pop(env.ram, &mut self.chain)?;
            let written = self.chain.write(env.ram, 0, &message);
            to_driver.push(env.ram, self.chain.head, written)?;
        }
        Ok(())
    }
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

impl Device for Console {
    const ID: u32 = 3;
    const QUEUE_SIZES: &'static [u16] = &[QUEUE_SIZE; QUEUES];

    fn features(&self) -> u64 {
        F_SIZE | F_MULTIPORT
    }

    fn config(&self) -> &[u8] {
        &self.config
    }

    fn start(&mut self, features: u64) {
        self.multiport = features & F_MULTIPORT != 0;
        // Without the control queue there is one port, always open.
        self.ports[CONSOLE].guest_open = !self.multiport;
    }

    fn reset(&mut self) {
        self.multiport = false;
        self.ports = [Port::default(), Port::default()];
        self.outbox.clear();
        self.resized = true;
    }

    fn wants_service(&self, channels: &Channels) -> bool {
        let input = !channels.console.input.is_empty() || !channels.agent.input.is_empty();
        input || self.resized || self.held_back()
    }

    fn serve<H: Host>(
        &mut self,
        queues: &mut [Queue],
        env: &mut Env<'_, H>,
    ) -> Result<(), QueueFault> {
        let [in0, out0, to_driver, from_driver, in1, out1] = queues else {
            return Ok(());
        };
        if self.multiport {
            self.control(to_driver, from_driver, env)?;
            let [_, agent] = &mut self.ports;
            let channel = &mut env.channels.agent;
            agent.receive(in1, env.ram, &mut channel.input)?;
            if agent.send(out1, env.ram, &mut channel.output)? {
                env.channels.request_early_exit();
            }
        }
        let [console, _] = &mut self.ports;
        let channel = &mut env.channels.console;
        console.receive(in0, env.ram, &mut channel.input)?;
        let was_held_back = console.held_back();
        let sent = console.send(out0, env.ram, &mut channel.output)?;
        // Console output can wait for the end of a budget, unless the guest waits for it.
        // The request repeats only after the embedder has taken some output: one that takes
        // none must not keep the guest from running.
        if console.held_back() && (sent || !was_held_back) {
            env.channels.request_early_exit();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
