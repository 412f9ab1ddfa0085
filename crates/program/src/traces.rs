//! Spans of agents, sent to an OpenTelemetry collector.
//!
//! The standard variables say whether and where: `OTEL_EXPORTER_OTLP_ENDPOINT` or its variant for
//! traces turns it on, `OTEL_EXPORTER_OTLP_PROTOCOL` is `http/protobuf` (the default) or `http/json`,
//! `OTEL_EXPORTER_OTLP_HEADERS` and `_TIMEOUT`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` and
//! `OTEL_SDK_DISABLED` are obeyed.

use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

/// What sends the spans of this process.
static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();

/// How long the end of the program waits for the last spans to be sent.
const LAST_SPANS: Duration = Duration::from_secs(5);

/// Where the variables ask for it, the layer that sends spans.
pub(crate) fn layer<S>() -> Option<impl Layer<S>>
where
    S: tracing::Subscriber + for<'span> LookupSpan<'span>,
{
    let provider = match provider() {
        Ok(provider) => provider?,
        Err(reason) => {
            crate::say(format_args!("warning: no spans are sent: {reason}"));
            return None;
        }
    };
    let tracer = provider.tracer(env!("CARGO_PKG_NAME"));
    // A second call finds the first provider, which stays.
    let _ = PROVIDER.set(provider);
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false);
    // Spans of HTTP libraries say nothing about agents.
    Some(layer.with_filter(filter_fn(|metadata| {
        metadata.is_span() && metadata.target().starts_with("agent_core")
    })))
}

fn provider() -> Result<Option<SdkTracerProvider>, String> {
    let disabled = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    let wanted = [
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "OTEL_EXPORTER_OTLP_ENDPOINT",
    ]
    .into_iter()
    .any(|name| set(name).is_some());
    if disabled || !wanted {
        return Ok(None);
    }
    let named = [
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        "OTEL_EXPORTER_OTLP_PROTOCOL",
    ]
    .into_iter()
    .find_map(|name| Some((name, set(name)?)));
    let protocol = match &named {
        None => Protocol::HttpBinary,
        Some((_, value)) if value == "http/protobuf" => Protocol::HttpBinary,
        Some((_, value)) if value == "http/json" => Protocol::HttpJson,
        Some((name, value)) => {
            return Err(format!(
                "`{name}` must be `http/protobuf` or `http/json`, got `{value}`"
            ));
        }
    };
    let exporter = SpanExporter::builder()
        .with_http()
        .with_protocol(protocol)
        .build()
        .map_err(|error| error.to_string())?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource());
    Ok(Some(provider.build()))
}

/// What the spans are about: the variables first, else the name of the program.
fn resource() -> Resource {
    let attributes = set("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
    let builder = Resource::builder();
    if set("OTEL_SERVICE_NAME").is_some() || attributes.contains("service.name=") {
        return builder.build();
    }
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(std::path::Path::file_name);
    let name = program.map_or_else(
        || "archipelago".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    );
    builder.with_service_name(name).build()
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Sends what is left. Spans that cannot be sent are nobody's failure.
pub(crate) fn end() {
    if let Some(provider) = PROVIDER.get()
        && let Err(error) = provider.shutdown_with_timeout(LAST_SPANS)
    {
        crate::say(format_args!(
            "warning: the last spans could not be sent: {error}"
        ));
    }
}
