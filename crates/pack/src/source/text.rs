//! `locales/<tag>.yaml` and `overrides.yaml` as they are written.

use serde::Deserialize;
#[cfg(feature = "schema")]
use turnwire_event::RenderPolicy;

use super::form::{Either, Pairs};
use crate::place::At;

/// Render keys → texts.
pub(crate) type LocaleSource = Pairs<At<Either<String, LineSource>>>;

/// A text with the form it has inside a sentence.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LineSource {
    /// The sentence.
    #[cfg_attr(feature = "schema", schemars(required))]
    pub(crate) message: Option<At<String>>,
    /// The same as a part of a sentence, for when several are shown as one.
    pub(crate) phrase: Option<At<String>>,
}

/// Flags → status ids or event types → what changes.
pub(crate) type OverridesSource = Pairs<Pairs<At<ChangeSource>>>;

/// What changes: at least one of the two.
#[derive(Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeSource {
    /// How it is shown instead.
    #[cfg_attr(feature = "schema", schemars(with = "Option<RenderPolicy>"))]
    pub(crate) policy: Option<At<String>>,
    /// Which text of the locale files is shown instead; for status ids only.
    pub(crate) render_key: Option<At<String>>,
}
