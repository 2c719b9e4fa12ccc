//! Model routing: the pack's rules choose the model of a turn. Pure. The input is [`RoutingInput`]
//! of the turn, the output a [`ModelRoute`] with its reason.

use turnwire_event::code::TurnKind;
use turnwire_pack::{RoutingCondition, RoutingPolicy};

/// Version reported if the pack has no rules.
const BUILTIN: &str = "builtin-1";

/// The properties of a turn that routing rules test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoutingInput<'a> {
    /// Tenant id: a UUID in lower case.
    pub tenant: &'a str,
    /// Id of the calling agent: a sub-agent's id, or `orchestrator`.
    pub agent: &'a str,
    /// BCP 47 language tag; empty if unknown.
    pub locale: &'a str,
    /// The kind of turn.
    pub kind: TurnKind,
    /// Cost of the session before this turn, in USD.
    pub cost_usd: f64,
}

/// The result of [`ModelRouter::route`]: the chosen model, its fallbacks and the reason of the
/// choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRoute {
    /// The chosen model, written `provider:model`.
    pub model: String,
    /// Models to try if the first fails, in order.
    pub fallbacks: Vec<String>,
    /// Reason of the choice, for the log: `rule german_shop`, `default`, `the agent's own`, `only
    /// model`.
    pub reason: String,
}

/// The routing rules of a pack; without rules every agent uses its own model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRouter {
    policy: Option<RoutingPolicy>,
}

impl ModelRouter {
    /// The rules of a pack's [`RoutingPolicy`].
    pub fn new(policy: &RoutingPolicy) -> Self {
        Self {
            policy: Some(policy.clone()),
        }
    }

    /// Version of the rules, as the pack names it.
    pub fn version(&self) -> &str {
        let policy = self.policy.as_ref();
        policy.map_or(BUILTIN, |policy| &policy.version)
    }

    /// Chooses the model for an agent whose own model is `own`: the first matching rule, else the
    /// policy's default, else `own`.
    pub fn route(&self, own: &str, turn: &RoutingInput<'_>) -> ModelRoute {
        let Some(policy) = &self.policy else {
            return ModelRoute::new(own, &[], "only model");
        };
        let rule = policy.rules.iter().find(|rule| is_match(&rule.when, turn));
        let (choice, reason) = match (rule, &policy.default) {
            (Some(rule), _) => (&rule.choice, format!("rule {}", rule.name)),
            (None, Some(default)) => (default, "default".to_owned()),
            (None, None) => return ModelRoute::new(own, &[], "the agent's own"),
        };
        ModelRoute::new(&choice.model, &choice.fallbacks, reason)
    }
}

impl ModelRoute {
    fn new(model: &str, fallbacks: &[String], reason: impl Into<String>) -> Self {
        Self {
            model: model.to_owned(),
            fallbacks: fallbacks.to_vec(),
            reason: reason.into(),
        }
    }
}

fn is_match(when: &RoutingCondition, turn: &RoutingInput<'_>) -> bool {
    let any = |listed: &[String], is_equal: &dyn Fn(&str) -> bool| {
        listed.is_empty() || listed.iter().any(|item| is_equal(item))
    };
    any(&when.tenants, &|tenant| {
        tenant.eq_ignore_ascii_case(turn.tenant)
    }) && any(&when.agents, &|agent| agent == turn.agent)
        && any(&when.locales, &|locale| is_language_of(turn.locale, locale))
        && (when.kinds.is_empty() || when.kinds.contains(&turn.kind))
        && when
            .cost_above_usd
            .is_none_or(|limit| turn.cost_usd > limit)
}

/// True if the language tag equals `wanted` or is more specific: `de-AT` matches `de`.
fn is_language_of(tag: &str, wanted: &str) -> bool {
    let mut parts = tag.split(['-', '_']);
    wanted.split(['-', '_']).all(|wanted| {
        parts
            .next()
            .is_some_and(|part| part.eq_ignore_ascii_case(wanted))
    })
}

#[cfg(test)]
mod tests {
    use turnwire_pack::{ModelChoice, RoutingRule};

    use super::*;

    const TENANT: &str = "0192f1aa-0000-7000-8000-000000000001";

    const TURN: RoutingInput<'static> = RoutingInput {
        tenant: TENANT,
        agent: "shop",
        locale: "de-AT",
        kind: TurnKind::Chat,
        cost_usd: 0.5,
    };

    fn choice(model: &str) -> ModelChoice {
        ModelChoice {
            model: model.into(),
            fallbacks: vec!["b:spare".into()],
        }
    }

    fn policy(whens: Vec<RoutingCondition>, default: Option<ModelChoice>) -> ModelRouter {
        let rules = whens.into_iter().zip(1..).map(|(when, n)| RoutingRule {
            name: format!("r{n}"),
            when,
            choice: choice(&format!("a:m{n}")),
        });
        ModelRouter::new(&RoutingPolicy {
            version: "v7".into(),
            rules: rules.collect(),
            default,
        })
    }

    fn reason(when: RoutingCondition, turn: &RoutingInput<'_>) -> String {
        policy(vec![when], None).route("own:m", turn).reason
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn route_without_rules_is_the_agents_own_model() {
        let routing = ModelRouter::default();
        assert_eq!(routing.version(), "builtin-1");
        let expected = ModelRoute {
            model: "own:m".into(),
            fallbacks: Vec::new(),
            reason: "only model".into(),
        };
        assert_eq!(routing.route("own:m", &TURN), expected);
    }

    //
    #[test]
    fn route_is_first_match_then_default_then_own_model() {
        let other_agent = RoutingCondition {
            agents: list(&["points"]),
            ..RoutingCondition::default()
        };
        let two_rules = policy(
            vec![RoutingCondition::default(), RoutingCondition::default()],
            None,
        );
        assert_eq!(two_rules.version(), "v7");
        let expected = ModelRoute {
            model: "a:m1".into(),
            fallbacks: vec!["b:spare".into()],
            reason: "rule r1".into(),
        };
        assert_eq!(two_rules.route("own:m", &TURN), expected);
        let second_matches = policy(vec![other_agent.clone(), RoutingCondition::default()], None);
        assert_eq!(second_matches.route("own:m", &TURN).model, "a:m2");
        let default = policy(vec![other_agent.clone()], Some(choice("a:any")));
        let route = default.route("own:m", &TURN);
        assert_eq!(
            (route.model.as_str(), route.reason.as_str()),
            ("a:any", "default")
        );
        let unmatched = policy(vec![other_agent], None).route("own:m", &TURN);
        let expected = ModelRoute {
            model: "own:m".into(),
            fallbacks: Vec::new(),
            reason: "the agent's own".into(),
        };
        assert_eq!(unmatched, expected);
    }

    #[test]
    fn rule_matches_only_if_all_its_conditions_hold() {
        let all = RoutingCondition {
            tenants: list(&["0192F1AA-0000-7000-8000-000000000001"]),
            agents: list(&["points", "shop"]),
            locales: list(&["fr", "de"]),
            kinds: vec![TurnKind::Scheduled, TurnKind::Chat],
            cost_above_usd: Some(0.49),
        };
        assert_eq!(reason(all.clone(), &TURN), "rule r1");
        let mismatches = [
            RoutingInput {
                tenant: "x",
                ..TURN
            },
            RoutingInput {
                agent: "orchestrator",
                ..TURN
            },
            RoutingInput {
                locale: "en",
                ..TURN
            },
            RoutingInput {
                kind: TurnKind::Mission,
                ..TURN
            },
            RoutingInput {
                cost_usd: 0.49,
                ..TURN
            },
            RoutingInput {
                cost_usd: f64::NAN,
                ..TURN
            },
        ];
        for turn in mismatches {
            assert_eq!(reason(all.clone(), &turn), "the agent's own", "{turn:?}");
        }
    }

    #[test]
    fn language_condition_matches_more_specific_tags_only() {
        let cases = [
            ("de", "de", true),
            ("de", "de-AT", true),
            ("de", "DE_at", true),
            ("de-AT", "de-AT", true),
            ("de-at", "de-AT-1996", true),
            ("de-AT", "de", false),
            ("de", "den", false),
            ("de", "", false),
        ];
        for (wanted, tag, expected) in cases {
            assert_eq!(is_language_of(tag, wanted), expected, "{wanted} {tag}");
        }
    }
}
