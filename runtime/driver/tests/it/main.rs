//! Agents on a host, with stores of files.

mod attacks;
mod bus;
mod calls;
mod delivery;
mod echo;
mod faults;
mod fencing;
mod hold;
mod hooks;
mod joined;
mod kept;
mod metrics;
#[cfg(unix)]
mod process;
mod programs;
mod replayed;
mod run;
mod script;
mod splice;
mod state;
mod support;
mod tables;
mod timers;
