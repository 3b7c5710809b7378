//! What every answer has, and the shape of refusals.

use super::shapes::Field;

answers! {
    /// What identifies an answer.
    ResponseContext {
        /// The request's ID, for logs and the cloud's support.
        request_id: String,
    }

    /// The answer of actions that have nothing to say, and of any action that was asked for a dry run.
    Done {
        /// The request's ID.
        response_context: ResponseContext,
    }

    /// A refusal.
    ErrorAnswer {
        /// The reasons, at least one.
        errors: Vec<ErrorEntry>,
        /// The request's ID.
        response_context: ResponseContext,
    }

    /// A reason for a refusal.
    ErrorEntry {
        /// Its number, written as text.
        code: String,
        /// Its name.
        #[serde(rename = "Type")]
        kind: String,
        /// What it is about.
        details: String,
    }
}

impl Field for ResponseContext {
    fn is_unset(&self) -> bool {
        self.request_id.is_empty()
    }
}
