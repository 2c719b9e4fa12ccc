//! The metrics of one [`PolicyTable`](crate::policy_table::PolicyTable).
//!
//! A counter is looked up by its labels on first use and then kept, so that an increment costs one
//! addition, `/metrics` lists only what happened, and a recorder that is installed late misses no
//! count.

use std::sync::OnceLock;
use std::time::Duration;

use metrics::{Counter, Histogram};
use turnwire_event::metric::{self, TurnDimensions};
use turnwire_event::{EventType, RenderPolicy};

use crate::event_policy::{EVENT_TYPE_COUNT, metric_label};

/// The number of counters in one row of `applied`: one per event type, and one per policy of a
/// status, the only type whose policy also depends on its id.
const COUNTERS_PER_ROW: usize = EVENT_TYPE_COUNT + 4;

/// The metric labels of a sub-agent.
#[derive(Clone, Debug)]
pub(crate) struct SubagentLabels {
    pub sub_agent_id: String,
    pub vertical: String,
}

/// The row of counters of a sub-agent and its tools. Row 0 is for everything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetricRow(usize);

#[derive(Debug)]
pub(crate) struct PolicyMetrics {
    /// The labels of every metric.
    dimensions: TurnDimensions,
    /// The labels of each row; row 0 has empty labels.
    rows: Vec<SubagentLabels>,
    applied: Box<[OnceLock<Counter>]>,
    emitted: Box<[OnceLock<Counter>]>,
    unregistered: OnceLock<Counter>,
    decision: OnceLock<Histogram>,
}

impl PolicyMetrics {
    /// `agents` are the sub-agents that have a row of their own.
    pub(crate) fn new(
        dimensions: TurnDimensions,
        agents: Vec<SubagentLabels>,
        statuses: usize,
    ) -> Self {
        let not_a_subagent = SubagentLabels {
            sub_agent_id: String::new(),
            vertical: String::new(),
        };
        let rows: Vec<_> = std::iter::once(not_a_subagent).chain(agents).collect();
        let empty = |count| (0..count).map(|_| OnceLock::new()).collect();
        Self {
            applied: empty(rows.len() * COUNTERS_PER_ROW),
            emitted: empty(rows.len() * statuses),
            dimensions,
            rows,
            unregistered: OnceLock::new(),
            decision: OnceLock::new(),
        }
    }

    /// The row of the sub-agent that an event counts for.
    pub(crate) fn row(&self, sub_agent: Option<&str>) -> MetricRow {
        let Some(id) = sub_agent else {
            return MetricRow(0);
        };
        let has_name = |labels: &SubagentLabels| labels.sub_agent_id == id;
        MetricRow(self.rows.iter().position(has_name).unwrap_or(0))
    }

    /// Counts a policy decision about one event (S1-050).
    pub(crate) fn count_applied(&self, row: MetricRow, kind: EventType, policy: RenderPolicy) {
        let column = if matches!(kind, EventType::StatusEmitted) {
            EVENT_TYPE_COUNT + policy as usize
        } else {
            kind as usize
        };
        let counter = self.applied[row.0 * COUNTERS_PER_ROW + column].get_or_init(|| {
            let mut labels = self.labels(row);
            labels.push(("event_type", metric_label(kind).to_owned()));
            labels.push(("policy", policy_name(policy).to_owned()));
            metrics::counter!(metric::STREAM_RENDERING_POLICY_APPLIED_TOTAL, &labels)
        });
        counter.increment(1);
    }

    /// Counts an emission of the status `id`, whose index in the table is `index` (S1-124).
    pub(crate) fn count_status(&self, row: MetricRow, index: usize, id: &str) {
        let counter = self.emitted[index * self.rows.len() + row.0].get_or_init(|| {
            let mut labels = self.labels(row);
            labels.push(("event_id", id.to_owned()));
            metrics::counter!(metric::STREAM_STATUS_EVENT_EMITTED_TOTAL, &labels)
        });
        counter.increment(1);
    }

    /// Counts a status that was withheld because its emitter may not use its id (S1-132).
    pub(crate) fn count_unregistered(&self) {
        let counter = self
            .unregistered
            .get_or_init(|| metrics::counter!(metric::STATUS_EVENT_UNREGISTERED_ID_TOTAL));
        counter.increment(1);
    }

    /// Records the duration of one policy decision.
    pub(crate) fn record_decision(&self, duration: Duration) {
        let histogram = self.decision.get_or_init(|| {
            let labels = self.labels(MetricRow(0));
            metrics::histogram!(metric::STREAM_POLICY_DECISION_SECONDS, &labels)
        });
        histogram.record(duration);
    }

    fn labels(&self, row: MetricRow) -> Vec<(&'static str, String)> {
        let subagent = &self.rows[row.0];
        self.dimensions
            .labels_of(&subagent.vertical, &subagent.sub_agent_id)
            .into()
    }
}

/// The name of a policy in metric labels.
pub(crate) const fn policy_name(policy: RenderPolicy) -> &'static str {
    match policy {
        RenderPolicy::Forward => "forward",
        RenderPolicy::Transform => "transform",
        RenderPolicy::Suppress => "suppress",
        RenderPolicy::Batch => "batch",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::support::CountingRecorder;

    const POLICIES: [RenderPolicy; 4] = [
        RenderPolicy::Forward,
        RenderPolicy::Transform,
        RenderPolicy::Suppress,
        RenderPolicy::Batch,
    ];

    fn metrics_of(sub_agents: &[&str], statuses: usize) -> PolicyMetrics {
        let labels = |id: &&str| SubagentLabels {
            sub_agent_id: (*id).to_owned(),
            vertical: format!("{id}s"),
        };
        let agents = sub_agents.iter().map(labels).collect();
        PolicyMetrics::new(TurnDimensions::default(), agents, statuses)
    }

    // S1-050, S1-124
    #[test]
    fn every_series_has_a_counter_of_its_own() {
        let recorder = CountingRecorder::default();
        let (agents, ids) = (["shop", "rewards"], ["one", "two", "three"]);
        let metrics = metrics_of(&agents, ids.len());
        let kinds = || {
            let kinds = EventType::ALL.iter().copied();
            kinds.filter(|kind| *kind != EventType::StatusEmitted)
        };
        metrics::with_local_recorder(&recorder, || {
            for (number, agent) in (1..).zip(agents) {
                let row = metrics.row(Some(agent));
                // Each series a number of times that no other series has.
                for kind in kinds() {
                    for _ in 0..number * 100 + kind as usize {
                        metrics.count_applied(row, kind, RenderPolicy::Forward);
                    }
                }
                for (at, policy) in POLICIES.into_iter().enumerate() {
                    for _ in 0..number * 10 + at {
                        metrics.count_applied(row, EventType::StatusEmitted, policy);
                    }
                }
                for (at, id) in ids.into_iter().enumerate() {
                    for _ in 0..number * 10 + at {
                        metrics.count_status(row, at, id);
                    }
                }
            }
        });
        for (number, agent) in (1..).zip(agents) {
            let agent = format!("sub_agent_id={agent}");
            let applied = |labels: [&str; 2]| {
                let labels = [&agent, labels[0], labels[1]];
                recorder.sum(metric::STREAM_RENDERING_POLICY_APPLIED_TOTAL, &labels) as usize
            };
            let all: usize = kinds().map(|kind| number * 100 + kind as usize).sum();
            assert_eq!(
                applied(["policy=forward", ""]),
                all + number * 10,
                "{agent}"
            );
            for (at, policy) in POLICIES.into_iter().enumerate() {
                let policy = format!("policy={}", policy_name(policy));
                assert_eq!(applied(["event_type=status", &policy]), number * 10 + at);
            }
            let tool_calls = number * 100 + EventType::ToolCalled as usize;
            assert_eq!(applied(["event_type=tool_call", "policy"]), tool_calls);
            for (at, id) in ids.into_iter().enumerate() {
                let labels = [agent.as_str(), &format!("event_id={id}")];
                let emitted = recorder.sum(metric::STREAM_STATUS_EVENT_EMITTED_TOTAL, &labels);
                assert_eq!(emitted as usize, number * 10 + at, "{labels:?}");
            }
        }
    }
}
