//! Which model serves a turn: the pack's rules over what the turn is. Pure.

use turnwire_event::code::TurnKind;
use turnwire_pack::{ModelChoice, RoutingCondition, RoutingPolicy};

/// The version where no pack has rules.
const BUILTIN: &str = "builtin-1";

/// What a turn is, as far as rules look at it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circumstances<'a> {
    /// Whose it is: a UUID in lower case.
    pub tenant: &'a str,
    /// The agent that asks: a sub-agent's id, `orchestrator` for the one that speaks.
    pub agent: &'a str,
    /// The language tag; empty if nobody said.
    pub locale: &'a str,
    /// What it is for.
    pub kind: TurnKind,
    /// What the session cost before it.
    pub cost_usd: f64,
}

/// The model that is used, whom to ask where it fails, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The model, as `provider:model`.
    pub model: String,
    /// Whom to ask instead, first to last.
    pub fallbacks: Vec<String>,
    /// Why, for the log: `rule german_shop`, `default`, `the agent's own`, `only model`.
    pub reason: String,
}

/// The rules of a pack; without any, every agent has its own model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Routing {
    policy: Option<RoutingPolicy>,
}

impl Routing {
    /// Those of a pack.
    pub fn new(policy: &RoutingPolicy) -> Self {
        Self {
            policy: Some(policy.clone()),
        }
    }

    /// Which version of the rules this is.
    pub fn version(&self) -> &str {
        let policy = self.policy.as_ref();
        policy.map_or(BUILTIN, |policy| &policy.version)
    }

    /// The way of an agent whose own model is `own`.
    pub fn route(&self, own: &str, at: &Circumstances<'_>) -> Route {
        let Some(policy) = &self.policy else {
            return alone(own, "only model");
        };
        let rule = policy.rules.iter().find(|rule| holds(&rule.when, at));
        match (rule, &policy.default) {
            (Some(rule), _) => chosen(&rule.choice, format!("rule {}", rule.name)),
            (None, Some(default)) => chosen(default, "default".to_owned()),
            (None, None) => alone(own, "the agent's own"),
        }
    }
}

fn alone(own: &str, reason: &str) -> Route {
    Route {
        model: own.to_owned(),
        fallbacks: Vec::new(),
        reason: reason.to_owned(),
    }
}

fn chosen(choice: &ModelChoice, reason: String) -> Route {
    Route {
        model: choice.model.clone(),
        fallbacks: choice.fallbacks.clone(),
        reason,
    }
}

fn holds(when: &RoutingCondition, at: &Circumstances<'_>) -> bool {
    let any = |wanted: &[String], fits: &dyn Fn(&str) -> bool| {
        wanted.is_empty() || wanted.iter().any(|wanted| fits(wanted))
    };
    any(&when.tenants, &|tenant| {
        tenant.eq_ignore_ascii_case(at.tenant)
    }) && any(&when.agents, &|agent| agent == at.agent)
        && any(&when.locales, &|locale| speaks(at.locale, locale))
        && (when.kinds.is_empty() || when.kinds.contains(&at.kind))
        && when.cost_above_usd.is_none_or(|most| at.cost_usd > most)
}

/// Whether a language tag is `wanted` or a kind of it: `de-AT` is a kind of `de`.
fn speaks(tag: &str, wanted: &str) -> bool {
    let mut parts = tag.split(['-', '_']);
    wanted.split(['-', '_']).all(|wanted| {
        parts
            .next()
            .is_some_and(|part| part.eq_ignore_ascii_case(wanted))
    })
}

#[cfg(test)]
mod tests {
    use turnwire_pack::RoutingRule;

    use super::*;

    const TENANT: &str = "0192f1aa-0000-7000-8000-000000000001";

    const AT: Circumstances<'static> = Circumstances {
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

    fn policy(whens: Vec<RoutingCondition>, default: Option<ModelChoice>) -> Routing {
        let rules = whens.into_iter().zip(1..).map(|(when, n)| RoutingRule {
            name: format!("r{n}"),
            when,
            choice: choice(&format!("a:m{n}")),
        });
        Routing::new(&RoutingPolicy {
            version: "v7".into(),
            rules: rules.collect(),
            default,
        })
    }

    fn reason(when: RoutingCondition, at: &Circumstances<'_>) -> String {
        policy(vec![when], None).route("own:m", at).reason
    }

    fn list(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn without_rules_every_agent_has_its_own_model() {
        let routing = Routing::default();
        assert_eq!(routing.version(), "builtin-1");
        let expected = Route {
            model: "own:m".into(),
            fallbacks: Vec::new(),
            reason: "only model".into(),
        };
        assert_eq!(routing.route("own:m", &AT), expected);
    }

    #[test]
    fn r_16_the_first_rule_that_holds_counts_then_the_default_then_the_agents_own() {
        let stranger = RoutingCondition {
            agents: list(&["points"]),
            ..RoutingCondition::default()
        };
        let two = policy(
            vec![RoutingCondition::default(), RoutingCondition::default()],
            None,
        );
        assert_eq!(two.version(), "v7");
        let expected = Route {
            model: "a:m1".into(),
            fallbacks: vec!["b:spare".into()],
            reason: "rule r1".into(),
        };
        assert_eq!(two.route("own:m", &AT), expected);
        let later = policy(vec![stranger.clone(), RoutingCondition::default()], None);
        assert_eq!(later.route("own:m", &AT).model, "a:m2");
        let default = policy(vec![stranger.clone()], Some(choice("a:any")));
        let route = default.route("own:m", &AT);
        assert_eq!(
            (route.model.as_str(), route.reason.as_str()),
            ("a:any", "default")
        );
        let none = policy(vec![stranger], None).route("own:m", &AT);
        let expected = Route {
            model: "own:m".into(),
            fallbacks: Vec::new(),
            reason: "the agent's own".into(),
        };
        assert_eq!(none, expected);
    }

    #[test]
    fn every_condition_that_is_given_must_hold() {
        let all = RoutingCondition {
            tenants: list(&["0192F1AA-0000-7000-8000-000000000001"]),
            agents: list(&["points", "shop"]),
            locales: list(&["fr", "de"]),
            kinds: vec![TurnKind::Scheduled, TurnKind::Chat],
            cost_above_usd: Some(0.49),
        };
        assert_eq!(reason(all.clone(), &AT), "rule r1");
        let others = [
            Circumstances { tenant: "x", ..AT },
            Circumstances {
                agent: "orchestrator",
                ..AT
            },
            Circumstances { locale: "en", ..AT },
            Circumstances {
                kind: TurnKind::Mission,
                ..AT
            },
            Circumstances {
                cost_usd: 0.49,
                ..AT
            },
            Circumstances {
                cost_usd: f64::NAN,
                ..AT
            },
        ];
        for at in others {
            assert_eq!(reason(all.clone(), &at), "the agent's own", "{at:?}");
        }
    }

    #[test]
    fn a_language_holds_for_its_kinds_and_not_the_other_way() {
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
        for (wanted, tag, fits) in cases {
            assert_eq!(speaks(tag, wanted), fits, "{wanted} {tag}");
        }
    }
}
