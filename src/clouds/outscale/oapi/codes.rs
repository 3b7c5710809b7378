//! What the API's error codes mean to callers. Codes are numbers in text, and the status alone says little: what is not found is a 400.
//!
//! The ranges are those that Outscale's own Go SDK tells apart; single codes were seen in recorded traffic or in Outscale's public tests, or stand in its list of errors
//! (<https://docs.outscale.com/api-errors.html>).

use super::wire::ErrorEntry;

/// What a failed call means.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// The API asks for fewer calls, or joiner has sent as many as it allows itself. Nothing happened.
    Throttled,
    /// There is no machine of this type to be had there now. Nothing happened.
    SoldOut,
    /// The account may not have more. Nothing happened.
    Quota,
    /// What the request names does not exist, or not for this account.
    NotFound,
    /// It is in a state that does not allow this now.
    Conflict,
    /// The request is wrong and stays wrong.
    Invalid,
    /// The keys, the signature or the clock is not accepted.
    Keys,
    /// The keys are good and may not do this.
    Denied,
    /// It failed, and certainly without effect; worth another try later.
    Temporary,
    /// No answer, or one that leaves open whether it took effect.
    Unknown,
}

/// What the request names belongs to another account: no policy of one's own opens it.
pub(super) const FOREIGN: &str = "5";
/// The account is locked until Outscale's support opens it, after too many signatures that were refused.
pub(super) const LOCKED_FOR_GOOD: &str = "11";
/// The account is locked for a while, after too many signatures that were refused.
pub(super) const LOCKED_FOR_A_WHILE: &str = "13";
/// The account's API access rules know neither where the call came from nor its client certificate.
pub(super) const UNMATCHED_RULES: &str = "14";
/// There is no free address.
pub(super) const NO_ADDRESSES: u32 = 10_021;

/// Whether a code means that the whole account, or the whole platform, is throttled rather than one action.
pub(super) fn throttles_everything(code: &str) -> bool {
    matches!(code, "6" | "24")
}

/// What a refusal means; nothing where neither code nor status tells.
pub(super) fn class(status: u16, entries: &[ErrorEntry]) -> Option<Class> {
    entries.iter().find_map(|entry| of_entry(status, entry)).or_else(|| of_status(status))
}

fn of_entry(status: u16, entry: &ErrorEntry) -> Option<Class> {
    let number: u32 = entry.code.trim().parse().ok()?;
    Some(match number {
        6 | 24 | 25 => Class::Throttled,
        // Denied by a policy, or to this user, or it belongs to another account.
        4 | 5 | 7 => Class::Denied,
        1 | 2 | 11 | 13 | 14 | 20 => Class::Keys,
        // Codes of the ranges below, seen with 401 too.
        _ if matches!(status, 401 | 403) => Class::Keys,
        2000..3000 => return None,
        3000..5000 | 7000..8000 | 11_000..13_000 => Class::Invalid,
        5000..6000 => Class::NotFound,
        6000..7000 | 8000..10_000 => Class::Conflict,
        // A quota by its name, of the addresses in a subnet: another place may have some.
        NO_ADDRESSES => Class::SoldOut,
        10_000..11_000 if is_quota(entry) => Class::Quota,
        10_000..11_000 => Class::SoldOut,
        _ => return of_status(status),
    })
}

fn of_status(status: u16) -> Option<Class> {
    match status {
        401 | 403 | 407 => Some(Class::Keys),
        408 | 425 => None,
        409 => Some(Class::Conflict),
        429 => Some(Class::Throttled),
        400..500 => Some(Class::Invalid),
        _ => None,
    }
}

/// `TooManyResources (QuotaExceded)`, as the API writes it.
fn is_quota(entry: &ErrorEntry) -> bool {
    let words = [entry.kind.to_lowercase(), entry.details.to_lowercase()];
    words.iter().any(|text| text.contains("quota") || text.contains("toomanyresources") || text.contains("limit"))
}
