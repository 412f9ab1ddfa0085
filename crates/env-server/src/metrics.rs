//! `/metrics`: what the environment did, in the text of Prometheus.
//!
//! | name | kind | labels |
//! | --- | --- | --- |
//! | `archipelago_http_requests_total` | counter | `method`, `route`, `status` |
//! | `archipelago_http_request_seconds` | histogram, until the answer begins | `route` |
//! | `archipelago_moved_bytes_total`, `archipelago_moved_files_total` | counter | `direction`, `peer` |
//! | `archipelago_transfer_seconds` | histogram | `direction`, `peer` |
//! | `archipelago_actions_total` | counter of the coordinator's actions | `type`, `status` |
//! | `archipelago_action_seconds` | histogram | `type` |
//! | `archipelago_servers` | gauge | |
//! | `archipelago_mcp_sessions` | gauge | |
//! | `archipelago_memory_peak_bytes` | gauge: of the container where it is known, else of the process | |

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::header;
use metrics::{counter, gauge, histogram};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

use crate::environment::Environment;

/// Bounds of the histograms, in seconds.
const BOUNDS: [f64; 12] = [
    0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 2.5, 5.0, 15.0, 60.0, 300.0, 1800.0,
];

/// After how many requests the samples of histograms are counted into their bounds. The recorder keeps every
/// sample until then, and nobody may ever ask for the page.
const REQUESTS_BETWEEN_UPKEEP: u64 = 1024;

/// The numbers of one environment.
pub(crate) struct Metrics {
    requests: AtomicU64,
    recorder: PrometheusRecorder,
    page: PrometheusHandle,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

/// Where data went.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Direction {
    Populate,
    Snapshot,
    /// What changed on the machine.
    Layer,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut builder = PrometheusBuilder::new();
        if let Ok(with_bounds) = PrometheusBuilder::new().set_buckets(&BOUNDS) {
            builder = with_bounds;
        }
        let recorder = builder.build_recorder();
        let page = recorder.handle();
        Self {
            requests: AtomicU64::new(0),
            recorder,
            page,
        }
    }

    /// One request whose answer has begun.
    pub(crate) fn request(
        &self,
        method: &http::Method,
        route: &'static str,
        status: u16,
        took: Duration,
    ) {
        // Anybody can make up a method; a label for each would have no end.
        let method = match method.as_str() {
            "GET" => "GET",
            "POST" => "POST",
            "DELETE" => "DELETE",
            "PUT" => "PUT",
            "PATCH" => "PATCH",
            "HEAD" => "HEAD",
            "OPTIONS" => "OPTIONS",
            _ => "other",
        };
        metrics::with_local_recorder(&self.recorder, || {
            let status = status.to_string();
            counter!("archipelago_http_requests_total", "method" => method, "route" => route, "status" => status)
                .increment(1);
            histogram!("archipelago_http_request_seconds", "route" => route).record(took);
        });
        let before = self.requests.fetch_add(1, Ordering::Relaxed);
        if before % REQUESTS_BETWEEN_UPKEEP == REQUESTS_BETWEEN_UPKEEP - 1 {
            self.page.run_upkeep();
        }
    }

    /// A transfer that is complete. `peer` is `client` or `s3`.
    pub(crate) fn moved(
        &self,
        direction: Direction,
        peer: &'static str,
        files: u64,
        bytes: u64,
        took: Duration,
    ) {
        let direction = match direction {
            Direction::Populate => "populate",
            Direction::Snapshot => "snapshot",
            Direction::Layer => "layer",
        };
        metrics::with_local_recorder(&self.recorder, || {
            counter!("archipelago_moved_files_total", "direction" => direction, "peer" => peer)
                .increment(files);
            counter!("archipelago_moved_bytes_total", "direction" => direction, "peer" => peer)
                .increment(bytes);
            histogram!("archipelago_transfer_seconds", "direction" => direction, "peer" => peer)
                .record(took);
        });
    }

    /// An action of the coordinator that has ended: `completed`, `failed` or `skipped`.
    pub(crate) fn action(&self, kind: &'static str, status: &'static str, took: Duration) {
        metrics::with_local_recorder(&self.recorder, || {
            counter!("archipelago_actions_total", "type" => kind, "status" => status).increment(1);
            histogram!("archipelago_action_seconds", "type" => kind).record(took);
        });
    }
}

/// `GET /metrics`.
pub(crate) async fn page(State(environment): State<Environment>) -> Response {
    let metrics = &environment.metrics;
    let state = environment.gateway.state();
    let memory = peak_memory();
    metrics::with_local_recorder(&metrics.recorder, || {
        gauge!("archipelago_servers").set(as_f64(state.servers.len() as u64));
        gauge!("archipelago_mcp_sessions").set(as_f64(state.sessions as u64));
        if let Some(memory) = memory {
            gauge!("archipelago_memory_peak_bytes").set(as_f64(memory));
        }
    });
    metrics.page.run_upkeep();
    let text = metrics.page.render();
    let kind = (
        header::CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    );
    ([kind], text).into_response()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "numbers of Prometheus are floating"
)]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

/// The most memory used so far.
fn peak_memory() -> Option<u64> {
    if let Ok(text) = std::fs::read_to_string("/sys/fs/cgroup/memory.peak")
        && let Ok(bytes) = text.trim().parse()
    {
        return Some(bytes);
    }
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}
