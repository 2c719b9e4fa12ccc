//! Checks `routing.yaml`: conditions over existing agents and valid tenants and languages, models that
//! exist, and rules that can match.

use turnwire_event::TenantId;

use crate::check::manifest::CheckedManifest;
use crate::check::model::name;
use crate::check::report::{FileReport, word};
use crate::finding::{Findings, KnownNames};
use crate::pack::agent::ORCHESTRATOR_ID;
use crate::pack::locale::is_tag;
use crate::pack::model_use::ModelUse;
use crate::pack::routing::{ModelChoice, RoutingCondition, RoutingPolicy, RoutingRule};
use crate::source::form::OneOrMany;
use crate::source::route::{RoutingSource, RuleSource, WhenSource};
use crate::text::digest::Digest;
use crate::text::wording::one_line;
use crate::yaml::{Located, TextPosition};

pub(crate) const FILE: &str = "routing.yaml";
/// The maximum number of names in one list of a condition.
const LIST_MAX: usize = 100;
/// The maximum number of fallbacks: no user waits for a ninth model.
const FALLBACKS_MAX: usize = 8;
/// The names that a rule may refer to.
pub(crate) struct RoutingContext<'a> {
    pub(crate) manifest: &'a CheckedManifest,
    pub(crate) providers: &'a KnownNames,
    /// The ids of the sub-agents and workers.
    pub(crate) agents: &'a KnownNames,
    /// The orchestrator's id; `None` if its file is broken.
    pub(crate) orchestrator: Option<&'a str>,
}

/// The [`RoutingPolicy`] of `routing.yaml`, and the models that it uses.
#[derive(Default)]
pub(crate) struct CheckedRouting {
    pub(crate) policy: Option<RoutingPolicy>,
    pub(crate) uses: Vec<ModelUse>,
}

/// Checks the file; `text` is its text.
pub(crate) fn check(
    source: Option<&RoutingSource>,
    text: Option<&str>,
    context: &RoutingContext<'_>,
    findings: &mut Findings,
) -> CheckedRouting {
    let (Some(source), Some(text)) = (source, text) else {
        return CheckedRouting::default();
    };
    let mut check = RoutingCheck {
        report: FileReport::new(FILE, findings),
        context,
        uses: Vec::new(),
    };
    let version = match &source.version {
        Some(version) => version.value.trim().to_owned(),
        None => Digest::of([text]).short(),
    };
    let mut rules: Vec<RoutingRule> = Vec::new();
    for (number, rule) in (1..).zip(&source.rules) {
        let made = check.rule(number, rule, &rules);
        check.warn_unreachable(rule.position, &made.when, &rules, "this rule");
        rules.push(made);
    }
    let default = source.default.as_ref().map(|default| {
        check.warn_unreachable(
            default.position,
            &RoutingCondition::default(),
            &rules,
            "the default",
        );
        let written = (&default.value.model, &default.value.fallback);
        check.choice(written)
    });
    if rules.is_empty() && default.is_none() {
        let message = "no rule and no default: nothing is routed";
        let instead = "`default: {use: …}`, or no routing.yaml";
        check.report.warning(TextPosition::TOP, message, instead);
    }
    CheckedRouting {
        uses: check.uses,
        policy: Some(RoutingPolicy {
            version,
            rules,
            default,
        }),
    }
}

/// A check of `routing.yaml` in progress.
struct RoutingCheck<'a, 'p> {
    report: FileReport<'p>,
    context: &'a RoutingContext<'a>,
    uses: Vec<ModelUse>,
}

impl RoutingCheck<'_, '_> {
    fn rule(
        &mut self,
        number: usize,
        rule: &Located<RuleSource>,
        before: &[RoutingRule],
    ) -> RoutingRule {
        let source = &rule.value;
        let name = match &source.name {
            Some(name) => {
                if before.iter().any(|rule| rule.name == name.value) {
                    let message = format!("the rule `{}` is there twice", one_line(&name.value));
                    self.report.error(name.position, message, "another name");
                }
                name.value.clone()
            }
            None => number.to_string(),
        };
        let when = source.when.as_ref();
        RoutingRule {
            name,
            when: when.map(|when| self.when(&when.value)).unwrap_or_default(),
            choice: self.choice((&source.model, &source.fallback)),
        }
    }

    fn when(&mut self, source: &WhenSource) -> RoutingCondition {
        let tenants = self.list(source.tenant.as_ref(), "tenant");
        let tenants = tenants.iter().map(|tenant| self.tenant(tenant)).collect();
        let agents = self.list(source.agent.as_ref(), "agent");
        let agents = agents.iter().map(|agent| self.agent(agent)).collect();
        let locales = self.list(source.locale.as_ref(), "locale");
        let locales = locales.iter().map(|locale| self.locale(locale)).collect();
        let kinds = self.list(source.kind.as_ref(), "kind");
        let kinds = kinds.into_iter().filter_map(|kind| word(&Some(kind)));
        let kinds = kinds.collect();
        let cost = source.cost_above_usd.as_ref();
        RoutingCondition {
            tenants,
            agents,
            locales,
            kinds,
            cost_above_usd: cost.map(|usd| usd.value),
        }
    }

    /// The entries of a condition.
    fn list(&mut self, field: Option<&Located<OneOrMany>>, name: &str) -> Vec<Located<String>> {
        let Some(field) = field else {
            return Vec::new();
        };
        let texts = field.texts();
        if texts.is_empty() {
            let message = format!("`{name}` is empty: the rule would never hold");
            let instead = format!("at least one, or no `{name}`");
            self.report.error(field.position, message, instead);
        }
        if let Some(first_extra) = texts.get(LIST_MAX) {
            let message = format!("`{name}` has more than {LIST_MAX} names");
            self.report
                .error(first_extra.position, message, "a rule for each");
        }
        self.report.check_unique(&texts, name);
        texts
    }

    fn tenant(&mut self, tenant: &Located<String>) -> String {
        match tenant.value.parse::<TenantId>() {
            Ok(id) => id.to_string(),
            Err(_) => {
                let message = format!("`{}` is not a tenant", one_line(&tenant.value));
                let example = "a UUID, such as `0192f1aa-0000-7000-8000-000000000001`";
                self.report.error(tenant.position, message, example);
                String::new()
            }
        }
    }

    fn agent(&mut self, agent: &Located<String>) -> String {
        let context = self.context;
        let orchestrator = context.orchestrator.unwrap_or(ORCHESTRATOR_ID);
        if agent.value == ORCHESTRATOR_ID || agent.value == orchestrator {
            return ORCHESTRATOR_ID.to_owned();
        }
        let mut known_names = context.agents.clone();
        known_names.names.insert(0, ORCHESTRATOR_ID.to_owned());
        known_names.incomplete |= context.orchestrator.is_none();
        self.report.unknown(agent, "agent", &known_names);
        agent.value.clone()
    }

    fn locale(&mut self, locale: &Located<String>) -> String {
        if !is_tag(&locale.value) {
            let message = format!("`{}` is not a language tag", one_line(&locale.value));
            let instead = "for example `de`, which holds for `de-AT` too";
            self.report.error(locale.position, message, instead);
        }
        locale.value.replace('_', "-")
    }

    fn choice(
        &mut self,
        (model, fallback): (&Option<Located<String>>, &Option<Located<OneOrMany>>),
    ) -> ModelChoice {
        let model = model
            .as_ref()
            .and_then(|name| self.model(name))
            .unwrap_or_default();
        let listed = fallback.as_ref().map(Located::texts).unwrap_or_default();
        if let Some(first_extra) = listed.get(FALLBACKS_MAX) {
            let message = format!("more than {FALLBACKS_MAX} fallbacks");
            self.report.error(first_extra.position, message, "fewer");
        }
        let mut fallbacks: Vec<String> = Vec::new();
        for name in &listed {
            let Some(other) = self.model(name) else {
                continue;
            };
            if other == model {
                let message = format!(
                    "the fallback `{}` is what failed already",
                    one_line(&name.value)
                );
                self.report.warning(name.position, message, "another model");
            } else if fallbacks.contains(&other) {
                let message = format!("the fallback `{}` is there twice", one_line(&name.value));
                self.report.warning(name.position, message, "it once");
            } else {
                fallbacks.push(other);
            }
        }
        ModelChoice { model, fallbacks }
    }

    fn model(&mut self, name: &Located<String>) -> Option<String> {
        let context = self.context;
        let model = name::resolved(&mut self.report, name, context.manifest, context.providers)?;
        self.uses.push(name::used(FILE, name.position, &model));
        Some(model)
    }

    /// Warns of a rule that an earlier rule always hides.
    fn warn_unreachable(
        &mut self,
        position: TextPosition,
        when: &RoutingCondition,
        before: &[RoutingRule],
        message: &str,
    ) {
        let Some(rule) = before.iter().find(|rule| covers(&rule.when, when)) else {
            return;
        };
        let name = one_line(&rule.name);
        let (holds, instead) = match rule.when == RoutingCondition::default() {
            true => (
                "always holds",
                format!("a `when` for rule `{name}`, or it as the last"),
            ),
            false => (
                "holds whenever this does",
                format!("it before rule `{name}`, or nothing"),
            ),
        };
        let reason = format!("rule `{name}` before it {holds}");
        let message = format!("{message} is never used: {reason}");
        self.report.warning(position, message, instead);
    }
}

/// True if `first` matches every turn that `then` matches.
fn covers(first: &RoutingCondition, then: &RoutingCondition) -> bool {
    // An empty list matches every value.
    fn covers_list<T>(first: &[T], then: &[T], is_covered: impl Fn(&T, &T) -> bool) -> bool {
        let is_in_first = |value: &T| first.iter().any(|cover| is_covered(value, cover));
        first.is_empty() || !then.is_empty() && then.iter().all(is_in_first)
    }
    let is_equal = |value: &String, cover: &String| value == cover;
    covers_list(&first.tenants, &then.tenants, is_equal)
        && covers_list(&first.agents, &then.agents, is_equal)
        && covers_list(&first.locales, &then.locales, |tag, cover| {
            is_variant(tag, cover)
        })
        && covers_list(&first.kinds, &then.kinds, |kind, cover| kind == cover)
        && match (first.cost_above_usd, then.cost_above_usd) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(first), Some(then)) => then >= first,
        }
}

/// True if the language tag `tag` is `base` or a variant of it.
fn is_variant(tag: &str, base: &str) -> bool {
    let mut parts = tag.split('-');
    base.split('-').all(|base_part| {
        parts
            .next()
            .is_some_and(|part| part.eq_ignore_ascii_case(base_part))
    })
}
