//! What a caller may do besides being who it is: a [`ScopeSet`] of [`Scope`]s.

use std::fmt;
use std::str::FromStr;

/// A permission that a credential grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that the caller owns: sessions, turns, messages and what belongs to them.
    Own,
    /// Reading what other principals of the tenant own.
    TenantRead,
    /// Reading and deciding the approvals of all turns of the tenant.
    Review,
    /// The usage, the audit and the jobs of all tenants, pausing the jobs of its own, and what
    /// [`Metrics`](Self::Metrics) allows.
    Admin,
    /// `/metrics`, for a collector.
    Metrics,
    /// Starting scheduled turns for other principals of the tenant.
    ActAs,
}

/// The text is no name of a [`Scope`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown scope `{0}`; there are own, tenant:read, review, admin, metrics and act_as")]
pub struct UnknownScope(pub String);

impl Scope {
    /// Every scope, in the order in which they are listed.
    pub const ALL: [Self; 6] = [
        Self::Own,
        Self::TenantRead,
        Self::Review,
        Self::Admin,
        Self::Metrics,
        Self::ActAs,
    ];

    /// The name in token files, claims and problems.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::TenantRead => "tenant:read",
            Self::Review => "review",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
            Self::ActAs => "act_as",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(text: &str) -> Result<Self, UnknownScope> {
        let known = Self::ALL.into_iter().find(|scope| scope.name() == text);
        known.ok_or_else(|| UnknownScope(text.chars().take(64).collect()))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The scopes of a caller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeSet(u8);

impl ScopeSet {
    /// No scope at all.
    pub const NONE: Self = Self(0);

    /// The set with `scope` added.
    #[must_use]
    pub const fn with(self, scope: Scope) -> Self {
        Self(self.0 | scope.bit())
    }

    /// True if the set has `scope`.
    pub const fn has(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// True if the set has no scope.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The scopes of the set, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.has(*scope))
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        scopes.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Display for ScopeSet {
    /// The names, separated by spaces, as in the claim `scope` (RFC 8693).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            let space = if index > 0 { " " } else { "" };
            write!(f, "{space}{scope}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_have_one_name_each() {
        for scope in Scope::ALL {
            assert_eq!(scope.name().parse(), Ok(scope));
        }
        let unknown = "Own".parse::<Scope>();
        assert_eq!(unknown, Err(UnknownScope("Own".into())));
    }

    #[test]
    fn set_has_what_was_added() {
        let set: ScopeSet = [Scope::Admin, Scope::Own].into_iter().collect();
        assert_eq!(set.to_string(), "own admin");
        for scope in Scope::ALL {
            let expected = matches!(scope, Scope::Own | Scope::Admin);
            assert_eq!(set.has(scope), expected, "{scope}");
        }
        assert!(ScopeSet::NONE.is_empty() && !set.is_empty());
    }
}
