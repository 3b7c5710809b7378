//! The actions: how each is called, what it answers, and what it does to the world.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::wire;

/// What an action does to the world, and so when it may be repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It changes nothing.
    Reads,
    /// It brings about a state: done twice, it is as done once. Repeated freely.
    Sets,
    /// Done twice, it may count twice. Repeated only when the first time was refused for certain.
    Acts,
}

/// A request of the API.
pub trait Action: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// What it is answered.
    type Answer: Serialize + DeserializeOwned + Send + 'static;
    /// The last part of its path.
    const NAME: &'static str;
    /// What it does to the world.
    const EFFECT: Effect;
    /// Whether it needs keys.
    const SIGNED: bool;
}

/// A request whose answer comes in pages.
pub trait Paged: Action {
    /// What there are pages of.
    type Item: Send;

    /// Asks for the page that begins at a token, with so many items at most.
    fn turn(&mut self, token: Option<String>, items: u32);

    /// The items of a page, and the token of the next if there is one.
    fn page(answer: Self::Answer) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! actions {
    ($($name:ident => $answer:ident, $effect:ident, signed $signed:literal;)*) => {$(
        impl Action for wire::$name {
            type Answer = wire::$answer;
            const NAME: &'static str = stringify!($name);
            const EFFECT: Effect = Effect::$effect;
            const SIGNED: bool = $signed;
        }
    )*

    /// All actions by name, and whether they need keys.
    #[cfg(test)]
    pub(in crate::clouds::outscale) const ACTIONS: &[(&str, bool)] = &[$((stringify!($name), $signed)),*];
    };
}

macro_rules! paged {
    ($($name:ident: $field:ident of $item:ident;)*) => {$(
        impl Paged for wire::$name {
            type Item = wire::$item;

            fn turn(&mut self, token: Option<String>, items: u32) {
                self.next_page_token = token;
                self.results_per_page = Some(items);
            }

            fn page(answer: Self::Answer) -> (Vec<Self::Item>, Option<String>) {
                (answer.$field, answer.next_page_token.filter(|token| !token.is_empty()))
            }
        }
    )*};
}

actions! {
    CreateVms => TheVms, Acts, signed true;
    ReadVms => TheVms, Reads, signed true;
    ReadVmsState => TheVmStates, Reads, signed true;
    DeleteVms => VmTransitions, Sets, signed true;
    StopVms => VmTransitions, Sets, signed true;
    RebootVms => Done, Acts, signed true;
    UpdateVm => TheVm, Sets, signed true;
    ReadFlexibleGpus => TheFlexibleGpus, Reads, signed true;
    UpdateFlexibleGpu => TheFlexibleGpu, Sets, signed true;
    ReadConsoleOutput => ConsoleOutput, Reads, signed true;
    CreateTags => Done, Sets, signed true;
    DeleteTags => Done, Sets, signed true;
    ReadTags => TheTags, Reads, signed true;
    ReadImages => TheImages, Reads, signed true;
    ReadSnapshots => TheSnapshots, Reads, signed true;
    ReadSubnets => TheSubnets, Reads, signed true;
    ReadSecurityGroups => TheSecurityGroups, Reads, signed true;
    ReadSubregions => TheSubregions, Reads, signed true;
    ReadKeypairs => TheKeypairs, Reads, signed true;
    ReadQuotas => TheQuotas, Reads, signed true;
    ReadCatalog => TheCatalog, Reads, signed true;
    ReadUnitPrice => TheUnitPrice, Reads, signed true;
    ReadVmTypes => TheVmTypes, Reads, signed false;
    ReadPublicCatalog => TheCatalog, Reads, signed false;
    ReadFlexibleGpuCatalog => TheFlexibleGpuCatalog, Reads, signed false;
}

paged! {
    ReadVms: vms of Vm;
    ReadVmsState: vm_states of VmStatus;
    ReadTags: tags of Tag;
    ReadImages: images of Image;
    ReadSnapshots: snapshots of Snapshot;
    ReadSubnets: subnets of Subnet;
    ReadSecurityGroups: security_groups of SecurityGroup;
    ReadSubregions: subregions of Subregion;
    ReadKeypairs: keypairs of Keypair;
    ReadQuotas: quota_types of QuotasOfType;
    ReadVmTypes: vm_types of VmType;
}
