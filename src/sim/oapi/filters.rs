//! What filters mean, and pages.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::refusal::Refusal;
use crate::clouds::outscale::oapi::wire::ResourceTag;

/// Items on a page when nobody says how many, and the most there may be.
const MOST: u32 = 1_000;

/// Whether a list lets a value pass: an empty one lets everything pass, `*` and `?` stand for something.
pub(super) fn passes(list: &[String], value: Option<&str>) -> bool {
    list.is_empty() || value.is_some_and(|value| list.iter().any(|pattern| matches(pattern, value)))
}

/// Whether a list lets any of some values pass.
pub(super) fn any_passes<'a>(list: &[String], mut values: impl Iterator<Item = &'a str>) -> bool {
    list.is_empty() || values.any(|value| passes(list, Some(value)))
}

/// Whether the three lists about tags let something with these tags pass.
pub(super) fn tags_pass((keys, values, pairs): (&[String], &[String], &[String]), tags: &[ResourceTag]) -> bool {
    any_passes(keys, tags.iter().map(|tag| tag.key.as_str()))
        && any_passes(values, tags.iter().map(|tag| tag.value.as_str()))
        && (pairs.is_empty()
            || pairs.iter().any(|pair| tags.iter().any(|tag| matches(pair, &format!("{}={}", tag.key, tag.value)))))
}

fn matches(pattern: &str, text: &str) -> bool {
    fn from(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) if from(rest, text) => true,
            (Some((b'*', _)), Some((_, tail))) => from(pattern, tail),
            (Some((b'?', rest)), Some((_, tail))) => from(rest, tail),
            (Some((letter, rest)), Some((other, tail))) => letter == other && from(rest, tail),
            _ => false,
        }
    }
    from(pattern.as_bytes(), text.as_bytes())
}

/// IDs must look like IDs, or the whole call is refused.
pub(super) fn check_ids(ids: &[String], prefix: &str) -> Result<(), Refusal> {
    for id in ids {
        let Some(number) = id.strip_prefix(prefix) else {
            let details = format!("{id} does not begin with {prefix}");
            return Err(Refusal::new(400, "4104", "InvalidParameterValue", details));
        };
        if number.len() != 8 || !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            let details = format!("{id} is not {prefix} and eight hexadecimal digits");
            return Err(Refusal::new(400, "4105", "InvalidParameterValue", details));
        }
    }
    Ok(())
}

/// One page of items, each with a number that rises and stays, and the token of the next page.
pub(super) fn page<T>(
    items: impl Iterator<Item = (u64, T)>,
    token: Option<&str>,
    size: Option<u32>,
) -> Result<(Vec<T>, Option<String>), Refusal> {
    let size = size.unwrap_or(MOST);
    if !(1..=MOST).contains(&size) {
        return Err(Refusal::value(format!("ResultsPerPage is {size} and not from 1 to {MOST}")));
    }
    let after = match token {
        None => None,
        Some(token) => {
            let bytes = STANDARD.decode(token).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let after: Option<u64> = bytes.and_then(|text| text.parse().ok());
            Some(after.ok_or_else(|| Refusal::value("NextPageToken is none of ours"))?)
        }
    };
    let mut items = items.skip_while(|(number, _)| after.is_some_and(|after| *number <= after)).peekable();
    let (mut page, mut last) = (Vec::new(), 0);
    while page.len() < size as usize
        && let Some((number, item)) = items.next()
    {
        page.push(item);
        last = number;
    }
    Ok((page, items.peek().map(|_| STANDARD.encode(last.to_string()))))
}

/// Numbers the items of a list that does not change.
pub(super) fn numbered<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = (u64, T)> {
    (0..).zip(items)
}
