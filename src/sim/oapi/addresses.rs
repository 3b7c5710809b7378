//! Private addresses of a subnet.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

/// The first addresses of a subnet that are never given out, its own among them.
const RESERVED_LOW: u32 = 4;
/// The last ones.
const RESERVED_HIGH: u32 = 1;

/// First address and number of addresses of a range in CIDR.
fn range(cidr: &str) -> Option<(u32, u32)> {
    let (base, bits) = cidr.split_once('/')?;
    let (base, bits): (Ipv4Addr, u32) = (base.parse().ok()?, bits.parse().ok()?);
    (16..=29).contains(&bits).then(|| (u32::from(base), 1 << (32 - bits)))
}

/// How many addresses of a range can be given out.
pub(super) fn count(cidr: &str) -> u32 {
    range(cidr).map_or(0, |(_, count)| count - RESERVED_LOW - RESERVED_HIGH)
}

/// The first address of a range that is not taken.
pub(super) fn first_free(cidr: &str, taken: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr> {
    let (base, count) = range(cidr)?;
    (RESERVED_LOW..count - RESERVED_HIGH).map(|at| Ipv4Addr::from(base + at)).find(|address| !taken.contains(address))
}

/// The name of an address in the cloud's DNS.
pub(super) fn name(address: Ipv4Addr, region: &str) -> String {
    let [a, b, c, d] = address.octets();
    format!("ip-{a}-{b}-{c}-{d}.{region}.compute.internal")
}
