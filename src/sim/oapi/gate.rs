//! Who may come in: signatures of both dialects are computed anew, from what was sent. Written apart from the client's own signer, so that
//! neither hides the other's mistakes.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::{SignedDuration, Timestamp};
use ring::{digest, hmac};

use super::refusal::Refusal;
use crate::clouds::outscale::oapi::SecretKey;

/// A signature from further in the future is refused: two seconds were seen to pass, and four not to.
const AHEAD: SignedDuration = SignedDuration::from_secs(3);
/// A signature from further in the past is refused: thirteen minutes were seen to pass, and a day not to.
const BEHIND: SignedDuration = SignedDuration::from_mins(15);
/// So many refusals in a row lock a key out.
const STRIKES: u32 = 4;
/// For how long, for each time that it happens.
const LOCK: SignedDuration = SignedDuration::from_mins(1);
/// For how long at most.
const LONGEST_LOCK: SignedDuration = SignedDuration::from_mins(10);

/// Who was refused how often.
#[derive(Default, Debug)]
pub(super) struct Gate(BTreeMap<String, Record>);

#[derive(Default, Debug)]
struct Record {
    strikes: u32,
    locks: i32,
    locked_until: Option<Timestamp>,
}

/// A request as it came in.
pub(super) struct Signed<'a> {
    pub(super) path: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
}

impl Gate {
    /// Lets a request in, or says that it may not.
    pub(super) fn admit(
        &mut self,
        request: &Signed<'_>,
        keys: &BTreeMap<String, SecretKey>,
        (region, now): (&str, Timestamp),
    ) -> Result<(), Refusal> {
        let refuse = |why: String| Refusal::new(401, "1", "AccessDenied", why);
        let claim = Claim::read(request.headers).map_err(refuse)?;
        let record = self.0.entry(claim.access_key.clone()).or_default();
        if record.locked_until.is_some_and(|until| until > now) {
            return Err(Refusal::new(401, "13", "AccessDenied", "the access key is locked out for a while"));
        }
        match claim.check(request, keys, (region, now)) {
            Ok(()) => {
                *record = Record::default();
                Ok(())
            }
            Err(why) => {
                record.strikes += 1;
                if record.strikes.is_multiple_of(STRIKES) {
                    record.locks += 1;
                    record.locked_until = now.checked_add((LOCK * record.locks).min(LONGEST_LOCK)).ok();
                }
                Err(refuse(why))
            }
        }
    }
}

/// What a request says of itself.
struct Claim {
    is_osc: bool,
    access_key: String,
    day: String,
    region: String,
    service: String,
    end: String,
    signed: Vec<String>,
    signature: Vec<u8>,
}

impl Claim {
    fn read(headers: &HeaderMap) -> Result<Self, String> {
        let text = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or("it is not signed")?;
        let (algorithm, rest) = text.split_once(' ').ok_or("the signature cannot be read")?;
        let is_osc = match algorithm {
            "OSC4-HMAC-SHA256" => true,
            "AWS4-HMAC-SHA256" => false,
            other => return Err(format!("{other} is no algorithm")),
        };
        let mut parts: BTreeMap<&str, &str> = rest.split(',').filter_map(|part| part.trim().split_once('=')).collect();
        let mut part = |name: &str| parts.remove(name).ok_or_else(|| format!("the signature has no {name}"));
        let scope: Vec<&str> = part("Credential")?.split('/').collect();
        let [access_key, day, region, service, end] = scope[..] else {
            return Err("the scope cannot be read".to_owned());
        };
        Ok(Self {
            is_osc,
            access_key: access_key.to_owned(),
            day: day.to_owned(),
            region: region.to_owned(),
            service: service.to_owned(),
            end: end.to_owned(),
            signed: part("SignedHeaders")?.split(';').map(str::to_owned).collect(),
            signature: unhex(part("Signature")?).ok_or("the signature is not hexadecimal")?,
        })
    }

    fn check(
        &self,
        request: &Signed<'_>,
        keys: &BTreeMap<String, SecretKey>,
        (region, now): (&str, Timestamp),
    ) -> Result<(), String> {
        let secret = keys.get(&self.access_key).ok_or("there is no such access key")?;
        if self.region != region {
            return Err(format!("{} is not the region of this API", self.region));
        }
        let (word, date_header) =
            if self.is_osc { ("osc4_request", "x-osc-date") } else { ("aws4_request", "x-amz-date") };
        if self.end != word || !matches!(self.service.as_str(), "api" | "oapi") {
            return Err("the scope is not one of this API".to_owned());
        }
        for needed in ["host", date_header] {
            if !self.signed.iter().any(|name| name == needed) {
                return Err(format!("{needed} is not signed"));
            }
        }
        let date = request.headers.get(date_header).and_then(|value| value.to_str().ok()).ok_or("it has no date")?;
        let sent = jiff::fmt::strtime::parse("%Y%m%dT%H%M%SZ", date).and_then(|parsed| parsed.to_datetime());
        let sent =
            sent.and_then(|date| date.to_zoned(jiff::tz::TimeZone::UTC)).map_err(|_| "the date cannot be read")?;
        let ahead = sent.timestamp().duration_since(now);
        if ahead > AHEAD || -ahead > BEHIND {
            return Err(format!("it was signed at {date}, too far from now"));
        }
        let text = format!(
            "{word}-HMAC-SHA256\n{date}\n{day}/{region}/{service}/{end}\n{canonical}",
            word = if self.is_osc { "OSC4" } else { "AWS4" },
            day = self.day,
            service = self.service,
            end = self.end,
            canonical = hash(self.canonical(request)?.as_bytes()),
        );
        let seed = format!("{}{}", if self.is_osc { "OSC4" } else { "AWS4" }, secret.expose());
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, seed.as_bytes());
        for word in [&self.day, &self.region, &self.service, &self.end] {
            key = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&key, word.as_bytes()).as_ref());
        }
        hmac::verify(&key, text.as_bytes(), &self.signature).map_err(|_| "the signature is wrong".to_owned())
    }

    fn canonical(&self, request: &Signed<'_>) -> Result<String, String> {
        let mut text = format!("POST\n{}\n\n", request.path);
        for name in &self.signed {
            let value = request.headers.get(name).and_then(|value| value.to_str().ok());
            let value = value.ok_or_else(|| format!("{name} is signed and missing"))?;
            text.extend([name.as_str(), ":", value.trim(), "\n"]);
        }
        Ok(format!("{text}\n{}\n{}", self.signed.join(";"), hash(request.body)))
    }
}

fn hash(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
    let digits = digest::digest(&digest::SHA256, bytes);
    digits.as_ref().iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|letter| u8::try_from(letter.to_digit(16)?).ok()).collect();
    digits
        .filter(|digits| digits.len() == 64)
        .map(|digits| digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect())
}
