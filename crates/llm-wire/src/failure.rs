//! From refusals to errors: by status, then by code and type, then by text.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use jiff::Timestamp;
use serde_json::Value;

use crate::error::{ChatError, ChatErrorKind};

/// Most characters of a provider's message that are kept.
const LONGEST_MESSAGE: usize = 2000;

/// Texts that mean an overflow of the context window, in lower case (`spec/llm.md` §7.1, §8).
const CONTEXT_TEXTS: &[&str] = &[
    "token count exceeds",
    "context_length_exceeded",
    "context length exceeded",
    "maximum context length",
    "maximum number of tokens",
    "prompt is too long",
    "input too long",
    "input is too long",
    "exceeds the model's maximum context",
    "exceeds the context window",
    "exceed context limit",
];

/// Texts that mean a refusal for the content.
const CONTENT_TEXTS: &[&str] = &[
    "content management policy",
    "content policy",
    "content filtering policy",
    "content_filter",
    "the response was filtered",
    "contentpolicyviolation",
    "responsible ai",
    "violating our usage policy",
];

/// Texts that mean an empty account.
const CREDIT_TEXTS: &[&str] = &[
    "exceeded your current quota",
    "credit balance is too low",
    "insufficient credits",
    "budget has been exceeded",
    "too many tokens per day",
];

/// Headers with the id of a request, by provider.
const REQUEST_IDS: &[&str] = &[
    "x-request-id",
    "request-id",
    "apim-request-id",
    "x-amzn-requestid",
    "x-litellm-call-id",
];

/// What a refusal says, as far as it can be read.
#[derive(Debug, Default)]
struct Said {
    message: String,
    /// `code` and `type` together, lower case, separated by a space.
    words: String,
    /// A number in the place of `code`, which some servers send.
    number: Option<u16>,
    retry_delay: Option<Duration>,
    /// What Google says about a quota.
    quota: Option<Quota>,
    /// The id of the request, which Anthropic also writes into the body.
    request_id: Option<String>,
}

/// A quota of Google's that is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quota {
    /// It fills up within minutes.
    Short,
    /// That of the day, or there is none at all.
    Spent,
}

/// The error for an answer with the status `status`.
pub fn from_answer(
    provider: &str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> ChatError {
    let mut said = match serde_json::from_slice::<Value>(body) {
        Ok(value) => read(&value),
        Err(_) => Said {
            message: format!(
                "status {status}, and the body is no JSON: `{}`",
                clipped(String::from_utf8_lossy(body).trim(), 200)
            ),
            ..Said::default()
        },
    };
    if let Some(exception) = exception(headers) {
        said.words.push(' ');
        said.words.push_str(&exception);
    }
    let mut error = ChatError::new(kind(status.as_u16(), &said), provider, "");
    error.message = if said.message.is_empty() {
        format!("status {status} without a message")
    } else {
        clipped(&said.message, LONGEST_MESSAGE)
    };
    error.status = Some(status.as_u16());
    error.retry_after = retry_after(headers, Timestamp::now()).or(said.retry_delay);
    error.request_id = request_id(headers).or(said.request_id);
    error.final_word = headers
        .get("x-should-retry")
        .is_some_and(|value| value == "false");
    error
}

/// The kind of AWS's errors, which stands in a header: `ThrottlingException:http://…`.
fn exception(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("x-amzn-errortype")?.to_str().ok()?;
    Some(value.split(':').next().unwrap_or(value).to_lowercase())
}

/// The error that stands in the body of an answer with a good status, if one does.
pub fn inside_success(provider: &str, headers: &HeaderMap, answer: &Value) -> Option<ChatError> {
    let has_choices = answer
        .get("choices")
        .and_then(Value::as_array)
        .is_some_and(|choices| !choices.is_empty());
    let inner = answer
        .pointer("/choices/0/error")
        .filter(|error| error.is_object());
    let outer = answer
        .get("error")
        .filter(|error| !error.is_null() && !has_choices);
    let value = inner.or(outer)?;
    let said = Said {
        request_id: read(answer).request_id,
        ..read(value)
    };
    let status = said
        .number
        .filter(|number| (400..600).contains(number))
        .or_else(|| status_of_words(&said.words));
    let kind = match status {
        Some(status) => kind(status, &said),
        None => by_words_and_text(&said).unwrap_or(ChatErrorKind::MalformedReply),
    };
    let message = format!("an error under a good status: {}", said.message);
    let mut error = ChatError::new(kind, provider, clipped(&message, LONGEST_MESSAGE));
    error.status = status;
    error.retry_after = retry_after(headers, Timestamp::now()).or(said.retry_delay);
    error.request_id = request_id(headers).or(said.request_id);
    Some(error)
}

/// The provider's id of the request.
pub fn request_id(headers: &HeaderMap) -> Option<String> {
    REQUEST_IDS
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .map(|id| clipped(id, 200))
}

fn read(body: &Value) -> Said {
    // Google wraps its errors into an array at some addresses.
    let body = match body {
        Value::Array(list) if list.len() == 1 => &list[0],
        other => other,
    };
    let error = body
        .get("error")
        .filter(|error| !error.is_null())
        .unwrap_or(body);
    let text = |key: &str| error.get(key).and_then(Value::as_str);
    let message = error
        .as_str()
        .or_else(|| text("message"))
        .or_else(|| text("Message"))
        .or_else(|| text("detail"))
        .map_or_else(|| error.to_string(), str::to_owned);
    let filtered = filtered(error);
    let message = if filtered.is_empty() {
        message
    } else {
        format!("{message} (filtered for {})", filtered.join(", "))
    };
    let details = error.get("details").and_then(Value::as_array);
    let details = details.map(Vec::as_slice).unwrap_or_default();
    let reasons = details
        .iter()
        .filter_map(|detail| detail.get("reason")?.as_str());
    let words: Vec<&str> = ["code", "type", "status"]
        .into_iter()
        .filter_map(text)
        .chain(reasons)
        .collect();
    let number = error.get("code").and_then(|code| match code {
        Value::Number(number) => u16::try_from(number.as_u64()?).ok(),
        Value::String(digits) => digits.parse().ok(),
        _ => None,
    });
    let retry_delay = details.iter().find_map(|detail| {
        let seconds = detail.get("retryDelay")?.as_str()?.strip_suffix('s')?;
        Duration::try_from_secs_f64(seconds.parse().ok()?).ok()
    });
    let request_id = body.get("request_id").and_then(Value::as_str);
    Said {
        request_id: request_id.map(|id| clipped(id, 200)),
        message,
        words: words.join(" ").to_lowercase(),
        number,
        retry_delay,
        quota: (text("status") == Some("RESOURCE_EXHAUSTED")).then(|| quota(details)),
    }
}

/// Which quota the details of an error of Google's are about.
fn quota(details: &[Value]) -> Quota {
    let violations = details
        .iter()
        .filter_map(|detail| detail.get("violations")?.as_array())
        .flatten();
    let is_spent = |violation: &Value| {
        let said = |key: &str| violation.get(key).and_then(Value::as_str);
        said("quotaId").is_some_and(|id| id.contains("PerDay")) || said("quotaValue") == Some("0")
    };
    if violations.into_iter().any(is_spent) {
        Quota::Spent
    } else {
        Quota::Short
    }
}

/// What Azure's filter found, such as `hate (high)`.
fn filtered(error: &Value) -> Vec<String> {
    let inner = error.get("innererror").or_else(|| error.get("inner_error"));
    let results = ["content_filter_result", "content_filter_results"];
    let result =
        inner.and_then(|inner| results.iter().find_map(|key| inner.get(*key)?.as_object()));
    result
        .into_iter()
        .flatten()
        .filter(|(_, found)| found.get("filtered") == Some(&Value::Bool(true)))
        .map(
            |(name, found)| match found.get("severity").and_then(Value::as_str) {
                Some(severity) => format!("{name} ({severity})"),
                None => name.clone(),
            },
        )
        .collect()
}

fn status_of_words(words: &str) -> Option<u16> {
    let status = |word: &str| match word {
        "server_error" | "api_error" | "internal_error" | "internal_server_error" => Some(500),
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "insufficient_quota"
        | "requests"
        | "tokens" => Some(429),
        "overloaded_error" | "service_unavailable" | "serviceunavailableexception" => Some(503),
        "throttlingexception" => Some(429),
        "internalserverexception" | "modelstreamerrorexception" => Some(500),
        "validationexception" => Some(400),
        "timeout" | "timeout_error" | "modeltimeoutexception" => Some(504),
        "invalid_request_error" => Some(400),
        "authentication_error" | "invalid_api_key" => Some(401),
        "permission_error" => Some(403),
        "not_found_error" | "model_not_found" => Some(404),
        // Codes of failed responses: bad pictures above all.
        word if word.starts_with("invalid_") || word.contains("image") => Some(400),
        _ => None,
    };
    words.split(' ').find_map(status)
}

fn kind(status: u16, said: &Said) -> ChatErrorKind {
    use ChatErrorKind::{
        Auth, BadRequest, ContextWindow, Credit, NotFound, Overloaded, RateLimit, Server, Timeout,
        TooLarge,
    };
    let special = by_words_and_text(said);
    match status {
        // A lack of credit is told under many statuses, and no other word is used for it.
        402 => Credit,
        401 => Auth,
        403 => special.unwrap_or(Auth),
        404 | 405 | 300..=399 => NotFound,
        408 => Timeout,
        413 => match special {
            Some(ContextWindow) => ContextWindow,
            _ => TooLarge,
        },
        // Google says the same words of all its quotas.
        429 if said.quota == Some(Quota::Short) => RateLimit,
        429 if said.quota == Some(Quota::Spent) => Credit,
        429 => match special {
            Some(Credit) => Credit,
            // One request above the whole limit: no waiting helps.
            _ if said.message.to_lowercase().contains("request too large") => TooLarge,
            // Anthropic tells of overload under this status too.
            _ if said.words.contains("overloaded") => Overloaded,
            // AWS's word for a model that is still being loaded.
            _ if said.words.contains("modelnotready") => Overloaded,
            _ => RateLimit,
        },
        400 | 422 => special.unwrap_or(BadRequest),
        409 | 424 | 425 | 499 => Server,
        500..=599 => match special {
            // Some servers report the overflow as their own failure.
            Some(ContextWindow) => ContextWindow,
            _ if status == 503 || status == 529 || said.words.contains("overloaded") => Overloaded,
            _ if status == 504 => Timeout,
            _ => Server,
        },
        _ => special.unwrap_or(BadRequest),
    }
}

/// What code, type and, when these say nothing, text tell about a refused request.
fn by_words_and_text(said: &Said) -> Option<ChatErrorKind> {
    let by_word = said.words.split(' ').find_map(|word| match word {
        "context_length_exceeded" | "context_window_exceeded" => Some(ChatErrorKind::ContextWindow),
        "insufficient_quota"
        | "billing_error"
        | "budget_exceeded"
        | "billing_hard_limit_reached"
        | "servicequotaexceededexception" => Some(ChatErrorKind::Credit),
        "content_policy_violation"
        | "content_filter"
        | "invalid_prompt"
        | "responsibleaipolicyviolation" => Some(ChatErrorKind::ContentFilter),
        "unsupported_parameter" | "unsupported_value" | "unknown_parameter" => {
            Some(ChatErrorKind::UnsupportedParameter)
        }
        "string_above_max_length" | "array_above_max_length" | "request_too_large" => {
            Some(ChatErrorKind::TooLarge)
        }
        "invalid_api_key"
        | "authentication_error"
        | "api_key_invalid"
        | "expiredtokenexception"
        | "unrecognizedclientexception"
        | "invalidsignatureexception" => Some(ChatErrorKind::Auth),
        "model_not_found" => Some(ChatErrorKind::NotFound),
        _ => None,
    });
    if by_word.is_some() {
        return by_word;
    }
    let text = said.message.to_lowercase();
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    if has(CONTEXT_TEXTS) {
        Some(ChatErrorKind::ContextWindow)
    } else if has(CREDIT_TEXTS) {
        Some(ChatErrorKind::Credit)
    } else if has(CONTENT_TEXTS) {
        Some(ChatErrorKind::ContentFilter)
    } else if text.contains("api key not valid") {
        Some(ChatErrorKind::Auth)
    } else if text.contains("request payload size exceeds") {
        Some(ChatErrorKind::TooLarge)
    } else {
        None
    }
}

/// How long the server asks to wait: `retry-after-ms`, else `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |name: &str| {
        text(name)?
            .parse::<f64>()
            .ok()
            .filter(|number| *number >= 0.0)
    };
    if let Some(milliseconds) = number("retry-after-ms") {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    if let Some(seconds) = number("retry-after") {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = jiff::fmt::rfc2822::parse(text("retry-after")?).ok()?;
    Some(Duration::try_from(date.timestamp().duration_since(now)).unwrap_or_default())
}

/// The first `limit` characters of `text`.
pub fn clipped(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| ((*name).parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    fn of(status: u16, body: &str) -> ChatErrorKind {
        from_answer(
            "p",
            StatusCode::from_u16(status).unwrap(),
            &HeaderMap::new(),
            body.as_bytes(),
        )
        .kind
    }

    #[test]
    fn waits_are_read_in_all_spellings() {
        let now: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let wait = |pairs: &[(&'static str, &'static str)]| retry_after(&headers(pairs), now);
        assert_eq!(
            wait(&[("retry-after-ms", "1500"), ("retry-after", "9")]),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            wait(&[("retry-after", "2.5")]),
            Some(Duration::from_millis(2500))
        );
        assert_eq!(
            wait(&[("retry-after", "Fri, 02 Jan 2026 03:05:05 GMT")]),
            Some(Duration::from_secs(60))
        );
        // A date that is over means: now.
        assert_eq!(
            wait(&[("retry-after", "Thu, 01 Jan 2026 00:00:00 GMT")]),
            Some(Duration::ZERO)
        );
        assert_eq!(wait(&[("retry-after", "-3")]), None);
        assert_eq!(wait(&[("retry-after", "soon")]), None);
    }

    #[test]
    fn odd_bodies_are_read() {
        assert_eq!(
            of(
                400,
                r#"[{"error": {"code": 400, "message": "API key not valid."}}]"#
            ),
            ChatErrorKind::Auth
        );
        assert_eq!(
            of(400, r#"{"detail": "prompt is too long: 5 tokens"}"#),
            ChatErrorKind::ContextWindow
        );
        assert_eq!(
            of(
                400,
                r#"{"error": "The input length and `max_tokens` exceed context limit"}"#
            ),
            ChatErrorKind::ContextWindow
        );
        assert_eq!(of(502, "<html>bad gateway</html>"), ChatErrorKind::Server);
        assert_eq!(of(429, ""), ChatErrorKind::RateLimit);
        assert_eq!(of(402, "{}"), ChatErrorKind::Credit);
    }

    #[test]
    fn a_delay_in_the_body_counts() {
        let body = br#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "m",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}]}}"#;
        let error = from_answer("p", StatusCode::TOO_MANY_REQUESTS, &HeaderMap::new(), body);
        assert_eq!(error.retry_after, Some(Duration::from_millis(2500)));
        assert_eq!(error.kind, ChatErrorKind::RateLimit);
    }

    #[test]
    fn quotas_of_the_minute_come_back_and_those_of_the_day_do_not() {
        let quota = |id: &str, value: &str| {
            let body = serde_json::json!({"error": {
                "code": 429, "status": "RESOURCE_EXHAUSTED",
                "message": "You exceeded your current quota, please check your plan and billing details.",
                "details": [{
                    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{"quotaId": id, "quotaValue": value}]
                }]
            }});
            of(429, &body.to_string())
        };
        let minute = "GenerateRequestsPerMinutePerProjectPerModel";
        assert_eq!(quota(minute, "10"), ChatErrorKind::RateLimit);
        assert_eq!(quota(minute, "0"), ChatErrorKind::Credit);
        assert_eq!(
            quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "50"),
            ChatErrorKind::Credit
        );
        // Vertex AI gives no details.
        let plain = r#"{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Resource exhausted."}}"#;
        assert_eq!(of(429, plain), ChatErrorKind::RateLimit);
    }

    #[test]
    fn a_number_in_an_error_under_a_good_status_is_its_status() {
        let answer = serde_json::json!({"error": {"code": 429, "message": "slow down"}});
        let error = inside_success("p", &HeaderMap::new(), &answer).unwrap();
        assert_eq!(
            (error.kind, error.status),
            (ChatErrorKind::RateLimit, Some(429))
        );
        let fine = serde_json::json!({"error": null, "choices": []});
        assert!(inside_success("p", &HeaderMap::new(), &fine).is_none());
    }

    #[test]
    fn long_messages_are_cut() {
        assert_eq!(clipped("äöü", 2), "äö…");
        assert_eq!(clipped("äöü", 3), "äöü");
    }
}
