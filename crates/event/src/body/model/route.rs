//! `route.*`: the model that serves a turn.

use serde::{Deserialize, Serialize};

use crate::id::{EpisodeId, UpstreamId};

/// Routing chose the model of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RouteDecided {
    /// The model that is called, as `<provider>:<model>`.
    pub model: String,
    /// The version of the routing policy that decided.
    pub routing_policy_version: String,
    /// The rule or default that matched.
    pub reason: String,
    /// The other models that routing considered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// Set if an agent elsewhere answers the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relayed: Option<RelayedResponse>,
}

impl RouteDecided {
    /// The routing policy and the reason of a relayed turn: its pack names the upstream.
    pub const RELAY: &'static str = "relay";

    /// The route of a turn that the agent `model` answers elsewhere.
    pub fn relayed(model: String, response: RelayedResponse) -> Self {
        Self {
            model,
            routing_policy_version: Self::RELAY.to_owned(),
            reason: Self::RELAY.to_owned(),
            candidates: Vec::new(),
            relayed: Some(response),
        }
    }
}

/// The response of an upstream, as its turn shows it. The frames of the turn begin with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RelayedResponse {
    /// The id that the upstream gave; without it the response has the id of its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<UpstreamId>,
    /// The episode of the session.
    pub episode_id: EpisodeId,
    /// True if the turn ended before the upstream began to answer: nobody has to wait for text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}
