//! Flags, and the cohort of a principal: which flags are active for it. Nothing is remembered
//! and nothing is drawn: the same principal always gets the same answer from the same pack.

use crate::text::digest::Digest;

/// For whom a flag is active.
#[derive(Clone, Debug, PartialEq)]
pub enum FlagRollout {
    /// Everybody.
    On,
    /// Nobody.
    Off,
    /// This share of the principals, 0 to 1.
    Share(f64),
    /// These principals.
    Principals(Vec<String>),
}

/// A flag of the pack.
#[derive(Clone, Debug, PartialEq)]
pub struct FeatureFlag {
    /// Its name, `ai_assistant_…`.
    pub name: String,
    /// For whom it is active.
    pub rollout: FlagRollout,
}

impl FeatureFlag {
    /// Whether it is active for a principal.
    pub fn active(&self, principal: &str) -> bool {
        match &self.rollout {
            FlagRollout::On => true,
            FlagRollout::Off => false,
            FlagRollout::Share(share) => point(&self.name, principal) < *share,
            FlagRollout::Principals(listed) => listed.iter().any(|one| one == principal),
        }
    }
}

/// Where a principal stands for a flag, 0 up to but without 1. The flag's name is part of it, so
/// that two flags of one share do not pick the same people.
fn point(flag: &str, principal: &str) -> f64 {
    // 53 bits are what a double holds exactly.
    let bits = Digest::of([flag, principal]).number() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

/// What a principal gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlagCohort {
    /// A digest of the definitions' versions, the registry's version and the active flags (D-20).
    pub id: String,
    /// The active flags, sorted.
    pub flags: Vec<String>,
}

impl FlagCohort {
    /// Whether a flag is active.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|active| active == flag)
    }
}
