//! `joiner fake`: a stand-in for a cloud's API, to rehearse with.

use std::time::Duration;

use clap::ArgAction::Set;
use clap::{Args, ValueEnum};
use jiff::SignedDuration;

use super::values;

/// Heading of the flags of a fake.
pub(super) const FAKE: &str = "Fake";

/// Clouds that have a stand-in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum FakeCloud {
    /// The API of 3DS OUTSCALE.
    Outscale,
}

/// What is sold out: `tinav6`, `tinav6@eu-west-2a` or `@eu-west-2a`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SoldOut {
    /// What the names of types begin with; nothing means all.
    pub begins: Option<String>,
    /// Where; nothing means everywhere.
    pub zone: Option<String>,
}

impl SoldOut {
    fn parse(text: &str) -> Result<Self, String> {
        let (begins, zone) = text.split_once('@').unwrap_or((text, ""));
        let word = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        if text.is_empty() || (text.contains('@') && zone.is_empty()) {
            return Err("the beginning of a type's name, @ and a zone, or both are accepted".to_owned());
        }
        Ok(Self { begins: word(begins), zone: word(zone) })
    }
}

/// How much the account may have of something: `vms=3`, `cores=16`, `memory=64` (GiB), or `tags=10` (of one resource).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quota {
    /// VMs.
    Vms(u32),
    /// Cores of all VMs.
    Cores(u32),
    /// Memory of all VMs in GiB.
    Memory(u32),
    /// Tags of one resource.
    Tags(u32),
}

impl Quota {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || "vms=N, cores=N, memory=N (GiB) or tags=N (of one resource) are accepted".to_owned();
        let (what, most) = text.split_once('=').ok_or_else(wrong)?;
        let most = most.parse().map_err(|_| wrong())?;
        match what {
            "vms" => Ok(Self::Vms(most)),
            "cores" => Ok(Self::Cores(most)),
            "memory" => Ok(Self::Memory(most)),
            "tags" => Ok(Self::Tags(most)),
            _ => Err(wrong()),
        }
    }
}

/// `joiner fake`.
#[derive(Args, Clone, PartialEq, Debug)]
pub struct Fake {
    /// Whose API is stood in for: `outscale`
    #[arg(value_name = "CLOUD", value_enum, help_heading = FAKE)]
    pub cloud: FakeCloud,

    /// Port on 127.0.0.1; 0 takes any free one
    #[arg(long, value_name = "PORT", default_value_t = 4510, value_parser = values::port, help_heading = FAKE)]
    pub port: u16,

    /// How long a new machine is pending before it runs
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = values::duration, help_heading = FAKE)]
    pub boots_within: Duration,

    /// How long a machine is shutting down before it is gone
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = values::duration, help_heading = FAKE)]
    pub ends_within: Duration,

    /// How long a new machine is missing from what is read
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::duration, help_heading = FAKE)]
    pub lists_after: Duration,

    /// Percentage of the calls whose answer is lost although they had their effect
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=100), help_heading = FAKE)]
    pub loses_answers: u8,

    /// An action whose first answer is lost although the call had its effect: `CreateVms`, ...; may be repeated
    #[arg(long, value_name = "ACTION", help_heading = FAKE)]
    pub loses_first: Vec<String>,

    /// How long a call whose answer is lost leaves its caller waiting
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = values::duration, help_heading = FAKE)]
    pub silence: Duration,

    /// Make no tags of what the user data of new machines ask for
    #[arg(long, value_name = "BOOL", default_value = "false", action = Set, help_heading = FAKE)]
    pub ignores_section: bool,

    /// How far the clock of the API is from that of this machine: `90s` ahead of it, `-90s` behind it
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = values::offset, allow_hyphen_values = true, help_heading = FAKE)]
    pub clock_skew: SignedDuration,

    /// Calls a second of one action, beyond which it throttles. Default: no limit
    #[arg(long, value_name = "N", value_parser = values::positive, help_heading = FAKE)]
    pub throttles_at: Option<u32>,

    /// What is sold out: the beginning of a type's name, `@` and a zone, or both; may be repeated
    #[arg(long, value_name = "TYPE@ZONE", value_parser = SoldOut::parse, help_heading = FAKE)]
    pub sold_out: Vec<SoldOut>,

    /// An action that a policy denies to the keys: `ReadImages`, ...; may be repeated
    #[arg(long, value_name = "ACTION", help_heading = FAKE)]
    pub deny: Vec<String>,

    /// How much the account may have: `vms=N`, `cores=N`, `memory=N` (GiB) or `tags=N` (of one resource); may be repeated
    #[arg(long, value_name = "WHAT=N", value_parser = Quota::parse, help_heading = FAKE)]
    pub quota: Vec<Quota>,

    /// Seed of all chance
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = FAKE)]
    pub seed: u64,
}
