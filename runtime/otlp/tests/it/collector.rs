//! A collector that keeps spans, and may refuse requests or keep them waiting.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

#[derive(Copy, Clone, PartialEq)]
pub(crate) enum Mode {
    Takes,
    Refuses,
    Hangs,
}

pub(crate) struct Collector {
    pub(crate) url: String,
    kept: Arc<Kept>,
}

struct Kept {
    mode: Mutex<Mode>,
    changed: Condvar,
    spans: Mutex<Vec<Span>>,
    services: Mutex<Vec<String>>,
}

impl Collector {
    pub(crate) fn start(mode: Mode) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let kept = Arc::new(Kept {
            mode: Mutex::new(mode),
            changed: Condvar::new(),
            spans: Mutex::default(),
            services: Mutex::default(),
        });
        let taken = Arc::clone(&kept);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&taken);
                thread::spawn(move || kept.serve(&stream));
            }
        });
        Collector { url, kept }
    }

    pub(crate) fn turn(&self, mode: Mode) {
        *self.kept.mode.lock().expect("the mode") = mode;
        self.kept.changed.notify_all();
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        self.kept.spans.lock().expect("the spans").clone()
    }

    pub(crate) fn services(&self) -> Vec<String> {
        self.kept.services.lock().expect("the services").clone()
    }
}

impl Kept {
    /// Serves the requests of a connection until its end.
    fn serve(&self, stream: &TcpStream) {
        let mut input = BufReader::new(stream);
        while let Some(body) = read(&mut input) {
            let mode = self.mode.lock().expect("the mode");
            let hangs = |mode: &mut Mode| *mode == Mode::Hangs;
            let mode = *self.changed.wait_while(mode, hangs).expect("the mode");
            let status = match mode {
                Mode::Takes => "200 OK",
                _ => "503 Service Unavailable",
            };
            if mode == Mode::Takes {
                let request = ExportTraceServiceRequest::decode(&*body).expect("spans");
                for of_service in request.resource_spans {
                    let attributes = of_service.resource.expect("a resource").attributes;
                    let name = attributes.iter().find(|a| a.key == "service.name");
                    let name = name.and_then(|a| a.value.clone()?.value);
                    if let Some(any_value::Value::StringValue(name)) = name {
                        self.services.lock().expect("the services").push(name);
                    }
                    let spans = of_service.scope_spans.into_iter().flat_map(|of| of.spans);
                    self.spans.lock().expect("the spans").extend(spans);
                }
            }
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            let mut output = stream;
            if output.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// The body of the next request.
fn read(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut length = 0;
    let mut line = String::new();
    assert!(input.read_line(&mut line).ok()? == 0 || line.starts_with("POST /v1/traces "));
    loop {
        line.clear();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let (name, value) = match line.trim_end().split_once(": ") {
            Some(field) => field,
            None => break,
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().expect("a length"),
            "content-type" => assert_eq!(value, "application/x-protobuf"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).ok()?;
    Some(body)
}
