//! The exporter against a collector: a small HTTP server on the loopback.

mod away;
mod collector;
mod traces;
