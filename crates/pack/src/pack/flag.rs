//! Feature flags, and the cohort of a principal: the flags that are on for it. The result depends on
//! pack and principal alone, with no state and no randomness.

use crate::text::digest::Digest;

/// The flag by which the failure of a data service ends a turn with a single sub-agent (S1-102).
pub const AXIS2_TERMINAL_FLAG: &str = "ai_assistant_axis2_terminal";
/// The flag that gives a cohort the older chat wire (D-09).
pub const WIRE_V04_FLAG: &str = "ai_assistant_wire_v04";
/// The flags that the platform itself reads; a pack may define them.
pub(crate) const PLATFORM_FLAGS: [&str; 2] = [AXIS2_TERMINAL_FLAG, WIRE_V04_FLAG];

/// For whom a flag is on.
#[derive(Clone, Debug, PartialEq)]
pub enum FlagRollout {
    /// The flag is on for everybody.
    On,
    /// The flag is on for nobody.
    Off,
    /// The flag is on for this share of the principals, 0 to 1.
    Share(f64),
    /// The flag is on for these principals.
    Principals(Vec<String>),
}

/// A flag of the pack.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureFlag {
    pub name: String,
    /// The [`FlagRollout`]: for whom the flag is on.
    pub rollout: FlagRollout,
}

impl FeatureFlag {
    /// True if the flag is on for `principal`.
    pub fn active(&self, principal: &str) -> bool {
        match &self.rollout {
            FlagRollout::On => true,
            FlagRollout::Off => false,
            FlagRollout::Share(share) => point(&self.name, principal) < *share,
            FlagRollout::Principals(listed) => listed.iter().any(|name| name == principal),
        }
    }
}

/// The position of a principal in the rollout of a flag, from 0 to below 1. It depends on the flag's
/// name too, so that two flags of one share do not pick the same people.
fn point(flag: &str, principal: &str) -> f64 {
    // 53 bits are what a double holds exactly.
    let bits = Digest::of([flag, principal]).number() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// The [`FeatureFlag`]s that are on for a principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagCohort {
    /// A digest of the definitions' versions, the registry's version and the active flags (D-20).
    pub id: String,
    /// The flags that are on, sorted.
    pub flags: Vec<String>,
}

impl FlagCohort {
    /// True if `flag` is on.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|active| active == flag)
    }
}
