//! Network of a test: names and addresses by a table, with a note of what was
//! asked for.

use a99_capabilities::BoxFuture;
use a99_core::json::{Document, Limits};
use a99_core::value::Value;
use a99_http::{BoxStream, Dial, FetchError, FetchLimits, HttpFetch, Resolve};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpStream;

/// Where `good.test` is.
pub(crate) const PUBLIC: &str = "93.184.216.34";

#[derive(Default)]
struct State {
    names: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    otherwise: Mutex<Option<IpAddr>>,
    ports: Mutex<HashMap<SocketAddr, u16>>,
    asked: Mutex<Vec<String>>,
    dialed: Mutex<Vec<SocketAddr>>,
}

/// The table.
#[derive(Clone, Default)]
pub(crate) struct TestNet(Arc<State>);

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

impl TestNet {
    /// `good.test` at [`PUBLIC`], whose port 80 is served by `port`.
    pub(crate) fn good(port: u16) -> TestNet {
        let net = TestNet::default();
        net.name("good.test", &[PUBLIC]).at(PUBLIC, 80, port)
    }

    /// A name has these addresses; of several tables for one name, each answers
    /// once and the last one from then on.
    pub(crate) fn name(self, name: &str, addresses: &[&str]) -> TestNet {
        let addresses = addresses.iter().map(|text| ip(text)).collect();
        let mut names = self.0.names.lock().unwrap();
        names.entry(name.to_owned()).or_default().push(addresses);
        drop(names);
        self
    }

    /// Every other name has this address.
    pub(crate) fn otherwise(self, address: &str) -> TestNet {
        *self.0.otherwise.lock().unwrap() = Some(ip(address));
        self
    }

    /// An address and port are served by a port of this machine.
    pub(crate) fn at(self, address: &str, port: u16, served: u16) -> TestNet {
        let to = SocketAddr::new(ip(address), port);
        self.0.ports.lock().unwrap().insert(to, served);
        self
    }

    /// The names that were looked up.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.0.asked.lock().unwrap().clone()
    }

    /// The addresses that were connected to, or would have been.
    pub(crate) fn dialed(&self) -> Vec<SocketAddr> {
        self.0.dialed.lock().unwrap().clone()
    }

    /// A fetch in this network, with short limits of time.
    pub(crate) fn fetch(&self, policy: &str) -> HttpFetch {
        self.fetch_within(policy, limits())
    }

    pub(crate) fn fetch_within(&self, policy: &str, limits: FetchLimits) -> HttpFetch {
        self.builder(policy).limits(limits).build().unwrap()
    }

    pub(crate) fn builder(&self, policy: &str) -> a99_http::Builder {
        HttpFetch::builder()
            .policy(policy.parse().unwrap())
            .limits(limits())
            .resolver(self.clone())
            .dialer(self.clone())
    }
}

/// Long enough for a busy machine.
pub(crate) fn limits() -> FetchLimits {
    FetchLimits {
        timeout: Duration::from_secs(20),
        ..FetchLimits::default()
    }
}

impl Resolve for TestNet {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.0.asked.lock().unwrap().push(name.to_owned());
        let mut names = self.0.names.lock().unwrap();
        let found = match names.get_mut(name) {
            Some(tables) if tables.len() > 1 => Some(tables.remove(0)),
            Some(tables) => tables.first().cloned(),
            None => self
                .0
                .otherwise
                .lock()
                .unwrap()
                .map(|address| vec![address]),
        };
        let found = found.ok_or_else(|| io::ErrorKind::NotFound.into());
        Box::pin(std::future::ready(found))
    }
}

impl Dial for TestNet {
    fn dial(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<BoxStream>> {
        self.0.dialed.lock().unwrap().push(to);
        let served = self.0.ports.lock().unwrap().get(&to).copied();
        Box::pin(async move {
            let port = served.ok_or(io::ErrorKind::ConnectionRefused)?;
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
            Ok(Box::new(stream) as BoxStream)
        })
    }
}

/// A value from JSON.
pub(crate) fn value(json: &str) -> Value {
    let document = Document::parse(json, &Limits::default()).unwrap();
    document.to_value(document.root())
}

/// Fetches without options.
pub(crate) async fn get(fetch: &HttpFetch, url: &str) -> Result<Value, FetchError> {
    fetch.request(&url.into(), &Value::Undefined).await
}

/// Fetches with options.
pub(crate) async fn with(fetch: &HttpFetch, url: &str, options: &str) -> Result<Value, FetchError> {
    fetch.request(&url.into(), &value(options)).await
}

/// The code of what failed.
pub(crate) fn code(answer: Result<Value, FetchError>) -> &'static str {
    match answer {
        Ok(value) => panic!("no error: {}", value.to_json_string()),
        Err(error) => error.code().name(),
    }
}
