//! What the model calls of one turn may use together, whoever makes them. A turn that has used it
//! up makes no more calls: a model that goes in circles costs money, and so does one that was
//! talked into it.

use parking_lot::Mutex;
use turnwire_event::Usage;

use crate::options::Options;

/// A bound of a turn that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Model calls of one agent.
    Calls,
    /// Tokens of all calls.
    Tokens,
    /// What all calls cost.
    Cost,
}

impl Limit {
    /// What the turn's end says of it.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Calls => "limit_calls",
            Self::Tokens => "limit_tokens",
            Self::Cost => "limit_cost",
        }
    }
}

/// The purse of one turn, shared by the agent that speaks and those that work for it.
#[derive(Debug)]
pub(crate) struct Purse {
    tokens_max: u64,
    cost_max_usd: Option<f64>,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    tokens: u64,
    cost_usd: f64,
}

impl Purse {
    /// A full one.
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            tokens_max: options.turn_tokens_max,
            cost_max_usd: options.turn_cost_max_usd,
            spent: Mutex::default(),
        }
    }

    /// Pays for a call.
    pub(crate) fn spend(&self, usage: Usage) {
        // Some vendors tell only the parts, some only the sum.
        let parts = usage.input_tokens.saturating_add(usage.output_tokens);
        let mut spent = self.spent.lock();
        spent.tokens = spent.tokens.saturating_add(usage.total_tokens.max(parts));
        spent.cost_usd += usage.cost_usd;
    }

    /// Whether another call may start. Calls in flight are not known yet: each agent has at most
    /// one, so what is used beyond the bound is at most one call of each.
    pub(crate) fn check(&self) -> Result<(), Limit> {
        let spent = self.spent.lock();
        if spent.tokens >= self.tokens_max {
            return Err(Limit::Tokens);
        }
        // What is free may go on, even where nothing may be paid.
        let costs = spent.cost_usd > 0.0;
        match self.cost_max_usd {
            Some(most) if costs && spent.cost_usd >= most => Err(Limit::Cost),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purse(tokens: u64, cost: Option<f64>) -> Purse {
        Purse::new(&Options {
            turn_tokens_max: tokens,
            turn_cost_max_usd: cost,
            ..Options::default()
        })
    }

    fn usage(input_tokens: u64, total_tokens: u64, cost_usd: f64) -> Usage {
        Usage {
            input_tokens,
            total_tokens,
            cost_usd,
            ..Usage::default()
        }
    }

    #[test]
    fn tokens_are_counted_as_told_or_as_their_parts() {
        let purse = purse(30, None);
        purse.spend(usage(10, 0, 9.0));
        purse.spend(usage(5, 19, 9.0));
        assert_eq!(purse.check(), Ok(()));
        purse.spend(usage(0, 1, 9.0));
        assert_eq!(purse.check(), Err(Limit::Tokens));
        purse.spend(usage(u64::MAX, 1, 9.0));
        assert_eq!(purse.check(), Err(Limit::Tokens));
    }

    #[test]
    fn money_ends_a_turn_and_what_is_free_does_not() {
        let rich = purse(100, Some(0.5));
        rich.spend(usage(1, 1, 0.25));
        assert_eq!(rich.check(), Ok(()));
        rich.spend(usage(1, 1, 0.25));
        assert_eq!(rich.check(), Err(Limit::Cost));
        let poor = purse(100, Some(0.0));
        poor.spend(usage(1, 1, 0.0));
        assert_eq!(poor.check(), Ok(()));
        poor.spend(usage(1, 1, 0.001));
        assert_eq!(poor.check(), Err(Limit::Cost));
    }
}
