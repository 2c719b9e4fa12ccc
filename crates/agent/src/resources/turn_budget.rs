//! What all model calls of one turn may use together, whichever agent makes them. A turn whose
//! budget is used up starts no more calls: a model in a loop costs money, and so does a model that
//! was tricked into one.

use parking_lot::Mutex;
use turnwire_event::TokenUsage;
use turnwire_event::body::turn::TurnCompleted;

use crate::options::AgentOptions;

/// A bound of a turn that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetLimit {
    /// Model calls of one agent.
    Calls,
    /// Tokens of all calls.
    Tokens,
    /// Cost of all calls.
    Cost,
}

impl BudgetLimit {
    /// The reason in the end of the turn.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::Calls => TurnCompleted::LIMIT_CALLS,
            Self::Tokens => TurnCompleted::LIMIT_TOKENS,
            Self::Cost => TurnCompleted::LIMIT_COST,
        }
    }
}

/// The budget of one turn, shared by all of its agents.
#[derive(Debug)]
pub(crate) struct TurnBudget {
    tokens_max: u64,
    cost_max_usd: Option<f64>,
    spent: Mutex<SpentTotals>,
}

#[derive(Debug, Default)]
struct SpentTotals {
    tokens: u64,
    cost_usd: f64,
}

impl TurnBudget {
    /// A budget of which nothing is spent.
    pub(crate) fn new(options: &AgentOptions) -> Self {
        Self {
            tokens_max: options.turn_tokens_max,
            cost_max_usd: options.turn_cost_max_usd,
            spent: Mutex::default(),
        }
    }

    /// Adds the [`TokenUsage`] of a call.
    pub(crate) fn spend(&self, usage: TokenUsage) {
        // Some providers report only the parts, some only the total.
        let parts = usage.input_tokens.saturating_add(usage.output_tokens);
        let mut spent = self.spent.lock();
        spent.tokens = spent.tokens.saturating_add(usage.total_tokens.max(parts));
        spent.cost_usd += usage.cost_usd;
    }

    /// Refuses another call if a [`BudgetLimit`] is reached. Calls in flight do not count yet: each
    /// agent has at most one, so the excess is at most one call of each agent.
    pub(crate) fn check(&self) -> Result<(), BudgetLimit> {
        let spent = self.spent.lock();
        if spent.tokens >= self.tokens_max {
            return Err(BudgetLimit::Tokens);
        }
        // Free calls may go on even if the bound is zero.
        let has_cost = spent.cost_usd > 0.0;
        match self.cost_max_usd {
            Some(cost_max) if has_cost && spent.cost_usd >= cost_max => Err(BudgetLimit::Cost),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(tokens: u64, cost: Option<f64>) -> TurnBudget {
        TurnBudget::new(&AgentOptions {
            turn_tokens_max: tokens,
            turn_cost_max_usd: cost,
            ..AgentOptions::default()
        })
    }

    fn usage(input_tokens: u64, total_tokens: u64, cost_usd: f64) -> TokenUsage {
        TokenUsage {
            input_tokens,
            total_tokens,
            cost_usd,
            ..TokenUsage::default()
        }
    }

    #[test]
    fn tokens_count_as_total_or_as_the_sum_of_their_parts() {
        let budget = budget(30, None);
        budget.spend(usage(10, 0, 9.0));
        budget.spend(usage(5, 19, 9.0));
        assert_eq!(budget.check(), Ok(()));
        budget.spend(usage(0, 1, 9.0));
        assert_eq!(budget.check(), Err(BudgetLimit::Tokens));
        budget.spend(usage(u64::MAX, 1, 9.0));
        assert_eq!(budget.check(), Err(BudgetLimit::Tokens));
    }

    #[test]
    fn cost_ends_a_turn_and_free_calls_do_not() {
        let paid = budget(100, Some(0.5));
        paid.spend(usage(1, 1, 0.25));
        assert_eq!(paid.check(), Ok(()));
        paid.spend(usage(1, 1, 0.25));
        assert_eq!(paid.check(), Err(BudgetLimit::Cost));
        let free = budget(100, Some(0.0));
        free.spend(usage(1, 1, 0.0));
        assert_eq!(free.check(), Ok(()));
        free.spend(usage(1, 1, 0.001));
        assert_eq!(free.check(), Err(BudgetLimit::Cost));
    }
}
