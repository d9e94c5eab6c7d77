//! A collector that is away or slow.

use crate::collector::{Collector, Mode};
use a99_runtime_otlp::{Exporter, Options};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tracing::info_span;
use tracing::subscriber::with_default;
use tracing_subscriber::Registry;
use tracing_subscriber::layer::SubscriberExt;

type Warnings = Arc<Mutex<Vec<String>>>;

fn exporter(url: &str) -> (Exporter, Warnings) {
    let warnings = Warnings::default();
    let heard = Arc::clone(&warnings);
    let options = Options::new("test", move |warning| {
        heard.lock().expect("warnings").push(warning.to_owned());
    });
    let options = options.endpoint(url);
    (Exporter::start(options).expect("an exporter"), warnings)
}

/// Makes spans as turns do.
fn spans(exporter: &Exporter, count: usize) -> Duration {
    let began = Instant::now();
    with_default(Registry::default().with(exporter.layer()), || {
        for n in 0..count {
            drop(info_span!(target: "a99_runtime", "turn", a99.event = n));
        }
        // Those of libraries are not exported.
        drop(info_span!(target: "h2", "frame"));
    });
    began.elapsed()
}

fn heard(warnings: &Warnings) -> Vec<String> {
    warnings.lock().expect("warnings").clone()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The spans that wait by default, and those of a request under way.
const MOST: usize = 2_048 + 512;

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_hangs_delays_nobody_and_fills_no_memory() {
    const SPANS: usize = 100_000;
    let collector = Collector::start(Mode::Hangs);
    let (exporter, _) = exporter(&collector.url);
    let took = spans(&exporter, SPANS);
    assert!(took < Duration::from_secs(20), "{took:?}");
    collector.turn(Mode::Takes);
    exporter.stop().await;
    let kept = collector.spans();
    assert!((512..=MOST).contains(&kept.len()), "{} spans", kept.len());
    assert!(kept.iter().all(|span| span.name == "turn"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_outage_is_one_warning() {
    let collector = Collector::start(Mode::Refuses);
    let (exporter, warnings) = exporter(&collector.url);
    for _ in 0..3 {
        spans(&exporter, 1_000);
        until("the first warning", || !heard(&warnings).is_empty()).await;
    }
    let first = heard(&warnings);
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(
        first[0].contains(&collector.url) && first[0].contains("503"),
        "{first:?}"
    );
    collector.turn(Mode::Takes);
    spans(&exporter, 1_000);
    exporter.stop().await;
    let all = heard(&warnings);
    assert_eq!(all.len(), 2, "{all:?}");
    assert!(all[1].contains("again"), "{all:?}");
    assert!(!collector.spans().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_port_is_a_warning_and_a_bad_address_an_error() {
    let free = TcpListener::bind("127.0.0.1:0").expect("a listener");
    let url = format!("http://{}", free.local_addr().expect("an address"));
    drop(free);
    let (exporter, warnings) = exporter(&url);
    spans(&exporter, 10);
    let began = Instant::now();
    exporter.stop().await;
    assert!(began.elapsed() < Duration::from_secs(15), "it ends");
    let all = heard(&warnings);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(
        all[0].contains(&url) && all[0].contains("agents go on"),
        "{all:?}"
    );
    for bad in ["", "127.0.0.1:4318", "ftp://127.0.0.1", "http://a b"] {
        let options = Options::new("test", |_| ()).endpoint(bad);
        assert!(Exporter::start(options).is_err(), "{bad}");
    }
}
