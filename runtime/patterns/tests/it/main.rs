//! The parts in turns of agents, on a host with a store in a file.

mod approval;
mod interrupt;
mod missed;
mod response;
mod support;
mod tools;
mod trackers;
