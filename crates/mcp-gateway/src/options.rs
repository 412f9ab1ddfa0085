//! The limits and settings of a gateway, each with its default.

use std::collections::BTreeMap;
use std::time::Duration;

/// How a [`Gateway`](crate::Gateway) behaves. Every limit that it knows is named here.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// How long a server may take from its start to the answer of `initialize`. One that ends before is
    /// refused at once.
    pub start_timeout: Duration,
    /// How long a server over HTTP that cannot be reached, or refuses, is tried again when a
    /// configuration is applied; no longer than `start_timeout`.
    pub reach_timeout: Duration,
    /// How long one forwarded request may take, progress or not.
    pub call_timeout: Duration,
    /// How long one server may take to answer a list; a slower one keeps its last known list.
    pub list_timeout: Duration,
    /// How long a client may take to answer a request of a server (sampling, elicitation, roots).
    pub client_answer_timeout: Duration,
    /// How long calls of different clients on one server wait for each other so that what the server
    /// asks can only be for one of them; after that such a question is refused.
    pub question_patience: Duration,
    /// How long calls in flight may go on after their configuration was replaced.
    pub drain_timeout: Duration,
    /// How long a server gets at each step of its end: after its stdin is closed, and after TERM.
    pub stop_grace: Duration,
    /// How long `apply` waits for other configurations to finish before it gives up.
    pub apply_queue_timeout: Duration,
    /// Connecting to a server over HTTP.
    pub http_connect_timeout: Duration,
    /// Silence between two pieces of an answer over HTTP.
    pub http_read_timeout: Duration,
    /// The longest message, in bytes, that a server may send.
    pub max_message_bytes: usize,
    /// The largest result, in bytes, that is passed on to a client.
    pub max_result_bytes: usize,
    /// How many pages a server's list may have.
    pub max_list_pages: usize,
    /// The largest request body, in bytes, that a client may send.
    pub max_body_bytes: usize,
    /// How many requests one server may have in flight.
    pub max_calls_per_server: usize,
    /// How many requests one client session may have in flight.
    pub max_calls_per_session: usize,
    /// How many calls of clients without a session may wait for their clients to come back with
    /// what a server asked.
    pub max_waiting_calls: usize,
    /// How many client sessions may exist, and how many streams of clients without one.
    pub max_sessions: usize,
    /// When a session without requests, streams and calls in flight ends.
    pub session_idle: Duration,
    /// How long the events of a finished answer stay available to a client that lost its connection.
    pub resume_window: Duration,
    /// How many bytes of events one stream keeps for a client that reads slowly or has gone away,
    /// and the ended streams of one session together.
    pub max_stream_bytes: usize,
    /// How long an answer may stay silent before its event stream is opened: a result that comes
    /// sooner and is the first message is answered as plain JSON.
    pub plain_answer_wait: Duration,
    /// The interval of comment lines on a silent event stream.
    pub keep_alive: Duration,
    /// How many lines of a server's stderr are kept for error messages.
    pub stderr_lines: usize,
    /// The longest wait between two attempts to start a server that fails to start.
    pub max_restart_delay: Duration,
    /// Names besides the loopback ones that `Host` and `Origin` may carry; `*` allows all.
    pub allowed_hosts: Vec<String>,
    /// Variables that every stdio server gets, such as `FILESYSTEM_ROOT` and `APPS_DATA_ROOT`.
    /// The configuration of a server wins over them.
    pub environment: BTreeMap<String, String>,
    /// Rewrites tool schemas as the Python reference does (`spec/environment.md` §5.6): enums with
    /// values that are no strings are removed and local references are replaced by their target.
    pub schema_cleanup: bool,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            start_timeout: Duration::from_secs(300),
            reach_timeout: Duration::from_secs(60),
            call_timeout: Duration::from_secs(3600),
            list_timeout: Duration::from_secs(30),
            client_answer_timeout: Duration::from_secs(600),
            question_patience: Duration::from_secs(3),
            drain_timeout: Duration::from_secs(10),
            stop_grace: Duration::from_secs(1),
            apply_queue_timeout: Duration::from_secs(300),
            http_connect_timeout: Duration::from_secs(30),
            http_read_timeout: Duration::from_secs(300),
            max_message_bytes: 128 * MIB,
            max_result_bytes: 96 * MIB,
            max_list_pages: 1000,
            max_body_bytes: 64 * MIB,
            max_calls_per_server: 256,
            max_calls_per_session: 256,
            max_waiting_calls: 256,
            max_sessions: 1024,
            session_idle: Duration::from_secs(3600),
            resume_window: Duration::from_secs(60),
            max_stream_bytes: 128 * MIB,
            plain_answer_wait: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            stderr_lines: 50,
            max_restart_delay: Duration::from_secs(10),
            allowed_hosts: Vec::new(),
            environment: BTreeMap::new(),
            schema_cleanup: false,
        }
    }
}
