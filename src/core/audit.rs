//! The audit: machines, NodeClaims and Nodes compared, in both directions. It trusts evidence, and never absence alone.
//!
//! A machine is removed only when a complete listing of the cloud shows it with this cluster's mark, a list of NodeClaims fresh from the API
//! server has nobody who claims it (by UID and by provider ID), it has been seen so in several looks over a grace period, and it is one of few.
//! The second machine of a NodeClaim goes in the same way, and only while the one that the NodeClaim names stands beside it. NodeClaims whose
//! machine is gone are finished just as carefully.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::consent::{self, Consent, Decision, Question};
use crate::core::facts::{Claim, Machine, Node, Snapshot, find_condition};
use crate::core::ids::{ClaimName, ClaimUid, NodeName, NodeUid, ProviderId, class_label};
use crate::core::lifecycle::is_occupied;
use crate::core::orphan::drained_by;

/// Looks in a row that must agree before anything is removed.
const LOOKS: u32 = 3;
/// How long the same thing must have been seen before anything is removed.
const GRACE: Duration = Duration::from_mins(5);
/// Share of all machines (or NodeClaims) that may be removed by one look, in percent, rounded up.
const SHARE: usize = 10;
/// When more than this share (in percent, rounded up) looks wrong at once, the looking is wrong: nothing is removed.
const BREAKER: usize = 20;

/// How much evidence is enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Looks in a row that must agree before anything is removed.
    pub looks: u32,
    /// How long the same thing must have been seen before anything is removed.
    pub grace: Duration,
    /// When more than this share (in percent, rounded up) looks wrong at once, the looking is wrong: nothing is removed.
    pub breaker: usize,
    /// Whether what runs on a machine is to leave before it goes.
    pub drains: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { looks: LOOKS, grace: GRACE, breaker: BREAKER, drains: true }
    }
}

/// What one look of the auditor saw.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// Machines with this cluster's mark.
    pub machines: &'a [Machine],
    /// Whether the cloud vouches for the list.
    pub complete: bool,
    /// Machines younger than this may be missing from it.
    pub settles_within: SignedDuration,
    /// NodeClaims of every NodeClass, another autoscaler's too, read from the API server after the machines were listed.
    pub claims: &'a [Arc<Claim>],
    /// Group and kind of the NodeClasses that this joiner looks after.
    pub classes: &'a [(&'static str, &'static str)],
    /// The cluster, for the Nodes.
    pub snapshot: &'a Snapshot,
    /// Machines that were ordered down after earlier looks, and that nobody has confirmed to be gone.
    pub ordered: &'a BTreeSet<ProviderId>,
    /// Machines whose pods are leaving since earlier looks, and since when.
    pub draining: &'a BTreeMap<ProviderId, Timestamp>,
    /// What a person has written about findings that were too many; see [`Consent`].
    pub said: Option<&'a str>,
    /// The time.
    pub now: Timestamp,
    /// The time by a clock that nobody sets: evidence must have stood for as long as it says, however far [`Self::now`] leaps meanwhile.
    pub moment: Duration,
    /// How much evidence is enough.
    pub rules: Rules,
}

impl<'a> Look<'a> {
    /// The NodeClaims that this joiner looks after.
    fn own_claims(&self) -> impl Iterator<Item = &'a Arc<Claim>> + use<'a> {
        let classes = self.classes;
        self.claims.iter().filter(|claim| claim.class.is_one_of(classes.iter().copied()))
    }

    /// The Nodes that stay until this joiner lets them go. Other autoscalers have the same finalizer, and other clouds the same form of provider IDs
    /// (`aws:///`): only the label of the NodeClass says whose a Node is.
    fn own_nodes(&self) -> impl Iterator<Item = &'a Arc<Node>> + use<'a> {
        let classes: Vec<_> = self.classes.iter().map(|(group, kind)| class_label(group, kind)).collect();
        let is_own = move |node: &Node| classes.iter().any(|label| node.labels.contains_key(label.as_str()));
        self.snapshot.nodes.values().filter(move |node| node.has_finalizer() && is_own(node))
    }
}

/// Something that does not add up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Finding {
    /// A machine that no NodeClaim claims.
    OrphanMachine(ProviderId),
    /// A machine whose mark names no NodeClaim: it is reported, and never removed.
    UnmarkedMachine(ProviderId),
    /// A NodeClaim whose machine is not in the listing.
    LostMachine(ClaimName, ClaimUid),
    /// A NodeClaim whose machine is not in the listing, though its kubelet reports. It is kept, and speaks against the listing.
    HiddenMachine(ClaimName, ClaimUid),
    /// A Node that is being deleted and waits for joiner's finalizer, though its NodeClaim and its machine are both gone: somebody took the
    /// NodeClaim's finalizer off by hand.
    LeftNode(NodeName, NodeUid),
    /// A machine of a NodeClaim that has another: a launch whose answer was lost was repeated, and the cloud did not know it again.
    SurplusMachine(ProviderId),
}

impl Finding {
    /// What can be found about a machine for which it would be removed.
    pub fn of_machine(id: &ProviderId) -> [Self; 2] {
        [Self::OrphanMachine(id.clone()), Self::SurplusMachine(id.clone())]
    }

    /// What tells apart its object from one that has the same name later.
    pub fn uid(&self) -> Option<&str> {
        match self {
            Self::LostMachine(_, uid) | Self::HiddenMachine(_, uid) => Some(uid.as_str()),
            Self::LeftNode(_, uid) => Some(uid.as_str()),
            Self::OrphanMachine(_) | Self::UnmarkedMachine(_) | Self::SurplusMachine(_) => None,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OrphanMachine(id) => write!(f, "machine {id} belongs to no NodeClaim"),
            Self::UnmarkedMachine(id) => write!(f, "machine {id} carries a damaged mark; it is left alone"),
            Self::LostMachine(claim, _) => write!(f, "the machine of NodeClaim {claim} is not in the cloud's listing"),
            Self::HiddenMachine(claim, _) => write!(
                f,
                "the machine of NodeClaim {claim} is not in the cloud's listing, though its Node is Ready; it is left alone"
            ),
            Self::LeftNode(node, _) => {
                write!(f, "Node {node} has neither NodeClaim nor machine, and waits for its finalizer")
            }
            Self::SurplusMachine(id) => write!(f, "machine {id} is the second one of its NodeClaim"),
        }
    }
}

/// What speaks for a finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evidence {
    /// First look that made it.
    pub since: Timestamp,
    /// The same by the clock that nobody sets ([`Look::moment`]): this one counts.
    pub begun: Duration,
    /// Looks in a row that made it.
    pub looks: u32,
    /// What the last look saw, in words.
    pub seen: String,
    /// How often it was acted upon, and stands all the same. Whoever has failed so most often has his turn last, for else he would hold up all others.
    pub vain: u32,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} looks since {:.0}: {}", self.looks, self.since, self.seen)?;
        if self.vain > 0 { write!(f, "; acted upon {} times in vain", self.vain) } else { Ok(()) }
    }
}

/// Findings and their evidence, from look to look.
pub type History = BTreeMap<Finding, Evidence>;

/// What follows from a look.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Verdict {
    /// Machines to take down now.
    pub reap: Vec<ProviderId>,
    /// Machines to take down once their pods have left.
    pub drain: Vec<ProviderId>,
    /// Machines that were ordered down before, and about which the cloud is to be told again until it says that they are gone.
    pub again: Vec<ProviderId>,
    /// NodeClaims to delete now ([`Finding::LostMachine`]), and Nodes to let go now, by taking joiner's finalizer off ([`Finding::LeftNode`]).
    pub finish: Vec<Finding>,
    /// Why nothing is removed although there are findings, when the look itself is not to be trusted.
    pub breaker: Option<Breaker>,
    /// What a person has just decided, and about how many findings each.
    pub decided: Vec<(Decision, usize)>,
}

/// The circuit breaker is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breaker {
    /// The kind of reason.
    pub cause: Cause,
    /// Why.
    pub reason: String,
    /// What a person can decide; nothing when there is nothing to decide, only to wait for.
    pub question: Option<Question>,
}

/// Why the circuit breaker is open, in one word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// The cloud does not vouch for its list.
    ListingIncomplete,
    /// Machines are not in it whose Nodes are Ready.
    ListingDoubted,
    /// More was found than is likely to be true.
    TooManyFindings,
    /// What a person has written is no decision, and may be meant to forbid what would be done.
    AnnotationNotUnderstood,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl fmt::Display for Breaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// The circuit breaker, as NodePools are told of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Alarm {
    /// No look has ended since this joiner acts: what was said before stands.
    #[default]
    Unknown,
    /// Nothing keeps findings from being acted upon.
    Closed,
    /// Nothing is removed.
    Open {
        /// The kind of reason.
        cause: Cause,
        /// What was found, and what a person can do.
        message: String,
    },
}

/// Takes one look, and says what follows from it and from those before.
pub fn audit(look: &Look<'_>, history: &mut History, consent: &mut Consent) -> Verdict {
    consent.hear(look.said);
    if !look.complete {
        // A list with holes proves nothing, in neither direction, and interrupts every row of looks.
        history.clear();
        let reason = "the cloud's listing was not complete".to_owned();
        let breaker = Breaker { cause: Cause::ListingIncomplete, reason, question: None };
        return Verdict { breaker: Some(breaker), ..Verdict::default() };
    }
    let findings = findings(look);
    history.retain(|finding, _| findings.contains_key(finding));
    for (finding, seen) in findings {
        let new = Evidence { since: look.now, begun: look.moment, looks: 0, seen: String::new(), vain: 0 };
        let evidence = history.entry(finding).or_insert(new);
        evidence.looks += 1;
        evidence.seen = seen;
        // A clock that was ahead may have dated it.
        evidence.since = evidence.since.min(look.now);
    }
    consent.forget(history.keys(), look.moment, look.rules.grace);
    consent.compare(decidable(history));
    let mut verdict = Verdict { decided: consent.news(history.keys()), ..Verdict::default() };
    verdict.breaker = breaker(look, history, consent);
    if consent.unread().is_some() {
        return verdict;
    }
    let is_open = verdict.breaker.is_some();
    if !is_open {
        verdict.again = unconfirmed(look);
    }
    let (machines, launched, nodes) = (standing(look), launched(look), look.own_nodes().count());
    // Machines whose pods have begun to leave have had their turn.
    let (mut chosen, mut lost, mut left) = (0, 0, 0);
    let mut turns: Vec<_> = history.iter().collect();
    turns.sort_by_key(|(_, evidence)| evidence.vain);
    for (finding, evidence) in turns {
        let decided = decided(look, consent, finding);
        // While the breaker is open only what a person has named goes on.
        if decided == Some(Decision::Dismiss) || is_open && decided.is_none() {
            continue;
        }
        if !is_proven(look, evidence) {
            continue;
        }
        match finding {
            Finding::OrphanMachine(id) | Finding::SurplusMachine(id) => {
                let begun = look.draining.get(id).copied();
                if begun.is_none() && chosen >= share(machines, SHARE) {
                    continue;
                }
                chosen += usize::from(begun.is_none());
                if is_inhabited(look, id, drained_by(begun.unwrap_or(look.now))) {
                    verdict.drain.push(id.clone());
                } else {
                    verdict.reap.push(id.clone());
                }
            }
            Finding::LostMachine(..) if lost < share(launched, SHARE) => {
                lost += 1;
                verdict.finish.push(finding.clone());
            }
            Finding::LeftNode(..) if left < share(nodes, SHARE) => {
                left += 1;
                verdict.finish.push(finding.clone());
            }
            Finding::LostMachine(..)
            | Finding::HiddenMachine(..)
            | Finding::LeftNode(..)
            | Finding::UnmarkedMachine(_) => {}
        }
    }
    verdict
}

/// Whether a finding has stood for long enough.
fn is_proven(look: &Look<'_>, evidence: &Evidence) -> bool {
    evidence.looks >= look.rules.looks && look.moment.saturating_sub(evidence.begun) >= look.rules.grace
}

/// Why nothing is removed but what was approved, if that is so, and what a person can decide. While what a person has written is not understood, not even
/// what was approved before is: it may have been taken back.
fn breaker(look: &Look<'_>, history: &History, consent: &mut Consent) -> Option<Breaker> {
    let is_undecided = |finding: &&Finding| decided(look, consent, finding).is_none();
    let open: BTreeSet<&Finding> = removable(history).filter(is_undecided).collect();
    let many = too_many(look, history, consent).map(|reason| (Cause::TooManyFindings, reason));
    let doubt = || doubted(look, history, consent).map(|reason| (Cause::ListingDoubted, reason));
    let held = || held(&open, consent).map(|reason| (Cause::TooManyFindings, reason));
    let doubt = many.or_else(doubt).or_else(held).filter(|_| !open.is_empty());
    // What is left may be few enough to go without asking some day, because others were approved or because the cluster has grown. That is no answer.
    if doubt.is_some() {
        consent.hold(open.iter().copied());
    }
    let (cause, reason) = match (consent.unread(), doubt) {
        (Some(unread), doubt) => {
            let besides = doubt.map(|(_, doubt)| format!("; besides, {doubt}")).unwrap_or_default();
            (Cause::AnnotationNotUnderstood, format!("{unread}{besides}"))
        }
        (None, Some((cause, doubt))) => {
            let goes_on = removable(history).any(|finding| decided(look, consent, finding) == Some(Decision::Approve));
            let besides = if goes_on { "; what was approved of that goes on" } else { "" };
            (cause, format!("{doubt}{besides}"))
        }
        (None, None) => return None,
    };
    Some(Breaker { cause, reason, question: Some(consent.question(&open, decidable(history))) })
}

/// What a person has decided about a finding. Whoever lets a machine go lets its Node go after it.
fn decided(look: &Look<'_>, consent: &Consent, finding: &Finding) -> Option<Decision> {
    let of_its_machine = || {
        let Finding::LeftNode(node, _) = finding else { return None };
        let id = look.snapshot.nodes.get(node)?.provider_id.clone()?;
        Finding::of_machine(&id)
            .iter()
            .find_map(|machine| consent.about(machine))
            .filter(|decision| *decision == Decision::Approve)
    };
    consent.about(finding).or_else(of_its_machine)
}

/// Whether there are pods or volumes on a machine that should leave first, and there is time for that.
fn is_inhabited(look: &Look<'_>, id: &ProviderId, deadline: Timestamp) -> bool {
    let mut nodes = look.snapshot.nodes_with(id);
    look.rules.drains && look.now < deadline && nodes.any(|node| is_occupied(node, look.snapshot, deadline, look.now))
}

/// Machines that are on their way out, and may be stuck there. One that stands again needs evidence again, and one that a NodeClaim names is its.
fn unconfirmed(look: &Look<'_>) -> Vec<ProviderId> {
    let claimed = |id: &ProviderId| look.claims.iter().any(|claim| claim.provider_id.as_ref() == Some(id));
    let stands = |id: &ProviderId| look.machines.iter().any(|machine| machine.id == *id && !machine.deleting);
    look.ordered.iter().filter(|id| !claimed(id) && !stands(id)).cloned().collect()
}

/// Why the looking is more likely wrong than what it found, if it is. What was dismissed stands in nobody's way; what was approved counts until it
/// is gone, so that nobody who decides about a part of what was found lets the rest go with it.
fn too_many(look: &Look<'_>, history: &History, consent: &Consent) -> Option<String> {
    let count = || decidable(history).filter(|finding| consent.about(finding) != Some(Decision::Dismiss));
    let is = |wanted: fn(&Finding) -> bool| count().filter(|finding| wanted(finding)).count();
    let orphans = is(|finding| matches!(finding, Finding::OrphanMachine(_)));
    let surplus = is(|finding| matches!(finding, Finding::SurplusMachine(_)));
    let hidden = is(|finding| matches!(finding, Finding::HiddenMachine(..)));
    let unlisted = hidden + is(|finding| matches!(finding, Finding::LostMachine(..)));
    let left = is(|finding| matches!(finding, Finding::LeftNode(..)));
    let (machines, launched, nodes) = (standing(look), launched(look), look.own_nodes().count());
    // Of one machine one is all of them, and a share that is rounded up lets it go. So it does where something shows that it is ours.
    let strange = (orphans > 0 && look.rules.breaker < 100).then(|| strange(look, count())).flatten();
    // A listing that shows machines, and none of this cluster's NodeClaims, is another cluster's.
    let is_anothers = unlisted > 0 && (strange.is_some() || unlisted == launched && look.rules.breaker < 100);
    if let Some(why) = strange.filter(|_| unlisted == 0) {
        Some(format!("{orphans} of {machines} machines belong to no NodeClaim, and {why}"))
    } else if orphans + surplus > share(machines, look.rules.breaker) {
        let second = if surplus > 0 { format!(", {surplus} are the second of theirs") } else { String::new() };
        Some(format!("{orphans} of {machines} machines belong to no NodeClaim{second}"))
    } else if unlisted > share(launched, look.rules.breaker) || orphans > 0 && is_anothers {
        let ready = if hidden > 0 { format!(", though {hidden} of their Nodes are Ready") } else { String::new() };
        Some(format!("the machines of {unlisted} of {launched} NodeClaims are not in the listing{ready}"))
    } else if left > share(nodes, look.rules.breaker) {
        Some(format!("{left} of {nodes} Nodes have neither NodeClaim nor machine, and wait for their finalizer"))
    } else {
        let alone = standing_alone(look);
        let are_too_many = alone > share(nodes, look.rules.breaker);
        are_too_many.then(|| format!("{alone} of {nodes} Nodes are Ready, and have neither NodeClaim nor machine"))
    }
}

/// Nodes that serve, though neither the list of NodeClaims nor the listing of the cloud knows them. Kubelets speak against both: where both have holes, each
/// makes what is left of the other look like little.
fn standing_alone(look: &Look<'_>) -> usize {
    let is_settled = |node: &Node| look.now.duration_since(node.created) > look.settles_within;
    let serves = |node: &Node| node.deleting.is_none() && node.is_ready() && is_settled(node);
    bereft(look).filter(|(node, _)| serves(node)).count()
}

/// Why the machines of a listing are more likely those of another cluster that has the same name, if nothing shows that they are this one's: no NodeClaim
/// knows any of them, and among those that nobody claims are some without a Node here, or there is no NodePool that they can have been launched for.
fn strange<'a>(look: &Look<'_>, found: impl Iterator<Item = &'a Finding>) -> Option<String> {
    let ids: FxHashSet<_> = look.own_claims().filter_map(|claim| claim.provider_id.as_ref()).collect();
    let tokens: FxHashSet<_> = look.own_claims().map(|claim| &claim.uid).collect();
    let is_known = |machine: &Machine| {
        ids.contains(&machine.id) || machine.token.as_ref().is_some_and(|token| tokens.contains(token))
    };
    if look.machines.iter().any(is_known) {
        return None;
    }
    if look.own_claims().next().is_none() && look.snapshot.pools.is_empty() {
        return Some("there is neither NodeClaim nor NodePool".to_owned());
    }
    let has_node = |id: &ProviderId| look.snapshot.nodes_with(id).next().is_some();
    let foreign = found.filter(|finding| matches!(finding, Finding::OrphanMachine(id) if !has_node(id))).count();
    (foreign > 0).then(|| {
        format!(
            "nothing shows that they are this cluster's: no NodeClaim knows any, and of {foreign} there is no Node here"
        )
    })
}

/// Why the listing proves nothing, if kubelets have spoken against it for as long as any evidence takes: a machine that has just gone leaves a Node that
/// is Ready for a while. It may be the listing of another account or region.
fn doubted(look: &Look<'_>, history: &History, consent: &Consent) -> Option<String> {
    let stands = |finding: &Finding| consent.about(finding) != Some(Decision::Dismiss);
    let is_hidden = |finding: &Finding| matches!(finding, Finding::HiddenMachine(..)) && stands(finding);
    let names: Vec<_> = history
        .iter()
        .filter(|(finding, evidence)| is_hidden(finding) && is_proven(look, evidence))
        .map(|(finding, _)| consent::id(finding))
        .collect();
    let (first, count) = (names.first().filter(|_| look.rules.breaker < 100)?, names.len());
    Some(format!(
        "the machines of {count} NodeClaims are not in the listing, though their Nodes are Ready (ID {first}{}; whoever dismisses that lets it stand in \
         nobody's way)",
        if count > 1 { " and others" } else { "" }
    ))
}

/// Why what was found still waits, when a person was asked about it.
fn held(open: &BTreeSet<&Finding>, consent: &Consent) -> Option<String> {
    let held = open.iter().filter(|finding| consent.is_held(finding)).count();
    (held > 0).then(|| format!("nothing was decided about {held} findings that a person was asked about"))
}

/// Findings that something would be removed for.
fn removable(history: &History) -> impl Iterator<Item = &Finding> + Clone {
    history.keys().filter(|finding| match finding {
        Finding::OrphanMachine(_) | Finding::SurplusMachine(_) | Finding::LostMachine(..) | Finding::LeftNode(..) => {
            true
        }
        Finding::HiddenMachine(..) | Finding::UnmarkedMachine(_) => false,
    })
}

/// Findings about which a person can say something: those, and those that speak against the listing.
fn decidable(history: &History) -> impl Iterator<Item = &Finding> + Clone {
    history.keys().filter(|finding| !matches!(finding, Finding::UnmarkedMachine(_)))
}

/// Machines that are to stay. What is going already is no measure of what may go besides.
fn standing(look: &Look<'_>) -> usize {
    look.machines.iter().filter(|machine| !machine.deleting).count()
}

/// NodeClaims with a machine that are to stay.
fn launched(look: &Look<'_>) -> usize {
    look.own_claims().filter(|claim| claim.provider_id.is_some() && claim.deleting.is_none()).count()
}

/// A share of a number, rounded up: of a small cluster one may always go.
fn share(of: usize, percent: usize) -> usize {
    (of * percent).div_ceil(100).max(1)
}

/// What does not add up, and what was seen of it.
fn findings(look: &Look<'_>) -> BTreeMap<Finding, String> {
    let by_token: FxHashMap<_, _> = look.claims.iter().map(|claim| (&claim.uid, claim)).collect();
    let ids: FxHashSet<_> = look.claims.iter().filter_map(|claim| claim.provider_id.as_ref()).collect();
    let mut findings = BTreeMap::new();
    for machine in look.machines.iter().filter(|machine| !machine.deleting && !ids.contains(&machine.id)) {
        let finding = match &machine.token {
            None => Finding::UnmarkedMachine(machine.id.clone()),
            Some(token) => match by_token.get(token) {
                Some(claim) if is_surplus(look, machine, claim) => Finding::SurplusMachine(machine.id.clone()),
                Some(_) => continue,
                None => Finding::OrphanMachine(machine.id.clone()),
            },
        };
        findings.insert(finding, seen_of_machine(look, machine));
    }
    let standing = || look.machines.iter().filter(|machine| !machine.deleting);
    let listed: FxHashSet<_> = standing().map(|machine| &machine.id).collect();
    let marked: FxHashSet<_> = standing().filter_map(|machine| machine.token.as_ref()).collect();
    for claim in look.own_claims().filter(|claim| claim.deleting.is_none() && claim.broken.is_none()) {
        let Some(id) = &claim.provider_id else { continue };
        let Some(since) = find_condition(&claim.conditions, "Launched").map(|launched| launched.since) else {
            continue;
        };
        let settled = look.now.duration_since(since.max(claim.created)) > look.settles_within;
        // A provider ID is somebody's word: a machine with the NodeClaim's mark speaks louder.
        if !settled || listed.contains(id) || marked.contains(&claim.uid) || !claim.is("Launched") {
            continue;
        }
        // A kubelet that reports is better evidence of a machine than a listing that does not name it, whatever ID was written into the NodeClaim.
        let mut nodes = look.snapshot.nodes_with(id).chain(look.snapshot.nodes_owned_by(claim)).peekable();
        let node = nodes.peek().map_or("no Node", |_| "a Node that is not Ready");
        let machines = look.machines.len();
        if !nodes.any(|node| node.is_ready()) {
            let seen = format!("status.providerID is {id}, there is {node}, {machines} machines were listed");
            findings.insert(Finding::LostMachine(claim.name.clone(), claim.uid.clone()), seen);
        } else if !look.machines.iter().any(|machine| machine.id == *id || machine.token.as_ref() == Some(&claim.uid)) {
            // One that is on its way out is listed.
            let seen = format!("status.providerID is {id}, {machines} machines were listed");
            findings.insert(Finding::HiddenMachine(claim.name.clone(), claim.uid.clone()), seen);
        }
    }
    findings.extend(left_nodes(look));
    findings
}

/// Nodes that are being deleted and that no NodeClaim of whatever NodeClass owns or names, and whose machine is not there.
fn left_nodes(look: &Look<'_>) -> Vec<(Finding, String)> {
    let named: FxHashSet<_> = look.claims.iter().filter_map(|claim| claim.node.as_ref()).collect();
    let left = bereft(look).filter(|(node, _)| node.deleting.is_some() && !named.contains(&node.name));
    let of = |(node, id): (&Arc<Node>, &ProviderId)| {
        let seen = format!("spec.providerID is {id}, {} machines were listed", look.machines.len());
        (Finding::LeftNode(node.name.clone(), node.uid.clone()), seen)
    };
    left.map(of).collect()
}

/// Nodes that no NodeClaim of whatever NodeClass owns or names the machine of, and whose machine is not there, with its ID.
fn bereft<'a>(look: &Look<'a>) -> impl Iterator<Item = (&'a Arc<Node>, &'a ProviderId)> + use<'a> {
    let uids: FxHashSet<_> = look.claims.iter().map(|claim| &claim.uid).collect();
    let ids: FxHashSet<_> = look.claims.iter().filter_map(|claim| claim.provider_id.as_ref()).collect();
    let there: FxHashSet<_> = look.machines.iter().map(|machine| &machine.id).collect();
    look.own_nodes().filter_map(move |node| {
        let owned = node.owner_claims.iter().any(|owner| uids.contains(&owner.uid));
        let id = node.provider_id.as_ref().filter(|id| !owned && !ids.contains(id) && !there.contains(id))?;
        Some((node, id))
    })
}

/// Whether a NodeClaim can do without this machine of its: it names another, which is there and carries its mark as well, and none of its Nodes
/// says that this one is the one. A provider ID is somebody's word; what the cloud and a kubelet show must agree with it.
fn is_surplus(look: &Look<'_>, machine: &Machine, claim: &Claim) -> bool {
    let Some(named) = claim.provider_id.as_ref().filter(|named| **named != machine.id) else { return false };
    let mut others = look.machines.iter().filter(|other| other.id == *named);
    let stands = others.any(|other| !other.deleting && other.token.as_ref() == Some(&claim.uid));
    let serves = look.snapshot.nodes_with(&machine.id).any(|node| node.is_owned_by(claim) || node.was_registered());
    stands && !serves && claim.broken.is_none() && claim.class.is_one_of(look.classes.iter().copied())
}

fn seen_of_machine(look: &Look<'_>, machine: &Machine) -> String {
    let text = |text: Option<String>| text.unwrap_or_else(|| "nothing".to_owned());
    format!(
        "its mark names NodeClaim {} with UID {}, its type is {}, it was made {}; {} machines and {} NodeClaims were listed",
        text(machine.claim.as_ref().map(ToString::to_string)),
        text(machine.token.as_ref().map(ToString::to_string)),
        text(machine.instance_type.as_ref().map(ToString::to_string)),
        machine.created.map_or_else(|| "nobody says when".to_owned(), |at| format!("{at:.0}")),
        look.machines.len(),
        look.claims.len(),
    )
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
