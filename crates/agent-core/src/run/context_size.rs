//! How full the model's context is, without counting the whole history at every step.

/// Tokens in the context: what the provider reported for the last call, plus an estimate of what
/// was added since (`spec/llm.md` §11).
#[derive(Debug, Default)]
pub(crate) struct ContextSize {
    reported: u64,
    estimated: u64,
}

impl ContextSize {
    /// Something was added.
    pub(crate) fn add(&mut self, tokens: u64) {
        self.estimated += tokens;
    }

    /// The provider counted everything up to and with the reply.
    pub(crate) fn reported(&mut self, prompt_and_reply: u64) {
        self.reported = prompt_and_reply;
        self.estimated = 0;
    }

    /// The context was replaced by one of so many tokens.
    pub(crate) fn replaced(&mut self, tokens: u64) {
        self.reported = 0;
        self.estimated = tokens;
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.reported + self.estimated
    }
}
