//! The client against the sample of answers.
